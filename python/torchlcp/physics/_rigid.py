"""Rigid bodies that touch planes and each other with Coulomb friction."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

import torch
from torch import Tensor

from torchlcp._arguments import Feedback, ListLike, TensorLike, as_tensor, as_tensors, call, operator
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
    def at_rest(position: TensorLike) -> RigidState:
        """Bodies at rest at these positions, [..., B, 3], m, with the axes of the world."""
        return RigidState(*call("_bodies_at_rest", position))


State = RigidState | tuple[TensorLike, TensorLike, TensorLike, TensorLike]


def _state_of(state: State, u: TensorLike | None = None) -> list[Tensor]:
    """The tensors of a state, and u behind them where it is given."""
    given: list[Any] = [*RigidState(*state)] if u is None else [*RigidState(*state), u]
    if all(map(torch.is_tensor, given)):
        return given
    return as_tensors(**dict(zip((*RigidState._fields, "u"), given)))


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
    margin: [rows, ...], the least relative distance of a substep to a change in its contacts: of its solution, of what
        is an impact, and of the order of two impacts that act on the same body, over dt.
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

    mass: TensorLike
    inertia: ListLike
    centers: ListLike
    radii: ListLike
    drag: TensorLike = 0.0

    @staticmethod
    def ball(mass: TensorLike, radius: TensorLike) -> RigidBody:
        """A solid ball of even density, differentiable in its mass [...], kg, and radius [...], m, both > 0."""
        mass = parameter("mass", mass)
        return RigidBody(mass, *call("_ball", mass, parameter("radius", radius)))

    @staticmethod
    def box(mass: TensorLike, size: ListLike) -> RigidBody:
        """A solid box of even density that touches by its corners, differentiable in both.

        Args:
            mass: [...], kg, > 0.
            size: [..., 3], m, > 0, the lengths of the edges.
        """
        mass = parameter("mass", mass)
        return RigidBody(mass, *call("_box", mass, parameter("size", size)))


@dataclasses.dataclass(frozen=True, eq=False)
class Plane:
    """The plane normal.x = offset, which bounds a body, or the ground on the side opposite to the normal.

    normal: [..., 3], of length 1, to 4 digits.
    offset: [...], m.
    body: the index of the body that it is fixed to, in whose axes x is; -1: the world.
    touches: the indices of the bodies that it can touch; if empty, all others.
    """

    normal: ListLike
    offset: TensorLike
    body: int = -1
    touches: Sequence[int] = ()

    def __post_init__(self) -> None:
        for name in ("normal", "offset"):
            object.__setattr__(self, name, as_tensor(name, getattr(self, name)))

    @staticmethod
    def inclined(slope: TensorLike = 0.0, height: TensorLike = 0.0) -> Plane:
        """The fixed plane through the point `height` of the z axis, m, that descends along x by the angle `slope`, rad.

        Differentiable in both, each [...].
        """
        return Plane(*call("_inclined_plane", *as_tensors(slope=slope, height=height)))


class RigidOptions(TypedDict, total=False):
    """Options of a rollout of rigid bodies, given as keywords.

    formulation: "exact_cone", by torchlcp.solve_friction, is the default; "polyhedral", by torchlcp.solve of
        torchlcp.friction_problem; "compliant", by torchlcp.solve_contact, with springs and without restitution.
    substeps: steps of dt that each row of the forces acts for; 1 by default.
    bounce_threshold: m/s: a contact that would close its gap faster than this is an impact. None: twice the speed that
        gravity gives in a step.
    stabilization: the share of a penetration that a step removes, in [0, 1]; 1 by default. It gives the contact the velocity
        share * depth / dt, m/s. The body keeps this velocity after it has left: a body that begins .05 m deep leaves at
        5 m/s for dt = .01 s. With a smaller share the body leaves more slowly, after more steps.
    directions, angle: of polyhedral friction, as in torchlcp.friction_problem; 4 and 0 rad by default.
    kappa: of the exact cone, as in torchlcp.solve_friction, or of polyhedral contact, as in torchlcp.solve.
    ties: of polyhedral contact, as in torchlcp.solve; "active" by default.
    tolerance: that of the solver of the formulation. None: 1e-9. Rollouts of float32 compute in double precision, too, but
        on a GPU, where polyhedral and compliant contact have the solver's default.
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


