"""A simulator of a box that is thrown on the ground, in 60 lines, and a gradient through its impacts.

    python examples/tumbling_box.py build/lib/libtorchlcp.so
"""
import sys

import torch

torch.ops.load_library(sys.argv[1] if sys.argv[1:] else "build/lib/libtorchlcp.so")
numbers = lambda *x: torch.tensor(x, dtype=torch.float64)
dt, mass, gravity, restitution = 0.005, 1.0, numbers(0, 0, -9.81), 0.3
size = numbers(0.1, 0.12, 0.2)
inertia = mass / 12 * ((size**2).sum() - size**2)
corners = size / 2 * torch.cartesian_prod(*3 * [numbers(-1, 1)])
A = torch.block_diag(mass * torch.eye(3), torch.diag(inertia)).double()


def rotation(q):
    w, x, y, z = q / q.norm()
    return torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]).view(3, 3)


def turned(q, theta):
    """q after a turn by theta, in the axes of the body."""
    half = theta / 2
    angle = (half @ half + 1e-30).sqrt()
    s = torch.cat([angle.cos().view(1), half * angle.sin() / angle])
    left = torch.stack([torch.stack([q[0], -q[1], -q[2], -q[3]]), torch.stack([q[1], q[0], -q[3], q[2]]),
                        torch.stack([q[2], q[3], q[0], -q[1]]), torch.stack([q[3], -q[2], q[1], q[0]])])
    return left @ s


def step(x, q, v, omega, mu):
    """One step of position, quaternion, velocity and angular velocity, the last in the axes of the body."""
    R = rotation(q)
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
    nu, _, status, _ = torch.ops.lcp.solve_friction(A, free, J.flatten(0, 1), b.flatten(), mu.expand(8))
    assert status == 0
    return x + dt * nu[:3], turned(q, dt * nu[3:]), nu[:3], nu[3:]


mu = numbers(0.4).requires_grad_()
state = numbers(0, 0, 0.3), numbers(0.9, 0.3, -0.2, 0.1), numbers(1, 0.2, 0), numbers(4, -6, 2)
for _ in range(100):
    state = step(*state, mu[0])
state[0][0].backward()
print(f"after {100 * dt:g} s the box is at {state[0].tolist()}; its x changes by {mu.grad.item():.4g} m for each unit of mu")
