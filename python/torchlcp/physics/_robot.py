"""Robots: bodies that joints join to trees, with exact friction."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from torchlcp._arguments import Feedback, ListLike, TensorLike, as_tensor, feedback_by_names
from torchlcp.physics._rigid import RigidOptions, _all_options
from torchlcp.physics._system import check_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Robot", "RobotActuator", "RobotCertificate", "RobotClosure", "RobotContact", "RobotCoupling", "RobotJoint",
    "RobotJointPlace", "RobotKeyframe", "RobotLinearization", "RobotPlaces", "RobotShape", "RobotSolution", "RobotState",
    "load_robot",
]

_KINDS = ("free", "ball", "slide", "hinge")
_SHAPES = ("ball", "capsule", "cylinder", "box", "ellipsoid")
_COORDINATES = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
_DOFS = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
_TENSORS = (
    "mass", "inertia", "center_of_mass", "position", "orientation", "axis", "anchor", "range", "spring", "damping",
    "armature", "gear", "actuator_force", "centers", "radii", "normals", "offsets", "mu", "gravity", "box_sizes", "box_centers",
    "box_orientations", "friction_loss", "coupling", "closure", "closure_orientation",
)
_UNLIMITED = (-math.inf, math.inf)


class RobotState(NamedTuple):
    """The state of a robot, in the coordinates of MuJoCo.

    qpos: [..., nq], for each joint in its order: the position, m, and quaternion (w, x, y, z) of a free joint; the quaternion
        of a ball joint; one number of a slide, m, or of a hinge, rad.
    qvel: [..., nv], for each joint: the velocity of a free joint in the axes of the world, m/s, and its angular velocity in
        those of the body, rad/s; the angular velocity of a ball joint in those of the body; one number of the others.
    """

    qpos: Tensor
    qvel: Tensor


State = RobotState | tuple[TensorLike, TensorLike]


class RobotSolution(NamedTuple):
    """The end of one row of steps, [...], or of many, [rows, ...]; NaN from the first step on that was not solved.

    qpos_next, qvel_next: as in RobotState.
    gamma: [..., 3 (c + l)], N s: the impulse of each contact along (t1, t2, n), then (0, 0, n) of each limit of a joint, the
        lower before the upper one.
    status: [...], int8, the values of torchlcp.Status.
    iterations: [...], int64, of Newton's method.
    joint_friction: [..., d], N s or N m s: the impulse of dry friction along each degree of freedom.
    coupling: [..., k], N s or N m s: the impulse of each coupling along its joint.
    closure: [..., o, 6], N s: the impulse of each closure on its body, and N m s: of a weld the turning one, else 0; in the
        axes of the world.
    """

    qpos_next: Tensor
    qvel_next: Tensor
    gamma: Tensor
    status: Tensor
    iterations: Tensor
    joint_friction: Tensor
    coupling: Tensor
    closure: Tensor

    @property
    def next(self) -> RobotState:
        """The state at the end of each row."""
        return RobotState(self.qpos_next, self.qvel_next)


class RobotLinearization(NamedTuple):
    """One row of steps and its derivative in the tangent space of the coordinates.

    An orientation changes by a rotation vector in the axes of its body, so that a change of state is (dq, dv), [2 nv].

    qpos_next, qvel_next: [...], as in RobotState.
    A: [..., 2 nv, 2 nv], of the state.
    B: [..., 2 nv, nu], of the control.
    status: [...], int8.
    """

    qpos_next: Tensor
    qvel_next: Tensor
    A: Tensor
    B: Tensor
    status: Tensor


class RobotCertificate(NamedTuple):
    """What is true of the steps of a rollout, without gradient.

    unsolved: [...], int64, rows whose status is not SOLVED.
    kinked: [...], int64, rows whose margin is at most the tolerance: the gradient may be one-sided.
    residual: [rows, ...], the largest of a substep, of certify_friction.
    margin: [rows, ...], the least of a substep, of certify_friction, or 0 where the velocities are not unique: how far its
        contacts, limits, dry friction and servos are from changing their state. Ranges of controls do not count.
    gap: [rows, ...], m, the least gap of a contact before a substep, < 0 where bodies overlap.
    """

    unsolved: Tensor
    kinked: Tensor
    residual: Tensor
    margin: Tensor
    gap: Tensor


class RobotPlaces(NamedTuple):
    """Where the bodies are: the origins [..., b, 3], m, and the rotation matrices [..., b, 3, 3] of their axes."""

    position: Tensor
    rotation: Tensor


class RobotJoint(NamedTuple):
    """A joint between a body and its parent.

    body: the index of the body that it moves.
    kind: "free", "ball", "slide" or "hinge". A free joint is the only one of a body whose parent is the world.
    has_limits: of a slide or a hinge, whether Robot.range counts.
    name: any text.
    """

    body: int
    kind: str
    has_limits: bool = False
    name: str = ""


class RobotActuator(NamedTuple):
    """A motor of a slide or a hinge.

    Its force is gain control + b_0 + b_1 length + b_2 speed, where length and speed are `gear` times those of the joint. On
    the joint acts `gear` times the force. A position servo has the gain k_p, b_1 = -k_p and b_2 = -k_v. What exceeds a range
    counts as its bound. Whether a force does is decided with the contacts of the step, as dry friction is: of a servo that is
    the force at the end of the step. With the options kappa or bounce_threshold it is decided before the contacts.

    joint: its index.
    control_range, force_range: least and largest.
    name: any text.
    """

    joint: int
    control_range: tuple[float, float] = _UNLIMITED
    force_range: tuple[float, float] = _UNLIMITED
    name: str = ""


class RobotContact(NamedTuple):
    """A ball that may touch a plane or a box, or a ball or capsule that may touch another one; each of another body.

    A capsule is named by the balls at its ends, which have the same radius.

    ball: its index; balls are numbered body after body.
    plane: the index of the plane, or -1.
    other: where there is no plane and no box, the index of the other ball.
    end, other_end: of capsules, the other ball of each; -1 for a ball.
    box: the index of the box, or -1.
    """

    ball: int
    plane: int = -1
    other: int = -1
    end: int = -1
    other_end: int = -1
    box: int = -1


class RobotCoupling(NamedTuple):
    """The coordinate of a slide or a hinge as a polynomial in that of another one, or as a constant.

    It is an equation of the robot, with an impulse of any size: fingers that move together, or a gear. With the exact cone
    only.

    joint: its index.
    other: the index of another slide or hinge, or -1 for a constant.
    """

    joint: int
    other: int = -1


class RobotClosure(NamedTuple):
    """A point of a body that is one with a point of another one, or of the world: how a loop of bodies is closed.

    A weld holds the orientation of the two, too. Both have an impulse of any size. With the exact cone only.

    body, other: the indices of both; -1 for the world.
    is_weld: whether it is one.
    """

    body: int
    other: int = -1
    is_weld: bool = False


class RobotKeyframe(NamedTuple):
    """A state with a name, such as one in which a quadruped stands, and the control that belongs to it.

    name: any text.
    qpos, qvel: [nq] and [nv], as in RobotState.
    control: [a], of the actuators.
    """

    name: str
    qpos: TensorLike
    qvel: TensorLike
    control: TensorLike

    @property
    def state(self) -> RobotState:
        """Its qpos and qvel."""
        return RobotState(as_tensor("qpos", self.qpos), as_tensor("qvel", self.qvel))


class RobotShape(NamedTuple):
    """What a body looks like, for figures. A shape has no mass and touches nothing.

    body: its index, or -1 for the world.
    kind: "ball", "capsule", "cylinder", "box" or "ellipsoid".
    size: m: the radius; that of a capsule or a cylinder and, along z, half the distance of its ends; half the edges of a box, or
        half the axes of an ellipsoid. The others of the three numbers are not read.
    center, orientation: m, and a quaternion, in the axes of the body.
    """

    body: int
    kind: str
    size: tuple[float, float, float]
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    orientation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


class RobotJointPlace(NamedTuple):
    """Where the numbers of a joint stand: its number in Robot.joints, and its slices of qpos and qvel."""

    number: int
    qpos: slice
    qvel: slice


@dataclasses.dataclass(frozen=True, eq=False)
class Robot:
    """Bodies that joints join to trees, free bodies beside them, and fixed planes, stepped in time with exact friction.

    The velocities obey A (qvel_next - qvel) = dt (f - c) + J' gamma with A = M + diag(armature) + dt D + dt^2 K. M is the mass
    matrix, c are the forces of gravity and of the motion itself, f those of actuators, springs, dampers and loads before the
    step. D and K, the slopes of the forces of springs, dampers and actuators, make these implicit: stiff ones are stable.
    Contacts obey Coulomb's law; contacts and limits of joints close their gap by the end of a step at most. Along each degree
    of freedom dry friction has an impulse of at most dt friction_loss, which holds the velocity at 0 or, at its largest, is
    against it: joints rest exactly. Couplings of joints and closures of loops are equations; their gaps, to the first order, are
    closed at the end of each step. qpos moves by dt qvel_next.

    There are b bodies with p balls and e boxes, j joints with d degrees of freedom, a actuators, h planes, c contacts, k
    couplings and o closures. All tensors may have batch dimensions in front, and rollouts are differentiable in them, to the
    first order.

    parents: of each body, the index of an earlier one, or -1 for the world.
    joints: body after body, and from the parent on where a body has several.
    dt: s, > 0, a number.
    mass: [..., b], kg.
    inertia: [..., b, 3, 3], kg m^2, about the centre of mass, in the axes of the body.
    center_of_mass: [..., b, 3], m, in the axes of the body.
    position, orientation: [..., b, 3], m, and [..., b, 4]: of the body in the axes of its parent, where its joints are at 0.
    axis: [..., j, 3], of slides and hinges, of length 1, in the axes of the body.
    anchor: [..., j, 3], m, of hinges and ball joints, in the axes of the body.
    range: [..., j, 2], m or rad, of joints with limits.
    spring: [..., j, 2], of slides and hinges: N/m or N m/rad, and the coordinate at rest.
    damping, armature: [..., d], N s/m or N m s/rad, and kg or kg m^2.
    actuators: of slides and hinges.
    gear: [..., a].
    actuator_force: [..., a, 4]: gain, b_0, b_1, b_2.
    balls: how many each body has.
    centers, radii: [..., p, 3] and [..., p], m, of the balls, in the axes of their bodies.
    boxes: the body of each box.
    box_sizes: [..., e, 3], m, half the lengths of the edges.
    box_centers, box_orientations: [..., e, 3], m, and quaternions [..., e, 4], in the axes of their bodies.
    contacts: what may touch.
    normals, offsets: [..., h, 3], of length 1, and [..., h], m, of the planes normal.x = offset.
    mu: [..., c], friction coefficients, >= 0.
    gravity: [..., 3], m/s^2.
    body_names: of each body, any text.
    qpos0: [..., nq], the coordinates of default_state; None: free joints where their bodies are placed, all other ones 0.
    couplings: of slides and hinges.
    coupling: [..., k, 5]: the coordinate of a coupled joint is c_0 + c_1 x + .. + c_4 x^4 of that x of the other one.
    keyframes: states with names, see `keyframe`.
    shapes: what the bodies look like.
    closures: of loops of bodies.
    closure: [..., o, 2, 3], m: both points of each closure, in the axes of their bodies.
    closure_orientation: [..., o, 4], of welds: the quaternion of the other body in the axes of the body; () is that of no turn.
    friction_loss: [..., d], N or N m, >= 0: the largest force of dry friction; () is 0. A degree of freedom whose number is
        0, and has no derivative, costs nothing. Friction must be without the options kappa and bounce_threshold.

    Elements of which a number is out of its range have the status BAD_INPUT in all steps.

        Featherstone: Rigid Body Dynamics Algorithms, 2008.
    """

    parents: Sequence[int]
    joints: Sequence[RobotJoint]
    dt: float
    mass: ListLike
    inertia: ListLike
    center_of_mass: ListLike
    position: ListLike
    orientation: ListLike
    axis: ListLike
    anchor: ListLike
    range: ListLike
    spring: ListLike
    damping: ListLike
    armature: ListLike
    actuators: Sequence[RobotActuator] = ()
    gear: ListLike = ()
    actuator_force: ListLike = ()
    balls: Sequence[int] = ()
    centers: ListLike = ()
    radii: ListLike = ()
    contacts: Sequence[RobotContact] = ()
    normals: ListLike = ()
    offsets: ListLike = ()
    mu: ListLike = ()
    gravity: ListLike = (0.0, 0.0, -9.81)
    body_names: Sequence[str] = ()
    boxes: Sequence[int] = ()
    box_sizes: ListLike = ()
    box_centers: ListLike = ()
    box_orientations: ListLike = ()
    qpos0: ListLike | None = None
    friction_loss: ListLike = ()
    couplings: Sequence[RobotCoupling] = ()
    coupling: ListLike = ()
    closures: Sequence[RobotClosure] = ()
    closure: ListLike = ()
    closure_orientation: ListLike = ()
    keyframes: Sequence[RobotKeyframe] = ()
    shapes: Sequence[RobotShape] = ()
    _numbers: list[Tensor] = dataclasses.field(init=False, repr=False)
    _structure: str = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dt", check_number("dt", self.dt))
        empty = {"actuator_force": (0, 4), "centers": (0, 3), "normals": (0, 3), "box_sizes": (0, 3), "box_centers": (0, 3),
                 "box_orientations": (0, 4), "coupling": (0, 5), "closure": (0, 2, 3)}
        for name in _TENSORS:
            x = as_tensor(name, getattr(self, name))
            object.__setattr__(self, name, x.reshape(empty[name]) if name in empty and x.numel() == 0 else x)
        for joint in self.joints:
            if joint.kind not in _KINDS:
                raise ValueError(f"the kind of a joint must be free, ball, slide or hinge; got {joint.kind}")
        for shape in self.shapes:
            if shape.kind not in _SHAPES:
                raise ValueError(f"the kind of a shape must be {', '.join(_SHAPES[:-1])} or {_SHAPES[-1]}; got {shape.kind}")
        for keyframe in self.keyframes:
            for what, size in (("qpos", self.nq), ("qvel", self.nv), ("control", len(self.actuators))):
                shape_of = as_tensor(what, getattr(keyframe, what)).shape
                if shape_of != (size,):
                    raise ValueError(f"{what} of the keyframe {keyframe.name} must be [{size}]; got {list(shape_of)}")
        if self.qpos0 is not None:
            object.__setattr__(self, "qpos0", as_tensor("qpos0", self.qpos0))
        if not self.closures or as_tensor("closure_orientation", self.closure_orientation).numel() == 0:
            same = as_tensor("closure", self.closure).new_tensor([1.0, 0.0, 0.0, 0.0])
            object.__setattr__(self, "closure_orientation", same.expand(len(self.closures), 4))
        loss = as_tensor("friction_loss", self.friction_loss)
        if loss.shape == (0,):
            loss = as_tensor("damping", self.damping).new_zeros(self.nv)
        joints = [x for joint in self.joints for x in (joint.body, _KINDS.index(joint.kind), int(joint.has_limits))]
        ranges = [x for actuator in self.actuators for x in (*actuator.control_range, *actuator.force_range)]
        structure = torch.ops.lcp._structure_of_robot(
            list(self.parents), joints, [actuator.joint for actuator in self.actuators], ranges,
            list(self.balls) or [0] * len(self.parents), list(self.boxes), [x for contact in self.contacts for x in contact],
            as_tensor("offsets", self.offsets).shape[-1],
            loss, self.actuator_force, [x for coupling in self.couplings for x in coupling],
            [int(x) for closure in self.closures for x in closure],
        )
        object.__setattr__(self, "_structure", structure)
        numbers = [loss if name == "friction_loss" else getattr(self, name) for name in _TENSORS]
        object.__setattr__(self, "_numbers", numbers)

    @property
    def nq(self) -> int:
        """How many coordinates there are."""
        return sum(_COORDINATES[joint.kind] for joint in self.joints)

    @property
    def nv(self) -> int:
        """How many velocities there are."""
        return sum(_DOFS[joint.kind] for joint in self.joints)

    def joint(self, name: str) -> RobotJointPlace:
        """Where the numbers of the joint of this name stand. Raises KeyError where there is none."""
        q = v = 0
        for k, joint in enumerate(self.joints):
            nq, nv = _COORDINATES[joint.kind], _DOFS[joint.kind]
            if joint.name == name:
                return RobotJointPlace(k, slice(q, q + nq), slice(v, v + nv))
            q, v = q + nq, v + nv
        raise KeyError(f"the robot has no joint {name}; it has {', '.join(joint.name for joint in self.joints)}")

    def body(self, name: str) -> int:
        """The index of the body of this name. Raises KeyError where there is none."""
        if name not in self.body_names:
            raise KeyError(f"the robot has no body {name}; it has {', '.join(self.body_names)}")
        return list(self.body_names).index(name)

    def actuator(self, name: str) -> int:
        """The index of the actuator of this name. Raises KeyError where there is none."""
        names = [actuator.name for actuator in self.actuators]
        if name not in names:
            raise KeyError(f"the robot has no actuator {name}; it has {', '.join(names)}")
        return names.index(name)

    def keyframe(self, name: str) -> RobotKeyframe:
        """The keyframe of this name, with `state` and `control`. Raises KeyError where there is none."""
        names = [keyframe.name for keyframe in self.keyframes]
        if name not in names:
            raise KeyError(f"the robot has no keyframe {name}; it has {', '.join(names)}")
        return self.keyframes[names.index(name)]

    def default_state(self) -> RobotState:
        """At rest, at qpos0."""
        if self.qpos0 is not None:
            given = as_tensor("qpos0", self.qpos0).detach()
            return RobotState(given, given.new_zeros(self.nv))
        position, orientation = (as_tensor(name, getattr(self, name)).detach() for name in ("position", "orientation"))
        parts: list[Tensor] = []
        for joint in self.joints:
            if joint.kind == "free":
                parts += [position[..., joint.body, :], orientation[..., joint.body, :]]
            elif joint.kind == "ball":
                parts.append(position.new_tensor([1.0, 0.0, 0.0, 0.0]))
            else:
                parts.append(position.new_zeros(1))
        batch = torch.broadcast_shapes(*(x.shape[:-1] for x in parts)) if parts else ()
        qpos = [x.expand(*batch, x.shape[-1]) for x in parts]
        return RobotState(torch.cat(qpos, -1) if parts else position.new_zeros(0), position.new_zeros(self.nv))

    def simulate(
        self, state: State, control: TensorLike | None = None, *, forces: TensorLike | None = None, rows: int | None = None,
        feedback: Feedback | None = None, **options: Unpack[RigidOptions],
    ) -> RobotSolution:
        """Many rows of steps; returns tensors [rows, ...].

        Args:
            state: before the first step, float32 or float64.
            control: [rows, ..., a], of the actuators; None: 0.
            forces: [rows, ..., b, 6], forces on the centres of mass in the axes of the world, N, and torques in those of the
                bodies, N m; None: 0.
            rows: how many, where neither control nor forces is given.
            feedback: of the state before each step, beside the control, with K [..., a, 2 nv] in the tangent space of
                RobotLinearization and a RobotState as its reference.
            options: see RigidOptions. Contact is not compliant; without bounce_threshold no contact counts as an impact, since
                robots have no restitution.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """
        qpos, qvel = (as_tensor(name, x) for name, x in zip(("qpos", "qvel"), state, strict=True))
        given, rows = self._inputs(qvel, control, forces, rows)
        closed = feedback_by_names(feedback, ("K", "qpos", "qvel"))
        loop = [as_tensor(name, closed[name], qvel) if closed else None for name in ("K", "qpos", "qvel")]
        return RobotSolution(
            *torch.ops.lcp._roll_out_robot(
                qpos, qvel, *given, *loop, rows, self._structure, self._numbers, self.dt, *_all_options(options)
            )
        )

    def certify(
        self, state: State, control: TensorLike | None = None, *, forces: TensorLike | None = None, rows: int | None = None,
        certificate_tolerance: float = 1e-9, **options: Unpack[RigidOptions],
    ) -> RobotCertificate:
        """Rolls out as simulate, poses the problem of each step once more, and certifies its solution.

        The problem has all contacts that the speeds of bodies may close. The certificate is NaN from the first step on that was
        not solved, whose gap is known.

        Raises:
            RuntimeError: a shape, dtype or option does not fit, or the options are other than the exact cone without
                bounce_threshold.
        """
        qpos, qvel = (as_tensor(name, x) for name, x in zip(("qpos", "qvel"), state, strict=True))
        given, rows = self._inputs(qvel, control, forces, rows)
        return RobotCertificate(
            *torch.ops.lcp._certify_robot(
                qpos, qvel, *given, rows, self._structure, self._numbers, self.dt, *_all_options(options), certificate_tolerance
            )
        )

    def _inputs(
        self, like: Tensor, control: TensorLike | None, forces: TensorLike | None, rows: int | None
    ) -> tuple[list[Tensor | None], int]:
        """The inputs of a rollout as tensors, and its rows."""
        given = [None if x is None else as_tensor(name, x, like) for name, x in (("control", control), ("forces", forces))]
        for x in given:
            if x is not None:
                rows = x.shape[0] if rows is None and x.dim() > 0 else rows
        if rows is None:
            raise TypeError("a rollout needs control, forces or rows")
        return given, rows

    def step(
        self, state: State, control: TensorLike | None = None, *, forces: TensorLike | None = None,
        **options: Unpack[RigidOptions],
    ) -> RobotSolution:
        """One row, control [..., a] and forces [..., b, 6], as simulate; returns tensors [...]."""
        qpos, qvel = (as_tensor(name, x) for name, x in zip(("qpos", "qvel"), state, strict=True))
        given = [None if x is None else as_tensor(name, x, qvel) for name, x in (("control", control), ("forces", forces))]
        return RobotSolution(
            *torch.ops.lcp._roll_out_robot(
                qpos, qvel, *given, None, None, None, None, self._structure, self._numbers, self.dt, *_all_options(options)
            )
        )

    def linearize(
        self, state: State, control: TensorLike | None = None, **options: Unpack[RigidOptions]
    ) -> RobotLinearization:
        """The derivative of a row of steps, exact; where contacts or limits change, it is one-sided. It has no gradient.

        Args:
            state: before the step.
            control: [..., a]; None: 0.
            options: as in simulate.

        Raises:
            RuntimeError: a shape, dtype or option does not fit.
        """
        qpos, qvel = (as_tensor(name, x) for name, x in zip(("qpos", "qvel"), state, strict=True))
        given = None if control is None else as_tensor("control", control, qvel)
        return RobotLinearization(
            *torch.ops.lcp._linearize_robot(
                qpos, qvel, given, self._structure, self._numbers, self.dt, *_all_options(options)
            )
        )

    def places(self, qpos: TensorLike) -> RobotPlaces:
        """Where the bodies are for coordinates [..., nq]; differentiable in these and the tensors of the robot."""
        return RobotPlaces(*torch.ops.lcp._places_of_robot(as_tensor("qpos", qpos), self._structure, self._numbers))

    def replace(self, **changes: Any) -> Robot:
        """The same robot with other fields, such as mass=..."""
        return dataclasses.replace(self, **changes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the robot into a file, which load_robot reads, here and in C++. Gradients of tensors are not kept.

        The file is JSON, as robot_file.h describes. A file that exists is replaced completely or not at all.

        Raises:
            OSError: the file cannot be written.
            ValueError: a tensor is neither float32 nor float64, or a name cannot be encoded.
        """
        names, balls = self.body_names or [""] * len(self.parents), self.balls or [0] * len(self.parents)
        lists: dict[str, list[dict[str, Any]]] = {
            "bodies": [
                {"name": name, "parent": int(parent), "balls": int(count)}
                for name, parent, count in zip(names, self.parents, balls, strict=True)
            ],
            "joints": [joint._asdict() for joint in self.joints],
            "actuators": [actuator._asdict() for actuator in self.actuators],
            "contacts": [contact._asdict() for contact in self.contacts],
            "couplings": [coupling._asdict() for coupling in self.couplings],
            "closures": [closure._asdict() for closure in self.closures],
            "keyframes": [
                {"name": keyframe.name, **{what: as_tensor(what, x).double().tolist() for what, x in
                                           zip(("qpos", "qvel", "control"), keyframe[1:], strict=True)}}
                for keyframe in self.keyframes
            ],
            "shapes": [shape._asdict() for shape in self.shapes],
        }
        tensors = {}
        for name, x in (*zip(_TENSORS, self._numbers, strict=True), ("qpos0", self.default_state().qpos)):
            if x.dtype not in (torch.float32, torch.float64):
                raise ValueError(f"{name} must be float32 or float64; got {x.dtype}")
            dtype = str(x.dtype).removeprefix("torch.")
            tensors[name] = {"dtype": dtype, "shape": list(x.shape), "values": x.detach().flatten().tolist()}

        def line(value: Any) -> str:
            return json.dumps(value, ensure_ascii=False, default=lambda x: x.item())  # numbers of NumPy

        rows = ['"format": "torchlcp robot"', '"version": 1', f'"dt": {line(self.dt)}']
        rows += [f'{line(key)}: [' + ",".join(f"\n  {line(item)}" for item in items) + "]" for key, items in lists.items()]
        rows.append(f'"boxes": {line([int(body) for body in self.boxes])}')
        rows.append('"tensors": {' + ",".join(f"\n  {line(name)}: {line(x)}" for name, x in tensors.items()) + "}")
        text = "{" + ",\n ".join(rows) + "}\n"
        with tempfile.TemporaryDirectory(dir=pathlib.Path(path).absolute().parent, prefix=".torchlcp-") as folder:
            unfinished = pathlib.Path(folder) / "robot.json"
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, path)


