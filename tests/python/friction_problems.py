"""Problems of rigid contact with friction whose solutions are known."""
import torch

from support import lcp, normal, tensor, times

STATES = ["apart", "slide", "stick"]


def problem(states, *batch, seed=0, n=None):
    """A problem whose contacts are in these states, away from their borders, and its solution (v, gamma), which is chosen
    first: b and v_free follow from it."""
    c = len(states)
    n = n or max(3 * c, 2)
    B = normal(*batch, n, n, seed=seed)
    A = B @ B.mT / n + torch.eye(n, dtype=torch.float64)
    J, v = normal(*batch, 3 * c, n, seed=seed + 1), normal(*batch, n, seed=seed + 2)
    mu = 0.2 + 0.3 * normal(*batch, c, seed=seed + 3).abs().clamp(max=1)
    turn, push = normal(*batch, c, seed=seed + 4), 0.5 + normal(*batch, c, seed=seed + 5).abs()
    table = lambda **of: tensor([of[state] for state in states])
    normal_impulse = push * table(apart=0.0, slide=1.0, stick=1.0)
    friction = mu * normal_impulse * table(apart=0.0, slide=1.0, stick=0.5)
    slip, opening = table(apart=0.7, slide=0.8, stick=0.0), table(apart=0.6, slide=0.0, stick=0.0)
    slip, opening = slip.expand_as(mu), opening.expand_as(mu)
    gamma = torch.stack([-friction * turn.cos(), -friction * turn.sin(), normal_impulse], -1).flatten(-2)
    u = torch.stack([slip * turn.cos(), slip * turn.sin(), opening], -1).flatten(-2)
    return [A, v - torch.linalg.solve(A, times(J.mT, gamma)), J, u - times(J, v), mu], v, gamma


def box_on_ground(v_free, mu=0.5):
    """A cube of 1 kg and half-width .5 on its four lower corners, of which one is redundant."""
    A = torch.diag(tensor([1.0, 1, 1, 1 / 6, 1 / 6, 1 / 6]))
    corners = tensor([[x, y, -0.5] for x in (-0.5, 0.5) for y in (-0.5, 0.5)])
    axes = torch.eye(3, dtype=torch.float64)
    J = torch.cat([torch.cat([axes, torch.linalg.cross(r.expand(3, 3), axes)], 1) for r in corners])
    return [A, tensor(v_free), J, torch.zeros(12, dtype=torch.float64), torch.full((4,), mu, dtype=torch.float64)]


def flat_bodies(count, contacts, seed=0):
    """Bodies that slide and turn on a plane with random supports, of which many carry nothing."""
    points = torch.rand(count, contacts, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.5
    points = torch.cat([points, torch.full((count, contacts, 1), -0.2, dtype=torch.float64)], -1)
    axes = torch.eye(3, dtype=torch.float64).expand(count, contacts, 3, 3)
    turning = torch.linalg.cross(points.unsqueeze(-2).expand_as(axes), axes)
    v_free = 0.1 * normal(count, 6, seed=seed + 1)
    v_free[:, 2] = -0.1
    mu = 0.2 + 0.3 * normal(count, contacts, seed=seed + 2).abs().clamp(max=1)
    A = torch.diag(tensor([1.0, 1, 1, 0.1, 0.1, 0.1]))
    J = torch.cat([axes, turning], -1).flatten(1, 2)
    return [A, v_free, J, torch.zeros(count, 3 * contacts, dtype=torch.float64), mu]


def solve(*arguments, **options):
    return lcp.solve_friction(*arguments, **options)[:2]
