"""Rollouts of linear complementarity systems."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import Feedback, TensorLike, operator

__all__ = ["Feedback", "Rollout", "simulate_lcs"]


class Rollout(NamedTuple):
    """T steps: the states at their ends, x_next [..., T, k], and of each step z and w [..., T, n], its status [..., T],
    int8, the values of Status, and its residual [..., T], max_i |min(z_i, (E x + H u + M z + q)_i)|, which has no
    gradient.
    """

    x_next: Tensor
    z: Tensor
    w: Tensor
    status: Tensor
    residual: Tensor


@operator("simulate_lcs")
def simulate_lcs(
    A: TensorLike,
    B: TensorLike,
    D: TensorLike,
    G: TensorLike,
    d: TensorLike,
    E: TensorLike,
    H: TensorLike,
    M: TensorLike,
    q: TensorLike,
    x: TensorLike,
    u: TensorLike,
    *,
    cone: Sequence[int] | None = None,
    ties: str = "inactive",
    tolerance: float | None = None,
    feedback: Feedback | None = None,
) -> Rollout:
    """Steps one linear complementarity system for each element of a batch, in one walk through all steps [HSW].

        w = E x + H u_s + M z + q,   0 <= z perp w >= 0,   x_next = A x + B u_s + D z + G w + d

    The results are those of a loop over solve, up to rounding; a component of x_next that is the rounding error of its
    terms is exactly 0. From a step on that is not solved, x_next, z, w and the residual are NaN and the later statuses
    BAD_INPUT. Differentiable in all eleven tensors, any number of times; the first derivative in reverse mode is a walk
    back through the steps. The gradient of a trajectory that is not solved is 0 where its incoming gradient is 0, else
    NaN.

    In memory the results have the steps before the batch.

        [HSW] Heemels, Schumacher, Weiland: Linear complementarity systems, SIAM J. Appl. Math. 60, 2000.

    Args:
        A: [..., k, k], float32 or float64; k, m, n and T may be 0.
        B: [..., k, m], of A's dtype and device, like all that follow.
        D: [..., k, n].
        G: [..., k, n].
        d: [..., k].
        E: [..., n, k].
        H: [..., n, m].
        M: [..., n, n].
        q: [..., n].
        x: [..., k], the first state.
        u: [..., T, m], the input of each step. All batch dimensions broadcast.
        cone: contacts with polyhedral friction: cone[i] = j where pair i is a direction, with the force z_i and the
            velocity w_i - z_j, of the contact whose pair j has the slip speed z_j and the unused friction w_j; else -1.
            Where a contact sticks, the w of its directions count as 0 in G w, also in the derivative.
        ties, tolerance: as in solve.
        feedback: of the state, beside u: K [m, k] or [..., T, m, k], and a reference [k] or [..., T, k].

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """
