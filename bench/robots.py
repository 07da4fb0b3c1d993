"""Robots beside MuJoCo and Pinocchio: accelerations, derivatives, energy, creep at rest, and times.

    python bench/robots.py --library build/lib/libtorchlcp.so --out build/bench/robots [--quick] [--update-docs docs]

The robots are those of the packages gymnasium, dm-control and example-robot-data; `script/bench --only robots --peers`
installs them, MuJoCo and Pinocchio. Without Pinocchio its columns are empty. Alternatives take turns on one thread, the best
of all rounds counts, and all times are ratios within one run. It writes robots.md and robots.csv; --update-docs also puts
the table into docs/performance.md.
"""

import argparse
import ast
import csv
import dataclasses
import pathlib
import shutil
import sys
import tempfile
import time

import mujoco
import numpy as np
import report
import torch
from mujoco import rollout as mujoco_rollout

try:
    import pinocchio
except ImportError:
    pinocchio = None

ROOT = pathlib.Path(__file__).parents[1]
SEED = 7
NONE = "–"
FOLDERS = {"gymnasium": "gymnasium/envs/mujoco/assets", "dm-control": "dm_control/suite",
           "example-robot-data": "cmeel.prefix/share/example-robot-data/robots"}


@dataclasses.dataclass
class Source:
    """A robot by the package and path of its file."""

    name: str
    package: str
    path: str
    floating: bool = False  # of a URDF

    def file(self):
        """Where the package is installed; None where it is not."""
        found = [pathlib.Path(folder) / FOLDERS[self.package] / self.path for folder in sys.path]
        return next((path for path in found if path.exists()), None)


SOURCES = [
    Source("half cheetah", "gymnasium", "half_cheetah.xml"),
    Source("walker", "gymnasium", "walker2d.xml"),
    Source("ant", "gymnasium", "ant.xml"),
    Source("humanoid", "gymnasium", "humanoid.xml"),
    Source("humanoid CMU", "dm-control", "humanoid_CMU.xml"),
    Source("UR5", "example-robot-data", "ur_description/urdf/ur5_robot.urdf"),
    Source("Panda", "example-robot-data", "panda_description/urdf/panda.urdf"),
    Source("Solo 12", "example-robot-data", "solo_description/robots/solo12.urdf", True),
    Source("ANYmal B", "example-robot-data", "anymal_b_simple_description/robots/anymal.urdf", True),
    Source("Talos, reduced", "example-robot-data", "talos_data/robots/talos_reduced.urdf", True),
]


