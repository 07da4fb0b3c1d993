"""Dry friction at contacts whose motions may depend on each other, in the direct formulation."""

from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, operator
from torchlcp.physics._system import Problem

__all__ = ["DirectFrictionStep", "direct_friction_problem", "read_direct_friction"]


class DirectFrictionStep(NamedTuple):
    """The result of a step.

    v_next: [..., k], m/s.
    slip: [..., r], c, m/s, exactly 0 where the friction of a contact is below its limit.
    impulse: [..., r], p, N s: J'p is unique, p is not where rows of J depend on each other.
    """

    v_next: Tensor
    slip: Tensor
    impulse: Tensor


@operator("_direct_friction_problem")
def direct_friction_problem(J: TensorLike, inverse_mass: TensorLike, v_free: TensorLike, limit: TensorLike) -> Problem:
    """The LCP of a step of any body with r contacts of known normal forces, for torchlcp.solve.

        A (v_next - v*) = J'p,   c = J v_next,   |p_i| <= limit_i,   p_i = -limit_i sign(c_i) where c_i != 0

    with z = (limit + p, c-), w = (c+, limit - p), 2 r unknowns. It has a solution for every J, and v_next is unique.
    Differentiable in all four.

        Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, sections 2.3 and 3.1.

    Args:
        J: [..., r, k], of any rank.
        inverse_mass: [..., k, k], A^-1, symmetric and positive definite, 1/kg for a mass.
        v_free: [..., k], v*, m/s, the velocities without friction.
        limit: [..., r], N s, >= 0. All batch dimensions broadcast.

    Raises:
        RuntimeError: a shape does not fit.
    """


@operator("_read_direct_friction")
def read_direct_friction(
    z: TensorLike, w: TensorLike, J: TensorLike, inverse_mass: TensorLike, v_free: TensorLike
) -> DirectFrictionStep:
    """The step of z and w, [..., 2 r], a solution of direct_friction_problem for the other arguments."""