def all_options(options: RigidOptions) -> dict[str, Any]:
    """Options with the defaults of those that are not given. Raises TypeError for others."""
    unknown = set(options) - set(_DEFAULTS)
    if unknown:
        raise TypeError(f"there is no option {sorted(unknown)[0]}; the options are {', '.join(_DEFAULTS)}")
    return {**_DEFAULTS, **options}


def _all_options(options: RigidOptions) -> list[Any]:
    return list(all_options(options).values())


@dataclasses.dataclass(frozen=True, eq=False)
class RigidScene:
    """B bodies, the planes that they may touch, and the parameters of their motion, stepped in time.

    The velocities nu = (v, omega) of the bodies, omega in the axes of each, obey A (nu_next - nu_free) = J' gamma and
    u = J nu_next, where nu_free is nu after the forces, gravity and the gyroscopic torque have acted for dt, and the
    impulses gamma obey the law of the formulation. Impacts rebound by Newton's law. docs/rigid_contact.md has the rest.

    bodies, planes: see RigidBody and Plane.
    dt: s, > 0, a number.
    mu: friction coefficients, >= 0, [..., c] in the order of contact_pairs, or [..., 1] or a number for all. With the
        exact cone, infinity is a contact that never slips.
    restitution: 0 to 1, the same; not used by compliant contact.
    gravity: [..., 3], m/s^2.
    stiffness: N/m, > 0, like mu; of compliant contact alone, which needs it.
    dissipation: s, >= 0, the damping over the stiffness, the same.

    Raises ValueError where a number is out of its range; an element of which a tensor is out of its range has the status
    BAD_INPUT in all steps, also in flight. Results have the dtype of the velocity and are differentiable in the state, u
    and all tensors, but for status and iterations.

    Rollouts have derivatives of every order and in both modes. Under torch.func.vmap they have those of the first and of
    the second order, and under torch.compile those of the first order. A scene of several bodies must be made outside of a
    compiled function. The other methods cannot be compiled, nor mapped where they choose among contacts.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb
        friction, IJNME 39, 1996.
    """

    bodies: Sequence[RigidBody]
    planes: Sequence[Plane]
    dt: float
    mu: TensorLike
    restitution: TensorLike = 0.0
    gravity: ListLike = (0.0, 0.0, -9.81)
    stiffness: TensorLike | None = None
    dissipation: TensorLike | None = None
    _tensors: list[Tensor] = dataclasses.field(init=False, repr=False)
    _structure: tuple[Any, ...] = dataclasses.field(init=False, repr=False)
    _pairs: list[int] | None = dataclasses.field(init=False, repr=False)
    _kept: tuple[Any, Any] | None = dataclasses.field(init=False, repr=False, default=None)  # options, and what they made

    def __post_init__(self) -> None:
        object.__setattr__(self, "dt", check_number("dt", self.dt))
        for name in ("mu", "restitution", "stiffness", "dissipation"):
            value = getattr(self, name)
            if value is not None:
                x = parameter(name, value, may_be_infinite=name == "mu")
                object.__setattr__(self, name, x.unsqueeze(0) if x.dim() == 0 else x)  # one for all pairs
        object.__setattr__(self, "gravity", as_tensor("gravity", self.gravity))
        of_bodies = [getattr(body, field.name) for body in self.bodies for field in dataclasses.fields(body)]
        of_planes = [x for plane in self.planes for x in (plane.normal, plane.offset)]
        contact = [self.gravity, self.mu, self.restitution, self.stiffness, self.dissipation]
        object.__setattr__(self, "_tensors", [*of_bodies, *of_planes, *(x for x in contact if x is not None)])
        # All bodies by their indices, since AOTInductor cannot pass an empty list.
        touches = [plane.touches or range(len(self.bodies)) for plane in self.planes]
        structure = (
            len(self.bodies),
            [plane.body for plane in self.planes],
            [body for of_plane in touches for body in of_plane],
            [len(of_plane) for of_plane in touches],
        )
        object.__setattr__(self, "_structure", structure)
        object.__setattr__(self, "_pairs", self._list_pairs())

    def _list_pairs(self) -> list[int] | None:
        """All pairs of several bodies, which depend on radii that a traced function cannot read: five numbers each."""
        if len(self.bodies) == 1 or torch.compiler.is_compiling():
            return None
        return [int(number) for pair in self._compiled().contact_pairs() for number in pair] or [-1]

    def _with_tensors(self, tensors: Sequence[Tensor], dt: float) -> RigidScene:
        """The scene with other tensors, in the order of _tensors, and another dt."""
        of_planes, behind = 5 * len(self.bodies), 5 * len(self.bodies) + 2 * len(self.planes)
        bodies = [RigidBody(*tensors[k : k + 5]) for k in range(0, of_planes, 5)]
        planes = [
            dataclasses.replace(plane, normal=tensors[k], offset=tensors[k + 1])
            for plane, k in zip(self.planes, range(of_planes, behind, 2), strict=True)
        ]
        gravity, mu, restitution, *compliance = tensors[behind:]
        return RigidScene(bodies, planes, dt, mu, restitution, gravity, *compliance)

    def _compiled(self, options: RigidOptions | None = None) -> Any:
        """The scene in C++, where it keeps what does not change, with these options, or with any."""
        key = None if options is None else tuple(options.items())
        kept = self._kept
        if kept is None or key not in (None, kept[0]):
            made = torch.classes.lcp.RigidScene(self._tensors, *self._structure, self.dt, *_all_options(options or {}))
            methods = {name: getattr(made, name) for name in made._method_names()}  # to find one takes long
            kept = key, types.SimpleNamespace(**methods)
            object.__setattr__(self, "_kept", kept)
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": None}

    def simulate(
        self, state: State, u: TensorLike, *, feedback: Feedback | None = None, **options: Unpack[RigidOptions]
    ) -> RigidSolution:
        """Many rows of forces; returns tensors [rows, ...].

        Args:
            state: of B bodies before the first step, see RigidState, float32 or float64.
            u: [rows, ..., B, 6], forces on the centres of mass, N, and torques in the axes of the bodies, N m. The first
                dimension is that of the rows, also where it is 1: [1, 10, 1, 6] is one row for a batch of ten.
            feedback: of the state before each substep, beside u, with K [..., 6 B, 12 B] and a RigidState as its reference; on
                the CPU. The rows of K are the numbers of u, [B, 6]. Its columns are those of the error e: for each body the
                errors of its position, m, and of its orientation, rad, then for each body those of its velocity, m/s, and of
                its angular velocity, rad/s. The error of an orientation is twice the vector part of conj(q) q_ref, with the
                sign that turns less: the rotation vector in the axes of the body from q to q_ref, up to third order in its
                length.
            options: see RigidOptions.

        Raises:
            RuntimeError: a shape, dtype or option does not fit, or the normal of a plane has not length 1.
        """
        closed = [] if feedback is None else [as_tensor("K", feedback[0]), *_state_of(cast(State, feedback[1]))]
        if not torch.compiler.is_compiling():
            *x, inputs = _state_of(state, u)
            return RigidSolution(*self._compiled(options).simulate(x, inputs, closed))
        if len(self.bodies) > 1 and self._pairs is None:
            raise RuntimeError("a scene of several bodies must be made outside of a compiled function")
        scene = ([*_state_of(state, u), *self._tensors], *self._structure, self._pairs, self.dt)
        return RigidSolution(*torch.ops.lcp._roll_out_scene(*scene, *_all_options(options), *closed))

    def step(self, state: State, u: TensorLike, **options: Unpack[RigidOptions]) -> RigidSolution:
        """One row of forces, u [..., B, 6], as simulate; returns tensors [...]."""
        if torch.compiler.is_compiling() or "feedback" in options:
            return first_step(self.simulate(state, as_tensor("u", u).unsqueeze(0), **options))
        *x, inputs = _state_of(state, u)
        return RigidSolution(*self._compiled(options).step(x, inputs))

    def certify(
        self,
        state: State,
        u: TensorLike,
        rollout: RigidSolution,
        *,
        certificate_tolerance: float = 1e-9,
        **options: Unpack[RigidOptions],
    ) -> RigidCertificate:
        """Certifies the gradient of the rollout that simulate returned for the same state, u and options.

        Args:
            certificate_tolerance: a row is kinked where its margin is at most this.
        """
        compiled = self._compiled(options)
        return RigidCertificate(
            *compiled.certify(_state_of(state), as_tensor("u", u), list(rollout), certificate_tolerance)
        )

    def at_mid_steps(self, state: State, u: TensorLike, **options: Unpack[RigidOptions]) -> RigidState:
        """Turns a state whose velocities were measured at the time of its positions into one that begins a rollout.

        The velocities become those of dt / 2 earlier, since those of a rollout are those of the middles of its steps. A
        measured velocity that begins a rollout as it is makes an error of a dt / 2, where a is the acceleration; this
        function is exact to second order in dt. The acceleration is the one that gravity, forces, friction and contacts at
        rest cause, but no impact: a body that hits another at this time, or within the next step, has the velocity before
        the impact. Penetrations are not removed.

        Args:
            state: velocities at the time of the positions, m/s and rad/s.
            u: [..., B, 6], the forces at that time, N and N m, as those of step.
            options: as in simulate; substeps are ignored, since dt is that of the scene.

        Returns a state of the batch shape of state, u and scene, NaN where one of the four steps that it computes is not
        solved.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """
        return RigidState(*self._compiled(options).at_mid_steps(_state_of(state), as_tensor("u", u)))

    def at_samples(self, state: State, u: TensorLike, **options: Unpack[RigidOptions]) -> RigidState:
        """Turns a state that a rollout returned into one whose velocities are those at the time of its positions.

        This is the inverse of at_mid_steps. A whole rollout, the next of simulate with u [rows, ..., B, 6], is one batch of
        states.

        Args:
            state: as simulate returned it.
            u, options: as in at_mid_steps. So are NaN and errors.
        """
        return RigidState(*self._compiled(options).at_samples(_state_of(state), as_tensor("u", u)))

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
        return RigidContacts(*self._compiled().contacts(_state_of(state)))

    def mass_matrix(self) -> Tensor:
        """A, [..., 6 B, 6 B]."""
        return self._compiled().mass_matrix()

    def energy(self, state: State) -> Tensor:
        """[...], J: the kinetic energy and the potential energy of gravity."""
        return self._compiled().energy(_state_of(state))


