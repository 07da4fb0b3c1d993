"""gradients.png: what a tie is, and what each choice of gradient does there.  gradients.py LIBRARY OUTPUT.png"""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "training" / "figures"))
from style import BLUE, GREY, ORANGE, plt  # noqa: E402

torch.ops.load_library(sys.argv[1])
solve = torch.ops.lcp.solve


def derivative(q, **options):
    """dz/dq of the 1 x 1 problem with M = 2."""
    q = q.clone().requires_grad_()
    z, _, _ = solve(torch.full((1, 1), 2.0, dtype=q.dtype), q[:, None], **options)
    return torch.autograd.grad(z.sum(), q)[0]


def block(mu, kappa):
    """The velocity of a sliding block after a step, v* = 1 m/s, as friction would have it, and its derivative in mu."""
    mu = mu.clone().requires_grad_()
    M = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, 0.0]], dtype=mu.dtype)
    one = torch.ones_like(mu)
    z, _, _ = solve(M, torch.stack([one, -one, mu], -1), kappa=kappa)
    v = one + z[:, 0] - z[:, 1]
    return v.detach(), torch.autograd.grad(v.sum(), mu)[0]


q = torch.linspace(-1, 1, 401, dtype=torch.float64)
tie = torch.zeros(1, dtype=torch.float64)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2), constrained_layout=True)

left.plot(q, (-q / 2).clamp(min=0), color=BLUE, label="z")
left.plot(q, q.clamp(min=0), color=ORANGE, label="w")
left.plot(0, 0, "o", color=GREY, label="tie: z = w = 0")
left.set_xlabel("q")
left.set_title("w = 2 z + q")
left.legend()

for mark, ties in (("v", "active"), ("D", "midpoint"), ("^", "inactive")):
    middle.plot(0, derivative(tie, ties=ties), mark, ms=6, color=GREY, label=f"at the tie: {ties}", zorder=3)
middle.plot(q[q < 0], derivative(q[q < 0]), color=BLUE, label="elsewhere")
middle.plot(q[q > 0], derivative(q[q > 0]), color=BLUE)
for kappa, style in ((0.1, "--"), (0.01, ":")):
    middle.plot(q, derivative(q, kappa=kappa), style, color=ORANGE, label=f"kappa = {kappa}")
middle.set_xlabel("q")
middle.set_title("dz/dq")
middle.legend(fontsize=7)

mu = torch.linspace(0.5, 2, 301, dtype=torch.float64)
v, exact = block(mu, 0.0)
right.plot(mu, v, color=GREY, label="velocity")
right.plot(mu, exact, color=BLUE, label="its derivative in mu")
for kappa, style in ((0.1, "--"), (0.01, ":")):
    right.plot(mu, block(mu, kappa)[1], style, color=ORANGE, label=f"kappa = {kappa}")
right.set_xlabel("mu; the block sticks beyond 1")
right.set_title("a block that sticks")
right.legend(fontsize=7)

figure.savefig(sys.argv[2], dpi=150)
