"""Arguments of functions: numbers, lists and arrays where a tensor is expected."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, Union

import torch
from torch import Tensor


class Array(Protocol):
    """An array of NumPy, or whatever NumPy can make one of."""

    def __array__(self) -> Any: ...


# A tensor, or what becomes one: a number, a list of them or an array; see as_tensor.
TensorLike: TypeAlias = Union[Tensor, float, Sequence[Any], Array]
# The same where a single number makes no sense.
ListLike: TypeAlias = Union[Tensor, Sequence[Any], Array]


class Feedback(NamedTuple):
    """A linear feedback of the state, which simulate of every system with inputs u takes beside these.

    What acts in a step is u + K e, where e = reference - x is the error of the state x before the step. The state of k numbers
    is what simulate takes, its tensors one behind another. Results are differentiable in all tensors of the feedback. They
    are those of a loop over single steps with these inputs, which certify takes as its u.

    K: the gains, [m, k] for m inputs, or with the dimensions before that which u has, such as [steps, ..., m, k]. Their batch
        dimensions broadcast; the number of steps may be 1.
    reference: what the state should be: each tensor as that of a state, or with the dimensions before that which u has, such
        as [steps, ..., k]. Its number of steps may be 1.
    """

    K: TensorLike
    reference: TensorLike | tuple[TensorLike, ...]


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _has_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or (_is_list(value) and any(_has_tensor(x) for x in value))


def as_tensor(name: str, value: TensorLike, like: Tensor | None = None) -> Tensor:
    """A tensor as it is, and a number, a list or an array as a new tensor.

    The new tensor has the dtype and device of `like`. Without `like`, an array of floating-point numbers keeps its dtype,
    and all else becomes float64. Tensors within a list keep their gradients.

    Raises:
        TypeError: value is none of these; the message has the name of the argument.
    """
    if isinstance(value, Tensor):
        return value
    dtype, device = (torch.float64, None) if like is None else (like.dtype, like.device)
    try:
        if isinstance(value, Sequence) and _has_tensor(value):
            return torch.stack([as_tensor(name, x, like) for x in value])
        if hasattr(value, "__array__"):
            import numpy

            array = numpy.array(value)  # a copy, since a tensor cannot have negative strides
            return torch.tensor(array, dtype=None if like is None and array.dtype.kind == "f" else dtype, device=device)
        if isinstance(value, (int, float)) or _is_list(value):
            return torch.tensor(value, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError):
        pass  # it has rows of several lengths, or entries that are no numbers
    raise TypeError(f"{name} must be a number, a tensor, or a list or an array of numbers; got {type(value).__name__}")


def _as_sizes(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.int64)


def _first_of(values: Iterable[Any]) -> Tensor | None:
    """The first tensor of floating-point numbers or, if there is none, that of the first array of them."""
    array = None
    for value in values:
        if isinstance(value, Tensor):
            if value.is_floating_point():
                return value
        elif array is None and hasattr(value, "__array__"):
            array = as_tensor("an argument", value)
    return array


def as_tensors(**values: TensorLike) -> list[Tensor]:
    """Arguments by their names as tensors, with the dtype and device of the first that is one; see as_tensor."""
    like = None if all(isinstance(x, Tensor) for x in values.values()) else _first_of(values.values())
    return [as_tensor(name, value, like) for name, value in values.items()]


def feedback_by_names(feedback: Feedback | None, names: Sequence[str] = ("K", "reference")) -> dict[str, Any]:
    """K and the reference, or where that is a state its tensors, by the names that an operator has for them."""
    if feedback is None:
        return {}
    K, reference = feedback
    parts: Any = (reference,) if names[1] == "reference" else reference
    if len(parts) != len(names) - 1:
        raise TypeError(f"reference must be {', '.join(names[1:])}; got {len(parts)} tensors")
    return dict(zip(names, (K, *parts), strict=True))


def with_contacts(tensors: list[Tensor], contacts: int) -> list[Tensor]:
    """Tensors [..., c]; one without dimensions, as a number becomes, is that of all c contacts."""
    return [x if x.dim() > 0 else x.expand(contacts) for x in tensors]


def of_each_contact(mu: TensorLike, A: TensorLike, J: TensorLike) -> Tensor:
    """mu, [..., c], for c contacts of J, [..., 3 c, n]; see with_contacts."""
    _, rows, x = as_tensors(A=A, J=J, mu=mu)
    return x if x.dim() > 0 else with_contacts([x], rows.shape[-2] // 3)[0]


def of_each_row(bound: TensorLike | None, A: TensorLike, H: TensorLike) -> Tensor:
    """bound, [..., k], for k rows of H, [..., k, n]."""
    if bound is None:
        raise ValueError("lower and upper must be given with H")
    _, rows, x = as_tensors(A=A, H=H, bound=bound)
    return x if x.dim() > 0 else x.expand(rows.shape[-2])


@functools.cache
def _tensors_of(name: str) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    """The names of an operator's positional arguments, None for those that are no tensors, and of its tensors by keyword."""
    (schema,) = torch._C._jit_get_schemas_for_operator(f"lcp::{name}")
    arguments = schema.arguments
    tensors = [str(x.type) in ("Tensor", "Optional[Tensor]") for x in arguments]
    positional = tuple(x.name if t else None for x, t in zip(arguments, tensors, strict=True) if not x.kwarg_only)
    return positional, tuple(x.name for x, t in zip(arguments, tensors, strict=True) if t and x.kwarg_only)


