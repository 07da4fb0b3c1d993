"""Robots of torchlcp.physics, beside MuJoCo where that is what they should do."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchlcp import Feedback, Status
from torchlcp.physics import (
    Robot, RobotActuator, RobotClosure, RobotContact, RobotCoupling, RobotJoint, RobotKeyframe, RobotShape, RobotState, load_mjcf,
    load_robot, load_urdf, turned,
)

FILE = Path(__file__).parent / "robots" / "two_trees.xml"
G = 9.81
SENSITIVE = {"tolerance": 1e-13}


def numbers(*x):
    return torch.tensor(x, dtype=torch.float64)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def pendulum(**changes):
    """A rod of 1 kg and 1 m that hangs by a hinge about y, and a motor."""
    fields = dict(
        parents=[-1], joints=[RobotJoint(0, "hinge", name="pivot")], dt=0.001, mass=[1.0], inertia=[torch.eye(3).double() / 12],
        center_of_mass=[[0, 0, -0.5]], position=[[0, 0, 0]], orientation=[[1.0, 0, 0, 0]], axis=[[0.0, 1, 0]],
        anchor=[[0.0, 0, 0]], range=[[0.0, 0]], spring=[[0.0, 0]], damping=[0.0], armature=[0.0],
        actuators=[RobotActuator(0, name="motor")],
        gear=[1.0], actuator_force=[[1.0, 0, 0, 0]], body_names=["rod"])
    return Robot(**{**fields, **changes})


def block_on(slope, **changes):
    """A free box of 1 kg and 20 cm on a plane that descends along x."""
    c, s = math.cos(slope), math.sin(slope)
    corners = torch.cartesian_prod(*[numbers(-0.1, 0.1)] * 3)
    fields = dict(
        parents=[-1], joints=[RobotJoint(0, "free")], dt=0.002, mass=[1.0], inertia=[torch.eye(3).double() / 150],
        center_of_mass=[[0, 0, 0]], position=[[0.1 * s, 0, 0.1 * c]],
        orientation=[[math.cos(slope / 2), 0, math.sin(slope / 2), 0]], axis=[[0.0, 0, 0]],
        anchor=[[0.0, 0, 0]], range=[[0.0, 0]], spring=[[0.0, 0]], damping=[0.0] * 6, armature=[0.0] * 6,
        balls=[8], centers=corners, radii=[0.0] * 8, contacts=[RobotContact(k, 0) for k in range(8)], normals=[[s, 0, c]],
        offsets=[0.0], mu=[0.5] * 8)
    return Robot(**{**fields, **changes})


def test_a_pendulum_swings_with_its_period_and_keeps_its_energy():
    robot = pendulum()
    rollout = robot.simulate(RobotState(numbers(0.5), numbers(0.0)), torch.zeros(4000, 1).double())
    q, v = rollout.qpos_next[:, 0], rollout.qvel_next[:, 0]
    assert (rollout.status == Status.SOLVED).all()
    energy = 0.5 * (1 / 3) * v**2 - 0.5 * G * q.cos()
    assert (energy - energy[0]).abs().max() < 5e-3
    # The period of large swings: 2 pi sqrt(2 L / 3 g) / agm(1, cos(.25)).
    a, b = 1.0, math.cos(0.25)
    for _ in range(5):
        a, b = (a + b) / 2, math.sqrt(a * b)
    period = 2 * math.pi * math.sqrt(2 / (3 * G)) / a
    crossings = ((q[:-1] > 0) & (q[1:] <= 0)).nonzero()[:2, 0]
    assert 0.001 * (crossings[1] - crossings[0]).item() == pytest.approx(period, abs=0.002)


def test_a_block_rests_on_a_slope_to_round_off():
    robot = block_on(math.radians(20))
    rollout = robot.simulate(robot.default_state(), rows=500)
    assert (rollout.status == Status.SOLVED).all()
    assert (rollout.qpos_next[-1] - robot.default_state().qpos).norm() < 1e-10
    sliding = block_on(math.radians(20), mu=[0.2] * 8)
    v = sliding.simulate(sliding.default_state(), rows=500).qvel_next[-1]
    assert v[:3].norm().item() == pytest.approx(G * (math.sin(math.radians(20)) - 0.2 * math.cos(math.radians(20))), rel=1e-6)


def test_stiff_servos_and_limits_hold():
    """A servo whose period is shorter than the step, and a limit that the gravity of the rod presses on."""
    servo = pendulum(actuator_force=[[1e7, 0.0, -1e7, -1e3]])
    q = servo.simulate(RobotState(numbers(0.0), numbers(0.0)), torch.full((2000, 1), 1.0).double()).qpos_next[-1]
    assert q.item() == pytest.approx(1.0, abs=1e-6)
    stop = pendulum(joints=[RobotJoint(0, "hinge", True)], range=[[0.3, 2.0]])
    rollout = stop.simulate(RobotState(numbers(1.0), numbers(0.0)), rows=3000)
    assert rollout.qpos_next.min().item() == pytest.approx(0.3, abs=1e-9) and rollout.qvel_next[-1].abs().item() < 1e-12
    assert rollout.gamma.shape == (3000, 6) and rollout.gamma[-1, 2].item() == pytest.approx(0.001 * 0.5 * G * math.sin(0.3))


def test_ranges_bound_controls_and_forces():
    at = RobotState(numbers(0.0), numbers(0.0))
    speed = lambda **changes: pendulum(**changes).step(at, numbers(5.0)).qvel_next.item()
    assert speed() == pytest.approx(0.001 * 5 * 3)
    assert speed(actuators=[RobotActuator(0, control_range=(-1, 2))]) == pytest.approx(0.001 * 2 * 3)
    assert speed(actuators=[RobotActuator(0, force_range=(-1, 3))]) == pytest.approx(0.001 * 3 * 3)


def test_the_force_of_a_servo_is_within_its_range_at_the_end_of_the_step():
    """Which bound it is at, if any, is exact for any gains."""
    at_bound = 0
    for k in range(60):
        kp, kv, gear = 10.0 ** (k % 6), 10.0 ** (k % 4 - 1), (1.0, -2.0, 0.5)[k % 3]
        low, high = sorted((10 * normal(2, seed=k)).tolist())
        robot = pendulum(actuators=[RobotActuator(0, force_range=(low, high))], gear=[gear], armature=[0.02],
                         actuator_force=[[kp, 0.1, -kp, -kv]])
        assert "servos=0" in robot._structure
        q, v = normal(2, seed=100 + k)
        control = gear * q + normal(1, seed=200 + k) / (1 if k % 2 else kp)
        step = robot.step((q.view(1), v.view(1)), control)
        assert step.status == Status.SOLVED
        speed = step.qvel_next.item()
        wanted = kp * control.item() + 0.1 - kp * gear * (q.item() + robot.dt * speed) - kv * gear * speed
        force = ((1 / 3 + 0.02) * (speed - v.item()) / robot.dt + 0.5 * G * math.sin(q)) / gear
        assert force == pytest.approx(min(max(wanted, low), high), rel=1e-8, abs=1e-8 * (1 + abs(kp)))
        at_bound += not low < wanted < high
        certificate = robot.certify((q.view(1), v.view(1)), control.view(1, 1))
        assert certificate.unsolved == 0 and certificate.residual < 1e-9 and certificate.kinked == 0
    assert 10 < at_bound < 50
    # The same with one bound, and stiff, from far away: it comes to rest at its aim, no faster than its force allows.
    stiff = pendulum(actuators=[RobotActuator(0, force_range=(-math.inf, 20.0))], actuator_force=[[1e7, 0.0, -1e7, -1e5]])
    rollout = stiff.simulate(RobotState(numbers(-1.0), numbers(0.0)), torch.full((3000, 1), 0.5).double())
    assert (rollout.status == Status.SOLVED).all()
    assert rollout.qvel_next.diff(dim=0).max() < 0.001 * 3 * (20 + 0.5 * G) + 1e-9
    assert rollout.qpos_next[-1].item() == pytest.approx(0.5, abs=1e-6) and rollout.qvel_next[-1].abs() < 1e-12
    # A motor has no need of it, a servo without a range neither.
    assert "servos" not in pendulum(actuators=[RobotActuator(0, force_range=(-1, 3))])._structure
    assert "servos" not in pendulum(actuator_force=[[1.0, 0, -1.0, 0]])._structure


def test_servos_and_contacts_are_decided_together():
    """A servo whose force is that of a motor with the same contacts, at its bound where it would exceed it in the end."""
    ranges = [(-0.5, 0.4), (-0.3, 0.6)]
    gains = numbers(1.0, 0, -40, -2, 4, 0.1, -4, -0.2).view(2, 4)
    robot = touching(actuators=[RobotActuator(k, force_range=range) for k, range in enumerate(ranges)], actuator_force=gains)
    motors = touching(actuators=[RobotActuator(0), RobotActuator(1)], actuator_force=[[1.0, 0, 0, 0]] * 2)
    v, gear, others, saturated, touches = numbers(-0.2, 0.9, 0.3, 0.1, -0.4), numbers(1.0, 2.0), 0, 0, 0
    for k, formulation in enumerate(("exact_cone", "polyhedral") * 20):
        q = numbers((-0.02, 0.0, 0.01)[k % 3], 0.1, 1, 0.05, 0.1, 0.02)
        state, control = RobotState(q, v * (1 if k % 5 else 0.1)), normal(2, seed=k)
        step = robot.step(state, control, formulation=formulation, **SENSITIVE)
        assert step.status == Status.SOLVED
        length, speed = gear * (q[:2] + robot.dt * step.qvel_next[:2]), gear * step.qvel_next[:2]
        wanted = gains[:, 0] * control + gains[:, 1] + gains[:, 2] * length + gains[:, 3] * speed
        low, high = numbers(*(range[0] for range in ranges)), numbers(*(range[1] for range in ranges))
        force = wanted.clamp(low, high)
        same = motors.step(state, force, formulation=formulation, **SENSITIVE)
        torch.testing.assert_close(same.qvel_next, step.qvel_next, rtol=0, atol=1e-10)
        torch.testing.assert_close(same.gamma, step.gamma, rtol=0, atol=1e-10)
        saturated += (force != wanted).sum().item()
        touches += (step.gamma[2:6:3] > 0).any().item()
        before = robot.step(state, control, formulation=formulation, bounce_threshold=1e9, **SENSITIVE)
        others += (before.qvel_next - step.qvel_next).abs().max().item() > 1e-6
    assert 10 < saturated < 76 and touches > 10 and others > 0


def test_a_batch_may_have_servos_whose_force_does_not_fall():
    """Such a force is that at the beginning of the step, within its range."""
    forces = numbers(1.0, 0, 0, 0, 1.0, 0, -5.0, -1.0, 1.0, 0.1, 0, 0.3).view(3, 1, 4)
    robot = pendulum(actuators=[RobotActuator(0, force_range=(-0.4, 0.5))], actuator_force=forces)
    at, control = (numbers(0.1).expand(3, 1), numbers(0.4).expand(3, 1)), numbers(0.3, 2.0, 0.2).view(3, 1)
    step = robot.step(at, control)
    force = (step.qvel_next - 0.4) / 0.003 + 0.5 * G * math.sin(0.1)
    torch.testing.assert_close(force[[0, 1, 2], 0], numbers(0.3, 0.5, 0.2 + 0.1 + 0.3 * 0.4), rtol=1e-9, atol=1e-9)
    linear = robot.linearize(at, control)
    control.requires_grad_()
    (gradient,) = torch.autograd.grad(robot.step(at, control).qvel_next.sum(), control)
    torch.testing.assert_close(gradient[:, 0], numbers(0.003, 0, 0.003), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(linear.B[:, 1, 0], gradient[:, 0], rtol=1e-9, atol=1e-12)
    for k, change in enumerate((numbers(1e-6), -numbers(1e-6))):
        moved = robot.step((at[0], at[1] + change), control).qvel_next
        difference = (moved - step.qvel_next) / change
        torch.testing.assert_close(linear.A[:, 1, 1], difference[:, 0], rtol=1e-5, atol=1e-5)


def ball_beside_box(**changes):
    """A free ball of 1 kg and 4 cm beside a free box that is as good as fixed."""
    half = numbers(0.1, 0.2, 0.15)
    fields = dict(
        parents=[-1, -1], joints=[RobotJoint(0, "free"), RobotJoint(1, "free")], dt=0.01, mass=[1.0, 1e9],
        inertia=torch.stack([6.4e-4 * torch.eye(3).double(), 1e9 * torch.eye(3).double()]), center_of_mass=[[0.0] * 3] * 2,
        position=[[0.0] * 3] * 2, orientation=[[1.0, 0, 0, 0]] * 2, axis=[[0.0] * 3] * 2, anchor=[[0.0] * 3] * 2,
        range=[[0.0] * 2] * 2, spring=[[0.0] * 2] * 2, damping=[0.0] * 12, armature=[0.0] * 12, balls=[1, 0],
        centers=[[0.0] * 3], radii=[0.04], boxes=[1], box_sizes=half[None], box_centers=[[0.03, -0.02, 0.01]],
        box_orientations=[[0.9, 0.1, -0.3, 0.2]], contacts=[RobotContact(0, box=0)], mu=[0.0], gravity=[0.0] * 3)
    return Robot(**{**fields, **changes})


def test_balls_touch_boxes_where_they_are_nearest():
    """The gap and the normal of a ball outside and inside, from the velocity to which it is stopped."""
    mujoco = pytest.importorskip("mujoco")
    robot = ball_beside_box()
    count = 2000
    outside = normal(count, 3, seed=1)
    center = 0.3 * outside  # some within the box
    turn = torch.nn.functional.normalize(normal(count, 4, seed=2), dim=-1)
    place = 0.1 * normal(count, 3, seed=3)
    qpos = torch.cat([center, numbers(1, 0, 0, 0).expand(count, 4), place, turn], -1)
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><freejoint/><geom type="sphere" size=".04"/></body><body><freejoint/>
        <geom type="box" size=".1 .2 .15" pos=".03 -.02 .01" quat=".9 .1 -.3 .2"/></body></worldbody></mujoco>""")
    data, ends = mujoco.MjData(model), torch.zeros(6).double().numpy()
    within = 0
    for k in range(count):
        data.qpos[:] = qpos[k].numpy()
        mujoco.mj_kinematics(model, data)
        local = torch.tensor(data.geom_xmat[1]).view(3, 3).T @ (center[k] - torch.tensor(data.geom_xpos[1]))
        depth = (numbers(0.1, 0.2, 0.15) - local.abs()).min()
        if depth > 0:
            within += 1
            axis = (numbers(0.1, 0.2, 0.15) - local.abs()).argmin()
            expected = torch.tensor(data.geom_xmat[1]).view(3, 3)[:, axis] * local[axis].sign()
            gap = -depth.item() - 0.04
        else:
            gap = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, ends)
            expected = torch.nn.functional.normalize(center[k] - torch.tensor(ends[3:]), dim=0)
        qvel = torch.cat([-(abs(gap) / 0.01 + 5) * expected, torch.zeros(9).double()])
        end = robot.step((qpos[k], qvel))
        change = end.qvel_next[:3] - qvel[:3]
        assert end.status == Status.SOLVED
        assert (change / change.norm() - expected).abs().max() < 1e-6
        assert -0.01 * (end.qvel_next[:3] @ expected).item() == pytest.approx(gap, abs=1e-7)
    assert within > 20


