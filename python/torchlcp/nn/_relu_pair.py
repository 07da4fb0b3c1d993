"""Numbers as the difference of two relus, which training can make exactly 0."""

import torch
from torch import Tensor

__all__ = ["relu_pair", "relu_pair_overlap"]


def relu_pair(P: Tensor, N: Tensor, *, revive: bool = False) -> Tensor:
    """max(P, 0) - max(N, 0), entry by entry, which is exactly 0 where neither P nor N is > 0.

    Where P <= 0 it has no gradient in P, so that such a 0 is final, also where training got there by chance.

    Args:
        P: [...], of any shape, float32 or float64.
        N: [...], which broadcasts against P.
        revive: gives max(P, 0), where P <= 0, the gradient of P where descent would make P larger, and 0 elsewhere, as a
            step that is projected onto P >= 0, and N the like. Then a 0 is final only once revive is false. It has
            gradients in reverse mode alone, and does not work under torch.func.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """
    return torch.ops.lcp._relu_pair(P, N, revive=revive)


def relu_pair_overlap(P: Tensor, N: Tensor, *, revive: bool = False) -> Tensor:
    """The sum over all entries of max(P, 0) max(N, 0), a scalar to penalise.

    Where P = N > 0 the pair is 0 by cancellation alone, and only to round-off; the penalty draws both to 0, and has no
    effect where one of them is there already. The arguments are those of relu_pair.
    """
    return torch.ops.lcp._relu_pair_overlap(P, N, revive=revive)
