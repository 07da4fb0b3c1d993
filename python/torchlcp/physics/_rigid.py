"""Rigid bodies that touch planes and each other with Coulomb friction."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import torch
from torch import Tensor

from torchlcp.physics._rigid_transforms import TransformedRollout
from torchlcp.physics._system import System, check_number, first_step, parameter

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "ContactPair",
    "Plane",
    "RigidBody",
    "RigidCertificate",
    "RigidContacts",
    "RigidOptions",
    "RigidScene",
    "RigidSolution",
    "RigidState",
    "angle_between",
    "gyroscopic",
    "rotation_between",
    "rotation_by",
    "rotation_matrix",
    "turned",
]


class RigidState(NamedTuple):
    """The state of B bodies.

    position: [..., B, 3], m, of the centres of mass.
    orientation: [..., B, 4], quaternions (w, x, y, z), which turn vectors from the axes of the body to those of the
        world; they need not have unit length.
    velocity: [..., B, 3], m/s.
    angular_velocity: [..., B, 3], rad/s, in the axes of each body.
    """

    position: Tensor
    orientation: Tensor
    velocity: Tensor
    angular_velocity: Tensor

    @staticmethod
    def at_rest(position: Tensor) -> RigidState:
        """Bodies at rest at these positions, [..., B, 3], m, with the axes of the world."""
        return RigidState(*torch.ops.lcp._bodies_at_rest(position))


State = RigidState | tuple[Tensor, Tensor, Tensor, Tensor]


class RigidSolution(NamedTuple):
    """The end of one row of forces, [...], or of many, [rows, ...]; NaN from the first step on that was not solved.

    position_next, orientation_next, velocity_next, angular_velocity_next: as in RigidState.
    gamma: [..., 3 c], N s, the sum over the substeps of the impulses along (t1, t2, n) of each pair.
    status: [...], int8, the values of torchlcp.Status: the first of the substeps that is not SOLVED.
    iterations: [...], int64, of Newton's method, the sum over the substeps; 0 for polyhedral contact.
    """

    position_next: Tensor
    orientation_next: Tensor
    velocity_next: Tensor
    angular_velocity_next: Tensor
    gamma: Tensor
    status: Tensor
    iterations: Tensor

    @property
    def next(self) -> RigidState:
        """The state at the end of each row."""
        return RigidState(self.position_next, self.orientation_next, self.velocity_next, self.angular_velocity_next)


class RigidCertificate(NamedTuple):
    """What is true of the steps of a rollout, without gradient.

    unsolved: [...], int64, rows whose status is not SOLVED.
    kinked: [...], int64, rows whose margin is at most the tolerance: the gradient may be one-sided.
    residual: [rows, ...], the largest residual of a substep, as the solver of the formulation defines it.
    margin: [rows, ...], the least relative distance of a substep to a change in its contacts.
    """

    unsolved: Tensor
    kinked: Tensor
    residual: Tensor
    margin: Tensor


class RigidContacts(NamedTuple):
    """The contacts of a state.

    gap: [..., c], m, < 0 where bodies overlap.
    J: [..., 3 c, 6 B], the velocities of each pair along (t1, t2, n).
    normal: [..., c, 3].
    point: [..., c, 3], m, where the bodies touch, or would.
    """

    gap: Tensor
    J: Tensor
    normal: Tensor
    point: Tensor


class ContactPair(NamedTuple):
    """A ball that may touch something.

    body, ball: the indices of the body that the normal points to, and of its ball.
    touches_plane: whether it may touch a plane, or else a ball.
    other_body: the index of the body to which that belongs; -1 for a fixed plane.
    other_index: of the plane, or of the ball of the other body.
    """

    body: int
    ball: int
    touches_plane: bool
    other_body: int
    other_index: int


@dataclasses.dataclass(frozen=True, eq=False)
class RigidBody(System):
    """A body that touches by balls that are fixed to it; a ball of radius 0 is a point, such as the corner of a box.

    Vectors are in the axes of the body and begin at its centre of mass.

    mass: [...], kg, > 0; a number or a tensor.
    inertia: [..., 3, 3], kg m^2, about the centre of mass, symmetric and positive definite.
    centers: [..., p, 3], m, of the balls; p may be 0.
    radii: [..., p], m, >= 0.
    drag: [...], kg/s, >= 0, of the force -drag v on the centre of mass; a number or a tensor.

    Raises ValueError where a number is out of its range.
    """

    mass: Tensor | float
    inertia: Tensor
    centers: Tensor
    radii: Tensor
    drag: Tensor | float = 0.0

    @staticmethod
    def ball(mass: Tensor | float, radius: Tensor | float) -> RigidBody:
        """A solid ball of even density, differentiable in its mass [...], kg, and radius [...], m, both > 0."""
        mass = parameter("mass", mass)
        return RigidBody(mass, *torch.ops.lcp._ball(mass, parameter("radius", radius)))

    @staticmethod
    def box(mass: Tensor | float, size: Tensor | Sequence[float]) -> RigidBody:
        """A solid box of even density that touches by its corners, differentiable in both.

        Args:
            mass: [...], kg, > 0.
            size: [..., 3], m, > 0, the lengths of the edges.
        """
        mass = parameter("mass", mass)
        if not isinstance(size, Tensor):
            size = torch.stack([parameter("size", edge) for edge in size])
        return RigidBody(mass, *torch.ops.lcp._box(mass, size))


@dataclasses.dataclass(frozen=True, eq=False)
class Plane:
    """The plane normal.x = offset, which bounds a body, or the ground on the side opposite to the normal.

    normal: [..., 3], a unit vector.
    offset: [...], m.
    body: the index of the body that it is fixed to, in whose axes x is; -1: the world.
    touches: the indices of the bodies that it can touch; if empty, all others.
    """

    normal: Tensor
    offset: Tensor
    body: int = -1
    touches: tuple[int, ...] = ()

    @staticmethod
    def inclined(slope: Tensor | float = 0.0, height: Tensor | float = 0.0) -> Plane:
        """The fixed plane through the point `height` of the z axis, m, that descends along x by the angle `slope`, rad.

        Differentiable in both, each [...].
        """
        slope, height = (x if isinstance(x, Tensor) else torch.tensor(x, dtype=torch.float64) for x in (slope, height))
        return Plane(*torch.ops.lcp._inclined_plane(slope, height))


class RigidOptions(TypedDict, total=False):
    """Options of a rollout of rigid bodies, given as keywords.

    formulation: "exact_cone", by torchlcp.solve_friction, is the default; "polyhedral", by torchlcp.solve of
        torchlcp.friction_problem; "compliant", by torchlcp.solve_contact, with springs and without restitution.
    substeps: steps of dt that each row of the forces acts for; 1 by default.
    bounce_threshold: m/s: a contact that would close its gap faster than this is an impact. None: twice the speed that
        gravity gives in a step.
    stabilization: the share of a penetration that a step removes, in [0, 1]; 1 by default.
    directions, angle: of polyhedral friction, as in torchlcp.friction_problem; 4 and 0 rad by default.
    kappa: of the exact cone, as in torchlcp.solve_friction, or of polyhedral contact, as in torchlcp.solve.
    ties: of polyhedral contact, as in torchlcp.solve; "active" by default.
    tolerance: that of the solver of the formulation. None: 1e-9; but in float32, unless the formulation is "exact_cone",
        the solver's own default.
    sigma, beta: of compliant contact, as in torchlcp.contact_parameters.
    """

    formulation: str
    substeps: int
    bounce_threshold: float | None
    stabilization: float
    directions: int
    angle: float
    kappa: float
    ties: str
    tolerance: float | None
    sigma: float
    beta: float


_DEFAULTS: RigidOptions = {
    "formulation": "exact_cone",
    "substeps": 1,
    "bounce_threshold": None,
    "stabilization": 1.0,
    "directions": 4,
    "angle": 0.0,
    "kappa": 0.0,
    "ties": "active",
    "tolerance": None,
    "sigma": 1e-3,
    "beta": 1.0,
}


def _all_options(options: RigidOptions) -> list[Any]:
    unknown = set(options) - set(_DEFAULTS)
    if unknown:
        raise TypeError(f"there is no option {sorted(unknown)[0]}; the options are {', '.join(_DEFAULTS)}")
    return list({**_DEFAULTS, **options}.values())


@dataclasses.dataclass(frozen=True, eq=False)
class RigidScene:
    """B bodies, the planes that they may touch, and the parameters of their motion, stepped in time.

    The velocities nu = (v, omega) of the bodies, omega in the axes of each, obey A (nu_next - nu_free) = J' gamma and
    u = J nu_next, where nu_free is nu after the forces, gravity and the gyroscopic torque have acted for dt, and the
    impulses gamma obey the law of the formulation. Impacts rebound by Newton's law. docs/rigid_contact.md has the rest.

    bodies, planes: see RigidBody and Plane.
    dt: s, > 0, a number.
    mu: friction coefficients, >= 0, [..., c] in the order of contact_pairs, or [..., 1] or a number for all.
    restitution: 0 to 1, the same; not used by compliant contact.
    gravity: [..., 3], m/s^2.
    stiffness: N/m, > 0, like mu; of compliant contact alone, which needs it.
    dissipation: s, >= 0, the damping over the stiffness, the same.

    Raises ValueError where a number is out of its range. Results have the dtype of the velocity and are differentiable
    in the state, u and all tensors, but for status and iterations.

    Under torch.compile and torch.func.vmap, simulate and step have derivatives in reverse mode and of the first order,
    which roll out once more, and raise an error for others; there a scene of several bodies must be made outside of a
    compiled function. The other methods cannot be compiled, nor mapped where they choose among contacts.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb
        friction, IJNME 39, 1996.
    """

    bodies: Sequence[RigidBody]
    planes: Sequence[Plane]
    dt: float
    mu: Tensor | float
    restitution: Tensor | float = 0.0
    gravity: Tensor | Sequence[float] = (0.0, 0.0, -9.81)
    stiffness: Tensor | float | None = None
    dissipation: Tensor | float | None = None
    _pairs: int | None = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_number("dt", self.dt)
        for name in ("mu", "restitution", "stiffness", "dissipation"):
            value = getattr(self, name)
            if isinstance(value, (int, float)):
                object.__setattr__(self, name, parameter(name, value).unsqueeze(0))
        if not isinstance(self.gravity, Tensor):
            object.__setattr__(self, "gravity", torch.tensor(self.gravity, dtype=torch.float64))
        object.__setattr__(self, "_pairs", self._count_pairs())

    def _count_pairs(self) -> int | None:
        """The number of pairs of contact; None where it cannot be read."""
        if len(self.bodies) == 1:
            touched = [plane for plane in self.planes if plane.body != 0 and 0 in (plane.touches or (0,))]
            return len(touched) * self.bodies[0].radii.shape[-1]
        unreadable = torch.compiler.is_compiling() or torch.ops.lcp._is_mapped([body.radii for body in self.bodies])
        return None if unreadable else len(self._compiled().contact_pairs())

    def _compiled(self) -> Any:
        of_bodies = [[getattr(body, field.name) for body in self.bodies] for field in dataclasses.fields(RigidBody)]
        of_planes = [[getattr(plane, field.name) for plane in self.planes] for field in dataclasses.fields(Plane)]
        of_planes[3] = [list(touches) for touches in of_planes[3]]
        contact = (self.gravity, self.mu, self.restitution, self.stiffness, self.dissipation)
        return torch.classes.lcp.RigidScene(*of_bodies, *of_planes, self.dt, *contact)

    def simulate(self, state: State, u: Tensor, **options: Unpack[RigidOptions]) -> RigidSolution:
        """Many rows of forces; returns tensors [rows, ...].

        Args:
            state: of B bodies before the first step, see RigidState, float32 or float64.
            u: [rows, ..., B, 6], forces on the centres of mass, N, and torques in the axes of the bodies, N m.
            options: see RigidOptions.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """
        if self._pairs is None and torch.compiler.is_compiling():
            raise RuntimeError("a scene of several bodies must be made outside of a compiled function")
        of_bodies = [getattr(body, field.name) for body in self.bodies for field in dataclasses.fields(body)]
        of_planes = [x for plane in self.planes for x in (plane.normal, plane.offset)]
        contact = [x for x in (self.gravity, self.mu, self.restitution, self.stiffness, self.dissipation) if x is not None]
        # All bodies by their indices, since AOTInductor cannot pass an empty list.
        touches = [plane.touches or range(len(self.bodies)) for plane in self.planes]
        tensors = [*RigidState(*state), u, *of_bodies, *of_planes, *contact]
        others = (
            len(self.bodies),
            [plane.body for plane in self.planes],
            [body for of_plane in touches for body in of_plane],
            [len(of_plane) for of_plane in touches],
            self._pairs or 0,
            self.dt,
            *_all_options(options),
        )
        transformed = torch.compiler.is_compiling() or torch.ops.lcp._is_mapped(tensors)
        if transformed and torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
            differentiable: Any = TransformedRollout.apply
            return RigidSolution(*differentiable(others, *tensors))
        return RigidSolution(*torch.ops.lcp._roll_out_scene(tensors, *others))

    def step(self, state: State, u: Tensor, **options: Unpack[RigidOptions]) -> RigidSolution:
        """One row of forces, u [..., B, 6], as simulate; returns tensors [...]."""
        return first_step(self.simulate(state, u.unsqueeze(0), **options))

    def certify(
        self,
        state: State,
        u: Tensor,
        rollout: RigidSolution,
        *,
        certificate_tolerance: float = 1e-9,
        **options: Unpack[RigidOptions],
    ) -> RigidCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same state, u and options.

        Args:
            certificate_tolerance: a row is kinked where its margin is at most this.
        """
        compiled = torch.classes.lcp.RigidOptions(*_all_options(options))
        return RigidCertificate(
            *self._compiled().certify(list(state), u, list(rollout), compiled, certificate_tolerance)
        )

    def contact_pairs(self) -> list[ContactPair]:
        """All pairs, in the order of the contacts.

        For each plane, the balls of the bodies that it touches; then each two balls of different bodies, unless both are
        points.
        """
        return [
            ContactPair(body, ball, bool(plane), other_body, other_index)
            for body, ball, plane, other_body, other_index in self._compiled().contact_pairs()
        ]

    def contacts(self, state: State) -> RigidContacts:
        """The gaps and Jacobians of all pairs."""
        return RigidContacts(*self._compiled().contacts(list(state)))

    def mass_matrix(self) -> Tensor:
        """A, [..., 6 B, 6 B]."""
        A: Tensor = self._compiled().mass_matrix()
        return A

    def energy(self, state: State) -> Tensor:
        """[...], J: the kinetic energy and the potential energy of gravity."""
        energy: Tensor = self._compiled().energy(list(state))
        return energy