def package(library):
    """Makes the package torchlcp importable, with the library of a build, as an installed one is."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="torchlcp-bench-"))
    shutil.copytree(ROOT / "python" / "torchlcp", folder / "torchlcp")
    (folder / "torchlcp" / "libtorchlcp.so").symlink_to(library.resolve())
    (folder / "torchlcp" / "include").symlink_to(ROOT / "include")
    built = (ROOT / "python" / "build_backend" / "_built.py.in").read_text()
    built = built.replace("@version@", "0").replace("@torch_version@", torch.__version__.partition("+")[0])
    (folder / "torchlcp" / "_built.py").write_text(built)
    sys.path.insert(0, str(folder))
    return folder


def pose(position, quaternion):
    w, x, y, z = quaternion
    return pinocchio.SE3(pinocchio.Quaternion(w, x, y, z).normalized().matrix(), np.asarray(position, float))


class Model:
    """One robot, as it is and as it moves freely: without contacts, limits, equations and forces of joints."""

    def __init__(self, source):
        from torchlcp import physics
        from torchlcp.physics import _robot_files

        self.source, self.file = source, source.file()
        is_urdf = self.file.suffix == ".urdf"
        load = (lambda ignore: physics.load_urdf(self.file, floating=source.floating, ignore=ignore)) if is_urdf else (
            lambda ignore: physics.load_mjcf(self.file, ignore=ignore))
        try:
            self.ignored, self.robot = [], load([])
        except ValueError as error:
            self.ignored = ast.literal_eval(str(error).partition("ignore=")[2].partition(" leaves")[0])
            self.robot = load(self.ignored)
        spec = _robot_files.urdf_spec(mujoco, self.file, source.floating, False) if is_urdf else (
            mujoco.MjSpec.from_file(str(self.file)))
        self.mujoco, self.free_mujoco = spec.compile(), spec.compile()
        free, disable = self.free_mujoco, mujoco.mjtDisableBit
        for flag in (disable.mjDSBL_CONSTRAINT, disable.mjDSBL_SPRING, disable.mjDSBL_DAMPER, disable.mjDSBL_ACTUATION):
            free.opt.disableflags |= int(flag)
        free.opt.density = free.opt.viscosity = 0
        self.driven = [k for k, joint in enumerate(self.robot.joints) if joint.kind in ("slide", "hinge")]
        motors = [physics.RobotActuator(k) for k in self.driven]
        zeros = torch.zeros_like
        self.free = self.robot.replace(
            contacts=[], mu=torch.zeros(0).double(), joints=[joint._replace(has_limits=False) for joint in self.robot.joints],
            damping=zeros(self.robot.damping), spring=zeros(self.robot.spring), friction_loss=(), couplings=[], coupling=(),
            closures=[], closure=(), actuators=motors,
            gear=torch.ones(len(motors)).double(), actuator_force=torch.tensor([[1.0, 0, 0, 0]]).double().repeat(len(motors), 1))
        self.dofs = [self.free_mujoco.jnt_dofadr[k] for k in self.driven]
        self.is_floating = self.robot.joints[0].kind == "free"
        self.pinocchio = self.pinocchio_model() if pinocchio else None

    def pinocchio_model(self):
        """Of a URDF as Pinocchio reads it, and else of the numbers that MuJoCo read."""
        m = self.free_mujoco
        if self.file.suffix == ".urdf":
            root = [pinocchio.JointModelFreeFlyer()] if self.source.floating else []
            model = pinocchio.buildModelFromUrdf(str(self.file), *root)
            first = [model.joints[model.getJointId(joint.name)].idx_v for joint in self.robot.joints[len(root):]]
            self.order = np.array([*range(6 * len(root)), *first])
        else:
            model, ends = pinocchio.Model(), [(0, pinocchio.SE3.Identity())]  # of each body: its joint, and its place there
            for body in range(1, m.nbody):
                joint, place = ends[m.body_parentid[body]]
                place = place * pose(m.body_pos[body], m.body_quat[body])
                for k in range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body]):
                    anchor = pinocchio.SE3(np.eye(3), m.jnt_pos[k])
                    kind = (pinocchio.JointModelFreeFlyer, pinocchio.JointModelSpherical,
                            pinocchio.JointModelPrismaticUnaligned, pinocchio.JointModelRevoluteUnaligned)[m.jnt_type[k]]
                    axis = [m.jnt_axis[k]] if m.jnt_type[k] > 1 else []
                    place = pinocchio.SE3.Identity() if m.jnt_type[k] == 0 else place * anchor
                    joint = model.addJoint(joint, kind(*axis), place, f"joint {k}")
                    place = anchor.inverse()
                ends.append((joint, place))
                inertia = pinocchio.Inertia(m.body_mass[body], np.zeros(3), np.diag(m.body_inertia[body]))
                model.appendBodyToJoint(joint, inertia, place * pose(m.body_ipos[body], m.body_iquat[body]))
            self.order = np.arange(m.nv)
        model.armature = np.zeros(model.nv)
        model.armature[self.order] = self.robot.armature.numpy()
        return model

    def states(self, count):
        """States and torques of a motor on each slide and hinge."""
        random, all = np.random.default_rng(SEED), []
        for _ in range(count):
            q = self.free_mujoco.qpos0.copy()
            mujoco.mj_integratePos(self.free_mujoco, q, random.normal(size=self.robot.nv), 0.5)
            all.append((q, random.normal(size=self.robot.nv), random.normal(size=len(self.driven))))
        return all

    def by_mujoco(self, q, v, u):
        data = mujoco.MjData(self.free_mujoco)
        data.qpos[:], data.qvel[:], data.qfrc_applied[self.dofs] = q, v, u
        mujoco.mj_forward(self.free_mujoco, data)
        return data.qacc.copy()

    def in_pinocchio(self, q, v, u):
        """The state in the coordinates of Pinocchio, where a free joint moves in the axes of its body."""
        Q, V, tau = np.zeros(self.pinocchio.nq), np.zeros(self.robot.nv), np.zeros(self.robot.nv)
        V[self.order], tau[self.order[self.dofs]] = v, u
        shift = 7 if self.is_floating else 0
        Q[self.order[shift - (shift > 0):] + (shift > 0)] = q[shift:]
        if self.is_floating:
            Q[:7] = [*q[:3], *q[4:7], q[3]]
            V[:3] = self.rotation(q).T @ v[:3]
        return Q, V, tau

    @staticmethod
    def rotation(q):
        return pose(q[:3], q[3:7]).rotation

    def by_pinocchio(self, q, v, u):
        Q, V, tau = self.in_pinocchio(q, v, u)
        a = pinocchio.aba(self.pinocchio, self.pinocchio.createData(), Q, V, tau)
        result = a[self.order]
        if self.is_floating:
            result[:3] = self.rotation(q) @ (a[:3] + np.cross(V[3:6], V[:3]))
        return result

    def derivative_by_pinocchio(self, q, v, u):
        """d a / d (q, v, u) in the tangent space of `linearize`."""
        Q, V, tau = self.in_pinocchio(q, v, u)
        data = self.pinocchio.createData()
        pinocchio.computeABADerivatives(self.pinocchio, data, Q, V, tau)
        ours = np.ix_(self.order, self.order)
        F_q, F_v, F_u = data.ddq_dq[ours], data.ddq_dv[ours], data.Minv[ours][:, self.dofs]
        if not self.is_floating:
            return np.hstack([F_q, F_v, F_u])
        # With v_w = R v_b and dR = R [phi]: dv_b = R' dv_w + v_b x phi, and d(R x) = R (dx - x x phi).
        R, v_b, w = self.rotation(q), V[:3], V[3:6]
        cross = lambda x: np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
        n = self.robot.nv
        of_q, of_v, v_of_q = np.eye(n), np.eye(n), np.zeros((n, n))
        of_q[:3, :3] = of_v[:3, :3] = R.T
        v_of_q[:3, 3:6] = cross(v_b)
        D = np.hstack([F_q @ of_q + F_v @ v_of_q, F_v @ of_v, F_u])
        a_b = pinocchio.aba(self.pinocchio, data, Q, V, tau)[:3] + np.cross(w, v_b)
        top = D[:3].copy()
        top[:, :n] += cross(w) @ v_of_q[:3]
        top[:, n:2 * n] += cross(w) @ of_v[:3]
        top[:, n + 3:n + 6] -= cross(v_b)
        top[:, 3:6] -= cross(a_b)
        D[:3] = R @ top
        return D


def tensors(q, v, u):
    return (torch.tensor(q), torch.tensor(v)), torch.tensor(u)


def acceleration(robot, q, v, u):
    state, control = tensors(q, v, u)
    step = robot.step(state, control)
    assert step.status == 0
    return ((step.qvel_next - state[1]) / robot.dt).numpy()


def distance(x, y):
    return float(np.abs(x - y).max() / np.abs(y).max())


def accelerations(model, count, row):
    """The largest relative errors of M^-1 u, of the forces of motion and gravity, and of all together."""
    still = model.free.replace(gravity=torch.zeros(3).double())
    gravity = model.free_mujoco.opt.gravity.copy()
    peers = {"MuJoCo": model.by_mujoco, "Pinocchio": model.by_pinocchio if model.pinocchio else None}
    errors = {(what, who): 0.0 for what in ("M", "bias", "acceleration") for who in peers}
    for q, v, u in model.states(count):
        for what, robot, state in (("M", still, (q, 0 * v, u)), ("bias", model.free, (q, v, 0 * u)),
                                   ("acceleration", model.free, (q, v, u))):
            has_gravity = what != "M"
            model.free_mujoco.opt.gravity[:] = has_gravity * gravity
            if model.pinocchio:
                model.pinocchio.gravity.linear = has_gravity * gravity
            ours = acceleration(robot, *state)
            for who, peer in peers.items():
                if peer:
                    errors[what, who] = max(errors[what, who], distance(ours, peer(*state)))
    for (what, who), error in errors.items():
        row[f"{what}: error beside {who}"] = error if peers[who] else None


def moved(model, q, dq):
    q = q.copy()
    mujoco.mj_integratePos(model.free_mujoco, q, dq, 1.0)
    return q


def derivatives(model, count, row):
    """The errors of A and B beside Pinocchio's derivatives, and beside central differences of our own step."""
    n, by_pinocchio, by_differences = model.robot.nv, 0.0, 0.0
    for q, v, u in model.states(count):
        state, control = tensors(q, v, u)
        found = model.free.linearize(state, control)
        ours = torch.cat([found.A, found.B], -1)[n:].numpy()
        change = (ours - np.hstack([np.zeros((n, n)), np.eye(n), np.zeros((n, len(u)))])) / model.robot.dt
        if model.pinocchio:
            by_pinocchio = max(by_pinocchio, distance(change, model.derivative_by_pinocchio(q, v, u)))
        h = 1e-6
        for k in range(ours.shape[1]):
            e = np.zeros(ours.shape[1])
            e[k] = h
            ends = [acceleration(model.free, moved(model, q, s * e[:n]), v + s * e[n:2 * n], u + s * e[2 * n:]) for s in (1, -1)]
            difference = (ends[0] - ends[1]) / (2 * h)
            by_differences = max(by_differences, float(np.abs(change[:, k] - difference).max() / np.abs(change).max()))
    row["derivatives: error beside Pinocchio"] = by_pinocchio if model.pinocchio else None
    row["derivatives: error beside differences"] = by_differences


