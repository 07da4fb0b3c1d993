"""An arm of seven joints pushes a box to a mark: what its servos aim at is found by gradients through contact.

    pip install mujoco-core
    python examples/arm_pushes.py
"""

import pathlib

import torch

from torchlcp.physics import load_mjcf

torch.set_default_dtype(torch.float64)
robot = load_mjcf(pathlib.Path(__file__).parent / "arm.xml")
box, tool = robot.joint("box").qpos, robot.body("link7")
start = robot.default_state()
mark = torch.tensor([0.80, 0.10])


def tool_of(joints):
    """Where the tool is, m."""
    places = robot.places(torch.cat([joints, start.qpos[box]]))
    return places.position[tool] + places.rotation[tool] @ torch.tensor([0.0, 0.0, 0.045])


def reach(joints, point):
    """The joints that bring the tool to a point, by Newton's method from these."""
    for _ in range(20):
        J = torch.func.jacrev(tool_of)(joints)
        joints = joints + torch.linalg.lstsq(J, point - tool_of(joints), driver="gelsd").solution
    return joints


bent = torch.tensor([0.0, 0.9, 0.0, -1.4, 0.0, 0.8, 0.0])
before = reach(bent, torch.tensor([0.50, 0.0, 0.06]))
after = reach(before, torch.tensor([0.60, 0.0, 0.06])).requires_grad_()
start = start._replace(qpos=torch.cat([before, start.qpos[box]]))
share = torch.linspace(0, 1, 200).clamp(max=0.5).mul(2).unsqueeze(-1)  # half a second of motion, and half of rest
optimizer = torch.optim.Adam([after], lr=0.02)
for iteration in range(200):
    rollout = robot.simulate(start, before + share * (after - before))
    end = rollout.qpos_next[-1, box][:2]
    loss = (end - mark).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 10 == 0 or loss < 1e-6:
        print(f"iteration {iteration}: the box ends {1e3 * loss.sqrt().item():.1f} mm from the mark")
    if loss < 1e-6:
        break
