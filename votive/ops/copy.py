"""Copies: cast, clone, copy_, contiguous, to. Knows layouts and dtypes, not how bytes move."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.device import device as Device
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Layout, Spec, broadcast_shapes, channels_last_strides, contiguous_strides
from ..core.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
)
from .registry import OPS, F, Op, composite, structured


def format_strides(op: str, x: Spec, order: memory_format | None) -> tuple[int, ...]:
    """Strides of a copy of `x` in a memory format."""
    if order is None or order is preserve_format:
        return x.dense_like().strides
    if order is contiguous_format:
        return contiguous_strides(x.shape)
    if order in (channels_last, channels_last_3d):
        want = 4 if order is channels_last else 5
        if x.ndim != want:
            fail(RuntimeError, op, f"required rank {want} tensor to use {order} format, got {x.ndim}.")
        return channels_last_strides(x.shape)
    raise TypeError(f"{op}: unknown memory_format {order!r}.")


structured(
    "_copy_as(Tensor input, dtype dtype, int[] stride)",
    infer=lambda x, dtype, stride: Spec(Layout(x.shape, stride), dtype, x.device),
    grad={"input": lambda c, g: g},
    method=False, namespaces=(), out=False,
    doc="A copy with another dtype or another order of dimensions in memory.",
)  # fmt: skip


@composite(name="_to_dtype", method=False, namespaces=())
def to_dtype(input: Any, dtype: dt.dtype) -> Any:
    """A cast copy, or the tensor itself when nothing changes."""
    if input._spec.dtype is dtype:
        return input
    return F._copy_as(input, dtype, input._spec.dense_like().strides)


@composite
def clone(input: Any, *, memory_format: Any = preserve_format) -> Any:
    """A copy with its own memory, through which gradients flow.

    >>> votive.tensor([1, 2]).clone()
    tensor([1, 2])
    """
    return F._copy_as(input, input._spec.dtype, format_strides("clone", input._spec, memory_format))


@composite
def contiguous(input: Any, memory_format: Any = contiguous_format) -> Any:
    """The tensor itself if it already lies in this order, else a copy that does.

    >>> votive.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if input.is_contiguous(memory_format):
        return input
    return clone(input, memory_format=memory_format)


def _infer_copy(x: Spec, src: Spec) -> Spec:
    if broadcast_shapes("copy_", x.shape, src.shape) != x.shape:
        fail(ShapeError, "copy_", f"a source of shape {src.shape} does not fit into {x.shape}.")
    return x.dense_like()


structured(
    "copy(Tensor input, Tensor src)",
    infer=_infer_copy,
    grad={"input": None, "src": lambda c, g: g},
    method=False, namespaces=(), out=False,
    doc="The value of src in the shape and dtype of input; `copy_` writes it there.",
)  # fmt: skip


@composite(name="copy_")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Overwrite this tensor with `src`, broadcast and cast.

    >>> votive.zeros(2).copy_(votive.tensor([1, 2]))
    tensor([1., 2.])
    """
    if not hasattr(src, "_spec"):
        src = F.tensor(src, device=input.device)
    return Op.inplace(OPS["copy"], (input, src), True)


def _as_target(op: str, value: Any) -> tuple[dt.dtype | None, Any]:
    """Read one argument of `to`: a dtype, a device, or a tensor to be like."""
    if isinstance(value, dt.dtype):
        return value, None
    if hasattr(value, "_spec"):
        return value.dtype, value.device
    if value is None:
        return None, None
    if value in (float, int, bool, complex):
        return {float: dt.get_default_dtype(), int: dt.int64, bool: dt.bool_}.get(
            value, dt.complex64
        ), None
    return None, Device(value)


@composite
def to(
    input: Any,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """This tensor with another dtype, device or memory format; itself when nothing changes.

    >>> votive.tensor([1, 2]).to(votive.float64)
    tensor([1., 2.], dtype=votive.float64)
    """
    positional = list(args)
    if positional:
        got_dtype, got_device = _as_target("to", positional.pop(0))
        dtype, device = got_dtype or dtype, got_device or device
        if positional and (isinstance(positional[0], dt.dtype) or positional[0] is None):
            dtype = positional.pop(0) or dtype
        if positional:
            non_blocking = bool(positional.pop(0))
        if positional:
            copy = bool(positional.pop(0))
        if positional:
            raise TypeError(f"to: unexpected arguments {positional}.")
    if dtype is not None and not isinstance(dtype, dt.dtype):
        dtype = _as_target("to", dtype)[0]
    want_device = input.device if device is None else Device(device)
    want = dtype or input._spec.dtype
    moved = input
    if want_device is not input.device:
        moved = F._to_device(input, want_device)
    strides = format_strides("to", input._spec, memory_format)
    keeps_order = memory_format in (None, preserve_format) or strides == input._spec.strides
    if moved._spec.dtype is want and keeps_order and not (copy and moved is input):
        return moved
    return F._copy_as(moved, want, strides)


@composite(name="_to_device", method=False, namespaces=())
def to_device(input: Any, device: Device) -> Any:
    """A copy on another device."""
    raise UnsupportedError(f"to: no transfer from {input.device} to {device} is available.")


def _caster(name: str, target: Any) -> None:
    def cast(input: Any, memory_format: Any = preserve_format) -> Any:
        want = target() if callable(target) else target
        return to(input, want, memory_format=memory_format)

    cast.__name__ = cast.__qualname__ = name
    shown = target() if callable(target) else target
    cast.__doc__ = f"""This tensor as {shown}.

    >>> votive.tensor([1, 0]).{name}().dtype
    {shown}
    """
    composite(cast, namespaces=())


for _name, _target in {
    "double": dt.float64, "float": dt.float32, "half": dt.float16, "bfloat16": dt.bfloat16,
    "long": dt.int64, "int": dt.int32, "short": dt.int16, "char": dt.int8, "byte": dt.uint8,
    "bool": dt.bool_, "cfloat": dt.complex64, "cdouble": dt.complex128,
}.items():  # fmt: skip
    _caster(_name, _target)


@composite
def type_as(input: Any, other: Any) -> Any:
    """This tensor with the dtype of another.

    >>> votive.tensor([1]).type_as(votive.tensor(1.5))
    tensor([1.])
    """
    return to(input, other.dtype, device=other.device)


@composite(namespaces=())
def cpu(input: Any, memory_format: Any = preserve_format) -> Any:
    """This tensor on the CPU.

    >>> votive.tensor([1]).cpu()
    tensor([1])
    """
    return to(input, device="cpu", memory_format=memory_format)