def rotation_matrix(quaternion: Tensor) -> Tensor:
    """The rotation matrix [..., 3, 3] of a quaternion (w, x, y, z), [..., 4], which is normalised first."""
    matrix: Tensor = torch.ops.lcp._rotation_matrix(quaternion)
    return matrix


def rotation_by(theta: Tensor) -> Tensor:
    """The quaternion [..., 4] of the rotation by the angle |theta| about theta, [..., 3], rad; smooth at 0, too.

    Sola, Deray, Atchuthan: A micro Lie theory for state estimation in robotics, arXiv 1812.01537, 2018.
    """
    quaternion: Tensor = torch.ops.lcp._rotation_by(theta)
    return quaternion


def turned(quaternion: Tensor, theta: Tensor) -> Tensor:
    """The unit quaternion [..., 4] of a body of that orientation, after it has turned by theta [..., 3] in its own axes."""
    result: Tensor = torch.ops.lcp._turned(quaternion, theta)
    return result


def rotation_between(a: Tensor, b: Tensor) -> Tensor:
    """The quaternion [..., 4] of the rotation, in the axes of the body, from a to b, of unit length, [..., 4]."""
    result: Tensor = torch.ops.lcp._rotation_between(a, b)
    return result


def angle_between(a: Tensor, b: Tensor) -> Tensor:
    """The angle, [...], rad, in [0, pi], by which one orientation, [..., 4], has to turn to become the other."""
    angle: Tensor = torch.ops.lcp._angle_between(a, b)
    return angle


def gyroscopic(omega: Tensor, inertia: Tensor, dt: float) -> Tensor:
    """The angular velocity [..., 3], rad/s, of a body free of torques after the time dt, in its own axes.

    The implicit midpoint rule for I omega' = (I omega) x omega, which conserves the kinetic energy and the size of the
    angular momentum. Newton's method solves it to round-off where dt |omega| is below 1 rad.

    Args:
        omega: [..., 3], rad/s.
        inertia: [..., 3, 3], kg m^2.
        dt: s.
    """
    result: Tensor = torch.ops.lcp._gyroscopic(omega, inertia, dt)
    return result
