"""A network from a block's state and input to a few numbers."""

import torch
from torch import Tensor
from torch.nn import Linear

__all__ = ["StateMap"]


class StateMap(torch.nn.Module):
    """y = A s + b [+ B tanh(C s + d)],  s = (v / velocity_scale, u / force_scale): [..., outputs].

    B is 0 at first, so that the map starts affine. The parameters have the names of lcp::nn::StateMap: affine.weight,
    affine.bias and, with a tanh layer, hidden_in.weight, hidden_in.bias and hidden_out.weight.

    Args:
        outputs: their number, > 0.
        hidden: the width of the tanh layer; 0: none.
        bias: without it y = 0 for v = u = 0.
        velocity_scale: m/s, > 0, the unit by which v is divided.
        force_scale: N, > 0, the unit by which u is divided.

    Raises:
        ValueError: a number is out of its range.
    """

    affine: Linear
    hidden_in: Linear | None
    hidden_out: Linear | None

    def __init__(
        self,
        outputs: int,
        *,
        hidden: int = 0,
        bias: bool = True,
        velocity_scale: float = 1.0,
        force_scale: float = 1.0,
    ) -> None:
        super().__init__()
        for name, value in (("outputs", outputs), ("velocity_scale", velocity_scale), ("force_scale", force_scale)):
            if not value > 0:
                raise ValueError(f"{name} must be > 0; got {value}")
        if hidden < 0:
            raise ValueError(f"hidden must be >= 0; got {hidden}")
        self.velocity_scale = velocity_scale
        self.force_scale = force_scale
        self.affine = Linear(2, outputs, bias=bias)
        self.hidden_in = self.hidden_out = None
        if hidden > 0:
            self.hidden_in = Linear(2, hidden, bias=bias)
            self.hidden_out = Linear(hidden, outputs, bias=False)
            torch.nn.init.zeros_(self.hidden_out.weight)

    def forward(self, v: Tensor, u: Tensor) -> Tensor:
        """y [..., outputs], for v [...], m/s, and u [...], N, which broadcast."""
        hidden_in, hidden_out = self.hidden_in, self.hidden_out
        return torch.ops.lcp._state_map(
            v,
            u,
            self.affine.weight,
            self.affine.bias,
            hidden_in.weight if hidden_in else None,
            hidden_in.bias if hidden_in else None,
            hidden_out.weight if hidden_out else None,
            velocity_scale=self.velocity_scale,
            force_scale=self.force_scale,
        )
