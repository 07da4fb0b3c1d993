"""Rollouts of rigid scenes as operators that torch.compile and torch.func.vmap do not look into.

Which contacts a step solves depends on numbers, which these transforms cannot read. The operators are compiled; here are
their rules for torch.func.vmap, and the functions of autograd that have some as the derivatives of others.
A scene is one list of tensors, in the order of lcp::_roll_out_scene: the state, u, (mass, inertia, centers, radii, drag)
of each body, (normal, offset) of each plane, gravity, mu, restitution and, if there are any, stiffness and dissipation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_NAME = "lcp::_roll_out_scene"
_ADJOINT, _TANGENT, _ADJOINT_TANGENT = f"{_NAME}_adjoint", f"{_NAME}_tangent", f"{_NAME}_adjoint_tangent"
_DIFFERENTIABLE = 5  # so many of the results, the first


def _core_dims(tensors: list[Tensor], bodies: int, planes: int) -> list[int]:
    """The dimensions of each tensor behind those of the batch."""
    known = [2, 2, 2, 2, 2, *[0, 2, 2, 1, 0] * bodies, *[1, 0] * planes]
    return known + [1] * (len(tensors) - len(known))


def _batch(tensors: list[Tensor], bodies: int, planes: int) -> list[tuple[int, ...]]:
    """The batch dimensions of each tensor; u has its rows before them."""
    shapes = [tuple(x.shape[: x.dim() - dims]) for x, dims in zip(tensors, _core_dims(tensors, bodies, planes), strict=True)]
    shapes[4] = shapes[4][1:]
    return shapes


def _shapes_of_adjoint(gradients: list[Tensor], tensors: list[Tensor], *more: Any) -> list[Tensor]:
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in tensors]


class TransformedRollout(torch.autograd.Function):
    """lcp::_roll_out_scene of tensors, after a tuple of its other arguments, with a derivative under torch.compile.

    Without transforms the operator has derivatives of its own, of every order.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(others: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
        results: tuple[Tensor, ...] = torch.ops.lcp._roll_out_scene(list(tensors), *others)
        return results

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.others, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(*output[_DIFFERENTIABLE:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        given = list(gradients[:_DIFFERENTIABLE])
        return (None, *torch.ops.lcp._roll_out_scene_adjoint(given, list(ctx.saved_tensors), *ctx.others))


class Others:
    """The other arguments of an operator as one, into which torch.func does not look for tensors."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments

    def __iter__(self) -> Iterator[Any]:
        return iter(self.arguments)


class _Adjoint(torch.autograd.Function):
    """lcp::_roll_out_scene_adjoint of gradients and tensors, after a tuple of its other arguments."""

    generate_vmap_rule = True

    @staticmethod
    def forward(others: tuple[Any, ...], *both: Tensor) -> tuple[Tensor, ...]:
        found = torch.ops.lcp._roll_out_scene_adjoint(list(both[:_DIFFERENTIABLE]), list(both[_DIFFERENTIABLE:]), *others)
        return tuple(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.others, *both = inputs
        ctx.save_for_backward(*both)
        ctx.save_for_forward(*both)

    @staticmethod
    def _parts(ctx: Any) -> tuple[list[Tensor], list[Tensor]]:
        return list(ctx.saved_tensors[:_DIFFERENTIABLE]), list(ctx.saved_tensors[_DIFFERENTIABLE:])

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> tuple[Tensor, ...]:
        given, x = _Adjoint._parts(ctx)
        changes = _zeros_for_none(tangents, [*given, *x])
        of_given, of_x = changes[:_DIFFERENTIABLE], changes[_DIFFERENTIABLE:]
        return tuple(torch.ops.lcp._roll_out_scene_adjoint_tangent(of_given, of_x, given, x, *ctx.others))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        given, x = _Adjoint._parts(ctx)
        directions, none = list(gradients), [torch.zeros_like(g) for g in given]
        of_given = torch.ops.lcp._roll_out_scene_tangent(directions, x, *ctx.others)
        of_x = torch.ops.lcp._roll_out_scene_adjoint_tangent(none, directions, given, x, *ctx.others)
        return (None, *of_given, *of_x)


class MappedRollout(TransformedRollout):
    """The same, after Others, with derivatives under torch.func.vmap: of the first order and of the second."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        TransformedRollout.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> tuple[Any, ...]:
        x = list(ctx.saved_tensors)
        found = torch.ops.lcp._roll_out_scene_tangent(_zeros_for_none(tangents, x), x, *ctx.others)
        return (*found, None, None)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        adjoint: Any = _Adjoint.apply
        return (None, *adjoint(ctx.others, *gradients[:_DIFFERENTIABLE], *ctx.saved_tensors))


def _zeros_for_none(tangents: Any, of: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(x) if tangent is None else tangent for tangent, x in zip(tangents, of, strict=True)]


def _in_front(
    x: Tensor, dim: int | None, size: int, rows: bool, missing: int, expanded: bool
) -> Tensor:
    """x with the mapped dimension before those of its batch, and behind that of its rows, if it has these."""
    place = int(rows)
    if dim is not None:
        x = x.movedim(dim, place)
    elif expanded:
        x = x.unsqueeze(place).expand(*x.shape[:place], size, *x.shape[place:])
    else:
        return x
    return x.reshape(*x.shape[: place + 1], *[1] * missing, *x.shape[place + 1 :])


def _all_in_front(
    info: Any, dims: list[int | None], tensors: list[Tensor], bodies: int, planes: int, expanded: bool
) -> list[Tensor]:
    """The tensors with the mapped dimension before those of the batch, which are as many in each that is mapped."""
    unmapped = [x if dim is None else x.select(dim, 0) for x, dim in zip(tensors, dims, strict=True)]
    counts = [len(shape) for shape in _batch(unmapped, bodies, planes)]
    return [
        _in_front(x, dim, info.batch_size, k == 4, max(counts) - counts[k], expanded)
        for k, (x, dim) in enumerate(zip(tensors, dims, strict=True))
    ]


def _vmap(info: Any, in_dims: tuple[Any, ...], tensors: list[Tensor], bodies: int, plane_bodies: list[int], *more: Any) -> Any:
    each = [x if dim is None else x.select(dim, 0) for x, dim in zip(tensors, in_dims[0], strict=True)]
    if any(x.dim() < dims for x, dims in zip(each, _core_dims(each, bodies, len(plane_bodies)), strict=True)):
        torch.ops.lcp._roll_out_scene(each, bodies, plane_bodies, *more)  # which names the shape that does not fit
    x = _all_in_front(info, in_dims[0], tensors, bodies, len(plane_bodies), expanded=False)
    results = torch.ops.lcp._roll_out_scene(x, bodies, plane_bodies, *more)
    return results, (1,) * len(results)


def _gradients_in_front(info: Any, dims: list[int | None], gradients: list[Tensor]) -> list[Tensor]:
    """Gradients of the results, with the mapped dimension behind that of the rows."""
    return [_in_front(g, dim, info.batch_size, True, 0, True) for g, dim in zip(gradients, dims, strict=True)]


def _of_each(info: Any, dims: list[int | None], tensors: list[Tensor], found: list[Tensor]) -> Any:
    """The gradients of tensors, which each mapped element has of its own, also of tensors that all share."""
    places = [1 if k == 4 else 0 for k in range(len(tensors))]
    shapes = [x.shape if dim is None else (*x.shape[:dim], *x.shape[dim + 1 :]) for x, dim in zip(tensors, dims, strict=True)]
    of_each = [
        g.reshape(*shape[:place], info.batch_size, *shape[place:])
        for g, shape, place in zip(found, shapes, places, strict=True)
    ]
    return of_each, places


def _vmap_of_adjoint(
    info: Any,
    in_dims: tuple[Any, ...],
    gradients: list[Tensor],
    tensors: list[Tensor],
    bodies: int,
    plane_bodies: list[int],
    *more: Any,
) -> Any:
    x = _all_in_front(info, in_dims[1], tensors, bodies, len(plane_bodies), expanded=True)
    given = _gradients_in_front(info, in_dims[0], gradients)
    found = torch.ops.lcp._roll_out_scene_adjoint(given, x, bodies, plane_bodies, *more)
    return _of_each(info, in_dims[1], tensors, found)


def _vmap_of_tangent(
    info: Any,
    in_dims: tuple[Any, ...],
    tangents: list[Tensor],
    tensors: list[Tensor],
    bodies: int,
    plane_bodies: list[int],
    *more: Any,
) -> Any:
    changes, x = (
        _all_in_front(info, dims, given, bodies, len(plane_bodies), expanded=True)
        for dims, given in zip(in_dims, (tangents, tensors))
    )
    found = torch.ops.lcp._roll_out_scene_tangent(changes, x, bodies, plane_bodies, *more)
    return found, [1] * len(found)


def _vmap_of_adjoint_tangent(
    info: Any,
    in_dims: tuple[Any, ...],
    of_gradients: list[Tensor],
    tangents: list[Tensor],
    gradients: list[Tensor],
    tensors: list[Tensor],
    bodies: int,
    plane_bodies: list[int],
    *more: Any,
) -> Any:
    changes = _all_in_front(info, in_dims[1], tangents, bodies, len(plane_bodies), expanded=True)
    x = _all_in_front(info, in_dims[3], tensors, bodies, len(plane_bodies), expanded=True)
    of_given = _gradients_in_front(info, in_dims[0], of_gradients)
    given = _gradients_in_front(info, in_dims[2], gradients)
    found = torch.ops.lcp._roll_out_scene_adjoint_tangent(of_given, changes, given, x, bodies, plane_bodies, *more)
    return _of_each(info, in_dims[3], tensors, found)


torch.library.register_fake(_ADJOINT)(_shapes_of_adjoint)
torch.library.register_vmap(_NAME, _vmap)
torch.library.register_vmap(_ADJOINT, _vmap_of_adjoint)
torch.library.register_vmap(_TANGENT, _vmap_of_tangent)
torch.library.register_vmap(_ADJOINT_TANGENT, _vmap_of_adjoint_tangent)
