"""Modules for the tests of torchlcp.nn."""

import pytest
import torch

from torchlcp.nn import DirectModel, LcpNetwork, StateMap, StructuredMatrix, TraditionalModel

MAKERS = {
    "state map": lambda: StateMap(3, hidden=4, velocity_scale=2.0, force_scale=5.0),
    "matrix": lambda: StructuredMatrix(3, rank=2, basis="nonnegative"),
    "direct": lambda: DirectModel(hidden=3),
    "slack": lambda: DirectModel(forces="slack", bias=False, force_scale=2.0),
    "friction": lambda: TraditionalModel("friction", gravity=9.81, dt=0.1),
    "rows": lambda: TraditionalModel("rows", monotone=True),
    "relu pairs": lambda: TraditionalModel("rows", relu_pairs=True),
    "affine matrix": lambda: TraditionalModel("rows", affine_matrix=True),
    "structured": lambda: TraditionalModel("structured", basis="diagonal"),
    "networks": lambda: TraditionalModel("networks", hidden=2, force_unit=3.0),
    "LCP network": lambda: LcpNetwork(2, 1, 2, f="affine", G="network", q="network", hidden=3),
}
PARAMETERS = {  # as include/lcp/nn names them
    "state map": ["affine.weight", "affine.bias", "hidden_in.weight", "hidden_in.bias", "hidden_out.weight"],
    "matrix": ["phi", "beta", "alpha"],
    "slack": ["f.affine.weight", "G.affine.weight", "G.affine.bias"],
    "friction": ["mu"],
    "rows": ["learned"],
    "relu pairs": ["learned", "negative"],
    "affine matrix": ["learned", "slopes"],
    "structured": ["learned", "matrix.phi", "matrix.beta", "matrix.alpha"],
    "LCP network": ["M", "f_bias", "f_weight", "G_bias", "G_weight", "G_hidden_weight", "G_hidden_bias", "G_out_weight",
                    "q_bias", "q_weight", "q_hidden_weight", "q_hidden_bias", "q_out_weight"],
}
BLOCKS = [name for name in MAKERS if name not in ("state map", "matrix", "LCP network")]
each = pytest.mark.parametrize("name", MAKERS)


def inputs(count=20):
    v, u = torch.randn(2, count, dtype=torch.float64)
    return v, 3 * u


def value_of(module, v, u):
    """What forward returns for some arguments."""
    if isinstance(module, StructuredMatrix):
        return module()
    if isinstance(module, LcpNetwork):
        return module(torch.stack([v, u], -1))
    return module(v, u, torch.stack([v.abs(), u.abs()], -1)) if isinstance(module, DirectModel) else module(v, u)


def solvable(name):
    """The module in float64, so that every LCP has a solution."""
    module = MAKERS[name]().double()
    if isinstance(module, DirectModel):  # near a true block
        with torch.no_grad():
            c = module.dt / module.mass / module.G.velocity_scale
            module.f.affine.weight.copy_(torch.tensor([[1, c], [-1, -c]]))
            module.G.affine.weight.mul_(0.01)
            true = [c, 0, 0, c] if module.forces == "slack" else [0, -c, -c, 0]
            module.G.affine.bias.copy_(torch.tensor(true))
    elif isinstance(module, LcpNetwork):
        module.set_theta(module.random(1, torch.Generator().manual_seed(0))[0])
    elif name in ("rows", "relu pairs", "affine matrix"):
        rows = TraditionalModel.true_rows(1.5)
        rows[:2, :2] *= torch.tensor([[1.2, 1], [1, 1.2]])  # away from where monotone rows have a kink
        with torch.no_grad():
            if name == "relu pairs":
                module.negative.copy_((-rows[:, :3]).relu() + 0.3)
                rows[:, :3] = rows[:, :3].relu() + 0.3
            module.learned.copy_(rows)
            if name == "affine matrix":
                module.slopes.mul_(0.02)
    elif isinstance(module, TraditionalModel) and name != "friction":
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        phi, beta = torch.tensor([1.0, -1, 0]), torch.tensor([0.0, 1, 1])
        with torch.no_grad():
            if name == "structured":
                module.matrix.phi.add_(phi.unsqueeze(-1))
                module.matrix.beta.add_(beta)
                module.learned.add_(TraditionalModel.true_rows(1.5)[:, 3:])
            else:
                module.phi.affine.bias.add_(phi)
                module.beta.affine.bias.add_(beta)
                module.f.affine.weight.add_(torch.tensor([[1.0, 1], [-1, -1], [0, 0]]))
                module.f.affine.bias.add_(torch.tensor([0.0, 0, 1.5]))
    return module


def network_with(theta):
    network = MAKERS["LCP network"]()
    network.set_theta(theta)
    return network
