"""A point mass in a vertical plane with contact, friction and restitution."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from torchlcp._arguments import Feedback, TensorLike, operator
from torchlcp.physics._system import MixedProblem, Problem, RolloutCertificate, System, one_step

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics._system import SolveOptions

__all__ = ["PointMass", "PointMassSolution", "PointMassState", "PointMassStep"]


class PointMassState(NamedTuple):
    """position [..., 2], m, (x, y) with y above the ground, and velocity [..., 2], m/s."""

    position: Tensor
    velocity: Tensor


State = PointMassState | tuple[TensorLike, TensorLike]


class PointMassStep(NamedTuple):
    """The result of a step.

    position_next, velocity_next: [..., 2], m and m/s.
    lambda_n: [...], N s, the contact impulse.
    lambda_plus, lambda_minus: [...], N s, the friction impulses along +x and -x.
    gamma: [...], m/s, the slack velocity, which is |v_x| where it is unique.
    """

    position_next: Tensor
    velocity_next: Tensor
    lambda_n: Tensor
    lambda_plus: Tensor
    lambda_minus: Tensor
    gamma: Tensor

    @property
    def next(self) -> PointMassState:
        """The state at the end."""
        return PointMassState(self.position_next, self.velocity_next)


class PointMassSolution(NamedTuple):
    """A step, [...], or a rollout, [steps, ...]; NaN where the status is not SOLVED.

    position_next, velocity_next, lambda_n, lambda_plus, lambda_minus, gamma: as in PointMassStep.
    z: [..., 4], the unknowns (lambda_n, lambda_plus, lambda_minus, gamma).
    residual: [...], the natural residual max_i |min(z_i, w_i)|, without a gradient.
    status: [...], int8, the values of torchlcp.Status.
    """

    position_next: Tensor
    velocity_next: Tensor
    lambda_n: Tensor
    lambda_plus: Tensor
    lambda_minus: Tensor
    gamma: Tensor
    z: Tensor
    residual: Tensor
    status: Tensor

    @property
    def next(self) -> PointMassState:
        """The state at the end of each step."""
        return PointMassState(self.position_next, self.velocity_next)


@dataclasses.dataclass(frozen=True, eq=False)
class PointMass(System):
    """A point mass in a vertical plane that falls on the ground, stepped in time as an LCP of impulses.

        m (v_next - v) = dt (u + (0, -m g)) + n lambda_n + D (lambda_plus, lambda_minus)
        0 <= n'v_next + c                                 perp  lambda_n                    >= 0
        0 <= gamma + D'v_next                             perp  (lambda_plus, lambda_minus) >= 0
        0 <= mu lambda_n - lambda_plus - lambda_minus     perp  gamma                       >= 0

    with n = (0, 1), D = [(1, 0) (-1, 0)], and c as the option stabilization says.

    mass: [...], kg, > 0; a number or a tensor, like all parameters, which broadcast against the state.
    dt: [...], s, > 0.
    mu: [...], the friction coefficient, >= 0.
    gravity: [...], m/s^2, >= 0.
    restitution: [...], 0 (no rebound) to 1 (the mass rebounds with its speed); only with stabilization = "velocity".

    Raises ValueError where a number is out of its range. Results have the dtype of the velocity and are differentiable
    in the state, u and all parameters, but for residual and status.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
        De Avila Belbute-Peres et al.: End-to-end differentiable physics for learning and control, NeurIPS 2018.
    """

    mass: TensorLike
    dt: TensorLike
    mu: TensorLike
    gravity: TensorLike
    restitution: TensorLike = 0.0

    @operator("_simulate_point_mass")
    def simulate(
        self,
        state: State,
        u: TensorLike,
        *,
        formulation: str = "stewart_trinkle",
        stabilization: str = "position",
        feedback: Feedback | None = None,
        **options: Unpack[SolveOptions],
    ) -> PointMassSolution:
        """Many steps; returns tensors [steps, ...].

        Args:
            state: position [..., 2], m, and velocity [..., 2], m/s, before the first step, float32 or float64.
            u: [steps, ..., 2], N, the force in each step.
            formulation: "stewart_trinkle", or "belbute_peres", the same step with its velocities as unknowns of either
                sign; by the default method both are solved without them.
            stabilization: "position", c = y / dt: the mass does not penetrate, and does not rebound. "velocity",
                c = restitution min(v_y, 0) where y <= 0, and no contact where y > 0.
            feedback: of the state, beside u, with K [..., 2, 4] and a state as its reference.
            options: see SolveOptions.

        Raises:
            RuntimeError: a shape, dtype or option does not fit, or there is a restitution at position level.
        """

    step = one_step(simulate, "One step, as simulate, of the force u [..., 2], N; returns tensors [...].")

    @operator("_point_mass_exact_step")
    def exact_step(self, state: State, u: TensorLike, *, stabilization: str = "position") -> PointMassStep:
        """The step in closed form: v_y* is raised to -c, and friction of at most mu lambda_n acts against v_x*."""

    @operator("_point_mass_problem")
    def problem(self, state: State, u: TensorLike, *, stabilization: str = "position") -> Problem:
        """The LCP of a step with z = (lambda_n, lambda_plus, lambda_minus, gamma); u [..., 2], N."""

    @operator("_point_mass_mixed_problem")
    def mixed_problem(
        self, state: State, u: TensorLike, *, formulation: str = "stewart_trinkle", stabilization: str = "position"
    ) -> MixedProblem:
        """The problem of a step with x = v_next, or -v_next in the formulation "belbute_peres"; u [..., 2], N."""

    @operator("_read_point_mass")
    def read(
        self, state: State, u: TensorLike, z: TensorLike, w: TensorLike, *, stabilization: str = "position", kappa: float = 0.0
    ) -> PointMassStep:
        """The step of z and w, [..., 4], a solution of problem or of mixed_problem for the same state and u.

        The velocity of a mass at rest is exactly 0, and so is y of a mass in contact at position level.

        Args:
            kappa: that with which the problem was solved.
        """

    @operator("_certify_point_mass")
    def certify(
        self,
        state: State,
        u: TensorLike,
        rollout: PointMassSolution,
        *,
        formulation: str = "stewart_trinkle",
        stabilization: str = "position",
        tolerance: float | None = None,
    ) -> RolloutCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same arguments.

        With stabilization = "velocity" a rollout jumps where the step of the first contact changes, which the
        certificate does not show.

        Args:
            tolerance: as in torchlcp.certify.
        """
