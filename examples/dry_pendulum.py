"""Learns the dry friction in a pendulum's joint from a track of its angle; dry_pendulum.cpp has the system.

    python examples/dry_pendulum.py
"""

import pathlib

import torch

import torchlcp

torchlcp.load_steps(pathlib.Path(__file__).with_name("dry_pendulum.cpp"))  # compiles it, once
pendulum = torchlcp.Step("example::dry_pendulum")

# The track: 3 s of a pendulum that starts from 1 rad, with an error of 1 mrad.
truth = {"inertia": 1.0, "weight": 10.0, "friction": 0.5, "dt": 0.01}
start, torque = [1.0, 0.0], torch.zeros(300, 1, dtype=torch.float64)
track = pendulum.simulate(truth, start, torque).x_next[:, 0]
track = track + 1e-3 * torch.randn(300, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def residuals(parameters):
    """The errors of the angles, relative to that of the track, for weight and friction."""
    weight, friction = parameters.unbind(-1)
    rollout = pendulum.simulate(truth | {"weight": weight, "friction": friction}, start, torque)
    return (rollout.x_next[..., 0] - track) / 1e-3


fit = torchlcp.identification.least_squares(residuals, [[9.0, 0.2]])
weight, friction = fit.theta[0].tolist()
print(f"weight {weight:.3f} N m (truth 10), friction {friction:.4f} N m (truth 0.5)")
