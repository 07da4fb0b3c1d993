"""Robots from files of MJCF and URDF, which the package mujoco-core reads."""

from __future__ import annotations

import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from torchlcp.physics._robot import (
    Robot, RobotActuator, RobotClosure, RobotContact, RobotCoupling, RobotJoint, RobotKeyframe, RobotShape,
)

__all__ = ["load_mjcf", "load_urdf"]

_PLANE, _FIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)
_SHAPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
_DRAWN = {_SPHERE: "ball", _CAPSULE: "capsule", _ELLIPSOID: "ellipsoid", _CYLINDER: "cylinder", _BOX: "box", _MESH: "box"}
_HIDDEN = 3  # the first group of geoms that viewers do not show
_RIM = 16  # the points of a cylinder's rim that touch planes


def load_mjcf(path: str | os.PathLike[str], *, ignore: Iterable[str] = ()) -> Robot:
    """The robot of a file of MuJoCo, with its names, contacts, actuators and step.

    Bodies, joints with limits, springs, dampers, armature, dry friction and couplings, closures of loops, motors and servos of
    joints, gravity and keyframes are those of the file, without what its options switch off. default_state is at the `ref` of
    the joints, which MuJoCo has in qpos0. What is drawn are the geoms that viewers show, meshes as boxes around them.
    Spheres and capsules touch planes and each other, and spheres touch boxes; boxes touch planes by their corners, meshes by
    the corners of their convex hulls, and cylinders by 16 points of each rim. Which of them may touch is decided as MuJoCo
    does: by contype and conaffinity, by parents and children, and by pairs and excludes. Contact is rigid: solref, solimp and
    margins do not count.

    Args:
        path: of the file.
        ignore: what the file has and is not supported, by the names that the error gives; it is left out.

    Raises:
        ImportError: the package mujoco-core is not installed.
        ValueError: the file cannot be read, or has something that is not supported: the message names it, and its line.
    """
    return _load(path, ignore, lambda mujoco: mujoco.MjSpec.from_file(os.fspath(path)))


def load_urdf(
    path: str | os.PathLike[str], *, floating: bool = False, ground: bool = False, ignore: Iterable[str] = ()
) -> Robot:
    """The robot of a URDF, as load_mjcf. Its step is 2 ms, and no link turns into its parent.

    Files of meshes that begin with package://name/ are looked for in the folder of this name that the URDF is in.

    Args:
        path: of the file.
        floating: whether the first link moves freely; else it is fixed to the world.
        ground: whether there is the plane z = 0, with a friction coefficient of 1.
        ignore: as in load_mjcf.

    Raises:
        as load_mjcf.
    """

    return _load(path, ignore, lambda mujoco: urdf_spec(mujoco, path, floating, ground))


def urdf_spec(mujoco: Any, path: str | os.PathLike[str], floating: bool, ground: bool) -> Any:
    """The specification by which load_urdf has MuJoCo read a file."""
    text = pathlib.Path(path).read_text()
    folders = {folder.name: folder for folder in pathlib.Path(path).resolve().parents}

    def resolved(found: re.Match[str]) -> str:
        return f"{folders[found[1]]}/" if found[1] in folders else found[0]

    text = re.sub(r"package://([^/\"]+)/", resolved, text)
    # Links without mass that are fixed to the first one are joined with it where it moves.
    options = (f'strippath="false" discardvisual="true" fusestatic="{str(floating).lower()}" balanceinertia="true" '
               'boundinertia="1e-12"')
    text = re.sub(r"<robot[^>]*>", lambda tag: f"{tag[0]}<mujoco><compiler {options}/></mujoco>", text, count=1)
    spec = mujoco.MjSpec.from_string(text)
    if floating:
        first = spec.worldbody.first_body()
        if first is None:
            raise ValueError("there is no link")
        first.add_freejoint()
    if ground:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1])
    return spec