def energy(model, seconds, row):
    """The largest change of the energy of a free motion, over the largest kinetic energy; also by MuJoCo's Euler steps."""
    m, data = model.free_mujoco, mujoco.MjData(model.free_mujoco)
    integrator, m.opt.integrator = m.opt.integrator, int(mujoco.mjtIntegrator.mjINT_EULER)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    q, v, _ = model.states(1)[0]
    rows = int(seconds / model.robot.dt)

    def energies(states):
        found = []
        for q, v in states:
            data.qpos[:], data.qvel[:] = q, v
            mujoco.mj_forward(m, data)
            found.append(data.energy.copy())
        found = np.array(found)
        total = found.sum(1)
        return float(np.abs(total - total[0]).max() / found[:, 1].max())

    rollout = model.free.simulate((torch.tensor(q), torch.tensor(v)), rows=rows)
    ours = energies(zip([q, *rollout.qpos_next.numpy()], [v, *rollout.qvel_next.numpy()], strict=True))
    peer, theirs = mujoco.MjData(m), [(q, v)]
    peer.qpos[:], peer.qvel[:] = q, v
    for _ in range(rows):
        mujoco.mj_step(m, peer)
        theirs.append((peer.qpos.copy(), peer.qvel.copy()))
    m.opt.integrator = integrator
    row["energy: drift"], row["energy: drift of MuJoCo"] = ours, energies(theirs)


