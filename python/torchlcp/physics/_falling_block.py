"""A block that falls on a plane."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, operator
from torchlcp.physics._system import Problem, RolloutCertificate, System, first_step

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics._system import SolveOptions

__all__ = ["FallingBlock", "FallingBlockSolution", "FallingBlockStep"]


class FallingBlockStep(NamedTuple):
    """The result of a step, each [...].

    x_next: m, the height above the plane.
    v_next: m/s, upwards.
    force: N, the contact force over the step.
    """

    x_next: Tensor
    v_next: Tensor
    force: Tensor


class FallingBlockSolution(NamedTuple):
    """A step, [...], or a rollout, [steps, ...]; NaN where the status is not SOLVED.

    x_next, v_next, force: as in FallingBlockStep.
    z: [..., 1], the unknown of the LCP, which is x_next.
    residual: [...], its natural residual |min(z, w)|, without a gradient.
    status: [...], int8, the values of torchlcp.Status.
    """

    x_next: Tensor
    v_next: Tensor
    force: Tensor
    z: Tensor
    residual: Tensor
    status: Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class FallingBlock(System):
    """A block that falls on a plane, stepped in time as an LCP with one unknown, whose solution is unique.

        x_next = x + dt v_next,   v_next = v + dt (force / m - g),   0 <= x_next  perp  force >= 0

    mass: [...], kg, > 0; a number or a tensor, like all parameters, which broadcast against the state.
    dt: [...], s, > 0.
    gravity: [...], m/s^2, >= 0.

    Raises ValueError where a number is out of its range. Results have the dtype of x and are differentiable in x, v and
    all parameters, but for residual and status.
    """

    mass: TensorLike
    dt: TensorLike
    gravity: TensorLike

    @operator("_simulate_falling_block")
    def simulate(self, x: TensorLike, v: TensorLike, steps: int, **options: Unpack[SolveOptions]) -> FallingBlockSolution:
        """Many steps; returns tensors [steps, ...].

        An impact takes two steps: the first ends at x = 0 with the velocity that reaches it, the second at rest.

        Args:
            x: [...], m, >= 0, float32 or float64.
            v: [...], m/s.
            steps: their number, >= 1.
            options: see SolveOptions.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """

    def step(self, x: TensorLike, v: TensorLike, **options: Unpack[SolveOptions]) -> FallingBlockSolution:
        """One step, as simulate; returns tensors [...]."""
        return first_step(self.simulate(x, v, 1, **options))

    @operator("_falling_block_exact_step")
    def exact_step(self, x: TensorLike, v: TensorLike) -> FallingBlockStep:
        """The step in closed form: x_next = max(0, x + dt v - g dt^2)."""

    @operator("_falling_block_problem")
    def problem(self, x: TensorLike, v: TensorLike) -> Problem:
        """The LCP of a step; x [...], m, and v [...], m/s."""

    @operator("_read_falling_block")
    def read(self, x: TensorLike, v: TensorLike, z: TensorLike, w: TensorLike) -> FallingBlockStep:
        """The step of z and w, [..., 1], a solution of problem for x and v."""

    @operator("_certify_falling_block")
    def certify(
        self, x: TensorLike, v: TensorLike, rollout: FallingBlockSolution, *, tolerance: float | None = None
    ) -> RolloutCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same x and v.

        Args:
            tolerance: as in torchlcp.certify.
        """
