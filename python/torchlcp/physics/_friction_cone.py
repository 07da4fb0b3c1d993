"""The directions of the polygons that approximate the friction disk."""

import torch
from torch import Tensor

from torchlcp._arguments import TensorLike, operator

__all__ = ["aligned_directions", "friction_directions", "span_plane"]


@operator("_friction_directions")
def friction_directions(count: int, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """D = [d_1 .. d_n], [2, n], with d_j = (cos 2 pi j / n, sin 2 pi j / n) for j = 0 .. n - 1, where n = count.

    Directions j and j + n / 2 are exactly opposite, and the components of directions along an axis are exactly 0, 1 or -1.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.

    Raises:
        RuntimeError: count is odd or less than 4.
    """


@operator("_aligned_directions")
def aligned_directions(a: TensorLike, b: TensorLike) -> Tensor:
    """D = [a, b, -a, -b], [..., 2, 4], with a and b, [..., 2], scaled to length 1. It has no derivative.

    Where b is parallel to a or 0 it is replaced by a turned by 90 degrees, and the like for a; where both are 0 they are
    the axes.
    """


@operator("_span_plane")
def span_plane(D: TensorLike) -> Tensor:
    """Whether each vector of the plane is a combination of directions D, [..., 2, n], with weights >= 0: [...], bool.

    Only then do they hold a block in every direction.
    """