SLOPE = """<mujoco><option timestep=".002" {option}/><worldbody>
<geom type="plane" size="5 5 1" euler="0 20 0" friction=".5"/>
<body pos="{x} 0 {z}" euler="0 20 0"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" friction=".5"/></body>
</worldbody></mujoco>"""


def creep(seconds):
    """How fast a box of 1 kg creeps down a slope of 20 degrees where mu = 0.5 should hold it, um/s."""
    from torchlcp.physics import load_mjcf

    s, c = np.sin(np.radians(20)), np.cos(np.radians(20))
    found = {}
    for name, option in (("MuJoCo", ""), ("MuJoCo, elliptic, impratio 10", 'cone="elliptic" impratio="10"'),
                         ("MuJoCo, the same and noslip", 'cone="elliptic" impratio="10" noslip_iterations="10"')):
        text = SLOPE.format(option=option, x=0.1 * s, z=0.1 * c)
        m = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(m)
        rows = int(seconds / m.opt.timestep)
        mujoco.mj_step(m, data, rows)
        start = data.qpos[:3].copy()
        mujoco.mj_step(m, data, rows)
        found[name] = np.linalg.norm(data.qpos[:3] - start) / seconds * 1e6
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(text)
        file.flush()
        robot = load_mjcf(file.name)
    ends = robot.simulate(robot.default_state(), rows=2 * rows).qpos_next
    return {"ours": float((ends[-1, :3] - ends[rows - 1, :3]).norm() / seconds * 1e6), **found}