def load_robot(path: str | os.PathLike[str]) -> Robot:
    """The robot of a file that Robot.save wrote. It needs no other package, and can be loaded in C++, too.

    Raises:
        ValueError: the file cannot be read, or is not such a file: the message has the path and, where the text is wrong, the
            line.
    """
    try:
        found = torch.ops.lcp._load_robot(os.fspath(path))
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    (parents, joints, driven, ranges, balls, boxes, contacts, couplings, closures, body_names, joint_names, actuator_names,
     numbers, qpos0, dt, keyframe_names, keyframes, shapes, sizes) = found
    bounds = [(ranges[k], ranges[k + 1]) for k in range(0, len(ranges), 2)]
    return Robot(
        parents=parents, dt=dt, body_names=body_names, balls=balls, boxes=boxes, qpos0=qpos0,
        joints=[
            RobotJoint(joints[3 * k], _KINDS[joints[3 * k + 1]], bool(joints[3 * k + 2]), name)
            for k, name in enumerate(joint_names)
        ],
        actuators=[
            RobotActuator(joint, bounds[2 * k], bounds[2 * k + 1], actuator_names[k]) for k, joint in enumerate(driven)
        ],
        contacts=[RobotContact(*contacts[k:k + 6]) for k in range(0, len(contacts), 6)],
        couplings=[RobotCoupling(*couplings[k:k + 2]) for k in range(0, len(couplings), 2)],
        closures=[RobotClosure(closures[k], closures[k + 1], bool(closures[k + 2])) for k in range(0, len(closures), 3)],
        keyframes=[RobotKeyframe(name, *keyframes[3 * k:3 * k + 3]) for k, name in enumerate(keyframe_names)],
        shapes=[
            RobotShape(shapes[2 * k], _SHAPES[shapes[2 * k + 1]], tuple(sizes[10 * k:10 * k + 3]),
                       tuple(sizes[10 * k + 3:10 * k + 6]), tuple(sizes[10 * k + 6:10 * k + 10]))
            for k in range(len(shapes) // 2)
        ],
        **dict(zip(_TENSORS, numbers, strict=True)),
    )
