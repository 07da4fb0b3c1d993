"""The operators, typed, with names for what they return."""

import enum
from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, operator

__all__ = [
    "Certificate",
    "DirectionalDerivative",
    "MixedSolution",
    "Solution",
    "Status",
    "certify",
    "directional_derivative",
    "gradient_radius",
    "solve",
    "solve_mixed",
    "status_name",
]


class Status(enum.IntEnum):
    """The outcome for one element of a batch, with the natural residual r(z) = max_i |min(z_i, (M z + q)_i)|.

    SOLVED: r(z) <= tolerance * max_i |q_i|, checked on the z returned; z, w >= 0 and z_i w_i = 0 exactly.
    NOT_FOUND: no solution was found. For n <= 10 and method "auto" there is none, up to rounding and the range of the
    dtype; else there may be one.
    INFEASIBLE: proved: no z >= 0 has M z + q >= 0.
    PIVOT_LIMIT: max_pivots was reached, or, for n > 10, the limit of a method other than auto.
    BAD_INPUT: there is a NaN or an infinity in that element.

    Unless the status is SOLVED, z and w are NaN.
    """

    SOLVED = 0
    NOT_FOUND = 1
    INFEASIBLE = 2
    PIVOT_LIMIT = 3
    BAD_INPUT = 4


def status_name(status: int | Tensor) -> str:
    """The name of one status: "solved", "not found", "infeasible", "pivot limit" or "bad input"."""
    return Status(int(status)).name.lower().replace("_", " ")


class Solution(NamedTuple):
    """z [..., n], w [..., n] and status [...], int8, the values of Status."""

    z: Tensor
    w: Tensor
    status: Tensor


class MixedSolution(NamedTuple):
    """x [..., k], z [..., n], w [..., n] and status [...], int8, the values of Status."""

    x: Tensor
    z: Tensor
    w: Tensor
    status: Tensor


class Certificate(NamedTuple):
    """How accurate a solution z is, and how well its gradient is defined; a = {i : z_i > 0} is the active set.

    With w = M z + q and s_i = |q_i| + sum_j |M_ij z_j|, the size of z_j is max_i |M_ij z_j| / s_i and that of w_i is
    |w_i| / s_i: numbers in [0, 1] that do not depend on the units.

    residual: [...], r(z) as in Status, in the units of z and w.
    margin: [...], min_i max(size of z_i, size of w_i): the distance to the nearest tie.
    condition: [...], the condition number of M_aa in the 2-norm: infinity where it is singular, 1 where a is empty.
    rank: [...], int64, the rank of M_aa; where it is less than the size of a, the gradient is a least-squares one.
    ties: [..., n], bool, the pairs with z_i = w_i = 0, where the option ties of solve decides the gradient.
    """

    residual: Tensor
    margin: Tensor
    condition: Tensor
    rank: Tensor
    ties: Tensor


class DirectionalDerivative(NamedTuple):
    """dz [..., n], dw [..., n] and status [...], int8, the values of Status."""

    dz: Tensor
    dw: Tensor
    status: Tensor


@operator("solve")
def solve(
    M: TensorLike,
    q: TensorLike,
    *,
    sizes: TensorLike | None = None,
    guess: TensorLike | None = None,
    method: str = "auto",
    ties: str = "inactive",
    kappa: float = 0.0,
    tolerance: float | None = None,
    max_pivots: int | None = None,
) -> Solution:
    """Solves w = M z + q, 0 <= z perp w >= 0 for each element of a batch.

    z and w are differentiable in M and q, any number of times: with the active set a = {i : z_i > 0} fixed,
    z_a = -M_aa^-1 q_a and w = M z + q [CPS, sec. 7.4]. The gradient of an element that is not solved is 0 where its
    incoming gradient is 0, else NaN.

    Args:
        M: [..., n, n], float32 or float64; n may be 0. Its unit is that of w over that of z.
        q: [..., n], of M's dtype and device, in the unit of w. The batch dimensions of M and q broadcast.
        sizes: [...], int64, how many of the n unknowns of each element exist, the first ones; see pad. Each element gets
            the bits, also of its gradient, that it would get alone. What M and q hold beyond is not read; z, w and the
            gradients are 0 there. None: all.
        guess: [..., n]; its positive entries propose the active set. It may change which of several solutions is
            returned, but never the correctness of the result.
        method: "auto", or one algorithm: "lemke" [CPS, alg. 4.4.5], "enumeration", "newton_min" or "central_path".
        ties: how the gradient treats pairs with z_i = w_i = 0: "inactive" (z_i stays 0), "active" (w_i stays 0), or
            "midpoint" (the mean of the two).
        kappa: where > 0, the gradient is that of the nearby point with z_i w_i = kappa, or NaN where none is found; z
            and w stay exact. Its unit is that of z times that of w. Only with ties = "inactive".
        tolerance: the tolerance that defines SOLVED, see Status. None: 1e-9 in float64, 1e-4 in float32.
        max_pivots: pivots, bases and Newton steps that one element may take in total. None: 30 n pivots for each run of
            Lemke's method, 2^20 bases, 30 + n steps of Newton-min, and 1500 steps along all central paths, for n >= 200
            1500 / floor(n / 100)^2, but at least 100. More has an effect where a method is named; "auto" keeps to these.

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """


@operator("solve_mixed")
def solve_mixed(
    A: TensorLike,
    B: TensorLike,
    C: TensorLike,
    M: TensorLike,
    p: TensorLike,
    q: TensorLike,
    *,
    guess: TensorLike | None = None,
    method: str = "auto",
    ties: str = "inactive",
    kappa: float = 0.0,
    tolerance: float | None = None,
    max_pivots: int | None = None,
) -> MixedSolution:
    """Solves 0 = A x + B z + p, w = C x + M z + q, 0 <= z perp w >= 0, with x of any sign, for each element of a batch.

    Differentiable in all six tensors as solve is in its two [CPS, sec. 1.2]. INFEASIBLE here means that no x and z >= 0
    have A x + B z + p = 0 and C x + M z + q >= 0.

    Args:
        A: [..., k, k], float32 or float64; k and n may be 0.
        B: [..., k, n], of A's dtype and device, like all that follow.
        C: [..., n, k].
        M: [..., n, n].
        p: [..., k].
        q: [..., n]. All batch dimensions broadcast.
        guess, method, ties, kappa, tolerance, max_pivots: as in solve.

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """


@operator("certify")
def certify(
    M: TensorLike, q: TensorLike, z: TensorLike, *, sizes: TensorLike | None = None, tolerance: float | None = None
) -> Certificate:
    """For each element of a batch: how accurate z is as a solution, and how well its gradient is defined.

    The result depends only on M, q and z. Where they have a NaN, the numbers are NaN, the rank is 0 and
    nothing is tied. Not differentiable. The residual is that of [CPS, ch. 5].

    Args:
        M: [..., n, n], float32 or float64.
        q: [..., n], of M's dtype and device.
        z: [..., n], the same. The batch dimensions broadcast.
        sizes: as in solve.
        tolerance: a pair is a tie where both its sizes are at most this. None: 64 epsilon of the dtype, as for the
            gradient.

    Raises:
        RuntimeError: a shape, dtype, device or the tolerance does not fit.
    """


@operator("directional_derivative")
def directional_derivative(M: TensorLike, q: TensorLike, z: TensorLike, dM: TensorLike, dq: TensorLike) -> DirectionalDerivative:
    """The one-sided derivative lim (z(M + t dM, q + t dq) - z(M, q)) / t for t -> 0+, and that of w; exact at ties.

    Pairs with z_i > 0 keep dw_i = 0, pairs with w_i > 0 keep dz_i = 0, and ties solve 0 <= dz_i perp dw_i >= 0: an LCP
    itself, whose status is returned [CPS, sec. 7.4]. It is BAD_INPUT where z or the direction has a NaN. Not
    differentiable.

    Args:
        M: [..., n, n], float32 or float64.
        q: [..., n], of M's dtype and device, like all that follow.
        z: [..., n], a solution, as solve returns it.
        dM: [..., n, n], the direction in which M changes.
        dq: [..., n], the direction in which q changes. All batch dimensions broadcast.

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """


@operator("gradient_radius")
def gradient_radius(M: TensorLike, q: TensorLike, z: TensorLike, dq: TensorLike) -> Tensor:
    """The largest t up to which the active set of the solution at q + t dq stays the same, so that z is affine in t.

    Returns [...]: infinity where the active set never changes, NaN where z has a NaN. It is one ratio test of the parametric
    LCP [CPS, ch. 4]. Not differentiable.

    Args:
        M: [..., n, n], float32 or float64.
        q: [..., n], of M's dtype and device, like all that follow.
        z: [..., n], a solution, as solve returns it.
        dq: [..., n], the direction in which q changes. All batch dimensions broadcast.

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """
