"""A simulator of a box that is thrown on the ground, in 45 lines, and a gradient through its impacts.

    python examples/tumbling_box.py
"""
import torch
import torchlcp
from torchlcp.physics import Plane, RigidBody, RigidScene, RigidState, rotation_matrix, turned

numbers = lambda *x: torch.tensor(x, dtype=torch.float64)
dt, gravity, restitution = 0.005, numbers(0, 0, -9.81), 0.3
box = RigidBody.box(mass=1.0, size=(0.1, 0.12, 0.2))
corners, inertia = box.centers, box.inertia.diagonal()
A = torch.block_diag(box.mass * torch.eye(3), box.inertia)


def step(x, q, v, omega, mu):
    """One step of position, quaternion, velocity and angular velocity, the last in the axes of the body."""
    R = rotation_matrix(q)
    torque = torch.linalg.cross(inertia * omega, omega)
    free = torch.cat([v + dt * gravity, omega + dt * torque / inertia])
    # The velocity of a corner r is v + R (omega x r); along the axes e of the world, J = [e, r x R'e].
    turning = torch.linalg.cross(corners.unsqueeze(1).expand(8, 3, 3), R.unsqueeze(0).expand(8, 3, 3))
    J = torch.cat([torch.eye(3).double().expand(8, 3, 3), turning], -1)
    gap = (x + corners @ R.T)[:, 2]
    speed = J[:, 2] @ free
    impact = (gap + dt * speed < 0) & (speed < -2 * dt * 9.81)
    b = torch.zeros(8, 3, dtype=torch.float64)
    b[:, 2] = torch.where(impact, restitution * speed, gap / dt)
    nu, _, status, _ = torchlcp.solve_friction(A, free, J.flatten(0, 1), b.flatten(), mu.expand(8))
    assert status == torchlcp.Status.SOLVED
    return x + dt * nu[:3], turned(q, dt * nu[3:]), nu[:3], nu[3:]


mu = numbers(0.4).requires_grad_()
start = state = numbers(0, 0, 0.3), numbers(0.9, 0.3, -0.2, 0.1), numbers(1, 0.2, 0), numbers(4, -6, 2)
for _ in range(100):
    state = step(*state, mu[0])
state[0][0].backward()
print(f"after {100 * dt:g} s the box is at {state[0].tolist()}; its x changes by {mu.grad.item():.4g} m for each unit of mu")

scene = RigidScene([box], [Plane.inclined()], dt=dt, mu=0.4, restitution=restitution)  # the same, for any bodies
rollout = scene.simulate(RigidState(*(x.unsqueeze(0) for x in start)), torch.zeros(100, 1, 6).double())
distance = (rollout.position_next[-1, 0] - state[0]).norm()
print(f"a RigidScene, which moves bodies up to their impacts, ends {distance:.3f} m from it")
