"""Steps a learned model that is a program of torch.export, and trains it on: python load_program.py model.pt2"""
import json
import sys

import torch
import torchlcp  # noqa: F401  # brings torch.ops.lcp.solve, which the model calls

attributes = {"attributes.json": ""}
model = torch.export.load(sys.argv[1], extra_files=attributes).module()
dt = json.loads(attributes["attributes.json"])["dt"]

print(f"dt = {dt} s, parameters: {', '.join(name for name, _ in model.named_parameters())}")
v = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
u = torch.tensor([1.0, 6.0, 0.0], dtype=torch.float64)
v_next, force, status = model(v, u)
for what, *numbers in zip(("sticks", "starts", "slides"), v, u, v_next, force):
    print("{}: v = {:.1f} m/s, u = {:.1f} N  ->  {:.4f} m/s, friction {:.4f} N".format(what, *(x.item() for x in numbers)))
v_next.square().sum().backward()
print("gradients:", {name: parameter.grad is not None for name, parameter in model.named_parameters()})
