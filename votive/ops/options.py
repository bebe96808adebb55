"""What every creating function accepts: dtype, layout, device, pin_memory, requires_grad, out."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.device import DeviceLike, resolve
from ..core.device import device as Device
from ..core.errors import UnsupportedError, fail, received
from ..core.memory_format import layout
from .registry import F, Fn
from .schema import is_tensor

if TYPE_CHECKING:
    from ..core.dtype import dtype
    from ..core.layout import Shape
    from ..formula.expr import Number
    from ..tensor import Tensor

_PYTHON_TYPES = {float: dt.float64, int: dt.int64, bool: dt.bool_, complex: dt.complex128}


def dtype_of(op: str, value: dtype) -> dt.dtype:
    """The dtype meant by an argument; Python's own number types count."""
    if isinstance(value, dt.dtype):
        return value
    found = _PYTHON_TYPES.get(value) if isinstance(value, type) else None
    if found is None:
        raise TypeError(f"{op}: dtype must be a votive.dtype, got {value!r}.")
    return found


class TensorOptions(TypedDict, total=False):
    """What may be said of a new tensor, wherever one is made."""

    dtype: dt.dtype | None
    layout: layout | None
    device: DeviceLike
    pin_memory: bool
    requires_grad: bool


# As signatures and stubs show them.
_PARAMETERS = {
    name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
    for name, kind, default in (
        ("dtype", "dtype | None", None),
        ("layout", "layout | None", None),
        ("device", "DeviceLike", None),
        ("pin_memory", "bool", False),
        ("requires_grad", "bool", False),
    )
}


def tensor_options(without: str = "") -> Callable[[Fn], Fn]:
    """Give a function that takes `**given: Unpack[TensorOptions]` a signature that names them all.

    `without` is one that it does not take.
    """

    def decorate(fn: Fn) -> Fn:
        signature = inspect.signature(fn)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = [p for name, p in _PARAMETERS.items() if name != without]
        fn.__signature__ = signature.replace(parameters=[*own, *taken])  # type: ignore[attr-defined]
        return fn

    return decorate


def options(
    op: str, given: TensorOptions, *, without: str = "", default: dt.dtype | None = None, place: Device | None = None
) -> tuple[dt.dtype, Device]:
    """The dtype and device asked for, else `default` (the default float) and `place`."""
    check_options(op, given, without)
    dtype, device = given.get("dtype"), given.get("device")
    wanted = default or dt.get_default_dtype() if dtype is None else dtype_of(op, dtype)
    where = resolve(device) if device is not None or place is None else place
    if given.get("pin_memory"):
        if where.type not in ("cpu", "meta"):
            fail(RuntimeError, op, f"only dense CPU tensors can be pinned, got device {where}.")
        check_pinning(op)
    return wanted, where


def check_options(op: str, given: TensorOptions, without: str = "") -> None:
    """Raise for names that are no options and for another layout than the one there is."""
    for name in given:
        if name not in _PARAMETERS or name == without:
            raise TypeError(f"{op}: got an unexpected keyword argument {name!r}.")
    if "layout" in given:
        check_layout(op, given["layout"])


def check_layout(op: str, layout: object) -> None:
    """Raise for another layout than the one there is."""
    if layout is not None and str(layout).rpartition(".")[2] != "strided":
        fail(UnsupportedError, op, f"layout must be strided, got {layout}.")


def check_pinning(op: str) -> None:
    """Raise when no GPU is there to lock pages for."""
    try:
        _ = BACKENDS["cuda"]
    except RuntimeError as e:
        fail(
            RuntimeError,
            op,
            "pin_memory requires a CUDA or other accelerator backend; no pinned memory allocator "
            f"is available on this system ({str(e).rstrip('.')}).",
        )


def finish(t: Tensor, given: TensorOptions, *, pin: bool = True) -> Tensor:
    """Honour pin_memory= (where `pin`) and requires_grad= on a freshly made tensor."""
    if pin and given.get("pin_memory") and t._spec.device.type != "meta":
        t = F.pin_memory(t)
    return t.requires_grad_() if given.get("requires_grad") else t


def out_dtype(op: str, out: Tensor | None, given: TensorOptions) -> TensorOptions:
    """The options with the dtype of `out` if there is one, which theirs must not contradict."""
    if out is None:
        return given
    dtype = given.get("dtype")
    if dtype is not None and dtype_of(op, dtype) is not out.dtype:
        fail(RuntimeError, op, f"dtype {dtype} does not match the dtype of out, {out.dtype}.")
    return {**given, "dtype": out.dtype}


def deliver(t: Tensor, out: Tensor | None, given: TensorOptions) -> Tensor:
    """The new tensor, or `out` resized and overwritten with it."""
    if out is not None:
        t = F.copy_(out.resize_(t._spec.shape), t)
    return finish(t, given, pin=out is None)


def new_memory(shape: Shape, strides: Shape, dtype: dt.dtype, device: Device, given: TensorOptions) -> Tensor:
    """Memory with arbitrary content, page-locked on the CPU if that was asked for."""
    if given.get("pin_memory") and device.type == "cpu":
        return F._empty_pinned(shape, strides, dtype)
    return F._empty(shape, strides, dtype, device)


def number(op: str, name: str, value: object) -> Any:
    """A Python number from a number or a 0-d tensor."""
    if is_tensor(value):
        if value.ndim:
            raise TypeError(f"{op}: {name} must be a number, got a tensor of shape {value.shape}.")
        return value.item()
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "ndim", 0):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"{op}: {name} must be a number, got {received(value)}.")
    return value


def fitting(op: str, value: Number, dtype: dt.dtype) -> Any:
    """A number that `dtype` can hold, or torch's overflow error.

    Negative numbers may wrap around in unsigned types; infinities and NaN are floats like others.
    """
    if dtype.category in (dt.BOOL, dt.COMPLEX):
        return value
    if isinstance(value, complex):
        if value.imag:
            _overflow(op, value, dtype)
        value = value.real
    low, high = _limits(dtype)
    if dtype.category == dt.FLOAT:
        if (isinstance(value, int) or math.isfinite(value)) and not low <= value <= high:
            _overflow(op, value, dtype)
        return value
    if not low <= value <= high:  # NaN neither
        _overflow(op, value, dtype)
    return value.__index__() if isinstance(value, int) else int(value)


@functools.cache
def _limits(dtype: dt.dtype) -> tuple[Any, Any]:
    info: Any = (dt.finfo if dtype.category == dt.FLOAT else dt.iinfo)(dtype)
    return (info.min if dtype.is_signed else -info.max), info.max


def _overflow(op: str, value: Number, dtype: dt.dtype) -> None:
    fail(RuntimeError, op, f"value {value} cannot be converted to {dtype} without overflow.")
