"""Bodies on compliant ground."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

from torch import Tensor

from torchlcp._arguments import Feedback, TensorLike, operator
from torchlcp.physics._system import Problem, RolloutCertificate, System, one_step

__all__ = [
    "CompliantBlock",
    "CompliantGround",
    "CompliantParticle",
    "CompliantProblem",
    "CompliantSolution",
    "CompliantState",
    "CompliantStep",
]


class CompliantState(NamedTuple):
    """position [..., 3] and velocity [..., 3] of a body, in the coordinates that its class defines."""

    position: Tensor
    velocity: Tensor


State = CompliantState | tuple[TensorLike, TensorLike]


class CompliantProblem(NamedTuple):
    """The arguments of torchlcp.solve_contact: A, v_free, J, v_hat, R and mu."""

    A: Tensor
    v_free: Tensor
    J: Tensor
    v_hat: Tensor
    R: Tensor
    mu: Tensor


class CompliantStep(NamedTuple):
    """position_next and velocity_next [..., 3], and gamma [..., 3 c], N s, of the tangents and normal of each contact."""

    position_next: Tensor
    velocity_next: Tensor
    gamma: Tensor

    @property
    def next(self) -> CompliantState:
        """The state at the end."""
        return CompliantState(self.position_next, self.velocity_next)


class CompliantSolution(NamedTuple):
    """A step, [...], or a rollout, [steps, ...]; NaN from the first step on whose status is not SOLVED.

    position_next, velocity_next, gamma: as in CompliantStep.
    status: [...], int8, the values of torchlcp.Status.
    iterations: [...], int64, of Newton's method.
    """

    position_next: Tensor
    velocity_next: Tensor
    gamma: Tensor
    status: Tensor
    iterations: Tensor

    @property
    def next(self) -> CompliantState:
        """The state at the end of each step."""
        return CompliantState(self.position_next, self.velocity_next)


@dataclasses.dataclass(frozen=True, eq=False)
class CompliantGround(System):
    """Level ground of springs and dampers, with regularised Coulomb friction.

    mu: [...], the friction coefficient, >= 0; a number or a tensor, like the next two.
    stiffness: [...], N/m, > 0, of each point of contact.
    dissipation: [...], s, >= 0, the damping over the stiffness.
    sigma, beta: numbers, as in torchlcp.contact_parameters.

    Raises ValueError where a number is out of its range.

        Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
    """

    mu: TensorLike
    stiffness: TensorLike
    dissipation: TensorLike
    sigma: float = dataclasses.field(default=1e-3, kw_only=True)
    beta: float = dataclasses.field(default=1.0, kw_only=True)


@dataclasses.dataclass(frozen=True, eq=False)
class _CompliantBody(System):
    """A body on compliant ground, whose class is called _name by the operators."""

    _name: ClassVar[str]

    @operator("_simulate_{}", of="compliant_particle")
    def simulate(
        self,
        state: State,
        u: TensorLike,
        *,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        feedback: Feedback | None = None,
    ) -> CompliantSolution:
        """Many steps; returns tensors [steps, ...]. Where a step fails, all that follow are NaN.

        Args:
            state: position [..., 3] and velocity [..., 3] before the first step, float32 or float64.
            u: [steps, ..., 3], the force in each step, in the coordinates of the velocity.
            tolerance, max_iterations: as in torchlcp.solve_contact.
            feedback: of the state, beside u, with K [..., 3, 6] and a state as its reference.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """

    step = one_step(simulate, "One step, as simulate, of the force u [..., 3]; returns tensors [...].")

    @operator("_{}_problem", of="compliant_particle")
    def problem(self, state: State, u: TensorLike) -> CompliantProblem:
        """The problem of a step for torchlcp.solve_contact; u [..., 3]."""

    @operator("_{}_gaps", of="compliant_particle")
    def gaps(self, state: State) -> Tensor:
        """[..., c], m: the heights of the points of contact above the ground."""

    @operator("_certify_{}", of="compliant_particle")
    def certify(self, state: State, u: TensorLike, rollout: CompliantSolution, *, tolerance: float = 1e-12) -> RolloutCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same state and u.

        Args:
            tolerance: a step is tied and kinked where the margin of torchlcp.certify_contact is at most this.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class CompliantParticle(_CompliantBody):
    """A point mass above compliant, level ground: coordinates (x, y, z) with z upwards, m, and one contact.

        m (v_next - v) = dt (u - m g e_z) + gamma,   x_next = x + dt v_next

    mass: [...], kg, > 0; a number or a tensor, like gravity.
    dt: s, > 0, a number.
    gravity: [...], m/s^2, >= 0.
    ground: see CompliantGround. The body is stepped by torchlcp.solve_contact.

    Raises ValueError where a number is out of its range. Results have the dtype of the velocity and are differentiable
    in the state, u and all tensors, but for status and iterations.
    """

    _name: ClassVar[str] = "compliant_particle"

    mass: TensorLike
    dt: float
    gravity: TensorLike
    ground: CompliantGround

    @operator("_compliant_particle_exact_step")
    def exact_step(self, state: State, u: TensorLike) -> CompliantStep:
        """The step in closed form: gamma projects on the cone what would stop the contact; u [..., 3], N."""

    @operator("_compliant_particle_rigid_step")
    def rigid_step(self, state: State, u: TensorLike) -> CompliantStep:
        """The step on rigid ground, in closed form: v_z >= -z / dt, and Coulomb friction; u [..., 3], N."""


@dataclasses.dataclass(frozen=True, eq=False)
class CompliantBlock(_CompliantBody):
    """A rectangular block in a vertical plane above compliant, level ground. Its four corners are the contacts.

    Coordinates (x, z, theta) of its centre, m and rad, with z upwards and theta from x to z; u [..., 3] is the force on
    the centre and the torque, N, N and N m. The corners that are below for theta = 0 come first.

    mass: [...], kg, > 0, spread evenly; a number or a tensor, like width, height and gravity.
    width, height: [...], m, > 0.
    dt: s, > 0, a number.
    gravity: [...], m/s^2, >= 0.
    ground: see CompliantGround. The body is stepped by torchlcp.solve_contact.

    Raises ValueError where a number is out of its range. Results have the dtype of the velocity and are differentiable
    in the state, u and all tensors, but for status and iterations.
    """

    _name: ClassVar[str] = "compliant_block"

    mass: TensorLike
    width: TensorLike
    height: TensorLike
    dt: float
    gravity: TensorLike
    ground: CompliantGround

    @operator("_compliant_block_dual_problem")
    def dual_problem(self, state: State, u: TensorLike) -> Problem:
        """The same step as an LCP of 8 unknowns: its dual, over the edges of the friction cones."""

    @operator("_compliant_block_rigid_problem")
    def rigid_problem(self, state: State, u: TensorLike) -> Problem:
        """The step on rigid ground as an LCP of 16 unknowns (lambda_n, lambda_plus, lambda_minus, gamma), [4] each.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
        """

    @operator("_read_compliant_block_dual")
    def read_dual(self, state: State, u: TensorLike, z: TensorLike) -> CompliantStep:
        """The step of z, [..., 8], a solution of dual_problem for the same state and u."""

    @operator("_read_compliant_block_rigid")
    def read_rigid(self, state: State, u: TensorLike, z: TensorLike) -> CompliantStep:
        """The step of z, [..., 16], a solution of rigid_problem for the same state and u."""
