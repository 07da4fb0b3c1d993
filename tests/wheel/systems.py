"""Systems for the tests of torchlcp.physics."""

import pytest
import torch

from torchlcp.physics import (
    CompliantBlock, CompliantGround, CompliantParticle, FallingBlock, Plane, PlanarBlock, PointMass, RigidBody, RigidScene,
    RigidState, SlidingBlock, Tripod,
)

G = 9.81


def numbers(*x):
    return torch.tensor(x, dtype=torch.float64)


def leaf(*x):
    return numbers(*x).squeeze(0).requires_grad_() if len(x) == 1 else numbers(*x).requires_grad_()


SLIDING = SlidingBlock(mass=2.0, dt=0.1, mu=0.3, gravity=G)
FALLING = FallingBlock(mass=2.0, dt=0.1, gravity=G)
PLANAR = PlanarBlock(mass=2.0, dt=0.1, mu=0.3, gravity=G)
POINT = PointMass(mass=2.0, dt=0.1, mu=0.3, gravity=G)
TRIPOD = Tripod(mass=2.0, inertia=0.01, dt=0.01, mu=0.3, gravity=G)
GROUND = CompliantGround(mu=0.3, stiffness=1e4, dissipation=0.05)
PARTICLE = CompliantParticle(mass=2.0, dt=0.01, gravity=G, ground=GROUND)
BLOCK = CompliantBlock(mass=2.0, width=0.4, height=0.2, dt=0.01, gravity=G, ground=GROUND)
SCENE = RigidScene(
    [RigidBody.ball(2.0, 0.1)], [Plane.inclined()], dt=0.01, mu=0.3, restitution=0.5, stiffness=1e5, dissipation=0.01
)

# Each system with the arguments of a rollout of 3 steps, as simulate takes them, and its names of formulations.
V, U = numbers(0.2, 1.0), numbers(1, -2, 3).unsqueeze(-1).expand(3, 2)
TURNING = (numbers(0, 0, 0.3), numbers(0.5, -0.2, 2.0))
ABOVE, UPON = numbers(0.0, 0.0, 0.02), numbers(0.0, 0.0, -2e-3)
BALL = RigidState.at_rest(numbers(0, 0, 0.1).view(1, 3))._replace(velocity=numbers(3, 0, 0).view(1, 3))
SYSTEMS = {
    "sliding": (SLIDING, (V, U), ("traditional", "mixed", "direct", "forward")),
    "falling": (FALLING, (numbers(1.0, 0.05), numbers(0.0, -1.0), 3), ()),
    "planar": (PLANAR, (numbers(1.0, 0.5), U), ("exact_direction", "fixed_point", "polyhedral")),
    "point mass": (POINT, ((numbers(0, 0.1), numbers(1, -1)), U), ("stewart_trinkle", "belbute_peres")),
    "tripod": (TRIPOD, (TURNING, numbers(0.1, 0, 0.01).expand(3, 3)), ()),
    "particle": (PARTICLE, ((ABOVE, numbers(1, 0.5, -3)), numbers(1, 2, 0).expand(3, 3)), ()),
    "block": (BLOCK, ((numbers(0, 0.1, 0.1), numbers(1, -1, 0)), numbers(1, 0, 0.1).expand(3, 3)), ()),
    "scene": (SCENE, (BALL, torch.zeros(3, 1, 6).double()), ("exact_cone", "polyhedral")),
}
each = pytest.mark.parametrize("name", SYSTEMS)
formulations = [(name, {"formulation": f}) for name, (*_, names) in SYSTEMS.items() for f in names]
formulations += [(name, {}) for name, (*_, names) in SYSTEMS.items() if not names]
formulations += [("point mass", {"stabilization": "velocity"}), ("planar", {"formulation": "fixed_point", "relaxed": True})]
formulations += [("scene", {"formulation": "compliant", "substeps": 2})]
each_formulation = pytest.mark.parametrize("name, options", formulations, ids=str)

# What has no derivative; and of a block that sticks z, with the slack velocity in it, is not unique.
WITHOUT_DERIVATIVE = {"z", "slip", "residual", "status", "iterations", "passes", "converged"}