def test_contacts_of_balls_and_boxes_have_derivatives():
    """In all that places them: at a face, an edge, a corner and within, with friction and both bodies moving."""
    robot = ball_beside_box(mass=[1.0, 2.0], mu=[0.4], inertia=torch.stack(
        [6.4e-4 * torch.eye(3).double(), torch.diag(numbers(0.04, 0.02, 0.03))]), box_orientations=[[1.0, 0, 0, 0]],
        box_centers=[[0.0] * 3])
    names = ["mass", "centers", "radii", "box_sizes", "box_centers", "box_orientations", "mu"]
    x = {name: getattr(robot, name) for name in names}
    for center in [(0.12, 0.05, 0.02), (0.11, 0.22, 0.02), (0.11, 0.21, 0.16), (0.07, 0.01, 0.02)]:
        q = torch.cat([numbers(*center), numbers(1, 0, 0, 0), numbers(0.0, 0, 0), numbers(1, 0, 0, 0)])
        q[10:] = turned(q[10:], numbers(0.02, -0.01, 0.03))
        v = torch.cat([numbers(-2.0, -1, -0.7), normal(9, seed=5)])
        weights = normal(12, seed=6)

        def loss(all):
            end = robot.replace(**dict(zip(names, all[2:], strict=True))).step((all[0], all[1]), **SENSITIVE)
            assert end.gamma[2] > 0
            return end.qvel_next @ weights

        inputs = [q, v, *x.values()]
        leaves = [each.clone().requires_grad_() for each in inputs]
        gradients = torch.autograd.grad(loss(leaves), leaves)
        for k, g in enumerate(gradients):
            d = normal(*inputs[k].shape, seed=20 + k)
            ends = [loss([*inputs[:k], inputs[k] + h * d, *inputs[k + 1:]]).item() for h in (1e-7, -1e-7)]
            assert (g * d).sum().item() == pytest.approx((ends[0] - ends[1]) / 2e-7, rel=1e-5, abs=1e-5), (center, k)


def robot_of(x, robot):
    return dataclasses.replace(robot, **x)


TENSORS = ["mass", "inertia", "center_of_mass", "position", "orientation", "axis", "anchor", "spring", "damping", "armature",
           "gear", "actuator_force", "centers", "radii", "normals", "offsets", "mu", "gravity", "friction_loss",
           "coupling", "closure", "closure_orientation"]


def touching(**changes):
    """Two links whose last one touches the ground, slides, and reaches a limit."""
    fields = dict(
        parents=[-1, 0], joints=[RobotJoint(0, "slide"), RobotJoint(0, "hinge", True), RobotJoint(1, "ball")], dt=0.01,
        mass=[1.0, 0.5], inertia=torch.stack([torch.diag(numbers(0.02, 0.03, 0.01)), torch.diag(numbers(0.01, 0.02, 0.03))]),
        center_of_mass=[[0.1, 0.02, 0], [0.05, 0, -0.1]], position=[[0, 0, 0.3], [0.2, 0.01, 0]],
        orientation=[[1.0, 0.1, 0, 0.2], [0.9, 0, 0.1, 0.1]], axis=[[0.0, 0, 1], [0.0, 0.6, 0.8], [0.0, 0, 0]],
        anchor=[[0.0, 0, 0], [0.02, 0, 0.01], [0.01, 0.02, 0]], range=[[0.0, 0], [0.0997, 0.1003], [0.0, 0]],
        spring=[[20.0, 0.0], [1.0, 0.1], [0.0, 0]], damping=[0.3, 0.1, 0.02, 0.02, 0.02], armature=[0.01, 0.02, 0.01, 0.01, 0.01],
        actuators=[RobotActuator(0), RobotActuator(1, force_range=(-5.0, 5.0))], gear=[1.0, 2.0],
        actuator_force=[[1.0, 0, 0, 0], [4.0, 0.1, -4.0, -0.2]], balls=[0, 2], centers=[[0, 0, -0.25], [0.15, 0.05, -0.2]],
        radii=[0.05, 0.04], contacts=[RobotContact(0, 0), RobotContact(1, 0)], normals=[[0.0, 0, 1]], offsets=[0.04],
        mu=[0.4, 0.3])
    return Robot(**{**fields, **changes})


SERVOS = dict(actuators=[RobotActuator(0, force_range=(-0.5, 0.4)), RobotActuator(1, force_range=(-3.0, 4.0))],
              actuator_force=[[1.0, 0, -40, -2], [4.0, 0.1, -4.0, -0.2]])  # the first is at a bound, the second not
LOSSES = [0.3, 0.2, 0.05, 3.0, 0.01]  # the third rotation of the ball joint sticks


def test_dry_friction_holds_a_pendulum_and_slows_it():
    pull = 0.5 * G * math.sin(0.3)
    at = RobotState(numbers(0.3), numbers(0.0))
    held = pendulum(friction_loss=[pull + 0.1]).simulate(at, rows=2000)
    assert (held.status == Status.SOLVED).all()
    assert (held.qpos_next - 0.3).abs().max() < 1e-15 and held.qvel_next.abs().max() < 1e-15
    torch.testing.assert_close(held.joint_friction, torch.full((2000, 1), 0.001 * pull).double())
    falls = pendulum(friction_loss=[pull - 0.1])
    for v in (0.0, -0.5, 0.5):
        step = falls.step(RobotState(numbers(0.3), numbers(v)))
        friction = pull - 0.1 if v <= 0 else 0.1 - pull
        assert step.qvel_next.item() == pytest.approx(v + 0.001 * 3 * (friction - pull), abs=1e-14)
        assert step.joint_friction.item() == pytest.approx(0.001 * friction)
    # It comes to rest, off the lowest point.
    swing = pendulum(friction_loss=[0.5]).simulate(RobotState(numbers(1.0), numbers(0.0)), rows=6000)
    q = swing.qpos_next[:, 0]
    assert (q[-1000:] == q[-1]).all() and swing.qvel_next[-1].abs().item() < 1e-15
    assert 1e-3 < abs(q[-1].item()) < math.asin(0.5 / (0.5 * G))