def _load(path: str | os.PathLike[str], ignore: Iterable[str], read: Callable[[Any], Any]) -> Robot:
    try:
        import mujoco
    except ImportError:
        raise ImportError("robot files are read by the package mujoco-core: pip install mujoco-core") from None
    try:
        spec = read(mujoco)
        model = spec.compile()
    except (OSError, ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ValueError(f"{os.fspath(path)} cannot be read: {' '.join(str(error).split())}") from None
    return _Reader(mujoco, spec, model, os.fspath(path), set(ignore)).robot()


def _numbers(x: Any) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def _range(is_limited: Any, bounds: Any) -> tuple[float, float]:
    return (float(bounds[0]), float(bounds[1])) if is_limited else (-torch.inf, torch.inf)


class _Reader:
    def __init__(self, mujoco: Any, spec: Any, model: Any, path: str, ignore: set[str]) -> None:
        self.mujoco, self.spec, self.model, self.path, self.ignore = mujoco, spec, model, path, ignore
        self.found: dict[str, str] = {}  # what is not supported: by its name, where it is

    def robot(self) -> Robot:
        m = self.model
        self.obey_flags()
        self.check()
        has_static = any(m.geom_bodyid[g] == 0 and m.geom_type[g] != _PLANE for g in range(m.ngeom))
        # Shapes that are fixed to the world are those of a body without joints.
        self.first = 0 if has_static else 1
        contacts = self.contacts()
        unsupported = {name: where for name, where in self.found.items() if name not in self.ignore}
        if unsupported:
            raise ValueError(
                f"{self.path} has what is not supported: "
                + "; ".join(f"{name} ({where})" for name, where in unsupported.items())
                + f". ignore={sorted(unsupported)} leaves it out"
            )
        bodies = slice(self.first, None)
        self.move_to_zero()
        joints = [
            RobotJoint(int(m.jnt_bodyid[j]) - self.first, ("free", "ball", "slide", "hinge")[m.jnt_type[j]],
                       bool(m.jnt_limited[j]) and m.jnt_type[j] > 1, m.joint(j).name)
            for j in range(m.njnt)
        ]
        actuators = [
            RobotActuator(int(m.actuator_trnid[a, 0]), _range(m.actuator_ctrllimited[a], m.actuator_ctrlrange[a]),
                          _range(m.actuator_forcelimited[a], m.actuator_forcerange[a]), m.actuator(a).name)
            for a in self.driven
        ]
        affine = _numbers(m.actuator_biastype)[self.driven, None] == int(self.mujoco.mjtBias.mjBIAS_AFFINE)
        turn = self.rotations(m.body_iquat[bodies])
        inertia = turn @ torch.diag_embed(_numbers(m.body_inertia[bodies])) @ turn.mT
        # Their signs are those of the kinds with springs alone: coordinates of balls and free joints have none.
        rest = torch.stack([_numbers(m.qpos_spring)[int(k)] for k in m.jnt_qposadr]) if m.njnt else torch.zeros(0).double()
        return Robot(
            qpos0=_numbers(m.qpos0) if self.has_reference else None,
            parents=[-1 if parent == 0 else int(parent) - self.first for parent in m.body_parentid[bodies]],
            joints=joints, dt=float(m.opt.timestep), mass=_numbers(m.body_mass[bodies]), inertia=inertia,
            center_of_mass=_numbers(m.body_ipos[bodies]), position=_numbers(self.position[bodies]),
            orientation=_numbers(self.orientation[bodies]), axis=_numbers(self.axis), anchor=_numbers(self.anchor),
            range=_numbers(m.jnt_range), spring=torch.stack([self.stiffness(), rest], -1), damping=self.of_dofs(m.dof_damping),
            armature=self.of_dofs(m.dof_armature),
            friction_loss=self.of_dofs(m.dof_frictionloss), actuators=actuators,
            gear=_numbers(m.actuator_gear[:, 0])[self.driven],
            actuator_force=torch.cat([_numbers(m.actuator_gainprm[:, :1])[self.driven],
                                      _numbers(m.actuator_biasprm[:, :3])[self.driven] * affine], -1),
            balls=[len(balls) for balls in self.balls], centers=self.stacked([c for balls in self.balls for c, _ in balls]),
            radii=_numbers([r for balls in self.balls for _, r in balls]), contacts=contacts,
            boxes=[int(m.geom_bodyid[g]) - self.first for g in self.boxes], box_sizes=_numbers(m.geom_size)[self.boxes],
            box_centers=_numbers(m.geom_pos)[self.boxes], box_orientations=_numbers(m.geom_quat)[self.boxes],
            normals=self.stacked([normal for normal, _ in self.planes]), offsets=_numbers([offset for _, offset in self.planes]),
            mu=_numbers(self.mu), gravity=_numbers(m.opt.gravity),
            body_names=[m.body(i).name for i in range(self.first, m.nbody)],
            keyframes=[
                RobotKeyframe(m.key(k).name, _numbers(m.key_qpos[k]), _numbers(m.key_qvel[k]),
                              _numbers(m.key_ctrl[k])[self.driven])
                for k in range(m.nkey)
            ],
            shapes=self.shapes(),
            couplings=[RobotCoupling(int(m.eq_obj1id[e]), int(m.eq_obj2id[e])) for e in self.coupled],
            coupling=torch.stack([self.polynomial(e) for e in self.coupled]) if self.coupled else (),
            closures=[
                RobotClosure(self.number(m.eq_obj1id[e]), self.number(m.eq_obj2id[e]), self.is_weld(e)) for e in self.closed
            ],
            closure=torch.stack([self.ends(e) for e in self.closed]) if self.closed else (),
            closure_orientation=_numbers(m.eq_data[:, 6:10])[self.closed] if self.closed else (),
        )

    def obey_flags(self) -> None:
        """Takes from the model what its options switch off."""
        m, bits = self.model, self.mujoco.mjtDisableBit

        def is_off(*names: str) -> bool:
            return any(m.opt.disableflags & int(getattr(bits, f"mjDSBL_{name}")) for name in names)

        self.has_contacts = not is_off("CONSTRAINT", "CONTACT")
        self.has_equalities = not is_off("CONSTRAINT", "EQUALITY")
        if is_off("GRAVITY"):
            m.opt.gravity[:] = 0
        if is_off("CONSTRAINT", "LIMIT"):
            m.jnt_limited[:] = m.tendon_limited[:] = 0
        if is_off("CONSTRAINT", "FRICTIONLOSS"):
            m.dof_frictionloss[:] = m.tendon_frictionloss[:] = 0
        if is_off("SPRING"):
            m.jnt_stiffness[:] = m.tendon_stiffness[:] = 0
        if is_off("DAMPER"):
            m.dof_damping[:] = m.tendon_damping[:] = 0
        if is_off("CLAMPCTRL"):
            m.actuator_ctrllimited[:] = 0
        for a in range(m.nu):
            if is_off("ACTUATION") or m.opt.disableactuator >> int(m.actuator_group[a]) & 1:
                m.actuator_gainprm[a] = m.actuator_biasprm[a] = 0

    def move_to_zero(self) -> None:
        """Places the bodies where the coordinates of their slides and hinges are 0.

        The file places them where they are at their `ref`, which qpos0 has: J_1(q_1 - ref_1) ... J_k(q_k - ref_k) are the
        motions of the joints of a body. With a move through J_i(-ref_i) each, the joints before i turn with the body.
        """
        m, mujoco = self.model, self.mujoco
        self.position, self.orientation = m.body_pos.copy(), m.body_quat.copy()
        self.axis, self.anchor = m.jnt_axis.copy(), m.jnt_pos.copy()
        self.has_reference = False
        for j in range(m.njnt):
            body, reference = int(m.jnt_bodyid[j]), float(m.qpos0[m.jnt_qposadr[j]])
            if m.jnt_type[j] < int(mujoco.mjtJoint.mjJNT_SLIDE) or reference == 0:
                continue
            self.has_reference = True
            turn, move = self.orientation[body] * 0 + [1, 0, 0, 0], -reference * self.axis[j]
            if m.jnt_type[j] == int(mujoco.mjtJoint.mjJNT_HINGE):
                mujoco.mju_axisAngle2Quat(turn, self.axis[j], -reference)
                move = self.anchor[j] - self.turned(self.anchor[j], turn)  # the anchor stays
            self.position[body] += self.turned(move, self.orientation[body])
            mujoco.mju_mulQuat(self.orientation[body], self.orientation[body].copy(), turn)
            back = turn * [1, -1, -1, -1]
            for i in range(int(m.body_jntadr[body]), j):
                self.axis[i] = self.turned(self.axis[i], back)
                self.anchor[i] = self.turned(self.anchor[i] - move, back)

    def turned(self, vector: Any, quaternion: Any) -> Any:
        result = vector.copy()
        self.mujoco.mju_rotVecQuat(result, vector, quaternion)
        return result

    def stiffness(self) -> Tensor:
        return _numbers(self.model.jnt_stiffness)[..., None].flatten(1)[:, 0]

    def number(self, body: Any) -> int:
        """The index of a body of the file, or -1 for the world."""
        return -1 if body == 0 else int(body) - self.first

    def polynomial(self, e: int) -> Tensor:
        """Coefficients of a joint's coordinate by the other joint's. Those of the file are by their changes from qpos0."""
        m = self.model
        at, other = (m.qpos0[m.jnt_qposadr[j]] if j >= 0 else 0.0 for j in (m.eq_obj1id[e], m.eq_obj2id[e]))
        c = [float(x) for x in m.eq_data[e, :5]]
        if m.eq_obj2id[e] < 0:
            c[1:] = [0.0] * 4
        shifted = [sum(c[k] * math.comb(k, i) * (-other) ** (k - i) for k in range(i, 5)) for i in range(5)]
        return _numbers([shifted[0] + at, *shifted[1:]])

    def is_weld(self, e: int) -> bool:
        """Whether an equality holds orientations; the weight of those of a weld may be 0."""
        return bool(self.model.eq_type[e] == int(self.mujoco.mjtEq.mjEQ_WELD) and self.model.eq_data[e, 10] != 0)

    def ends(self, e: int) -> Tensor:
        """Both points of a closure, of which a weld has that of its second body first."""
        points = _numbers(self.model.eq_data[e, :6]).view(2, 3)
        return points.flip(0) if self.model.eq_type[e] == int(self.mujoco.mjtEq.mjEQ_WELD) else points

    def of_dofs(self, x: Any) -> Tensor:
        return _numbers(x)[..., None].flatten(1)[:, 0]

    @staticmethod
    def stacked(vectors: list[Tensor]) -> Tensor:
        return torch.stack(vectors) if vectors else torch.zeros(0, 3, dtype=torch.float64)

    @staticmethod
    def rotations(quaternions: Any) -> Tensor:
        return torch.ops.lcp._rotation_matrix(_numbers(quaternions))

    def line(self, kind: str, index: int) -> str:
        """Where an element of the specification stands in the file, as far as it is known."""
        elements = getattr(self.spec, kind, [])
        if index >= len(elements):
            return kind
        element = elements[index]
        return " ".join(x for x in (element.name, element.info) if x) or f"number {index} of {kind}"

    def check(self) -> None:
        """Collects what the file has and is not supported."""
        m, enums = self.model, self.mujoco
        add = self.found.setdefault
        for name, count, kind in (("flex", m.nflex, "flexes"), ("plugin", m.nplugin, "plugins")):
            if count:
                add(name, self.line(kind, 0))
        self.coupled: list[int] = []  # the equalities of joints
        self.closed: list[int] = []  # those of points of bodies
        for e in range(m.neq):
            if not (self.has_equalities and m.eq_active0[e]):
                continue
            if m.eq_type[e] == int(enums.mjtEq.mjEQ_JOINT):
                self.coupled.append(e)
            elif (m.eq_type[e] in (int(enums.mjtEq.mjEQ_CONNECT), int(enums.mjtEq.mjEQ_WELD)) and m.eq_obj1id[e] != 0
                  and m.eq_objtype[e] == int(enums.mjtObj.mjOBJ_BODY)):
                self.closed.append(e)
            else:
                kind = enums.mjtEq(int(m.eq_type[e])).name.removeprefix("mjEQ_").lower()
                add(f"equality of {kind}", self.line("equalities", e))
        for t in range(m.ntendon):  # a tendon without forces only measures
            if m.tendon_limited[t] or any(x[t].any() for x in (m.tendon_stiffness, m.tendon_damping, m.tendon_frictionloss,
                                                               m.tendon_armature)):
                add("tendon", self.line("tendons", t))
        for j in range(m.njnt):
            if m.jnt_type[j] == int(enums.mjtJoint.mjJNT_BALL) and (m.jnt_limited[j] or m.jnt_stiffness[j].any()):
                add("limit or spring of a ball joint", self.line("joints", j))
            if m.jnt_type[j] == int(enums.mjtJoint.mjJNT_FREE) and m.jnt_stiffness[j].any():
                add("spring of a free joint", self.line("joints", j))
            if m.jnt_actfrclimited[j] and j in m.actuator_trnid[:, 0]:
                add("actuatorfrcrange", self.line("joints", j))
        for name, x in (("damping", m.dof_damping), ("stiffness", m.jnt_stiffness)):
            if x.ndim > 1 and x[:, 1:].any():
                add(f"polynomial {name}", self.line("joints", 0))
        self.driven: list[int] = []  # the actuators that are supported
        for a in range(m.nu):
            faults = [
                name for name, is_found in (
                    ("actuator that drives no joint", m.actuator_trntype[a] != int(enums.mjtTrn.mjTRN_JOINT)),
                    ("actuator of a ball or free joint", m.actuator_trntype[a] == int(enums.mjtTrn.mjTRN_JOINT)
                     and m.jnt_type[m.actuator_trnid[a, 0]] < int(enums.mjtJoint.mjJNT_SLIDE)),
                    ("actuator with a state", m.actuator_dyntype[a] != int(enums.mjtDyn.mjDYN_NONE)),
                    ("actuator whose gain is not fixed", m.actuator_gaintype[a] != int(enums.mjtGain.mjGAIN_FIXED)),
                    ("actuator whose bias is not affine",
                     m.actuator_biastype[a] not in (int(enums.mjtBias.mjBIAS_NONE), int(enums.mjtBias.mjBIAS_AFFINE))),
                ) if is_found
            ]
            for name in faults:
                add(name, self.line("actuators", a))
            if not faults:
                self.driven.append(a)
        for i in range(1, m.nbody):
            if m.body_gravcomp[i]:
                add("gravcomp", self.line("bodies", i))
            if m.body_mocapid[i] >= 0:
                add("mocap", self.line("bodies", i))
        for name, values, kind in (
                ("armature or damping of an actuator", (m.actuator_armature, m.actuator_damping), "actuators"),
                ("delay of an actuator", (m.actuator_delay,), "actuators"), ("springyield", (m.jnt_springyield,), "joints"),
                ("surfacevel", (m.geom_surfacevel,), "geoms"), ("adhesion", (m.geom_adhesion,), "geoms")):
            for x in values:
                for index, value in enumerate(x):
                    if value.any():
                        add(name, self.line(kind, index))
        if m.opt.enableflags & int(enums.mjtEnableBit.mjENBL_OVERRIDE):
            add("override of contacts", "option flag override")
        if m.opt.density or m.opt.viscosity or m.opt.wind.any():
            add("fluid", "option density, viscosity or wind")

    def contacts(self) -> list[RobotContact]:
        """The contacts, and the balls, planes and friction coefficients of them."""
        m = self.model
        self.balls: list[list[tuple[Tensor, float]]] = [[] for _ in range(m.nbody - self.first)]
        self.planes: list[tuple[Tensor, float]] = []
        self.boxes: list[int] = []  # the geoms that are not only points
        self.mu: list[float] = []
        plane_of: dict[int, int] = {}
        of_geom: dict[int, tuple[int, int, list[int]]] = {}  # body, shape, its balls within the body
        found: list[tuple[int, int, float]] = []
        for a, b, mu in self.pairs():
            if m.geom_type[b] == _PLANE:
                a, b = b, a
            first, second = int(m.geom_type[a]), int(m.geom_type[b])
            if first == _BOX:
                a, b, first, second = b, a, second, first
            is_supported = (second in (_SPHERE, _CAPSULE, _BOX, _MESH, _CYLINDER) if first == _PLANE
                            else (first, second) == (_SPHERE, _BOX)
                            or first in (_SPHERE, _CAPSULE) and second in (_SPHERE, _CAPSULE))
            if first == _PLANE and m.geom_bodyid[a] != 0 and m.body_weldid[m.geom_bodyid[a]] != 0:
                self.found.setdefault("plane of a moving body", self.line("geoms", a))
            elif not is_supported:
                name = f"contact between {_SHAPES[min(first, second)]} and {_SHAPES[max(first, second)]}"
                self.found.setdefault(name, f"{self.line('geoms', a)} and {self.line('geoms', b)}")
            else:
                found.append((a, b, mu))
        for a, b, _ in found:
            for g in (a, b):
                if m.geom_type[g] == _PLANE:
                    if g not in plane_of:
                        plane_of[g] = len(self.planes)
                        self.planes.append(self.plane(g))
                elif m.geom_type[g] == _BOX and m.geom_type[a] == _SPHERE:
                    if g not in self.boxes:
                        self.boxes.append(g)
                elif g not in of_geom:
                    body = int(m.geom_bodyid[g]) - self.first
                    own = self.balls[body]
                    new = self.shape(g)
                    of_geom[g] = (body, int(m.geom_type[g]), list(range(len(own), len(own) + len(new))))
                    own += new
        first_ball = [0]
        for balls in self.balls:
            first_ball.append(first_ball[-1] + len(balls))
        numbers = {g: [first_ball[body] + k for k in balls] for g, (body, _, balls) in of_geom.items()}
        contacts: list[RobotContact] = []
        for a, b, mu in found:
            if m.geom_type[a] == _PLANE:
                new_contacts = [RobotContact(ball, plane_of[a]) for ball in numbers[b]]
            elif m.geom_type[b] == _BOX:
                new_contacts = [RobotContact(numbers[a][0], box=self.boxes.index(b))]
            else:
                ends = [numbers[g][1] if len(numbers[g]) > 1 else -1 for g in (a, b)]
                new_contacts = [RobotContact(numbers[a][0], -1, numbers[b][0], *ends)]
            contacts += new_contacts
            self.mu += [mu] * len(new_contacts)
        return contacts

    def pairs(self) -> Iterator[tuple[int, int, float]]:
        """The geoms that may touch, and their friction coefficient."""
        m = self.model
        if not self.has_contacts:
            return
        listed = set()
        for k in range(m.npair):
            if m.pair_dim[k] > 1 and m.pair_friction[k, 0] != m.pair_friction[k, 1]:
                self.found.setdefault("two coefficients of friction", self.line("pairs", k))
            a, b = int(m.pair_geom1[k]), int(m.pair_geom2[k])
            listed.add((min(a, b), max(a, b)))
            yield a, b, self.friction(int(m.pair_dim[k]), float(m.pair_friction[k, 0]), "pairs", k)
        excluded = {int(x) for x in m.exclude_signature}
        weld = m.body_weldid
        filters_parents = not m.opt.disableflags & int(self.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
        for a in range(m.ngeom):
            for b in range(a + 1, m.ngeom):
                if (a, b) in listed:
                    continue
                if not (m.geom_contype[a] & m.geom_conaffinity[b] or m.geom_contype[b] & m.geom_conaffinity[a]):
                    continue
                one, other = sorted(int(m.geom_bodyid[g]) for g in (a, b))
                if weld[one] == weld[other] or (one << 16) + other in excluded:
                    continue
                if filters_parents and weld[one] != 0 and weld[other] != 0 and (
                        weld[m.body_parentid[weld[one]]] == weld[other] or weld[m.body_parentid[weld[other]]] == weld[one]):
                    continue
                higher = a if m.geom_priority[a] > m.geom_priority[b] else b
                equal = m.geom_priority[a] == m.geom_priority[b]
                dim = max(m.geom_condim[a], m.geom_condim[b]) if equal else m.geom_condim[higher]
                mu = max(m.geom_friction[a, 0], m.geom_friction[b, 0]) if equal else m.geom_friction[higher, 0]
                yield a, b, self.friction(int(dim), float(mu), "geoms", higher)

    def friction(self, dimensions: int, mu: float, kind: str, index: int) -> float:
        if dimensions > 3:
            self.found.setdefault("torsional or rolling friction", self.line(kind, index))
        return 0.0 if dimensions == 1 else mu

    def pose(self, g: int) -> tuple[Tensor, Tensor]:
        m = self.model
        return _numbers(m.geom_pos[g]), self.rotations(m.geom_quat[g])

    def plane(self, g: int) -> tuple[Tensor, float]:
        """Of a geom whose body is fixed to the world."""
        data = self.mujoco.MjData(self.model)
        self.mujoco.mj_kinematics(self.model, data)
        normal = _numbers(data.geom_xmat[g]).view(3, 3)[:, 2]
        return normal, float(normal @ _numbers(data.geom_xpos[g]))

    def shape(self, g: int) -> list[tuple[Tensor, float]]:
        """The balls by which a geom touches."""
        m = self.model
        position, rotation = self.pose(g)
        size, kind = [float(x) for x in m.geom_size[g]], int(m.geom_type[g])
        if kind == _SPHERE:
            return [(position, size[0])]
        if kind == _CAPSULE:
            return [(position + end * size[1] * rotation[:, 2], size[0]) for end in (-1, 1)]
        if kind == _BOX:
            x, y, z = size
            corners: list[Any] = [(a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
        elif kind == _CYLINDER:
            angles = 2 * torch.pi / _RIM * torch.arange(_RIM, dtype=torch.float64)
            corners = [(float(x), float(y), z) for z in (-size[1], size[1])
                       for x, y in zip(size[0] * angles.cos(), size[0] * angles.sin(), strict=True)]
        else:
            corners = self.hull(int(m.geom_dataid[g]))
        return [(position + rotation @ _numbers(corner), 0.0) for corner in corners]

    def shapes(self) -> list[RobotShape]:
        """What the geoms look like that viewers show."""
        m = self.model
        found = []
        for g in range(m.ngeom):
            if int(m.geom_type[g]) not in _DRAWN or m.geom_group[g] >= _HIDDEN or m.geom_rgba[g, 3] == 0:
                continue
            center, size = m.geom_pos[g].copy(), m.geom_size[g]
            if m.geom_type[g] == _MESH:  # the box around it
                center += self.turned(m.geom_aabb[g, :3], m.geom_quat[g])
                size = m.geom_aabb[g, 3:]
            found.append(RobotShape(self.number(m.geom_bodyid[g]), _DRAWN[int(m.geom_type[g])], tuple(size.tolist()),
                                    tuple(center.tolist()), tuple(m.geom_quat[g].tolist())))
        return found

    def hull(self, mesh: int) -> list[Any]:
        """The corners of the convex hull of a mesh."""
        m = self.model
        vertices = m.mesh_vert[m.mesh_vertadr[mesh]:m.mesh_vertadr[mesh] + m.mesh_vertnum[mesh]]
        graph = int(m.mesh_graphadr[mesh])
        if graph < 0:
            return list(vertices)
        count = int(m.mesh_graph[graph])
        return [vertices[k] for k in m.mesh_graph[graph + 2 + count:graph + 2 + 2 * count]]