@operator("_rotation_matrix")
def rotation_matrix(quaternion: TensorLike) -> Tensor:
    """The rotation matrix [..., 3, 3] of a quaternion (w, x, y, z), [..., 4], which is normalised first."""


@operator("_rotation_by")
def rotation_by(theta: TensorLike) -> Tensor:
    """The quaternion [..., 4] of the rotation by the angle |theta| about theta, [..., 3], rad; smooth at 0, too.

    Sola, Deray, Atchuthan: A micro Lie theory for state estimation in robotics, arXiv 1812.01537, 2018.
    """


@operator("_turned")
def turned(quaternion: TensorLike, theta: TensorLike) -> Tensor:
    """The unit quaternion [..., 4] of a body of that orientation, after it has turned by theta [..., 3] in its own axes."""


@operator("_rotation_between")
def rotation_between(a: TensorLike, b: TensorLike) -> Tensor:
    """The quaternion [..., 4] of the rotation, in the axes of the body, from a to b, of unit length, [..., 4]."""


@operator("_angle_between")
def angle_between(a: TensorLike, b: TensorLike) -> Tensor:
    """The angle, [...], rad, in [0, pi], by which one orientation, [..., 4], has to turn to become the other."""


@operator("_gyroscopic")
def gyroscopic(omega: TensorLike, inertia: TensorLike, dt: float) -> Tensor:
    """The angular velocity [..., 3], rad/s, of a body free of torques after the time dt, in its own axes.

    The implicit midpoint rule for I omega' = (I omega) x omega, which conserves the kinetic energy and the size of the
    angular momentum. Newton's method solves it to round-off where dt |omega| is below 1 rad.

    Args:
        omega: [..., 3], rad/s.
        inertia: [..., 3, 3], kg m^2.
        dt: s.
    """