def compare(alternatives, rounds, seconds):
    """The best time of each callable in seconds; they take turns."""
    repeats, best = {}, dict.fromkeys(alternatives, float("inf"))
    for who, call in alternatives.items():
        call()
        start = time.perf_counter()
        call()
        repeats[who] = max(1, int(seconds / (time.perf_counter() - start + 1e-9)))
    for _ in range(rounds):
        for who, call in alternatives.items():
            start = time.perf_counter()
            for _ in range(repeats[who]):
                call()
            best[who] = min(best[who], (time.perf_counter() - start) / repeats[who])
    return best


def times(model, quick, row):
    """Steps, A and B, and gradients beside MuJoCo's steps and differences; without contact where some of it is left out."""
    robot, m = model.robot, model.mujoco
    if model.ignored:
        robot = robot.replace(contacts=[], mu=torch.zeros(0).double())
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        if any("equality" in name for name in model.ignored):
            m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    m.opt.integrator = int(mujoco.mjtIntegrator.mjINT_EULER)  # MuJoCo has no differences of Runge-Kutta steps
    rounds, seconds, rows = (1, 0.02, 100) if quick else (3, 0.2, 1000)
    random = torch.Generator().manual_seed(SEED)
    start, nu = robot.default_state(), len(robot.actuators)
    control = torch.randn(rows, nu, dtype=torch.float64, generator=random)
    rollout = robot.simulate(start, control)
    row["solved"] = float((rollout.status == 0).double().mean())
    middle = type(start)(rollout.qpos_next[rows // 2], rollout.qvel_next[rows // 2])
    data, states = mujoco.MjData(m), []
    A, B = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))

    def at_middle():
        mujoco.mj_resetData(m, data)
        data.qpos[:], data.qvel[:] = middle.qpos.numpy(), middle.qvel.numpy()
        if m.nu:
            data.ctrl[:] = control[0].numpy()

    def steps_of_mujoco():
        states.clear()
        mujoco.mj_resetData(m, data)
        mujoco_rollout.rollout(m, data, initial_state(m, data), control.numpy()[None], persistent_pool=False)

    def one_step():
        mujoco.mj_step(m, data)

    def differences():
        at_middle()
        mujoco.mjd_transitionFD(m, data, 1e-6, True, A, B, None, None)

    moving = middle._replace(qvel=middle.qvel.clone().requires_grad_())

    def gradient():
        torch.autograd.grad(robot.simulate(moving, control[:100]).qvel_next[-1].sum(), moving.qvel)

    at_middle()
    with torch.no_grad():
        best = compare({
            "step": lambda: robot.simulate(start, control), "step of MuJoCo": steps_of_mujoco,
            "step from Python": lambda: robot.step(middle, control[0]), "step from Python of MuJoCo": one_step,
            "A and B": lambda: robot.linearize(middle, control[0]), "A and B of MuJoCo": differences,
            "100 steps": lambda: robot.simulate(middle, control[:100])}, rounds, seconds)
    best |= compare({"100 steps and their gradient": gradient}, rounds, seconds)
    for name, elapsed in best.items():
        row[f"time: {name}, us"] = elapsed * 1e6 / (rows if name.startswith("step") and "Python" not in name else 1)
    for size in (1, 16, 256) if quick else (1, 16, 256, 1024, 4096):
        inputs = torch.randn(10, size, nu, dtype=torch.float64, generator=random)
        first = initial_state(m, data).repeat(size, 0)
        batch = inputs.movedim(1, 0).contiguous().numpy()

        def with_gradient():
            torch.autograd.grad(robot.simulate(moving, inputs).qvel_next[-1].sum(), moving.qvel)

        at_middle()
        best = compare({
            "ours": lambda: robot.simulate(middle, inputs), "ours with gradient": with_gradient,
            "MuJoCo": lambda: mujoco_rollout.rollout(m, data, first, batch, persistent_pool=False)}, rounds, seconds)
        for who, elapsed in best.items():
            row[f"time: a step in a batch of {size}, {who}, us"] = elapsed * 1e6 / (10 * size)


