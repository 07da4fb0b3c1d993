"""A sliding block learned from known friction forces, as an LCP that can be stepped."""

import math
import os
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchlcp.nn._state_map import StateMap

__all__ = ["DirectModel", "ModelStep"]


class ModelStep(NamedTuple):
    """v_next [...], m/s, the friction force [...], N, and status [...], int8, the values of torchlcp.Status."""

    v_next: Tensor
    force: Tensor
    status: Tensor


class DirectModel(torch.nn.Module):
    """The direct formulation of a sliding block with learned f [2] and G [2, 2].

        x_next = f(v, u) + G(v, u) p,   x = (v+, v-),   p = (lambda+, lambda-)   or   p = F e - (lambda-, lambda+)

    for forces = "friction" or "slack", where F = mu m g is the largest friction force, which is known. The slack
    F e - (lambda-, lambda+) is complementary to x_next, so that f and G give an LCP, which step solves. A block that
    sticks rests exactly. The parameters are those of the StateMaps f and G, by the names of lcp::nn::DirectModel.

    Args:
        mass: kg, > 0.
        dt: s, > 0.
        mu: the friction coefficient, >= 0; NaN where it is not known, for forces = "slack".
        gravity: m/s^2, >= 0.
        forces: what G multiplies, "friction" or "slack".
        bias: gives f a constant part; G always has one.
        hidden, velocity_scale, force_scale: as in StateMap, for f and G.

    Raises:
        ValueError: a number is out of its range, or forces is another word.
    """

    def __init__(
        self,
        *,
        mass: float = 1.0,
        dt: float = 0.1,
        mu: float = 0.3,
        gravity: float = 9.81,
        forces: str = "friction",
        bias: bool = True,
        hidden: int = 0,
        velocity_scale: float = 1.0,
        force_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.bias = bias
        self.hidden = hidden
        if forces not in ("friction", "slack"):
            raise ValueError(f"forces must be friction or slack; got {forces}")
        for name, value in (("mass", mass), ("dt", dt)):
            if not value > 0:
                raise ValueError(f"{name} must be > 0; got {value}")
        if not (mu >= 0 or (math.isnan(mu) and forces == "slack")):
            raise ValueError(f"mu must be >= 0, or NaN with slack forces; got {mu}")
        if not gravity >= 0:
            raise ValueError(f"gravity must be >= 0; got {gravity}")
        self.mass = mass
        self.dt = dt
        self.mu = mu
        self.gravity = gravity
        self.forces = forces
        self.f = StateMap(2, hidden=hidden, bias=bias, velocity_scale=velocity_scale, force_scale=force_scale)
        self.G = StateMap(4, hidden=hidden, velocity_scale=velocity_scale, force_scale=force_scale)

    @property
    def max_friction(self) -> float:
        """F, N."""
        return self.mu * self.mass * self.gravity

    def forces_of(self, friction: Tensor) -> Tensor:
        """p, [..., 2], N, for the friction forces (lambda+, lambda-), [..., 2], N."""
        return torch.ops.lcp._direct_forces(friction, self.max_friction, self.forces == "slack")

    def f_of(self, v: Tensor, u: Tensor) -> Tensor:
        """f, [..., 2], m/s, for v [...], m/s, and u [...], N."""
        return torch.ops.lcp._direct_f(self.f(v, u), self.f.velocity_scale)

    def G_of(self, v: Tensor, u: Tensor) -> Tensor:
        """G, [..., 2, 2], s/kg, for v [...], m/s, and u [...], N."""
        return torch.ops.lcp._direct_G(self.G(v, u), self.G.velocity_scale, self.G.force_scale)

    def forward(self, v: Tensor, u: Tensor, p: Tensor) -> Tensor:
        """f + G p, [..., 2], m/s, for v [...], m/s, u [...], N, and the forces p [..., 2], N."""
        return torch.ops.lcp._affine(self.G_of(v, u), p, self.f_of(v, u))

    def step(self, v: Tensor, u: Tensor) -> ModelStep:
        """Solves the learned LCP, in the dtype of the parameters, for v [...], m/s, and u [...], N."""
        v, u = v.to(self.f.affine.weight), u.to(self.f.affine.weight)
        return ModelStep(
            *torch.ops.lcp._direct_step(
                v,
                u,
                self.f_of(v, u),
                self.G_of(v, u),
                max_friction=self.max_friction,
                slack=self.forces == "slack",
                mass=self.mass,
                dt=self.dt,
            )
        )

    def nonlinearity(self) -> Tensor:
        """A penalty, a scalar: the sum of squares of the output weights of the tanh layers; 0 without such layers.

        Nonlinear f and G are not unique, since the friction force is a function of v and u; a small penalty selects simple
        ones.
        """
        f, G = self.f.hidden_out, self.G.hidden_out
        return torch.ops.lcp._direct_nonlinearity(
            self.f.affine.weight, f.weight if f else None, G.weight if G else None
        )

    @property
    def _options(self) -> dict[str, Any]:
        names = ("mass", "dt", "mu", "gravity", "forces", "bias", "hidden")
        scales = {"velocity_scale": self.f.velocity_scale, "force_scale": self.f.force_scale}
        return {**{name: getattr(self, name) for name in names}, **scales}

    def save_torchscript(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as TorchScript, for torch.jit.load here and in C++ linked with TorchLCP::torchlcp.

        The file has the methods forward(v, u) -> v_next and step(v, u) -> (v_next, force, status), which solve the learned
        LCP, and the attributes dt, mass, gravity, mu (where it is known) and format_version. An existing file is replaced
        completely or not at all. Raises RuntimeError where the file cannot be written.
        """
        torch.ops.lcp._save_direct_model(list(self.parameters()), os.fspath(path), **self._options)

    def load_torchscript(self, path: str | os.PathLike[str]) -> None:
        """Sets the parameters to those of a file that save_torchscript, or C++, wrote for the same forces and units.

        Raises RuntimeError, which names the file, where it is of anything else; the model is then as it was.
        """
        found = torch.ops.lcp._load_direct_model(os.fspath(path), **self._options)
        with torch.no_grad():
            for parameter, value in zip(self.parameters(), found, strict=True):
                parameter.copy_(value)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in ("mass", "dt", "mu", "gravity", "forces"))
