"""A point that slides on a plane under a force and isotropic dry friction."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from torchlcp._arguments import Feedback, TensorLike, call, operator
from torchlcp.physics._system import Problem, RolloutCertificate, System, one_step

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics._system import SolveOptions

__all__ = ["PlanarBlock", "PlanarBlockSolution", "PlanarBlockStep"]


class PlanarBlockStep(NamedTuple):
    """v_next [..., 2], m/s, and the friction force [..., 2], N."""

    v_next: Tensor
    force: Tensor


class PlanarBlockSolution(NamedTuple):
    """A step, [...], or a rollout, [steps, ...]; NaN where the status is not SOLVED.

    v_next: [..., 2], m/s.
    force: [..., 2], N, friction.
    z: [..., n], the unknowns of the LCP.
    residual: [...], its natural residual max_i |min(z_i, w_i)|, without a gradient.
    status: [...], int8, the values of torchlcp.Status.
    direction: [..., 2], the sliding direction of the last pass; 0 in the formulation "polyhedral", which has none.
    passes: [...], int64, LCPs solved for the step.
    converged: [...], bool, false where "fixed_point" ran out of passes.
    """

    v_next: Tensor
    force: Tensor
    z: Tensor
    residual: Tensor
    status: Tensor
    direction: Tensor
    passes: Tensor
    converged: Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class PlanarBlock(System):
    """A point that slides on a plane under a force and isotropic dry friction, stepped in time as an LCP.

        m (v_next - v) / dt = u + f,   |f| <= mu m g,   f = -mu m g v_next / |v_next| where v_next != 0

    mass: [...], kg, > 0; a number or a tensor, like all parameters, which broadcast against the state.
    dt: [...], s, > 0.
    mu: [...], the friction coefficient, >= 0.
    gravity: [...], m/s^2, >= 0.

    Raises ValueError where a number is out of its range. Results have the dtype of v and are differentiable in v, u and
    all parameters, but for residual, status, passes and converged.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
    """

    mass: TensorLike
    dt: TensorLike
    mu: TensorLike
    gravity: TensorLike

    @operator("_simulate_planar_block")
    def simulate(
        self,
        v: TensorLike,
        u: TensorLike,
        *,
        formulation: str = "exact_direction",
        directions: int = 8,
        max_passes: int = 30,
        relaxed: bool = False,
        direction_tolerance: float | None = None,
        feedback: Feedback | None = None,
        **options: Unpack[SolveOptions],
    ) -> PlanarBlockSolution:
        """Many steps, each of which begins with v_next of the step before; returns tensors [steps, ...].

        Args:
            v: [..., 2], m/s, before the first step, float32 or float64.
            u: [steps, ..., 2], N, the force in each step.
            formulation: "exact_direction", with the direction of v* = v + dt u / m, which is exact for every number of
                directions; "fixed_point", which finds the direction by repeated LCPs; or "polyhedral", with friction in
                a polygon inscribed in the disk.
            directions: n, the number of directions of the polygon, even, at least 4.
            max_passes: of "fixed_point", the largest number of LCPs for a step, >= 1.
            relaxed: of "fixed_point": passes that converge wherever the block slides.
            direction_tolerance: of "fixed_point": the change of the direction at which it has converged. None: 1e-12 in
                float64, 1e-5 in float32.
            feedback: of v, beside u, with K [..., 2, 2].
            options: see SolveOptions. Only "polyhedral" uses ties; the others have "midpoint", which is exact for them.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """

    step = one_step(simulate, "One step, as simulate, of the force u [..., 2], N; returns tensors [...].")

    @operator("_planar_block_exact_step")
    def exact_step(self, v: TensorLike, u: TensorLike) -> PlanarBlockStep:
        """The step in closed form: v_next = v* max(1 - dt mu g / |v*|, 0) with v* = v + dt u / m."""

    def problem(self, v: TensorLike, u: TensorLike, *, directions: int | TensorLike = 8) -> Problem:
        """The LCP of a step in the formulation "polyhedral", with the unknowns (beta, gamma), n + 1 of them.

        Args:
            v: [..., 2], m/s.
            u: [..., 2], N.
            directions: n, even, at least 4; or any directions D, [..., 2, n], of any lengths, such as
                aligned_directions makes, or learned: then friction is within mu m g times their convex hull.

        Raises:
            RuntimeError: a shape does not fit.
        """
        if isinstance(directions, int):
            return Problem(*call("_planar_block_problem", v, u, self._parameters(), directions=directions))
        return Problem(*call("_planar_block_problem_along", v, u, self._parameters(), directions))

    def read(
        self,
        v: TensorLike,
        u: TensorLike,
        z: TensorLike,
        w: TensorLike,
        *,
        directions: TensorLike | None = None,
        kappa: float = 0.0,
    ) -> PlanarBlockStep:
        """The step of z and w, [..., n + 1], a solution of problem for v and u.

        v_next is exactly 0 where gamma = 0 and, if directions are given, these span the plane.

        Args:
            directions: those that problem was given, if they were a tensor.
            kappa: that with which the problem was solved; not used with directions.
        """
        if directions is not None:
            step = call("_read_planar_block_along", z, w, v, u, self._parameters(), directions)
        else:
            step = call("_read_planar_block", z, w, kappa=kappa)
        return PlanarBlockStep(*step)

    @operator("_read_planar_block_direction")
    def read_direction(self, v: TensorLike, u: TensorLike, z: TensorLike, *, kappa: float = 0.0) -> PlanarBlockStep:
        """The step of z, [..., n], a solution of direction_problem for v and u: v_next = (4 / n) sum_i z_i d_i.

        Args:
            kappa: that with which the problem was solved.
        """

    @operator("_planar_block_direction_problem")
    def direction_problem(self, v: TensorLike, u: TensorLike, t: TensorLike, *, directions: int = 8) -> Problem:
        """The LCP of a step that slides in the direction t, [..., 2], of length 1, or sticks, t = 0."""

    @operator("_certify_planar_block")
    def certify(
        self,
        v: TensorLike,
        u: TensorLike,
        rollout: PlanarBlockSolution,
        *,
        formulation: str = "exact_direction",
        directions: int = 8,
        tolerance: float | None = None,
    ) -> RolloutCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same arguments.

        Where "fixed_point" has not converged, only the last pass is certified.

        Args:
            tolerance: as in torchlcp.certify.
        """
