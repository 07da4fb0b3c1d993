"""A block that slides on a line under a force and dry friction."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from torchlcp._arguments import Feedback, TensorLike, operator
from torchlcp.physics._system import MixedProblem, Problem, RolloutCertificate, System, one_step

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics._system import SolveOptions

__all__ = ["SlidingBlock", "SlidingBlockSolution", "SlidingBlockStep"]


class SlidingBlockStep(NamedTuple):
    """The result of a step, each [...].

    v_next: m/s.
    lambda_plus, lambda_minus: N, the friction forces along +x and -x.
    gamma: m/s, the slack velocity, which is |v_next| where it is unique.
    """

    v_next: Tensor
    lambda_plus: Tensor
    lambda_minus: Tensor
    gamma: Tensor


class SlidingBlockSolution(NamedTuple):
    """A step, [...], or a rollout, [steps, ...]; NaN where the status is not SOLVED.

    v_next, lambda_plus, lambda_minus, gamma: as in SlidingBlockStep.
    z: [..., n], the unknowns of the LCP.
    residual: [...], its natural residual max_i |min(z_i, w_i)|, without a gradient.
    status: [...], int8, the values of torchlcp.Status.
    """

    v_next: Tensor
    lambda_plus: Tensor
    lambda_minus: Tensor
    gamma: Tensor
    z: Tensor
    residual: Tensor
    status: Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class SlidingBlock(System):
    """A block that slides on a line under a force and dry friction, stepped in time as an LCP.

        m (v_next - v) / dt = u + f,   |f| <= mu m g,   f = -mu m g sign(v_next) where v_next != 0

    mass: [...], kg, > 0; a number or a tensor, like all parameters, which broadcast against the state.
    dt: [...], s, > 0.
    mu: [...], the friction coefficient, >= 0.
    gravity: [...], m/s^2, >= 0.

    Raises ValueError where a number is out of its range. Results have the dtype of v and are differentiable in v, u and
    all parameters, but for residual and status.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
    """

    mass: TensorLike
    dt: TensorLike
    mu: TensorLike
    gravity: TensorLike

    @operator("_simulate_sliding_block")
    def simulate(
        self,
        v: TensorLike,
        u: TensorLike,
        *,
        formulation: str = "traditional",
        feedback: Feedback | None = None,
        **options: Unpack[SolveOptions],
    ) -> SlidingBlockSolution:
        """Many steps, each of which begins with v_next of the step before; returns tensors [steps, ...].

        Args:
            v: [...], m/s, before the first step, float32 or float64.
            u: [steps, ...], N, the force in each step.
            formulation: "traditional", z = (lambda_plus, lambda_minus, gamma); "mixed", the same with the velocity as an
                unknown of either sign; "direct", z = (v_next+, v_next-), whose solution is unique; or "forward",
                z = v_next, for motion to the right only.
            feedback: of v, beside u, with K [..., 1, 1] and a reference [...].
            options: see SolveOptions.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """

    step = one_step(simulate, "One step, as simulate, of the force u [...], N; returns tensors [...].")

    @operator("_sliding_block_exact_step")
    def exact_step(self, v: TensorLike, u: TensorLike) -> SlidingBlockStep:
        """The step in closed form: v_next = sign(v*) max(|v*| - dt mu g, 0) with v* = v + dt u / m."""

    @operator("_sliding_block_problem")
    def problem(self, v: TensorLike, u: TensorLike, *, formulation: str = "traditional") -> Problem:
        """The LCP of a step, of a formulation that is not "mixed"; v [...], m/s, and u [...], N."""

    @operator("_sliding_block_mixed_problem")
    def mixed_problem(self, v: TensorLike, u: TensorLike) -> MixedProblem:
        """The problem of a step in the formulation "mixed", with x = v_next; v [...], m/s, and u [...], N."""

    @operator("_read_sliding_block")
    def read(self, z: TensorLike, w: TensorLike, *, formulation: str = "traditional", kappa: float = 0.0) -> SlidingBlockStep:
        """The step of z and w, [..., n], a solution of problem, or of mixed_problem, for the same formulation.

        Where gamma = 0 in the formulations "traditional" and "mixed", v_next is exactly 0, and not round-off.

        Args:
            kappa: that with which the problem was solved.
        """

    @operator("_sliding_block_max_friction")
    def max_friction(self) -> Tensor:
        """F = mu m g, [...], N, the largest friction force."""

    @operator("_certify_sliding_block")
    def certify(
        self,
        v: TensorLike,
        u: TensorLike,
        rollout: SlidingBlockSolution,
        *,
        formulation: str = "traditional",
        tolerance: float | None = None,
    ) -> RolloutCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same v, u and formulation.

        Args:
            tolerance: as in torchlcp.certify.
        """
