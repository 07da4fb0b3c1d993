"""A block that slides and turns on a plane on three point supports."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from torchlcp._arguments import Feedback, ListLike, TensorLike, operator
from torchlcp.physics._system import Problem, RolloutCertificate, System, one_step

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics._system import SolveOptions

__all__ = ["Tripod", "TripodSolution", "TripodState", "TripodStep"]


class TripodState(NamedTuple):
    """pose [..., 3], x, y [m] and theta [rad], and velocity [..., 3], v_x, v_y [m/s] and omega [rad/s]."""

    pose: Tensor
    velocity: Tensor


State = TripodState | tuple[TensorLike, TensorLike]


class TripodStep(NamedTuple):
    """The result of a step.

    pose_next, velocity_next: [..., 3], as in TripodState.
    friction: [..., 3, 2], N, on each support.
    normal: [..., 3], N, on each support, >= 0.
    slip: [..., 3], m/s, the speed of each support, measured by the polygon; 0 where it sticks.
    """

    pose_next: Tensor
    velocity_next: Tensor
    friction: Tensor
    normal: Tensor
    slip: Tensor

    @property
    def next(self) -> TripodState:
        """The state at the end of the step."""
        return TripodState(self.pose_next, self.velocity_next)


class TripodSolution(NamedTuple):
    """A step, [...], or a rollout, [steps, ...]; NaN where the status is not SOLVED.

    pose_next, velocity_next: [..., 3], as in TripodState.
    friction: [..., 3, 2], N, on each support.
    normal: [..., 3], N, on each support, >= 0; the step of a block that would tip has no solution.
    slip: [..., 3], m/s, the speed of each support, measured by the polygon; 0 where it sticks.
    z: [..., 3 n + 3], the unknowns of the LCP, for n directions.
    residual: [...], its natural residual max_i |min(z_i, w_i)|, without a gradient.
    status: [...], int8, the values of torchlcp.Status.
    """

    pose_next: Tensor
    velocity_next: Tensor
    friction: Tensor
    normal: Tensor
    slip: Tensor
    z: Tensor
    residual: Tensor
    status: Tensor

    @property
    def next(self) -> TripodState:
        """The state at the end of each step."""
        return TripodState(self.pose_next, self.velocity_next)


def _three_supports() -> Tensor:
    return torch.tensor([[0.045, 0.0], [-0.03, 0.035], [-0.03, -0.035]], dtype=torch.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class Tripod(System):
    """A block that slides and turns on a plane on three point supports, with dry friction at each, as an LCP.

        M (nu_next - nu) = dt (W lambda + u),   M = diag(m, m, I),   W_i,j = (d_j, (R(theta) r_i) x d_j)
        0 <= lambda_i,j   perp  sigma_i + d_j.v_i               >= 0
        0 <= sigma_i      perp  mu N_i - sum_j lambda_i,j       >= 0

    for the supports r_i, their velocities v_i at the end of the step, and directions d_j.

    mass: [...], kg, > 0; a number or a tensor, like all parameters, which broadcast against the state.
    inertia: [...], kg m^2, about the centre of mass, > 0.
    dt: [...], s, > 0.
    mu: [...], the friction coefficient, >= 0.
    gravity: [...], m/s^2, >= 0.
    supports: [..., 3, 2], m, from the centre of mass, in the axes of the body; no three on a line. By default (0.045, 0),
        (-0.03, 0.035), (-0.03, -0.035).
    com_height: [...], m, the height of the centre of mass above the plane, >= 0; with it, friction shifts the loads.

    Raises ValueError where a number is out of its range. Results have the dtype of the velocity and are differentiable
    in the state, u and all parameters, but for residual and status.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
    """

    mass: TensorLike
    inertia: TensorLike
    dt: TensorLike
    mu: TensorLike
    gravity: TensorLike
    supports: ListLike = dataclasses.field(default_factory=_three_supports)
    com_height: TensorLike = 0.0

    @operator("_simulate_tripod")
    def simulate(
        self,
        state: State,
        u: TensorLike,
        *,
        directions: int = 8,
        feedback: Feedback | None = None,
        **options: Unpack[SolveOptions],
    ) -> TripodSolution:
        """Many steps; returns tensors [steps, ...].

        Args:
            state: pose [..., 3] and velocity [..., 3] before the first step, see TripodState, float32 or float64.
            u: [steps, ..., 3], N, N, N m, force and torque in each step.
            directions: n, of the friction of each support, even, at least 4.
            feedback: of the state, beside u, with K [..., 3, 6] and a state as its reference.
            options: see SolveOptions. Unless kappa > 0, ties is "active" whatever is given, since a support that sticks
                does not move in directions without a force either.

        Raises:
            RuntimeError: a shape, dtype or option does not fit, the supports lie on a line, or the centre of mass is not
                above their triangle.
        """

    step = one_step(simulate, "One step, as simulate, of u [..., 3]; returns tensors [...].")

    @operator("_tripod_exact_step")
    def exact_step(self, state: State, u: TensorLike) -> TripodState:
        """The step with isotropic friction in place of polygons, by Newton's method; float64, not differentiable."""

    @operator("_tripod_static_normals")
    def static_normals(self) -> Tensor:
        """[..., 3], N: the loads of the supports at rest, of which one is negative where the block tips."""

    @operator("_tripod_problem")
    def problem(self, state: State, u: TensorLike, *, directions: int = 8) -> Problem:
        """The LCP of a step, of 3 n + 3 unknowns (lambda_1, lambda_2, lambda_3, sigma); u [..., 3]."""

    @operator("_read_tripod")
    def read(self, state: State, u: TensorLike, z: TensorLike, *, kappa: float = 0.0) -> TripodStep:
        """The step of z, [..., 3 n + 3], a solution of problem for the same state and u.

        The velocity is exactly 0 where two supports or all of them stick.

        Args:
            kappa: that with which the problem was solved.
        """

    @operator("_certify_tripod")
    def certify(
        self, state: State, u: TensorLike, rollout: TripodSolution, *, directions: int = 8, tolerance: float | None = None
    ) -> RolloutCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same arguments.

        Args:
            tolerance: as in torchlcp.certify.
        """