def test_dry_friction_acts_as_a_motor_that_obeys_its_law():
    """Beside contacts and a limit, which see it as any other force."""
    motors = dict(actuators=[RobotActuator(0), RobotActuator(1)], gear=[1.0, 1.0], actuator_force=[[1.0, 0, 0, 0]] * 2)
    smooth = touching(**motors)
    v = numbers(-0.2, 0.9, 0.3, 0.1, -0.4)
    sticks = 0
    for k, formulation in enumerate(("exact_cone", "polyhedral") * 20):
        losses = numbers(0.3, 0.2) if k % 4 < 2 else numbers(30, 10)
        robot = touching(friction_loss=torch.cat([losses, torch.zeros(3).double()]), **motors)
        control = 3 * normal(2, seed=k)
        q = numbers((-0.02, 0.0, 0.01)[k % 3], 0.1, 1, 0.05, 0.1, 0.02)
        state = RobotState(q, v * (1 if k % 5 else 0.01))
        step = robot.step(state, control, formulation=formulation, **SENSITIVE)
        assert step.status == Status.SOLVED
        h, speed = step.joint_friction[:2], step.qvel_next[:2]
        most = 0.01 * losses
        assert (h.abs() <= most).all()
        assert torch.equal(step.joint_friction[2:], torch.zeros(3).double())
        slips = speed.abs() > 1e-12
        torch.testing.assert_close(h[slips], -(most * speed.sign())[slips])
        sticks += (~slips).sum().item()
        same = smooth.step(state, control + h / 0.01, formulation=formulation, **SENSITIVE)
        torch.testing.assert_close(same.qvel_next, step.qvel_next, rtol=0, atol=1e-11)
        torch.testing.assert_close(same.gamma, step.gamma, rtol=0, atol=1e-11)
    assert 5 < sticks < 75


def test_some_degrees_of_freedom_have_dry_friction():
    robot = touching(friction_loss=[0.0, 0.2, 0.0, 0.1, 0.0])
    q, v, u = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4), normal(2, seed=1)
    of = lambda v: robot.step((q, v), u).joint_friction
    friction = of(v)
    assert (friction[[0, 2, 4]] == 0).all() and (friction[[1, 3]] != 0).all()
    torch.testing.assert_close(torch.func.jacrev(of)(v), torch.func.jacfwd(of)(v))


def test_no_dry_friction_costs_nothing_and_has_a_derivative():
    assert "resisted" not in pendulum(friction_loss=[0.0])._structure
    assert "resisted=0" in pendulum(friction_loss=[[0.0], [1.0]])._structure
    loss = numbers(0.0).requires_grad_()
    step = pendulum(friction_loss=loss).step(RobotState(numbers(0.3), numbers(-0.5)))
    (gradient,) = torch.autograd.grad(step.qvel_next.sum(), loss)
    assert gradient.item() == pytest.approx(0.001 * 3)
    at = RobotState(numbers(0.3).expand(2, 1), numbers(-0.5).expand(2, 1))
    of = lambda loss: pendulum(friction_loss=loss).step(RobotState(numbers(0.3), numbers(-0.5))).qvel_next
    losses = numbers(0.4, 0.0).unsqueeze(-1)
    torch.testing.assert_close(torch.func.vmap(of)(losses), pendulum(friction_loss=losses).step(at).qvel_next)
    assert pendulum(friction_loss=[-1.0]).step(RobotState(numbers(0.3), numbers(0.0))).status == Status.BAD_INPUT


def test_what_rows_do_not_know_is_an_error():
    at = RobotState(numbers(0.3), numbers(0.0))
    with pytest.raises(RuntimeError, match=r"friction_loss must be \[..., 1\]; got \[2\]"):
        pendulum(friction_loss=[1.0, 2.0])
    locked = pendulum(couplings=[RobotCoupling(0)], coupling=[[0.3, 0, 0, 0, 0]])
    with pytest.raises(RuntimeError, match="must be exact_cone for robots with couplings or closures; got polyhedral"):
        locked.step(at, formulation="polyhedral")
    with pytest.raises(RuntimeError, match="couplings must be of two joints; got twice joint 0"):
        locked.replace(couplings=[RobotCoupling(0, 0)]).step(at)
    with pytest.raises(RuntimeError, match="kappa must be 0 for robots with friction_loss"):
        pendulum(friction_loss=[1.0]).step(at, kappa=1e-6)
    with pytest.raises(RuntimeError, match="bounce_threshold must be absent for robots with friction_loss"):
        pendulum(friction_loss=[1.0]).step(at, bounce_threshold=0.1)


COUPLED = dict(joints=[RobotJoint(0, "slide"), RobotJoint(0, "hinge"), RobotJoint(1, "ball")],
               couplings=[RobotCoupling(1, 0)], coupling=[[0.11, 1.4, -2.0, 0.5, 0.3]])


def test_couplings_are_equations_with_an_impulse():
    motors = dict(actuators=[RobotActuator(0), RobotActuator(1)], gear=[1.0, 1.0], actuator_force=[[1.0, 0, 0, 0]] * 2)
    robot, free = touching(**COUPLED, **motors), touching(joints=COUPLED["joints"], **motors)
    q, v, c = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4), COUPLED["coupling"][0]
    touches = 0
    for k in range(10):
        control = 3 * normal(2, seed=k)
        q[0] = 0.003 * k - 0.02
        step = robot.step((q, v), control, **SENSITIVE)
        assert step.status == Status.SOLVED and step.coupling.shape == (1,)
        x = q[0].item()
        gap = q[1] - sum(c[i] * x**i for i in range(5))
        slope = sum(i * c[i] * x ** (i - 1) for i in range(1, 5))
        assert (step.qvel_next[1] - slope * step.qvel_next[0] + gap / robot.dt).abs() < 1e-10
        pull = step.coupling[0] / robot.dt * numbers(-slope, 1.0)
        same = free.step((q, v), control + pull, **SENSITIVE)
        torch.testing.assert_close(same.qvel_next, step.qvel_next, rtol=0, atol=1e-9)
        touches += (step.gamma != 0).any().item()
    assert 0 < touches
    locked = pendulum(couplings=[RobotCoupling(0)], coupling=[[0.3, 0, 0, 0, 0]])
    rollout = locked.simulate((numbers(0.5), numbers(2.0)), rows=100)
    assert (rollout.qpos_next - 0.3).abs().max() < 1e-12
    assert rollout.coupling[-1].item() == pytest.approx(locked.dt * 0.5 * G * math.sin(0.3))


def test_couplings_of_a_file_are_those_of_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "gripper.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="a" type="slide" axis="1 0 0" ref=".1"/><geom size=".1"/></body><body pos="1 0 0">'
        '<joint name="b" axis="0 1 0" ref="-.2"/><geom size=".1"/></body><body pos="2 0 0"><joint name="c"/><geom size=".1"/>'
        '</body></worldbody><equality><joint joint1="a" joint2="b" polycoef=".01 -2 .3 .4 .5"/>'
        '<joint joint1="c" polycoef=".2 0 0 0 0"/><joint joint1="c" joint2="a" active="false"/></equality></mujoco>')
    robot, model = load_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    assert robot.couplings == [(0, 1), (2, -1)]
    data = mujoco.MjData(model)
    data.qpos[:] = [0.3, 0.4, 0.5]
    mujoco.mj_forward(model, data)
    gaps = [data.qpos[j] - sum(c * (data.qpos[o] if o >= 0 else 0) ** i for i, c in enumerate(poly.tolist()))
            for (j, o), poly in zip(robot.couplings, robot.coupling, strict=True)]
    assert gaps == pytest.approx(data.efc_pos[:2].tolist(), abs=1e-14)
    path.write_text(path.read_text().replace("<worldbody>", '<worldbody><site name="1"/><site name="2"/>')
                    .replace('<joint joint1="c" polycoef=".2 0 0 0 0"/>', '<weld site1="1" site2="2"/>'))
    with pytest.raises(ValueError, match="equality of weld"):
        load_mjcf(path)


FOUR_BAR = """<mujoco><worldbody><body name="crank" euler="0 20 0"><joint axis="0 1 0"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 .3"/><body name="rod" pos="0 0 .3" euler="0 70 0">
<joint axis="0 1 0" frictionloss=".02"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .5"/>
</body></body><body name="rocker" pos=".5 0 0" euler="0 10 0"><joint axis="0 1 0" damping=".1"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 .4"/></body></worldbody>
<equality><connect body1="rod" body2="rocker" anchor="0 0 .5"/></equality></mujoco>"""


def four_bar(tmp_path):
    """A crank, a rod, and a rocker, of which a point is one with the end of the rod."""
    path = tmp_path / "four_bar.xml"
    path.write_text(FOUR_BAR)
    return load_mjcf(path).replace(contacts=[], mu=torch.zeros(0).double()), path


def test_a_closed_loop_stays_closed(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    robot, path = four_bar(tmp_path)
    assert robot.closures == [RobotClosure(1, 2)]
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)

    def gap(q):
        places = robot.places(q)
        rod, rocker = (places.position[..., k, :] + places.rotation[..., k, :, :] @ robot.closure[0, k - 1] for k in (1, 2))
        return rod - rocker

    data.qpos[:] = [0.1, 0.2, -0.1]
    mujoco.mj_forward(model, data)
    found = torch.tensor(data.efc_pos[:3])
    torch.testing.assert_close(gap(torch.tensor(data.qpos)), found, rtol=0, atol=1e-12)
    rollout = robot.simulate((torch.zeros(3).double(), numbers(1.0, 0, 0)), rows=1000)
    assert (rollout.status == Status.SOLVED).all()
    assert gap(rollout.qpos_next).norm(dim=-1).max() < 1e-4
    assert (rollout.qpos_next[:, 0] - rollout.qpos_next[0, 0]).abs().max() > 0.3
    assert rollout.closure.shape == (1000, 1, 6) and (rollout.closure[:, 0, [0, 2]].norm(dim=-1) > 0).all()
    # The impulse of the closure is a force on both bodies.
    q, v = rollout.qpos_next[300], rollout.qvel_next[300]
    step = robot.step((q, v))
    assert (step.closure[0, 3:] == 0).all()
    places, h = robot.places(q), step.closure[0, :3] / robot.dt
    forces = torch.zeros(3, 6).double()
    for body, sign, point in ((1, 1, robot.closure[0, 0]), (2, -1, robot.closure[0, 1])):
        turn = places.rotation[body]
        arm = turn @ (point - robot.center_of_mass[body])
        forces[body] = sign * torch.cat([h, turn.mT @ torch.linalg.cross(arm, h)])
    open_loop = robot.replace(closures=[], closure=())
    torch.testing.assert_close(open_loop.step((q, v), forces=forces).qvel_next, step.qvel_next, rtol=0, atol=1e-9)


def test_the_derivatives_of_a_closed_loop_are_those_of_differences(tmp_path):
    pytest.importorskip("mujoco")
    robot, _ = four_bar(tmp_path)
    x = {name: getattr(robot, name) for name in TENSORS if getattr(robot, name).numel() > 0}
    weights = normal(12, seed=1)

    def of(all):
        rollout = robot_of(dict(zip(x, all[2:], strict=True)), robot).simulate((all[0], all[1]), rows=3, **SENSITIVE)
        end = torch.cat([rollout.qpos_next[-1], rollout.qvel_next[-1], rollout.closure[-1, 0]])
        return (end * weights).sum()

    inputs = [numbers(0.01, -0.02, 0.03), numbers(1.0, -2.0, 0.5), *x.values()]
    leaves = [each.clone().requires_grad_() for each in inputs]
    gradients = torch.autograd.grad(of(leaves), leaves)
    assert (gradients[-2][..., [0, 2]] != 0).all() and (gradients[-1] == 0).all()  # a point has no orientation
    along = [normal(*each.shape, seed=10 + k) for k, each in enumerate(inputs)]
    for k, (name, d) in enumerate(zip(["q", "v", *x], along, strict=True)):
        if name in ("axis", "inertia", "orientation", "range", "closure_orientation"):
            d[:] = 0
        if name in ("position", "anchor", "closure"):
            d[..., 1] = 0  # nothing moves out of the plane
        if name in ("spring", "damping", "armature", "friction_loss"):
            d[:] = d * (inputs[k] > 0)
        h = 1e-7
        ends = [of([*inputs[:k], inputs[k] + sign * h * d, *inputs[k + 1:]]).item() for sign in (1, -1)]
        assert (gradients[k] * d).sum().item() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-5), name
    _, tangent = torch.func.jvp(lambda *all: of(all), tuple(inputs), tuple(along))
    assert tangent.item() == pytest.approx(sum((g * d).sum() for g, d in zip(gradients, along)).item(), rel=1e-8)
    at = robot.linearize((inputs[0], inputs[1]), **SENSITIVE)
    for k, column in enumerate(at.A.unbind(-1)):
        e = torch.zeros(6).double()
        e[k] = 1e-7
        ends = [robot.step((inputs[0] + s * e[:3], inputs[1] + s * e[3:]), **SENSITIVE) for s in (1, -1)]
        difference = (torch.cat(ends[0].next, -1) - torch.cat(ends[1].next, -1)) / 2e-7
        torch.testing.assert_close(column, difference, rtol=1e-5, atol=1e-5)


WELDED = """<mujoco><option timestep=".005"><flag contact="disable"/></option><worldbody>
<body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .05"/>
<body name="b" pos=".2 0 .1"><joint type="ball" damping=".01"/><geom type="box" size=".1 .05 .05"/></body></body>
<body name="c" pos=".5 .1 1.2" euler="10 20 30"><freejoint/><geom type="box" size=".1 .1 .05"/></body>
<body name="d" pos="0 1 1"><joint axis="1 0 0"/><joint type="slide" axis="0 1 0"/><geom type="box" size=".1 .1 .05"/></body>
</worldbody><equality><weld body1="b" body2="c" anchor=".05 .1 -.05"/><weld body1="c" body2="d"/>
<weld body1="a" torquescale="0"/></equality></mujoco>"""


def welded(tmp_path):
    path = tmp_path / "welded.xml"
    path.write_text(WELDED)
    return load_mjcf(path), path


def test_a_weld_holds_position_and_orientation(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    robot, path = welded(tmp_path)
    assert [closure.is_weld for closure in robot.closures] == [True, True, False] and robot.closures[2].other == -1
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    loose = robot.replace(closures=[], closure=())
    for seed in range(3):  # half of the turns, as MuJoCo has them, is the vector part of a quaternion
        q = model.qpos0.copy()
        mujoco.mj_integratePos(model, q, normal(model.nv, seed=seed).numpy(), 0.2)
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        found = torch.tensor(data.efc_pos[:15])
        at, v = torch.tensor(q), normal(model.nv, seed=10 + seed)
        step = robot.step((at, v), **SENSITIVE)
        assert step.status == Status.SOLVED and step.closure.shape == (3, 6) and (step.closure[2, 3:] == 0).all()
        places, impulses = robot.places(at), step.closure / robot.dt
        velocity, forces = step.qvel_next, torch.zeros(4, 6).double()
        turning = torch.stack([velocity[3:6], velocity[6:9], velocity[12:15], velocity[15] * numbers(1, 0, 0)])
        relative = places.rotation[0].mT @ places.rotation[1]
        turning[1] += relative.mT @ turning[0]
        world = (places.rotation @ turning.unsqueeze(-1)).squeeze(-1)
        for k, (body, other, is_weld) in enumerate(robot.closures):
            for sign, part, point in ((1, body, robot.closure[k, 0]), (-1, other, robot.closure[k, 1])):
                if part < 0:
                    continue
                turn = places.rotation[part]
                arm = turn @ (point - robot.center_of_mass[part])
                torque = torch.linalg.cross(arm, impulses[k, :3]) + impulses[k, 3:]
                forces[part] += sign * torch.cat([impulses[k, :3], turn.mT @ torque])
            if is_weld:  # MuJoCo has the error in the axes of the other body
                off = 2 * places.rotation[other] @ found[6 * k + 3:6 * k + 6]
                torch.testing.assert_close(robot.dt * (world[body] - world[other]), -off, rtol=0, atol=1e-8)
        # The impulses are forces on the bodies.
        same = loose.step((at, v), forces=forces, **SENSITIVE)
        torch.testing.assert_close(same.qvel_next, step.qvel_next, rtol=0, atol=1e-7)
        # The points meet, to the first order.
        ends = []
        for h in (-1e-6, 1e-6):
            moved = q.copy()
            mujoco.mj_integratePos(model, moved, velocity.numpy(), h)
            data.qpos[:] = moved
            mujoco.mj_forward(model, data)
            ends.append(torch.tensor(data.efc_pos[:15]))
        rate = (ends[1] - ends[0]) / 2e-6
        for rows in (slice(0, 3), slice(6, 9), slice(12, 15)):
            torch.testing.assert_close(rate[rows], -found[rows] / robot.dt, rtol=1e-5, atol=1e-4)
    # What has been apart is together from then on, and swings.
    q = model.qpos0.copy()
    mujoco.mj_integratePos(model, q, normal(model.nv, seed=5).numpy(), 0.005)
    rollout = robot.simulate((torch.tensor(q), 0 * v), rows=400)
    assert (rollout.status == Status.SOLVED).all()
    data.qpos[:] = rollout.qpos_next[-1].numpy()
    mujoco.mj_forward(model, data)
    assert abs(data.efc_pos[:15]).max() < 1e-3 and rollout.qvel_next.abs().max() > 1
    rest = pendulum(closures=[RobotClosure(0, -1, True)], closure=torch.zeros(1, 2, 3).double())
    opposite = rest.replace(closure_orientation=[[0.0, 0, 1, 0]])
    assert rest.step((numbers(0.0), numbers(1.0))).qvel_next.abs() < 1e-14
    assert opposite.step((numbers(0.0), numbers(1.0))).status == Status.BAD_INPUT  # half a turn has no direction


def test_the_derivatives_of_welds_are_those_of_differences(tmp_path):
    """In reverse and forward mode, and by linearize, from a state in which the welds are open."""
    mujoco = pytest.importorskip("mujoco")
    robot, path = welded(tmp_path)
    model = mujoco.MjModel.from_xml_path(str(path))
    q = model.qpos0.copy()
    mujoco.mj_integratePos(model, q, normal(model.nv, seed=1).numpy(), 0.01)
    names = ["mass", "center_of_mass", "position", "closure", "closure_orientation", "anchor"]
    inputs = [torch.tensor(q), normal(model.nv, seed=2), *(getattr(robot, name) for name in names)]
    weights = normal(model.nq + model.nv + 18, seed=3)

    def of(all):
        changed = robot.replace(**dict(zip(names, all[2:], strict=True)))
        rollout = changed.simulate((all[0], all[1]), rows=2, **SENSITIVE)
        assert (rollout.status == Status.SOLVED).all()
        return torch.cat([rollout.qpos_next[-1], rollout.qvel_next[-1], rollout.closure[-1].flatten()]) @ weights

    leaves = [each.clone().requires_grad_() for each in inputs]
    gradients = torch.autograd.grad(of(leaves), leaves)
    assert (gradients[-2][:2].abs().sum(-1) > 0).all() and (gradients[-2][2] == 0).all()
    along = [normal(*each.shape, seed=10 + k) for k, each in enumerate(inputs)]
    for k, (name, d) in enumerate(zip(["q", "v", *names], along, strict=True)):
        h = 1e-6
        ends = [of([*inputs[:k], inputs[k] + sign * h * d, *inputs[k + 1:]]).item() for sign in (1, -1)]
        assert (gradients[k] * d).sum().item() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-5), name
    _, tangent = torch.func.jvp(lambda *all: of(all), tuple(inputs), tuple(along))
    assert tangent.item() == pytest.approx(sum((g * d).sum() for g, d in zip(gradients, along)).item(), rel=1e-8)
    at = robot.linearize((inputs[0], inputs[1]), **SENSITIVE)
    for k in range(2 * model.nv):
        ends = []
        for sign in (1, -1):
            moved, v = q.copy(), inputs[1].clone()
            e = torch.zeros(2 * model.nv).double()
            e[k] = 1e-7 * sign
            mujoco.mj_integratePos(model, moved, e[:model.nv].numpy(), 1)
            ends.append(robot.step((torch.tensor(moved), v + e[model.nv:]), **SENSITIVE).qvel_next)
        torch.testing.assert_close(at.A[model.nv:, k], (ends[0] - ends[1]) / 2e-7, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("changes, options", [
    ({}, {}), ({"friction_loss": LOSSES}, {}), ({"friction_loss": LOSSES}, {"formulation": "polyhedral"}), (COUPLED, {}),
    (SERVOS, {}), (SERVOS, {"formulation": "polyhedral"}), ({**SERVOS, "friction_loss": LOSSES}, {})])
def test_all_derivatives_are_those_of_differences(changes, options):
    """In reverse and in forward mode, in all tensors, with a contact that slides and a limit that holds."""
    robot = touching(**changes)
    x = {name: getattr(robot, name) for name in TENSORS if getattr(robot, name).numel() > 0}
    q, v = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4)
    q[2:] /= q[2:].norm()
    u = normal(4, 2, seed=1)
    weights = normal(11, seed=2)

    def loss(state, control, tensors):
        rollout = robot_of(tensors, robot).simulate(state, control, **options, **SENSITIVE)
        assert (rollout.status == Status.SOLVED).all()
        if "friction_loss" in changes:
            slips = rollout.qvel_next.abs() > 1e-10
            assert slips.any() and not slips.all() and (rollout.joint_friction[slips] != 0).all()
        gamma = rollout.gamma.unflatten(-1, (-1, 3))
        assert (gamma[:, :2, 2] > 0).any() and (gamma[:, :2, :2] != 0).any()
        assert (rollout.coupling != 0).all() if "couplings" in changes else (gamma[:, 2:, 2] > 0).any()
        if "actuators" in changes:
            q_end, v_end = rollout.qpos_next[:, :2], rollout.qvel_next[:, :2]
            force = tensors["actuator_force"]
            wanted = force[:, 0] * control + force[:, 1] + tensors["gear"] * (force[:, 2] * q_end + force[:, 3] * v_end)
            assert (abs(wanted[:, 0]) > 0.5).all() and (abs(wanted[:, 1]) < 3).all()
        impulses = rollout.joint_friction.sum() + rollout.coupling.sum()
        return (torch.cat([rollout.qpos_next, rollout.qvel_next], -1)[-1] * weights).sum() + impulses

    inputs = [q, v, u, *x.values()]
    of = lambda all: loss((all[0], all[1]), all[2], dict(zip(x, all[3:], strict=True)))
    leaves = [each.clone().requires_grad_() for each in inputs]
    gradients = torch.autograd.grad(of(leaves), leaves)
    along = [normal(*each.shape, seed=10 + k) for k, each in enumerate(inputs)]
    along[4] = 1e-2 * (along[4] + along[4].mT)  # the inertia
    for k, (name, d) in enumerate(zip(["q", "v", "u", *x], along, strict=True)):
        h = 1e-6 / (1 + (d.abs().max() if d.numel() > 0 else 0))
        if name == "axis":
            d[0, :] = d[2, :] = 0
        if name == "friction_loss" and name not in changes:
            d[:] = 0
        ends = [of([*inputs[:k], inputs[k] + sign * h * d, *inputs[k + 1:]]).item() for sign in (1, -1)]
        difference = (ends[0] - ends[1]) / (2 * h)
        assert (gradients[k] * d).sum().item() == pytest.approx(float(difference), rel=2e-6, abs=2e-6), name
    _, tangent = torch.func.jvp(lambda *all: of(all), tuple(inputs), tuple(along))
    assert tangent.item() == pytest.approx(sum((g * d).sum() for g, d in zip(gradients, along)).item(), rel=1e-9)


