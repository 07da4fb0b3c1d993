"""A learned matrix whose structure determines which of its LCPs have a solution."""

import torch
from torch import Tensor
from torch.nn import Parameter

__all__ = ["StructuredMatrix"]


class StructuredMatrix(torch.nn.Module):
    """M = phi phi' + sum_i alpha_i^2 S_i + sum_i beta_i A_i, [n, n].

    E_jk is 1 at (j, k) and 0 elsewhere; A_i = E_jk - E_kj for j < k. S_i = E_jj for the basis "diagonal", with
    E_jk + E_kj for j < k in addition for "nonnegative". With "none" and "diagonal", M is positive semidefinite: its LCP
    has a solution wherever some z >= 0 has M z + q >= 0, and Lemke's method finds it [CPS, 4.4]. With "nonnegative" M is
    copositive. The parameters have the names of lcp::nn::StructuredMatrix:

    phi: [n, rank], at first normal random numbers.
    beta: [n (n - 1) / 2], the same.
    alpha: [number of S_i], at first 0.1; there is none with the basis "none".

        Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, chapters 3 and 4.

    Args:
        size: n, > 0.
        rank: the number of columns of phi, >= 0.
        basis: "none", "diagonal" or "nonnegative".

    Raises:
        ValueError: a number is out of its range.
        RuntimeError: there is no such basis.
    """

    antisymmetric_basis: Tensor
    symmetric_basis: Tensor | None

    def __init__(self, size: int, *, rank: int = 1, basis: str = "none") -> None:
        super().__init__()
        if size <= 0:
            raise ValueError(f"size must be > 0; got {size}")
        if rank < 0:
            raise ValueError(f"rank must be >= 0; got {rank}")
        A, S = torch.ops.lcp._structured_bases(size, basis)
        self.phi = Parameter(torch.randn(size, rank))
        self.register_buffer("antisymmetric_basis", A.to(self.phi.dtype))
        self.beta = Parameter(torch.randn(len(A)))
        self.register_buffer("symmetric_basis", None if S is None else S.to(self.phi.dtype))
        self.register_parameter("alpha", None if S is None else Parameter(torch.full((len(S),), 0.1)))

    def forward(self) -> Tensor:
        """M, [n, n]."""
        return torch.ops.lcp._structured_matrix(
            self.phi, self.beta, self.alpha, self.antisymmetric_basis, self.symmetric_basis
        )
