"""Loads a learned model and steps it: python load_model.py libtorchlcp.so model.pt"""
import sys

import torch

library, path = sys.argv[1:]
torch.ops.load_library(library)  # brings torch.ops.lcp.solve, which the model calls
model = torch.jit.load(path)

# A number, or a parameter where it was learned. Models that have learned friction in another form have none.
mu = getattr(model, "mu", None)
print(f"{'no mu' if mu is None else f'mu = {float(mu)}'}, dt = {model.dt} s, mass = {model.mass} kg")
v = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
u = torch.tensor([1.0, 6.0, 0.0], dtype=torch.float64, requires_grad=True)
v_next, force, status = model.step(v, u)
v_next.sum().backward()
for what, *numbers in zip(("sticks", "starts", "slides"), v, u, v_next, force, u.grad):
    print("{}: v = {:.1f} m/s, u = {:.1f} N  ->  {:.4f} m/s, friction {:.4f} N, d v_next / d u = {:.4f}".format(
        what, *(x.item() for x in numbers)))
