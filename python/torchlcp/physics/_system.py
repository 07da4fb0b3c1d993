"""What the systems have in common."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypedDict, TypeVar, cast

import torch
from torch import Tensor

from torchlcp._arguments import TensorLike, as_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["MixedProblem", "Problem", "RolloutCertificate", "SolveOptions"]


class Problem(NamedTuple):
    """M [..., n, n] and q [..., n] of the LCP w = M z + q, 0 <= z perp w >= 0, for torchlcp.solve."""

    M: Tensor
    q: Tensor


class MixedProblem(NamedTuple):
    """0 = A x + B z + p, w = C x + M z + q, 0 <= z perp w >= 0, for torchlcp.solve_mixed.

    A [..., k, k], B [..., k, n], C [..., n, k], M [..., n, n], p [..., k] and q [..., n].
    """

    A: Tensor
    B: Tensor
    C: Tensor
    M: Tensor
    p: Tensor
    q: Tensor


class RolloutCertificate(NamedTuple):
    """How many steps of each trajectory have no solution, or no ordinary gradient: int64, [...], without a gradient.

    unsolved: steps whose status is not SOLVED.
    tied: steps in whose LCP a pair is tied, z_i = w_i = 0. The gradient may be exact nevertheless: a block that sticks
        strictly within its friction cone has tied pairs, but its velocity is 0 in a neighbourhood.
    kinked: tied steps in which the tie can change the next state, as between sticking and sliding, or at the first
        contact. There are only one-sided derivatives, and the gradient is the one that the option ties selects.
    """

    unsolved: Tensor
    tied: Tensor
    kinked: Tensor


class SolveOptions(TypedDict, total=False):
    """Options of torchlcp.solve, which a system takes as keywords: method, ties, kappa, tolerance and max_pivots.

    With the default method, kappa = 0 and no max_pivots, most rollouts are a single walk through all steps; otherwise
    they are a loop over torchlcp.solve.
    """

    method: str
    ties: str
    kappa: float
    tolerance: float | None
    max_pivots: int | None


# Parameters that must be > 0. The others must be >= 0.
_POSITIVE = frozenset({"mass", "inertia", "dt", "width", "height", "stiffness", "sigma", "radius", "size"})


def check_number(name: str, value: Any, *, may_be_infinite: bool = False) -> float:
    """The value of a parameter. Raises TypeError where it is no number, and ValueError where it is out of its range."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}") from None
    if name == "restitution" and not 0 <= number <= 1:
        raise ValueError(f"restitution must be in [0, 1]; got {number}")
    positive = name in _POSITIVE
    finite = math.isfinite(number) or (may_be_infinite and number > 0)
    if not finite or number < 0 or (positive and number == 0):
        raise ValueError(f"{name} must be {'>' if positive else '>='} 0; got {number}")
    return number


def parameter(name: str, value: TensorLike, *, may_be_infinite: bool = False) -> Tensor:
    """A parameter as a tensor, see as_tensor. Raises ValueError where one of the numbers is out of its range.

    A tensor is not read here: its elements that are out of their range get the status BAD_INPUT.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (int, float)):
        value = check_number(name, value, may_be_infinite=may_be_infinite)
        return as_tensor(name, value)
    if isinstance(value, (list, tuple)) and value:
        return torch.stack([parameter(name, x, may_be_infinite=may_be_infinite) for x in value])
    x = as_tensor(name, value)
    for number in x.flatten().tolist():
        check_number(name, number, may_be_infinite=may_be_infinite)
    return x


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """Parameters: tensors [...] of any batch shapes, for which numbers may be given, and fields that are numbers."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "float":
                object.__setattr__(self, field.name, check_number(field.name, value))
            elif field.type == "TensorLike":
                object.__setattr__(self, field.name, parameter(field.name, value))
            elif field.type == "ListLike":
                object.__setattr__(self, field.name, as_tensor(field.name, value))

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """The names and values of the fields, with those of fields that are systems in place of these."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, System):
                yield from value._parts()
            else:
                yield field.name, value

    def _parameters(self) -> list[Tensor]:
        return [value for _, value in self._parts() if isinstance(value, Tensor)]

    def _numbers(self) -> dict[str, float]:
        return {name: value for name, value in self._parts() if not isinstance(value, Tensor)}


Parameters = ParamSpec("Parameters")
Results = TypeVar("Results", bound="Sequence[Tensor]")


def first_step(rollout: Results) -> Results:
    """The first of the steps of named results, [steps, ...]."""
    make: Any = type(rollout)
    return cast(Results, make(*(x[0] for x in rollout)))


def one_step(simulate: Callable[Parameters, Results], documentation: str) -> Callable[Parameters, Results]:
    """The function of one step by that of many, which has the inputs u of each step as its second argument."""

    def step(self: Any, *arguments: Any, **options: Any) -> Results:
        given = list(arguments)
        if len(given) > 1:
            given[1] = as_tensor("u", given[1]).unsqueeze(0)
        elif "u" in options:
            options["u"] = as_tensor("u", options["u"]).unsqueeze(0)
        rollout: Results = cast(Any, simulate)(self, *given, **options)
        return first_step(rollout)

    functools.update_wrapper(step, simulate)
    step.__name__, step.__doc__ = "step", documentation
    step.__qualname__ = simulate.__qualname__.replace("simulate", "step")
    return cast("Callable[Parameters, Results]", step)
