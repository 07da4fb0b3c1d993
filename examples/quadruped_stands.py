"""A quadruped keeps standing when it is pushed, by a linear feedback of its state.

    pip install mujoco-core
    python examples/quadruped_stands.py
"""

import pathlib

import torch

from torchlcp import Feedback
from torchlcp.physics import load_mjcf

torch.set_default_dtype(torch.float64)
robot = load_mjcf(pathlib.Path(__file__).parent / "quadruped.xml")
start, nv, trunk = robot.default_state(), robot.nv, robot.body("trunk")

# The control that holds the pose: the least one whose step ends at rest.
step = robot.linearize(start)
control = -torch.linalg.lstsq(step.B[nv:], step.qvel_next, driver="gelsd", rcond=1e-9).solution

# Four feet that stick leave 6 of the 18 velocities free, and no control moves the feet. Riccati's equation has a solution on
# what the servos reach, which is the range of (B, A B): 6 directions of position and 6 of velocity.
_, _, A, B, _ = robot.linearize(start, control)
reached = torch.linalg.svd(torch.cat([B, A @ B], -1)).U[:, :12]
a, b = reached.mT @ A @ reached, reached.mT @ B
Q = reached.mT @ torch.cat([torch.full((nv,), 100.0), torch.ones(nv)]).diag() @ reached
R = 100 * torch.eye(len(control))
P = Q
for _ in range(1000):
    K = torch.linalg.solve(R + b.mT @ P @ b, b.mT @ P @ a)
    P = Q + a.mT @ P @ (a - b @ K)

# Eight sides at once: each pushes the trunk with 50 N for 0.1 s.
rows, angles = 3750, torch.arange(8) * torch.pi / 4
forces = torch.zeros(rows, 8, len(robot.parents), 6)
forces[:25, :, trunk, 0], forces[:25, :, trunk, 1] = 50 * angles.cos(), 50 * angles.sin()
for name, feedback in (("servos alone", None), ("with feedback", Feedback(K @ reached.mT, start))):
    rollout = robot.simulate(start, control.expand(rows, 1, -1), forces=forces, feedback=feedback)
    assert (rollout.status == 0).all()
    height, speed = rollout.qpos_next[-1, :, 2], rollout.qvel_next[-1].abs().max()
    standing = height > 0.3
    print(f"{name}: after {rows * robot.dt:.0f} s it stands in {standing.sum()} of 8 cases; "
          f"the trunk is {height.min():.3f} m high at least, and the largest speed is {speed:.0e}")
assert standing.all() and speed < 1e-11
