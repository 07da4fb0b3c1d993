"""Rollouts of rigid scenes as operators that torch.compile and torch.func.vmap do not look into.

Which contacts a step solves depends on numbers, which these transforms cannot read. The operators are compiled; here are
their rules for torch.func.vmap, and the function of autograd that has one as the derivative of the other.
A scene is one list of tensors, in the order of lcp::_roll_out_scene: the state, u, (mass, inertia, centers, radii, drag)
of each body, (normal, offset) of each plane, gravity, mu, restitution and, if there are any, stiffness and dissipation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_NAME, _ADJOINT = "lcp::_roll_out_scene", "lcp::_roll_out_scene_adjoint"
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
    """lcp::_roll_out_scene of tensors, after a tuple of its other arguments, with a derivative under these transforms.

    Elsewhere the operator has derivatives of its own, of every order.
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


def _vmap_of_adjoint(
    info: Any,
    in_dims: tuple[Any, ...],
    gradients: list[Tensor],
    tensors: list[Tensor],
    bodies: int,
    plane_bodies: list[int],
    *more: Any,
) -> Any:
    # Each mapped element has gradients of its own, also of tensors that all share.
    x = _all_in_front(info, in_dims[1], tensors, bodies, len(plane_bodies), expanded=True)
    given = [
        _in_front(g, dim, info.batch_size, True, 0, True) for g, dim in zip(gradients, in_dims[0], strict=True)
    ]
    found = torch.ops.lcp._roll_out_scene_adjoint(given, x, bodies, plane_bodies, *more)
    places = [1 if k == 4 else 0 for k in range(len(tensors))]
    shapes = [
        x.shape if dim is None else (*x.shape[:dim], *x.shape[dim + 1 :]) for x, dim in zip(tensors, in_dims[1], strict=True)
    ]
    of_each = [
        g.reshape(*shape[:place], info.batch_size, *shape[place:])
        for g, shape, place in zip(found, shapes, places, strict=True)
    ]
    return of_each, places


torch.library.register_fake(_ADJOINT)(_shapes_of_adjoint)
torch.library.register_vmap(_NAME, _vmap)
torch.library.register_vmap(_ADJOINT, _vmap_of_adjoint)