def test_the_derivative_in_closed_form_is_that_of_the_tape():
    """Where no mass and no placement of a joint varies, the motion of trees has its derivative in closed form."""
    robot = touching()
    taped = ["mass", "inertia", "center_of_mass", "position", "orientation", "axis", "anchor", "gravity"]
    x = {name: getattr(robot, name) for name in TENSORS if name not in taped and getattr(robot, name).numel() > 0}
    q, v = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4)
    u, forces, weights = normal(4, 2, seed=1), 0.1 * normal(4, 2, 6, seed=3), normal(11, seed=2)
    inputs = [q / q.norm(), v, u, forces, *x.values()]

    def loss(mass, *all):
        changed = dict(zip(x, all[4:], strict=True))
        rollout = robot.replace(mass=mass, **changed).simulate((all[0], all[1]), all[2], forces=all[3], **SENSITIVE)
        assert (rollout.status == Status.SOLVED).all() and (rollout.gamma[:, 2::3] > 0).any()
        return (torch.cat([rollout.qpos_next, rollout.qvel_next], -1)[-1] * weights).sum() + rollout.gamma.sum()

    leaves = [each.clone().requires_grad_() for each in inputs]
    mass = robot.mass.clone().requires_grad_()
    by_tape = torch.autograd.grad(loss(mass, *leaves), [mass, *leaves])[1:]
    in_closed_form = torch.autograd.grad(loss(robot.mass, *leaves), leaves)
    for a, b in zip(by_tape, in_closed_form, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-11, atol=1e-11)
    along = [normal(*each.shape, seed=10 + k) for k, each in enumerate(inputs)]
    _, tangent = torch.func.jvp(lambda *all: loss(robot.mass, *all), tuple(inputs), tuple(along))
    assert tangent.item() == pytest.approx(sum((g * d).sum() for g, d in zip(by_tape, along)).item(), rel=1e-11)


def test_a_contact_that_another_one_closes_has_a_derivative():
    """A rod falls on one end, which speeds up the other one: without contacts that would not reach the ground."""
    robot = block_on(
        0.0, mass=[1.0], inertia=[torch.diag(numbers(0.01, 1 / 12, 1 / 12))], dt=0.01, balls=[2], radii=[0.0] * 2,
        centers=[[-0.5, 0, 0], [0.5, 0, 0]], contacts=[RobotContact(0, 0), RobotContact(1, 0)], mu=[0.3] * 2, gravity=[0.0, 0, 0])
    tilt, v = -0.0125, numbers(0.5, 0.1, -1, 0, 0, 0)
    q = numbers(0, 0, 0.00625, math.cos(tilt / 2), 0, math.sin(tilt / 2), 0)
    end = lambda q: robot.simulate((q, v), rows=1, **SENSITIVE)
    gamma = end(q).gamma.view(2, 3)
    assert (gamma[:, 2] > 0).all() and 0.01 * 1 < 0.0125  # both touch, though the second end is farther than v dt
    leaf = q.clone().requires_grad_()
    weights = normal(6, seed=3)
    (gradient,) = torch.autograd.grad(end(leaf).qvel_next[0] @ weights, leaf)
    for e in 1e-7 * torch.eye(7).double():
        difference = (end(q + e).qvel_next[0] - end(q - e).qvel_next[0]) @ weights / 2e-7
        assert (gradient @ e).item() * 1e7 == pytest.approx(difference.item(), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("options", [
    {}, {"formulation": "polyhedral"}, {"formulation": "polyhedral", "ties": "midpoint"}, {"substeps": 3},
    {"bounce_threshold": 0.0}, {"kappa": 1e-3}, {"kappa": 1e-3, "formulation": "polyhedral", "ties": "inactive"}])
def test_linearize_knows_all_options(options):
    """Beside reverse mode by the tape, as it is where the masses vary; without quaternions, whose changes are their own."""
    robot = touching().replace(
        joints=[RobotJoint(0, "slide"), RobotJoint(0, "hinge", True), RobotJoint(1, "hinge")], damping=[0.3, 0.1, 0.02],
        armature=[0.01, 0.02, 0.01], axis=[[0.0, 0, 1], [0.0, 0.6, 0.8], [0.6, 0.0, 0.8]])
    x = [numbers(-0.02, 0.1, 0.05), numbers(-0.2, 0.9, 0.3), normal(2, seed=1)]
    taped = robot.replace(mass=robot.mass.clone().requires_grad_())

    def end(q, v, u):
        found = taped.step((q, v), u, **SENSITIVE, **options)
        return torch.cat([found.qpos_next, found.qvel_next])

    expected = torch.cat(torch.autograd.functional.jacobian(end, tuple(x)), -1)
    found = robot.linearize((x[0], x[1]), x[2], **SENSITIVE, **options)
    assert found.status == Status.SOLVED and robot.step((x[0], x[1]), x[2]).gamma[2::3].abs().max() > 0
    torch.testing.assert_close(torch.cat([found.A, found.B], -1), expected, rtol=1e-7, atol=1e-7)
    batch = [each.expand(3, -1) for each in x]
    mapped = torch.vmap(lambda q, v, u: tuple(robot.linearize((q, v), u, **SENSITIVE, **options)))(*batch)
    assert torch.equal(mapped[2], found.A.expand(3, -1, -1)) and torch.equal(mapped[3], found.B.expand(3, -1, -1))


@pytest.mark.parametrize("changes", [{}, {"friction_loss": LOSSES}, COUPLED, SERVOS, {**SERVOS, "friction_loss": LOSSES}])
def test_linearize_is_the_derivative_in_the_tangent_space(changes):
    robot = touching(**changes)
    q, v, u = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4), numbers(0.3, -0.2)
    q[2:] /= q[2:].norm()
    for substeps in (1, 3):
        found = robot.linearize((q, v), u, substeps=substeps, **SENSITIVE)
        assert found.A.shape == (10, 10) and found.B.shape == (10, 2) and found.status == Status.SOLVED

        def end(change):
            dq, dv, du = change.split([5, 5, 2])
            moved = torch.cat([q[:2] + dq[:2], turned(q[2:], dq[2:])])
            step = robot.step((moved, v + dv), u + du, substeps=substeps, **SENSITIVE)
            a, b = found.qpos_next[2:], step.qpos_next[2:]
            conjugate = a * numbers(1, -1, -1, -1)
            turn = 2 * (conjugate[0] * b[1:] + b[0] * conjugate[1:] + torch.linalg.cross(conjugate[1:], b[1:]))
            return torch.cat([step.qpos_next[:2], turn, step.qvel_next])

        h = 1e-6
        for k, column in enumerate(torch.cat([found.A, found.B], -1).unbind(-1)):
            e = torch.zeros(12).double()
            e[k] = h
            torch.testing.assert_close(column, (end(e) - end(-e)) / (2 * h), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("substeps", [1, 2])
def test_a_feedback_is_a_loop_of_steps(substeps):
    """And so are its derivatives in the gains and the reference."""
    robot = touching()
    q, v = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4)
    q[2:] /= q[2:].norm()
    K, u = normal(2, 10, seed=5).requires_grad_(), normal(4, 2, seed=6)
    aim = (numbers(0.1, 0.1, 1, 0, 0.2, 0.1).requires_grad_(), numbers(0, 0.1, 0, 0.2, 0).requires_grad_())
    together = robot.simulate((q, v), u, feedback=Feedback(K, aim), substeps=substeps, **SENSITIVE)
    state, ends = RobotState(q, v), []
    for row in u:
        for _ in range(substeps):
            unit = aim[0][2:] / aim[0][2:].norm()
            conjugate = state.qpos[2:] * numbers(1, -1, -1, -1)
            w = conjugate[0] * unit[0] - conjugate[1:] @ unit[1:]
            turn = conjugate[0] * unit[1:] + unit[0] * conjugate[1:] + torch.linalg.cross(conjugate[1:], unit[1:])
            error = torch.cat([aim[0][:2] - state.qpos[:2], 2 * torch.sign(w) * turn, aim[1] - state.qvel])
            state = robot.step(state, row + K @ error, **SENSITIVE).next
        ends.append(state)
    torch.testing.assert_close(together.qpos_next, torch.stack([end.qpos for end in ends]))
    gradients = [torch.autograd.grad((qpos**2).sum(), (K, *aim)) for qpos in (together.qpos_next[-1], ends[-1].qpos)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("options", [
    {"kappa": 1e-9}, {"formulation": "polyhedral"}, {"substeps": 2}, {"bounce_threshold": 0.05}, {"stabilization": 0.5}], ids=str)
def test_derivatives_with_options_are_those_of_differences(options):
    robot = touching()
    q, v, u = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4), normal(4, 2, seed=1)
    end = lambda q: robot.simulate((q, v), u, **options, **SENSITIVE).qvel_next[-1].sum()
    leaf, e = q.clone().requires_grad_(), 1e-7 * normal(6, seed=8)
    (gradient,) = torch.autograd.grad(end(leaf), leaf)
    assert ((end(q + e) - end(q - e)) / 2).item() == pytest.approx((gradient @ e).item(), rel=1e-5)


