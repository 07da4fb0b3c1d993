"""The LCP as a layer."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchlcp._operators import Solution, solve

__all__ = ["LCP"]


class LCP(torch.nn.Module):
    """A layer without parameters that solves w = M z + q, 0 <= z perp w >= 0; its options are those of solve.

    Forward takes M [..., n, n], q [..., n] and, if there are any, a guess [..., n] and sizes [...].
    """

    __call__: Callable[..., Solution]  # for type checkers, since torch.nn.Module declares Any

    def __init__(
        self,
        *,
        method: str = "auto",
        ties: str = "inactive",
        kappa: float = 0.0,
        tolerance: float | None = None,
        max_pivots: int | None = None,
    ) -> None:
        super().__init__()
        self.method = method
        self.ties = ties
        self.kappa = kappa
        self.tolerance = tolerance
        self.max_pivots = max_pivots

    def forward(self, M: Tensor, q: Tensor, guess: Tensor | None = None, sizes: Tensor | None = None) -> Solution:
        """As solve(M, q, sizes=sizes, guess=guess), with the layer's options."""
        return solve(
            M,
            q,
            sizes=sizes,
            guess=guess,
            method=self.method,
            ties=self.ties,
            kappa=self.kappa,
            tolerance=self.tolerance,
            max_pivots=self.max_pivots,
        )

    def extra_repr(self) -> str:
        options = ("method", "ties", "kappa", "tolerance", "max_pivots")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in options)
