"""A buck converter, and the derivatives of its output in duty cycle and inductance, through every step.

    python examples/buck_converter.py build/lib/libtorchlcp.so

Its diode is ideal: 0 <= current, perpendicular to the voltage in reverse >= 0. Each step of the implicit Euler method is
a mixed linear complementarity problem of node voltage u, inductor current i and output v, and of the diode's current z.
The current runs dry in each period, so that the output is not just the duty cycle times the input.
"""
import sys

import torch

torch.ops.load_library(sys.argv[1] if sys.argv[1:] else "build/lib/libtorchlcp.so")
double = {"dtype": torch.float64}
V_IN, DROP, R_ON, C, LOAD, PERIOD, STEPS = 12.0, 0.4, 0.05, 1e-6, 100.0, 1e-5, 25  # V, V, ohm, F, ohm, s; of each phase


def step(i, v, closed, dt, L):
    """The currents [b] and voltages [b] one step later."""
    one, none = torch.ones_like(i), torch.zeros_like(i)
    g = one / R_ON if closed else none
    A = torch.stack([torch.stack(row, -1) for row in ((g, one, none),             # the currents at the switch
                                                      (-one, L / dt, one),        # L di/dt = u - v
                                                      (none, -one, C / dt + 1 / LOAD))], -2)  # C dv/dt = i - v / load
    p = torch.stack([-g * V_IN, -L / dt * i, -C / dt * v], -1)
    B = torch.tensor([[-1.0], [0], [0]], **double)
    diode = torch.tensor([[1.0, 0, 0]], **double)
    x, z, _, status = torch.ops.lcp.solve_mixed(A, B, diode, torch.zeros(1, 1, **double), p, torch.tensor([DROP], **double))
    assert not status.any()
    return x[:, 1], x[:, 2]


def mean_output(duty, L, periods=60):
    """The mean of the output over the last period, V. duty, L: [b]. The steps end where the switch opens and closes."""
    i, v = torch.zeros_like(duty), torch.full_like(duty, 8.0)
    for _ in range(periods):
        mean = 0
        for closed, time in ((True, duty * PERIOD), (False, (1 - duty) * PERIOD)):
            for _ in range(STEPS):
                i, v = step(i, v, closed, time / STEPS, L)
                mean = mean + v * time / STEPS / PERIOD
    return mean


duty, L = torch.tensor([0.4], **double).requires_grad_(), torch.tensor([47e-6], **double).requires_grad_()
output = mean_output(duty, L)
output.sum().backward()
h, k = 1e-5, 1e-10
around = mean_output(0.4 + torch.tensor([h, -h, 0, 0], **double), 47e-6 + torch.tensor([0, 0, k, -k], **double))
print(f"output {output.item():.4f} V")
print(f"in the duty cycle: {duty.grad.item():.5f} V, by finite differences {(around[0] - around[1]) / 2 / h:.5f} V")
differences = (around[2] - around[3]) / 2 / k / 1e6
print(f"in the inductance: {L.grad.item() / 1e6:.6f} V/uH, by finite differences {differences:.6f} V/uH")