def test_rollouts_map_and_compile():
    robot = touching()
    q, v, u = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02), numbers(-0.2, 0.9, 0.3, 0.1, -0.4), normal(4, 2, seed=1)
    end = lambda q: robot.simulate((q, v), u).qvel_next[-1]
    many = q + 0.01 * normal(3, 6, seed=9)
    torch.testing.assert_close(torch.func.vmap(end)(many), torch.stack([end(each) for each in many]))
    torch.testing.assert_close(torch.func.jacrev(end)(q), torch.func.jacfwd(end)(q))
    torch.testing.assert_close(torch.compile(end, fullgraph=True, backend="aot_eager")(q), end(q))
    with pytest.raises(RuntimeError, match="derivatives of the first order"):
        torch.autograd.functional.hessian(lambda q: end(q).sum(), q)


def test_a_batch_is_its_elements():
    robot = touching()
    q, v = numbers(-0.02, 0.1, 1, 0.05, 0.1, 0.02).expand(3, 6), normal(3, 5, seed=3)
    heavy = dataclasses.replace(robot, mass=robot.mass * numbers(1, 2, 3).view(3, 1))
    u = normal(5, 3, 2, seed=4)
    together, linear = heavy.simulate((q, v), u), heavy.linearize((q, v), u[0])
    for k in range(3):
        own = dataclasses.replace(robot, mass=heavy.mass[k])
        for one, all in zip(own.simulate((q[k], v[k]), u[:, k]), together, strict=True):
            assert torch.equal(one, all[:, k])
        assert torch.equal(own.linearize((q[k], v[k]), u[0, k]).A, linear.A[k])


def test_a_step_is_the_first_row_of_a_rollout():
    robot = block_on(0.3, mu=[0.1] * 8)
    state = RobotState(normal(3, 7), normal(3, 6, seed=1))
    forces = normal(1, 3, 1, 6, seed=2)
    for options in ({}, {"substeps": 3}):
        for got, expected in zip(
            robot.step(state, forces=forces[0], **options), robot.simulate(state, forces=forces, **options), strict=True
        ):
            torch.testing.assert_close(got, expected[0], rtol=0, atol=0)


def test_a_step_follows_each_change_of_its_robot():
    robot, state, push = pendulum(mass=numbers(1)), RobotState(numbers(0.5), numbers(0)), numbers(1)

    def speed():
        """The speed after a step, and that of a robot which has just been made."""
        copy = robot.replace(mass=robot.mass.detach().clone(), gear=robot.gear.detach().clone())
        expected = copy.step(state, push).qvel_next
        got = [robot.step(state, push).qvel_next for _ in range(2)]
        assert torch.equal(got[0], got[1]) and torch.equal(got[0], expected)
        assert torch.equal(robot.linearize(state, push).qvel_next, expected)
        return expected.item()

    speeds = [speed()]
    robot.mass.mul_(2)
    speeds.append(speed())
    robot.mass.data.mul_(2)  # of which the version counter of a tensor knows nothing
    speeds.append(speed())
    robot.gear.fill_(3)
    speeds.append(speed())
    with torch.inference_mode():
        assert robot.step(state, push).qvel_next.item() == speeds[-1]
    robot.mass.requires_grad_()
    assert speed() == speeds[-1]
    (slope,) = torch.autograd.grad(robot.step(state, push).qvel_next.sum(), robot.mass)
    assert slope.abs().item() > 1e-4
    assert len(set(speeds)) == 4


def test_places_are_where_the_bodies_are():
    robot = pendulum()
    q = numbers(0.3, -0.7).unsqueeze(-1).requires_grad_()
    places = robot.places(q)
    assert places.position.shape == (2, 1, 3) and places.rotation.shape == (2, 1, 3, 3)
    center = (places.rotation @ robot.center_of_mass.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(center[:, 0], torch.stack([-0.5 * q[:, 0].sin(), 0 * q[:, 0], -0.5 * q[:, 0].cos()], -1))
    assert torch.autograd.gradcheck(lambda q: robot.places(q), q)


def test_capsules_touch_where_they_are_nearest():
    """Two capsules that fly towards each other stop at the distance of their axes."""
    free = lambda body: RobotJoint(body, "free")
    for seed in range(20):
        ends, speed = normal(2, 2, 3, seed=seed), numbers(0, 0, 1)
        ends[1, :, 2] += 4
        robot = Robot(
            parents=[-1, -1], joints=[free(0), free(1)], dt=0.05, mass=[1.0, 1e6],
            inertia=1e6 * torch.eye(3).double().repeat(2, 1, 1), center_of_mass=torch.zeros(2, 3).double(),
            position=torch.zeros(2, 3).double(), orientation=[[1.0, 0, 0, 0]] * 2, axis=torch.zeros(2, 3).double(),
            anchor=torch.zeros(2, 3).double(), range=torch.zeros(2, 2).double(), spring=torch.zeros(2, 2).double(),
            damping=[0.0] * 12, armature=[0.0] * 12, balls=[2, 2], centers=ends.flatten(0, 1),
            radii=[0.1, 0.1, 0.2, 0.2], contacts=[RobotContact(0, -1, 2, 1, 3)], mu=[0.0], gravity=[0.0, 0, 0])
        v = torch.cat([speed, torch.zeros(9).double()])
        rollout = robot.simulate((robot.default_state().qpos, v), rows=200)
        shares = torch.linspace(0, 1, 401).double()
        at = lambda k, moved: ends[k, 0] + moved + shares.view(-1, 1) * (ends[k, 1] - ends[k, 0])
        distance = lambda moved: torch.cdist(at(0, moved), at(1, 0 * moved)).min().item()
        touched = (rollout.gamma[:, 2] > 0).nonzero()
        for row in range(0, 200, 7):
            assert distance(rollout.qpos_next[row, :3]) > 0.3 - 1e-3
        if len(touched):
            assert distance(rollout.qpos_next[touched[0, 0], :3]) == pytest.approx(0.3, abs=2e-3)


@pytest.mark.parametrize("change, message", [
    ({"mass": [[1.0, 2.0]]}, "mass must be floating-point numbers [..., 1]"),
    ({"spring": [[1.0]]}, "spring must be floating-point numbers [..., 1, 2]"),
    ({"actuators": [RobotActuator(3)]}, "actuators must be numbers from 0 to 0; got 3"),
    ({"parents": [0]}, "parents must be numbers from -1 to -1; got 0"),
])
def test_what_does_not_fit_is_an_error(change, message):
    with pytest.raises(RuntimeError) as error:
        pendulum(**change).simulate((numbers(0.0), numbers(0.0)), torch.zeros(1, 1).double())
    assert message in str(error.value)


def test_other_errors_say_what_is_expected():
    robot = pendulum()
    for call, expected in (
            (lambda: robot.simulate((numbers(0.0), numbers(0.0))), "a rollout needs control, forces or rows"),
            (lambda: robot.simulate((numbers(0.0, 1.0), numbers(0.0)), rows=1), "qpos must be [..., 1]; got [2]"),
            (lambda: robot.step((numbers(0.0), numbers(0.0)), numbers(1.0, 2.0)), "control must be [..., 1]; got [2]"),
            (lambda: robot.joint("elbow"), "the robot has no joint elbow; it has pivot"),
            (lambda: robot.body("hand"), "the robot has no body hand; it has rod"),
            (lambda: robot.step((numbers(0.0), numbers(0.0)), formulation="compliant"), "exact_cone or polyhedral"),
            (lambda: pendulum(joints=[RobotJoint(0, "screw")]), "free, ball, slide or hinge; got screw")):
        with pytest.raises((RuntimeError, TypeError, KeyError, ValueError)) as error:
            call()
        assert expected in str(error.value)
    bad = [{"mass": [-1.0]}, {"axis": [[0.0, 2, 0]]}, {"damping": [-1.0]}, {"spring": [[-1.0, 0]]}]
    for change in bad:
        assert pendulum(**change).simulate((numbers(0.0), numbers(0.0)), rows=2).status.tolist() == [Status.BAD_INPUT] * 2


def test_a_file_gives_the_dynamics_of_mujoco():
    """The velocity after a step without contacts, beside the mass matrix and the forces of MuJoCo; no actuator saturates."""
    mujoco = pytest.importorskip("mujoco")
    numpy = pytest.importorskip("numpy")
    robot, model = load_mjcf(FILE), mujoco.MjModel.from_xml_path(str(FILE))
    assert (robot.nq, robot.nv) == (model.nq, model.nv) and robot.body("tail") == 4
    torch.testing.assert_close(robot.default_state().qpos, torch.tensor(model.qpos0))
    joint = robot.joint("knuckle")
    assert (joint.qpos, joint.qvel) == (slice(6, 7), slice(5, 6))
    flying = robot.replace(contacts=[], mu=torch.zeros(0).double(), joints=[j._replace(has_limits=False) for j in robot.joints])
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    dt = robot.dt
    for seed in range(5):
        q, v, u = model.qpos0.copy(), normal(model.nv, seed=seed), 0.1 * normal(2, seed=10 + seed)
        mujoco.mj_integratePos(model, q, normal(model.nv, seed=20 + seed).numpy(), 0.3)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v.numpy(), u.numpy()
        mujoco.mj_forward(model, data)
        M = numpy.zeros((model.nv, model.nv))
        for k, e in enumerate(numpy.eye(model.nv)):
            mujoco.mj_mulM(model, data, M[k], e)
        # Springs, dampers and the servo act at the end of the step.
        K, D = numpy.zeros(model.nv), model.dof_damping.reshape(model.nv, -1)[:, 0].copy()
        stiffness = model.jnt_stiffness.reshape(model.njnt, -1)[:, 0]
        for j in range(model.njnt):
            if model.jnt_type[j] > 1:
                K[model.jnt_dofadr[j]] = stiffness[j]
        servo = model.joint("slide").dofadr[0]
        K[servo] += 50
        D[servo] += 3
        force = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias - dt * K * v.numpy()
        expected = v + torch.tensor(numpy.linalg.solve(M + numpy.diag(dt * D + dt**2 * K), dt * force))
        step = flying.step((torch.tensor(q), v), u)
        torch.testing.assert_close(step.qvel_next, expected, rtol=1e-11, atol=1e-11)
        mujoco.mj_integratePos(model, q, step.qvel_next.numpy(), dt)
        torch.testing.assert_close(step.qpos_next, torch.tensor(q), rtol=1e-12, atol=1e-12)
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        places = robot.places(step.qpos_next)
        torch.testing.assert_close(places.position, torch.tensor(data.xpos[1:]))
        torch.testing.assert_close(places.rotation.flatten(-2), torch.tensor(data.xmat[1:]))


def test_a_file_falls_on_its_ground():
    pytest.importorskip("mujoco")
    robot = load_mjcf(FILE)
    rollout = robot.simulate(robot.default_state(), torch.zeros(600, 2).double())
    assert (rollout.status == Status.SOLVED).all()
    assert rollout.qvel_next[-1, 6:].abs().max() < 1e-6  # the object rests
    ball = robot.places(rollout.qpos_next[-1])
    corner = ball.position[3] + (ball.rotation[3] @ robot.centers[-9:-1].mT).mT
    assert (corner @ robot.normals[0] - robot.offsets[0]).min().item() == pytest.approx(0, abs=1e-9)


def test_dry_friction_of_a_file_is_that_of_mujoco(tmp_path):
    """Where it slips, MuJoCo's soft friction with a stiff solref is nearly as large. Where it holds, MuJoCo creeps."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><option timestep=".002" integrator="implicitfast"/><default><joint solreffriction=".004 1" '
        'solimpfriction=".9999 .9999 .001"/></default><worldbody><body><joint name="a" axis="0 1 0" frictionloss="2"/>'
        '<geom type="capsule" size=".05" fromto="0 0 0 .4 0 0" mass="1"/><body pos=".4 0 0">'
        '<joint name="b" axis="0 1 0" frictionloss=".3"/><geom type="capsule" size=".04" fromto="0 0 0 .3 0 0" mass=".5"/>'
        "</body></body></worldbody></mujoco>")
    robot, model = load_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    assert robot.friction_loss.tolist() == [2, 0.3]
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    robot = robot.replace(contacts=[], mu=torch.zeros(0).double())
    data = mujoco.MjData(model)
    for v in ([3.0, -4.0], [-2.0, 5.0], [1.0, 1.0]):
        data.qpos[:], data.qvel[:] = [0.3, -0.5], v
        step = robot.step((torch.tensor(data.qpos), torch.tensor(data.qvel)))
        mujoco.mj_step(model, data)
        torch.testing.assert_close(step.qvel_next, torch.tensor(data.qvel), rtol=0, atol=1e-3)
    hanging = numbers(1.4, 0.1)  # nearly straight down: friction holds
    end = robot.simulate((hanging, numbers(0, 0)), rows=100)
    assert (end.qpos_next[-1] - hanging).abs().max() < 1e-14 and (end.joint_friction.abs() <= 0.002 * robot.friction_loss).all()


def test_what_a_file_has_and_is_not_supported_is_named(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    text = FILE.read_text().replace('body name="finger"', 'body name="finger" gravcomp="1"')
    text = text.replace('contype="0" conaffinity="4"', "", 1)
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        load_mjcf(path)
    message = str(error.value)
    assert "gravcomp (finger line 14)" in message and "contact between" in message and "ignore=" in message
    names = message[message.index("ignore=[") + 8:message.index("]")].replace("'", "").split(", ")
    assert load_mjcf(path, ignore=names).nv == 13
    path.write_text("<mujoco><worldbody>")
    with pytest.raises(ValueError, match="cannot be read"):
        load_mjcf(path)


def test_a_contact_that_no_joint_can_move_has_no_impulse():
    """A ball that slides within the ground, whose normal no joint moves along."""
    robot = pendulum(
        joints=[RobotJoint(0, "slide")], axis=[[1.0, 0, 0]], position=[[0, 0, 0.05]], balls=[1], centers=[[0.0, 0, 0]],
        radii=[0.1], contacts=[RobotContact(0, 0)], normals=[[0.0, 0, 1]], offsets=[0.0], mu=[0.5])
    step = robot.step((numbers(0.0), numbers(1.0)), numbers(0.0))
    assert step.status == Status.SOLVED and step.qvel_next.item() == 1 and not step.gamma.any()


def test_a_urdf_is_read(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.urdf"
    path.write_text("""<robot name="arm"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="rod"><inertial><origin xyz="0 0 -.5"/><mass value="1"/>
<inertia ixx=".0833333333333333" iyy=".0833333333333333" izz=".08" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pivot" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/><dynamics damping=".1" friction=".2"/></joint></robot>""")
    floating = load_urdf(path, floating=True, ground=True)
    assert floating.nv == 7 and floating.joints[0].kind == "free" and not floating.contacts
    robot = load_urdf(path)
    assert robot.joint("pivot").number == 0 and robot.damping.tolist() == [0.1] and robot.friction_loss.tolist() == [0.2]
    assert robot.range.tolist() == [[-3, 3]]
    other = pendulum(damping=[0.1], friction_loss=[0.2], dt=robot.dt)
    start = (numbers(0.5), numbers(0.0))
    torch.testing.assert_close(robot.simulate(start, rows=50).qpos_next, other.simulate(start, rows=50).qpos_next)


