"""Problems of different sizes as one batch."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, call, operator

__all__ = ["PaddedBatch", "pad", "unpad"]


class PaddedBatch(NamedTuple):
    """values [N, ...], and sizes [N], int64: the first of the dimensions that differ, of each tensor."""

    values: Tensor
    sizes: Tensor


@operator("pad")
def pad(tensors: Sequence[Tensor], dims: int, *, diagonal: float = 0.0) -> PaddedBatch:
    """Stacks tensors of which the last dims dimensions may differ in size, with zeros at their ends. Differentiable.

        q, sizes = pad([q_0, q_1, q_2], 1)
        M, _ = pad([M_0, M_1, M_2], 2)
        z = unpad(solve(M, q, sizes=sizes).z, sizes)

    Args:
        tensors: N of them, of one dtype and device.
        dims: how many of their dimensions may differ.
        diagonal: what the diagonals of square matrices are continued with, such as 1 for the mass matrices of scenes
            with different numbers of bodies.

    Raises:
        RuntimeError: there are no tensors, or a shape, dtype or device does not fit.
    """


def unpad(x: TensorLike, sizes: TensorLike) -> list[Tensor]:
    """The first sizes[b] entries of each row of x, in row-major order. Differentiable.

    Args:
        x: [..., n], for example the z of a batch, or gamma with 3 times the number of contacts as its sizes.
        sizes: [...], int64.

    Raises:
        RuntimeError: a shape or dtype does not fit, or a size is not in 0..n.
    """
    parts: list[Tensor] = call("unpad", x, sizes)
    return parts
