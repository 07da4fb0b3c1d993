"""learning_basin.png: the losses of learning mu from motion, and their derivatives.  learning_basin.py LIBRARY OUTPUT.png"""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "training" / "figures"))
from style import BLUE, GREY, INK, ORANGE, PALE, TEAL, plt  # noqa: E402

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)

# Gentle steps of a block with dt = m = mu = g = 1, all to the right.
v, u = 0.2 + 0.6 * torch.rand(400), 0.2 + 0.8 * torch.rand(400)
v_next = (v + u - 1).clamp(min=0)
G = torch.tensor([[1.0, -1, 1], [-1, 1, 1], [-1, -1, 0]])


def f(mu):
    return torch.stack([v + u, -v - u, mu.expand_as(v)], -1)


def loop(mu, kappa=0.0):
    """The loss through the solution of the LCP, and its derivative in mu."""
    mu = torch.tensor(mu, requires_grad=True)
    z, _, _ = torch.ops.lcp.solve(G, f(mu), kappa=kappa)
    loss = (v + u + z[:, 0] - z[:, 1] - v_next).square().mean()
    return loss.item(), torch.autograd.grad(loss, mu)[0].item()


def bilevel(mu, a1, a2, a3):
    """The bilevel loss, from the optimality conditions of its inner problem, and its derivative in mu."""
    B, one, zero = torch.tensor([[1.0, -1, 0]]), torch.eye(3), torch.zeros(3, 3)
    M = torch.cat([torch.cat([2 * a1 * B.T @ B + a2 * (G + G.T), zero, -G.T], 1), torch.cat([zero, zero, -one], 1),
                   torch.cat([G, one, zero], 1)])
    q = f(torch.tensor(mu))
    beta = (v_next - v - u)[:, None]
    z, _, _ = torch.ops.lcp.solve(M, torch.cat([a2 * q - 2 * a1 * beta * B, torch.full_like(q, a3), q], -1))
    force, slack, multiplier = z.split(3, -1)
    value = (a1 * (beta - force @ B.T).square().sum(-1) + a2 * (force * (force @ G.T + q)).sum(-1) + a3 * slack.sum(-1))
    return value.mean().item(), (a2 * force - multiplier)[:, 2].mean().item()


curves = [
    ("through the LCP", loop, GREY, "-"),
    ("the same, smoothed, kappa = .01", lambda mu: loop(mu, 0.01), TEAL, "-"),
    ("bilevel, a2 / a1 = 1", lambda mu: bilevel(mu, 1, 1, 10), BLUE, "-"),
    ("bilevel, a2 / a1 = .1", lambda mu: bilevel(mu, 1, 0.1, 10), ORANGE, "-"),
    ("bilevel, (1, 1, 1): a3 too small", lambda mu: bilevel(mu, 1, 1, 1), INK, ":"),
]
mus = torch.linspace(0.2, 5, 161).tolist()
figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.2), constrained_layout=True)
for label, loss, color, style in curves:
    values, gradients = zip(*map(loss, mus))
    left.plot(mus, values, color=color, ls=style, label=label)
    right.plot(mus, gradients, color=color, ls=style)
for axes in (left, right):
    axes.axvline(1, color=PALE, lw=1, zorder=0)
    axes.set_xlabel("friction coefficient that is tried; the block has 1")
left.set_ylabel("loss")
left.set_ylim(-0.02, 0.12)
right.set_ylabel("its derivative")
right.set_yscale("symlog", linthresh=1e-3)
figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncol=3, fontsize=8)
figure.savefig(sys.argv[2], dpi=150)