def call(name: str, *arguments: Any, **options: Any) -> Any:
    """torch.ops.lcp.<name>, whose tensors may be given as numbers, lists or arrays; see as_tensor."""
    operator = getattr(torch.ops.lcp, name)
    if torch.compiler.is_compiling():
        return operator(*arguments, **options)
    positional, keywords = _tensors_of(name)
    fits = True  # comprehensions would take longer than the operator's own call
    for x, of in zip(arguments, positional):
        if not isinstance(x, Tensor) and of is not None and x is not None:
            fits = False
    for key in keywords:
        if (x := options.get(key)) is not None and not isinstance(x, Tensor):
            fits = False
    if fits:
        return operator(*arguments, **options)
    like = _first_of(x for x, of in zip(arguments, positional) if of is not None)

    def converted(of: str | None, x: Any) -> Any:
        if of is None or x is None:
            return x
        return _as_sizes(x) if of == "sizes" else as_tensor(of, x, like)

    given = [converted(of, x) for x, of in zip(arguments, positional)]
    options.update({key: converted(key, options[key]) for key in keywords if key in options})
    return operator(*given, **options)


def _arguments_of(name: str, function: Callable[..., Any]) -> list[str]:
    """The arguments of a call of an operator in the body of a function, as code."""
    (schema,) = torch._C._jit_get_schemas_for_operator(f"lcp::{name}")
    given = inspect.signature(function).parameters
    options = [f"**{x}" for x, kind in given.items() if kind.kind == kind.VAR_KEYWORD]
    known = {"self", "feedback", *(x.name for x in schema.arguments)}
    closed = [x.name for x in schema.arguments if "feedback" in given and (x.name == "K" or x.name.endswith("reference"))]
    unpacked = [f"*{x}" for x in given if x not in known and f"**{x}" not in options]
    arguments = []
    for x in schema.arguments:
        if x.name in given:
            arguments.append(f"{x.name}={x.name}" if x.kwarg_only else x.name)
        elif x.name in closed:
            arguments.append(f"**_feedback(feedback, {closed})")
        elif x.name == "parameters":
            arguments.append("self._parameters()")
        elif x.kwarg_only:
            arguments += options or ["**self._numbers()"]
        else:
            arguments += unpacked  # the members of a state have the names of this argument and the next ones
    return list(dict.fromkeys(arguments))


def operator(name: str, of: str = "") -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Gives a function without a body that of a call of lcp::<name>, whose arguments have the names of the function's.

    The parameters and numbers of a system, and the members of a state, are passed where the operator has them. The result is
    made of what the operator returns. Several systems may share a method: then {} in the name stands for the _name of each,
    and `of` is that of one.
    """

    def with_body(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        parameters = inspect.signature(function).parameters.values()
        header = inspect.Signature([x.replace(default=x.empty, annotation=x.empty) for x in parameters])
        called = repr(name) + (".format(self._name)" if of else "")
        body = f"_call({called}, {', '.join(_arguments_of(name.format(of), function))})"
        result = function.__annotations__["return"]
        result = function.__globals__[result] if isinstance(result, str) else result
        if result is not Tensor:
            body = f"_result(*{body})"
        name_of = function.__name__
        code = f"def make(_call, _result, _feedback):\n  def {name_of}{header}: return {body}\n  return {name_of}"
        made: dict[str, Any] = {}
        exec(compile(code, f"<lcp::{name}>", "exec"), function.__globals__, made)
        whole = made["make"](call, result, feedback_by_names)
        whole.__defaults__, whole.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return functools.update_wrapper(whole, function)

    return with_body
