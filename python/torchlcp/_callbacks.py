"""Python functions that compiled methods call."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

# The functions that compiled methods are calling, by the numbers that stand for them there.
_functions: dict[int, Callable[[list[Tensor], int], list[Tensor]]] = {}
_numbers = itertools.count()


def _call_python(function: int, tensors: list[Tensor], step: int) -> list[Tensor]:
    return _functions[function](tensors, step)


_library = torch.library.Library("lcp", "IMPL")
_library.impl("_call_python", _call_python, "CompositeImplicitAutograd")


@contextlib.contextmanager
def numbered(*functions: Callable[[list[Tensor], int], list[Tensor]]) -> Iterator[list[int]]:
    """The numbers of functions, by which compiled methods call them."""
    numbers = [next(_numbers) for _ in functions]
    _functions.update(zip(numbers, functions, strict=True))
    try:
        yield numbers
    finally:
        for number in numbers:
            del _functions[number]
