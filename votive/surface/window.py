"""A tensor changes its own window on memory, or is cut into many: resize_, t_, split and kin.

Sits beside Tensor; knows storages and layouts, not what a device's memory looks like.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import dispatch
from ..autograd import record
from ..autograd.graph import Node
from ..backends.base import BACKENDS
from ..backends.cpu.native.loader import module as native
from ..core.errors import AutogradError, fail
from ..core.layout import Layout, Spec, contiguous_strides, extent
from ..core.mode import mode
from ..ops.copy import format_strides
from ..ops.registry import OPS, Op, composite
from ..ops.sizes import also_named, new_shape
from ..ops.strided import window_args

if TYPE_CHECKING:
    from ..tensor import Tensor


@composite(name="_views")
def views(input: Tensor, joint: str, given: Any, dim: int, bounds: Any) -> tuple[Any, ...]:
    """Views of one tensor that share one node in the graph, that of the operator `joint`.

    `bounds` are pairs (start, end) along a dimension, or the number of its slices. With a node
    each, backward would fill a tensor like `input` once per view.
    """
    tracked = mode.grad and input._rg and not input._level
    plan = dispatch.find(OPS[joint], (input, *given))[0] if tracked else None
    if native is not None:
        made = native.cut(input, dim, bounds, plan)
        if made is not None:
            return made
    # An observer may put another tensor in a piece's place, and that needs a history of its own.
    alone = bool(dispatch.state.observers)
    saved, mode.grad = mode.grad, mode.grad and (alone or not tracked)
    try:
        if bounds.__class__ is int:
            parts = tuple([Op.apply(OPS["select"], (input, dim, i)) for i in range(bounds)])
        else:
            parts = tuple([Op.apply(OPS["_slice"], (input, dim, a, b, 1)) for a, b in bounds])
    finally:
        mode.grad = saved
    if plan is not None and parts and not (alone and _any_replaced(input, dim, bounds, parts)):
        for part in parts:
            part._no_grad_view = False
        record.record(plan, (input,), parts)
    return parts


def _any_replaced(input: Tensor, dim: int, bounds: Any, parts: tuple[Any, ...]) -> bool:
    """Whether any piece is not just the view that was asked for, or somebody waits at its node."""
    base = input if input._base is None else input._base
    edge, stride = record.edge_of(input), input._spec.strides[dim]
    starts = range(bounds) if bounds.__class__ is int else [a for a, _ in bounds]
    for part, start in zip(parts, starts, strict=True):
        node = part._edge
        if (
            part._base is not base
            or part._offset != input._offset + start * stride
            or node.__class__ is not Node
            or node.recipe.plan is not part._chain[-1]
            or node.edges != (edge,)
            or node.tensor_hooks
            or node.pre_hooks
            or node.post_hooks
            or node.retained
        ):
            return True
    return False


def _window(spec: Spec, index: tuple[Any, ...]) -> Any:
    """How a basic index looks at a tensor of this spec, for the native module."""
    infer = OPS["_window"].infer
    assert infer is not None
    return native.Window(infer(spec, index)[0])


if native is not None:
    native.install_windows(mode, dispatch.forgettable(), _window)


def _keep_views(x: Tensor, spec: Spec, offset: int) -> None:
    """Views of `x` were described relative to its old window: lead them through that first."""
    for v in x._live_views():
        old = (x, spec.shape, spec.strides, offset - x._offset)
        plan, _ = dispatch.prepare(OPS["_as_strided"], old)
        v._chain = (plan, *v._chain)


def _become(name: str, x: Tensor, op: str, *args: Any) -> Any:
    """Let `x` be what the view operator `op` makes of it."""
    if mode.grad and x._rg and x.grad_fn is None:
        fail(
            AutogradError,
            name,
            "a leaf Variable that requires grad is being used in an in-place operation; use no_grad() or a copy.",
        )
    if x._level:  # stands for other tensors, which are then looked at in another way
        x._take(Op.apply(OPS[op], (x, *args)))
        return x
    before = x._spec, x._offset
    made = Op.apply(OPS[op], (x, *args))
    x._spec, x._data, x._offset = made._spec, made._data, made._offset
    if made._edge is not None:
        x._rg, x._edge = True, made._edge
    if x._base is not None:
        x._chain, x._seen = made._chain, made._seen
    del made
    _keep_views(x, *before)
    x._storage.version += 1
    return x


@composite(namespaces=(), reshapes=True)
def transpose_(input: Tensor, dim0: int, dim1: int) -> Any:
    """In-place form of `transpose`: this tensor itself gets the new shape.

    >>> votive.zeros(2, 3).transpose_(0, 1).shape
    votive.Size([3, 2])
    """
    return _become("transpose_", input, "transpose", dim0, dim1)


@composite(namespaces=(), reshapes=True)
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Any:
    """In-place form of `swapaxes`.

    >>> votive.zeros(2, 3).swapaxes_(0, 1).shape
    votive.Size([3, 2])
    """
    return _become("swapaxes_", input, "transpose", axis0, axis1)


@composite(namespaces=(), reshapes=True)
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Any:
    """In-place form of `swapdims`.

    >>> votive.zeros(2, 3).swapdims_(0, 1).shape
    votive.Size([3, 2])
    """
    return _become("swapdims_", input, "transpose", dim0, dim1)


@composite(namespaces=(), reshapes=True)
def t_(input: Tensor) -> Any:
    """In-place form of `t`.

    >>> votive.zeros(2, 3).t_().shape
    votive.Size([3, 2])
    """
    return _become("t_", input, "t")


@composite(namespaces=(), reshapes=True)
def squeeze_(input: Tensor, dim: Any = None) -> Any:
    """In-place form of `squeeze`.

    >>> votive.zeros(1, 3).squeeze_().shape
    votive.Size([3])
    """
    return _become("squeeze_", input, "squeeze", dim)


@composite(namespaces=(), reshapes=True)
def unsqueeze_(input: Tensor, dim: int) -> Any:
    """In-place form of `unsqueeze`.

    >>> votive.zeros(3).unsqueeze_(0).shape
    votive.Size([1, 3])
    """
    return _become("unsqueeze_", input, "unsqueeze", dim)


@composite(reshapes=True)
def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """In-place form of `as_strided`.

    >>> votive.tensor([1, 2, 3]).as_strided_((2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """
    args = window_args("as_strided_", input, size, stride, storage_offset)
    return _become("as_strided_", input, "_as_strided", *args)


@composite(namespaces=())
@also_named("size")
def resize_(input: Tensor, *size: Any, memory_format: Any = None) -> Any:
    """Change the shape without regard to the elements; memory grows when it is too small.

    Elements that fit are kept in storage order, new ones are arbitrary.

    >>> votive.tensor([[1, 2], [3, 4]]).resize_(3)
    tensor([1, 2, 3])
    """
    shape = new_shape("resize_", size)
    if input._rg:
        fail(RuntimeError, "resize_", "cannot resize variables that require grad; detach() first.")
    old = input._spec
    strides = contiguous_strides(shape)
    if memory_format is not None:
        strides = format_strides("resize_", old.like(shape), memory_format)
    elif shape == old.shape:
        return input
    spec = old.like(shape, strides=strides)
    if (input._offset + extent(shape, strides)) * spec.dtype.itemsize <= input._storage.nbytes:
        args = (shape, strides, 0)
        return _become("resize_", input, "_as_strided", *args)
    return _grow(input, spec)


def _grow(x: Tensor, spec: Spec) -> Any:
    """Move `x` and all that views its memory to a larger storage that starts with the old bytes."""
    old = x._storage
    if not old.owned:
        fail(RuntimeError, "resize_", "the storage is not resizable: it belongs to another object.")
    backend = BACKENDS[spec.device.type]
    itemsize = spec.dtype.itemsize
    length = x._offset + extent(spec.shape, spec.strides)
    whole = Spec(Layout((length,)), spec.dtype, spec.device)
    storage, data = backend.empty(whole)
    kept = Spec(Layout((old.nbytes // itemsize,)), spec.dtype, spec.device)
    if kept.numel:
        backend.copy(data[: kept.numel], backend.view(old, kept, 0))
    storage.version = old.version + 1
    base = x if x._base is None else x._base
    before = x._spec, x._offset
    x._spec = spec
    for t in (x, base, *base._live_views()):
        if t._storage is old:
            t._storage, t._data = storage, backend.view(storage, t._spec, t._offset)
    if base is x:
        _keep_views(x, *before)
    else:
        # What `x` shows is no longer a part of its base.
        x._base, x._chain = None, ()
    return x


@composite
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Any:
    """Resize this tensor to the shape of another.

    >>> votive.tensor([1, 2, 3, 4]).resize_as_(votive.zeros(2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    return resize_(input, the_template._spec.shape, memory_format=memory_format)