def initial_state(m, data):
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
    state = np.zeros((1, mujoco.mj_stateSize(m, kind)))
    mujoco.mj_getState(m, data, state[0], kind)
    return state


def table(rows, creeping):
    number = lambda x: NONE if x is None else f"{x:.1g}"
    ratio = lambda row, a, b: NONE if row.get(a) is None else f"{row[a] / row[b]:.2g}"
    us = lambda name: f"time: {name}, us"
    lines = []
    for row in rows:
        lines.append([
            row["robot"], str(row["nv"]),
            *(number(row[f"acceleration: error beside {who}"]) for who in ("MuJoCo", "Pinocchio")),
            *(number(row[f"derivatives: error beside {who}"]) for who in ("Pinocchio", "differences")),
            ratio(row, "energy: drift", "energy: drift of MuJoCo"),
            NONE if us("step") not in row else f"{row[us('step')]:.3g} µs", ratio(row, us("step"), us("step of MuJoCo")),
            ratio(row, us("step from Python"), us("step from Python of MuJoCo")),
            ratio(row, us("A and B"), us("A and B of MuJoCo")),
            ratio(row, us("100 steps and their gradient"), us("100 steps")),
        ])
    header = ["robot", "nv", "acceleration: error beside MuJoCo", "beside Pinocchio",
              "derivatives: error beside Pinocchio", "beside differences", "energy: drift / MuJoCo's",
              "a step", "/ MuJoCo's", "from Python / MuJoCo's", "A and B / MuJoCo's differences", "gradient / rollout"]
    rest = "; ".join(f"{name} {speed:.2g}" for name, speed in creeping.items())
    return (report.markdown(header, lines) +
            f"\nThe creep of a box at rest on a slope of 20 degrees, mu = 0.5, steps of 2 ms, in µm/s: {rest}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--update-docs", type=pathlib.Path, metavar="DOCS")
    arguments = parser.parse_args()
    folder = package(arguments.library)
    torch.set_num_threads(1)
    rows = []
    for source in SOURCES:
        if source.file() is None:
            print(f"{source.name}: not measured; the package {source.package} is not installed", file=sys.stderr)
            continue
        model = Model(source)
        row = {"robot": source.name, "nv": model.robot.nv, "contacts": len(model.robot.contacts),
               "left out": ", ".join(model.ignored)}
        count = 2 if arguments.quick else 50
        accelerations(model, count, row)
        derivatives(model, min(count, 5), row)
        energy(model, 0.2 if arguments.quick else 2.0, row)
        times(model, arguments.quick, row)
        rows.append(row)
        print(f"{source.name}: measured", file=sys.stderr)
    arguments.out.mkdir(parents=True, exist_ok=True)
    content = table(rows, creep(0.2 if arguments.quick else 2.0))
    (arguments.out / "robots.md").write_text(content)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(arguments.out / "robots.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(content)
    if arguments.update_docs:
        where = "\n".join(report.machine(report.Measured(arguments.out)).splitlines()[:2]) + "\n"
        page = arguments.update_docs / "performance.md"
        page.write_text(report.put(page.read_text(), "robots", where + "\n" + content))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