def loaded(path, text, **options):
    path.write_text(f"<mujoco>{text}</mujoco>")
    return load_mjcf(path, **options)


def test_a_file_places_its_bodies_at_the_references_of_joints(tmp_path):
    """Several joints of a body, with anchors beside its origin; MuJoCo places and accelerates them the same."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    robot = loaded(path, """<option timestep=".01"/><worldbody>
<body pos=".1 .2 1" euler="10 20 30">
  <joint type="slide" axis="1 2 3" ref=".7"/><joint axis="0 1 .5" pos=".1 0 .2" ref="40" range="0 50" limited="true"/>
  <joint axis="1 0 0" pos="0 .3 0"/><joint axis="0 .3 1" pos="-.1 .2 0" ref="-70"/>
  <geom type="box" size=".1 .2 .3" pos=".05 0 0" contype="0"/>
  <body pos="0 0 .4"><joint type="ball" pos=".1 0 0"/><joint type="slide" axis="0 1 1" ref=".2"/>
    <geom size=".1" contype="0"/></body>
</body></worldbody>""")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    torch.testing.assert_close(robot.default_state().qpos, torch.tensor(model.qpos0))
    assert robot.range[1].tolist() == pytest.approx([0, math.radians(50)])
    free = robot.replace(joints=[joint._replace(has_limits=False) for joint in robot.joints])
    for seed in range(3):
        v = normal(model.nv, seed=seed)
        data.qpos[:] = model.qpos0
        mujoco.mj_integratePos(model, data.qpos, normal(model.nv, seed=10 + seed).numpy(), 0.5)
        data.qvel[:] = v.numpy()
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        mujoco.mj_forward(model, data)
        q = torch.tensor(data.qpos)
        places = robot.places(q)
        torch.testing.assert_close(places.position, torch.tensor(data.xpos[1:]))
        torch.testing.assert_close(places.rotation.flatten(-2), torch.tensor(data.xmat[1:]))
        torch.testing.assert_close((free.step((q, v)).qvel_next - v) / robot.dt, torch.tensor(data.qacc))


FALLING = """<option timestep=".01"{attribute}><flag {flags}/></option><worldbody>
<body><joint name="lift" type="slide" axis="0 0 1" limited="true" range="0 1" stiffness="20" springref=".1" damping="3"/>
  <geom size=".1" mass="1"/></body>
<body name="ground" pos="0 0 -.1"><geom type="plane" size="1 1 1"/></body>
</worldbody><actuator><motor joint="lift" ctrlrange="-1 1" ctrllimited="true" group="3"/></actuator>"""


@pytest.mark.parametrize("off, speed", [
    ("", 0.0),
    ("limit", 0.0),
    ("contact", 0.0),
    ("limit contact", -(9.81 - 2 - 1) / 1.032),
    ("constraint", -(9.81 - 2 - 1) / 1.032),
    ("constraint gravity", 3 / 1.032),
    ("constraint spring", -(9.81 - 1) / 1.03),
    ("constraint damper", -(9.81 - 2 - 1) / 1.002),
    ("constraint clampctrl", -(9.81 - 2 - 5) / 1.032),
    ("constraint actuation", -(9.81 - 2) / 1.032),
    ("constraint group", -(9.81 - 2) / 1.032),
])
def test_what_the_options_of_a_file_switch_off_is_off(tmp_path, off, speed):
    """A weight on the ground, at the limit of its joint, with a control of 5 N that is clamped to 1 N."""
    pytest.importorskip("mujoco")
    flags = " ".join(f'{name}="disable"' for name in off.split() if name != "group")
    attribute = ' actuatorgroupdisable="3"' if "group" in off else ""
    robot = loaded(tmp_path / "robot.xml", FALLING.format(attribute=attribute, flags=flags))
    step = robot.step(robot.default_state(), numbers(5.0))
    assert step.qvel_next.item() == pytest.approx(0.01 * speed, abs=1e-12)


def test_a_plane_is_where_its_fixed_body_is(tmp_path):
    pytest.importorskip("mujoco")
    robot = loaded(tmp_path / "robot.xml", """<worldbody><body pos="0 0 1" euler="0 90 0"><body pos=".5 0 0" euler="0 -90 0">
<geom type="plane" size="1 1 1"/></body></body><body pos="0 0 3"><freejoint/><geom size=".1"/></body></worldbody>""")
    rollout = robot.simulate(robot.default_state(), rows=1000)
    assert rollout.qpos_next[-1, 2].item() == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize("joint, geom, more, name", [
    ('stiffness="1" springyield=".1"', "", "", "springyield"),
    ("", 'adhesion="2"', "", "adhesion"),
    ("", 'surfacevel="1 0 0"', "", "surfacevel"),
    ("", "", '<actuator><motor joint="a" armature=".1"/></actuator>', "armature or damping of an actuator"),
    ("", "", '<option><flag override="enable"/></option>', "override of contacts"),
    ("", "", '<contact><pair geom1="b" geom2="ground" friction="1 .5"/></contact>', "two coefficients of friction"),
])
def test_what_would_change_the_motion_is_named(tmp_path, joint, geom, more, name):
    pytest.importorskip("mujoco")
    text = f"""<worldbody><geom name="ground" type="plane" size="1 1 1"/><body><joint name="a" {joint}/>
<geom name="b" size=".1" {geom}/></body></worldbody>{more}"""
    with pytest.raises(ValueError, match=f"not supported: {name}.*ignore="):
        loaded(tmp_path / "robot.xml", text)
    assert loaded(tmp_path / "robot.xml", text, ignore=[name]).nv == 1


def test_certificates_are_those_of_the_problem_of_each_step():
    """Of a robot that stands on the ground, beside friction_certificate of a problem that is posed here."""
    rest = block_on(math.radians(20))
    found = rest.certify(rest.default_state(), rows=20)
    assert found.unsolved == 0 and found.residual.shape == (20,) and found.residual.max() < 1e-9
    assert found.gap.abs().max() < 1e-9
    sliding = block_on(math.radians(20), mu=[0.2] * 8)
    certificate = sliding.certify(sliding.default_state(), rows=50)
    assert certificate.unsolved == 0 and certificate.residual.max() < 1e-9
    # A ball that falls, touches in the last rows, and does not bounce.
    ball = block_on(0.0, position=[[0, 0, 0.15]], balls=[1], centers=[[0.0, 0, 0]], radii=[0.1], contacts=[RobotContact(0, 0)],
                    mu=[0.5])
    start = RobotState(ball.default_state().qpos, numbers(0, 0, 0, 0, 20, 0))
    states, certificate = ball.simulate(start, rows=60), ball.certify(start, rows=60)
    gaps = torch.cat([numbers(0.15), states.qpos_next[:-1, 2]]) - 0.1
    torch.testing.assert_close(certificate.gap, gaps, rtol=0, atol=1e-12)
    touches = states.gamma[:, 2] > 0
    assert touches.any() and not touches.all()
    # In the air the margin is the distance of u_n = v_n + gap / dt from 0, relative to the larger of u_n and the speed of the
    # point below, 2 m/s; it is infinite where both speeds together are too low to close the gap.
    u = states.qvel_next[:, 2] + gaps / ball.dt
    is_near = gaps / ball.dt <= states.qvel_next[:, 2].abs() + 2
    expected = torch.where(is_near, u / u.clamp(min=2), math.inf)
    torch.testing.assert_close(certificate.margin[~touches], expected[~touches], rtol=1e-9, atol=1e-9)
    assert (is_near & ~touches).any() and not is_near.all()
    assert certificate.kinked == 0 and certificate.residual.max() < 1e-12
    of_substeps = ball.certify(start, rows=30, substeps=2)
    torch.testing.assert_close(of_substeps.gap, gaps.view(30, 2).amin(-1), rtol=0, atol=1e-12)
    heavy = ball.replace(mass=[[1.0], [-1.0]]).certify(ball.default_state(), rows=3)
    assert heavy.unsolved.tolist() == [0, 3] and heavy.residual[:, 1].isnan().all() and heavy.residual[:, 0].max() < 1e-12
    low = block_on(0.0, position=[[0, 0, -1.0]], normals=[[0.0, 0, 1], [0.0, 0, -1]], offsets=[0.0, 0.5], mu=[0.5] * 2, balls=[1],
                   centers=[[0.0, 0, 0]], radii=[0.1], contacts=[RobotContact(0, 0), RobotContact(0, 1)])
    squeezed = low.certify(low.default_state(), rows=2)  # between planes that face each other and overlap
    assert squeezed.unsolved == 2 and squeezed.gap[0].item() == pytest.approx(-1.1) and squeezed.gap[1].isnan()
    assert squeezed.residual.isnan().all()
    # A row at its bound, and one that holds: the margin is the distance to the bound.
    for loss, v in ((10.0, 0.0), (0.5, 3.0)):
        robot = pendulum(friction_loss=[loss])
        at = (numbers(0.3), numbers(v))
        step, certificate = robot.step(at), robot.certify(at, rows=1)
        compliance = 3.0
        free = v - robot.dt * 3 * 0.5 * G * math.sin(0.3)
        inside = compliance * (robot.dt * loss - step.joint_friction.abs().item())
        expected = inside / abs(free) if v == 0 else step.qvel_next.item() / abs(free)
        assert certificate.margin.item() == pytest.approx(expected, rel=1e-9)
    for options in ({"formulation": "polyhedral"}, {"bounce_threshold": 0.1}):
        with pytest.raises(RuntimeError, match="certified with the formulation exact_cone and without bounce_threshold"):
            ball.certify(ball.default_state(), rows=1, **options)


def test_keyframes_and_shapes_of_a_file(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text("""<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 3"/></asset><worldbody>
<geom type="plane" size="1 1 1"/><geom type="cylinder" size=".1 .2" pos="3 0 0" contype="0" conaffinity="0"/>
<body name="a" pos="0 0 1"><freejoint/><geom type="capsule" size=".1" fromto="0 0 0 1 0 0"/>
<geom type="mesh" mesh="m" contype="0" conaffinity="0"/><geom size=".3" group="3"/>
<body><joint name="hinge" ref="10"/><geom type="ellipsoid" size=".1 .2 .3" contype="0" conaffinity="0"/></body></body>
</worldbody><actuator><motor joint="hinge"/></actuator>
<keyframe><key name="home" qpos="1 2 3 0 1 0 0 .5" qvel="1 2 3 4 5 6 7" ctrl=".3"/><key time="1"/></keyframe></mujoco>""")
    robot, model = load_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    home = robot.keyframe("home")
    assert home.state.qpos.tolist() == [1, 2, 3, 0, 1, 0, 0, 0.5] and home.state.qvel.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert home.control.tolist() == [0.3] and len(robot.keyframes) == 2
    torch.testing.assert_close(robot.keyframes[1].state.qpos, robot.default_state().qpos)
    assert [(shape.body, shape.kind) for shape in robot.shapes] == [
        (-1, "cylinder"), (robot.body("a"), "capsule"), (robot.body("a"), "box"), (robot.body("a") + 1, "ellipsoid")]
    cylinder, capsule, box, _ = robot.shapes
    assert cylinder.size[:2] == (0.1, 0.2) and cylinder.center == (3, 0, 0)
    assert capsule.size[0] == 0.1 and capsule.size[1] == pytest.approx(0.5) and capsule.center == pytest.approx((0.5, 0, 0))
    # The box is around the mesh, whose corners MuJoCo has in axes of its own.
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    turn = torch.ops.lcp._rotation_matrix(numbers(*box.orientation))
    corners = (numbers(0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3).view(4, 3) - numbers(*box.center)) @ turn
    torch.testing.assert_close(corners.abs().amax(0), numbers(*box.size), rtol=1e-6, atol=1e-6)
    robot.save(tmp_path / "robot.json")
    again = load_robot(tmp_path / "robot.json")
    assert again.shapes == robot.shapes
    for a, b in zip(again.keyframes, robot.keyframes, strict=True):
        assert a.name == b.name and all(torch.equal(x, y) for x, y in zip(a[1:], b[1:], strict=True))
    with pytest.raises(KeyError, match="the robot has no keyframe away; it has home, "):
        robot.keyframe("away")
    with pytest.raises(ValueError, match=r"qpos of the keyframe up must be \[1\]; got \[2\]"):
        pendulum(keyframes=[RobotKeyframe("up", [0.0, 1.0], [0.0], [0.0])])
    with pytest.raises(ValueError, match="the kind of a shape must be ball, capsule, cylinder, box or ellipsoid; got cone"):
        pendulum(shapes=[RobotShape(0, "cone", (1.0, 1.0, 1.0))])


def assert_same(one, other):
    """Two robots have the same fields, and the second one qpos0."""
    for a, b in zip(one.default_state(), other.default_state(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(one._numbers, other._numbers, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)
    for field in dataclasses.fields(Robot):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.init and field.name != "keyframes" and not isinstance(b, torch.Tensor):
            assert list(a) == list(b) if isinstance(a, (list, tuple)) else a == b, field.name


def test_a_saved_robot_is_the_same(tmp_path):
    path = tmp_path / "robot.json"
    batch = touching().replace(mu=torch.rand(3, 2), body_names=["a \"Fuß\"", "\n𝄞"], gear=[[math.inf, 1e-310]])
    batch.mass.requires_grad_()
    for robot in (pendulum(balls=[0]), batch, ball_beside_box(body_names=["ball", "box"]),
                  touching(**COUPLED, friction_loss=LOSSES, body_names=["a", "b"])):
        robot.save(path)
        loaded = load_robot(path)
        assert_same(robot, loaded)
        assert not loaded.mass.requires_grad
    assert json.loads(path.read_text())["version"] == 1
    pytest.importorskip("mujoco")
    robot = load_mjcf(FILE)
    robot.save(str(path))
    assert_same(robot, load_robot(str(path)))


def test_a_robot_that_cannot_be_written_leaves_the_file(tmp_path):
    path = tmp_path / "robot.json"
    pendulum().save(path)
    before = path.read_bytes()
    for change, message in (({"mass": torch.ones(1).half()}, "mass must be float32 or float64; got torch.float16"),
                            ({"body_names": ["\ud800"]}, "surrogates not allowed")):
        with pytest.raises(ValueError, match=message):
            pendulum(**change).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError):
        pendulum().save(tmp_path / "nowhere" / "robot.json")
    with pytest.raises(ValueError, match="nowhere.json cannot be read"):
        load_robot(tmp_path / "nowhere.json")
    path.write_text(path.read_text().replace("hinge", "screw"))
    with pytest.raises(ValueError, match="robot.json line 7: kind must be free, ball, slide, hinge; got screw"):
        load_robot(path)


def test_the_command_converts(tmp_path):
    pytest.importorskip("mujoco")
    convert = lambda *arguments: subprocess.run(
        [sys.executable, "-m", "torchlcp.convert_robot", *arguments], capture_output=True, text=True, timeout=900)
    (tmp_path / "robot.xml").write_text(FILE.read_text())
    assert convert(tmp_path / "robot.xml").returncode == 0
    assert_same(load_mjcf(FILE), load_robot(tmp_path / "robot.json"))
    for arguments, message in (((tmp_path / "no.xml",), "cannot be read"), ((FILE, "--ground"), "--ground are for")):
        result = convert(*arguments)
        assert result.returncode == 1 and message in result.stderr and len(result.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["robot.json", "robot.xml"]


def test_the_robot_of_the_example_in_cpp_is_that_of_its_file():
    """A newer MuJoCo may round differently."""
    pytest.importorskip("mujoco")
    examples = Path(__file__).parents[2] / "examples"
    file, converted = load_mjcf(examples / "arm.xml"), load_robot(examples / "arm.json")
    assert (file.joints, file.actuators, file.contacts) == (converted.joints, converted.actuators, converted.contacts)
    for name in TENSORS:
        torch.testing.assert_close(getattr(file, name), getattr(converted, name))
