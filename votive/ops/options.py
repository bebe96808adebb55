"""What every creating function accepts: dtype, layout, device, pin_memory, requires_grad, out."""

from __future__ import annotations

import functools
import math
from typing import Any

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.device import device as Device
from ..core.device import resolve
from ..core.errors import UnsupportedError, fail, received
from .registry import F

_PYTHON_TYPES = {float: dt.float64, int: dt.int64, bool: dt.bool_, complex: dt.complex128}


def dtype_of(op: str, value: Any) -> dt.dtype:
    """The dtype meant by an argument; Python's own number types count."""
    if isinstance(value, dt.dtype):
        return value
    found = _PYTHON_TYPES.get(value) if isinstance(value, type) else None
    if found is None:
        raise TypeError(f"{op}: dtype must be a votive.dtype, got {value!r}.")
    return found


def options(
    op: str,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    *,
    default: dt.dtype | None = None,
    place: Device | None = None,
) -> tuple[dt.dtype, Device]:
    """The dtype and device asked for, else `default` (the default float) and `place`."""
    check_layout(op, layout)
    wanted = default or dt.get_default_dtype() if dtype is None else dtype_of(op, dtype)
    where = resolve(device) if device is not None or place is None else place
    if pin_memory:
        if where.type not in ("cpu", "meta"):
            fail(RuntimeError, op, f"only dense CPU tensors can be pinned, got device {where}.")
        check_pinning(op)
    return wanted, where


def check_layout(op: str, layout: Any) -> None:
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


def finish(t: Any, requires_grad: bool, pin_memory: Any = False) -> Any:
    """Honour pin_memory= and requires_grad= on a freshly made tensor."""
    if pin_memory and t._spec.device.type != "meta":
        t = F.pin_memory(t)
    return t.requires_grad_() if requires_grad else t


def out_dtype(op: str, out: Any, dtype: Any) -> Any:
    """The dtype of the result: that of `out` if there is one; `dtype` must not contradict it."""
    if out is None:
        return dtype
    if dtype is not None and dtype_of(op, dtype) is not out.dtype:
        fail(RuntimeError, op, f"dtype {dtype} does not match the dtype of out, {out.dtype}.")
    return out.dtype


def deliver(t: Any, out: Any, requires_grad: bool, pin_memory: Any = False) -> Any:
    """The new tensor, or `out` resized and overwritten with it."""
    if out is not None:
        t = F.copy_(out.resize_(t._spec.shape), t)
    return finish(t, requires_grad, pin_memory and out is None)


def new_memory(shape: Any, strides: Any, dtype: dt.dtype, device: Device, pin_memory: Any) -> Any:
    """Memory with arbitrary content, page-locked on the CPU if that was asked for."""
    if pin_memory and device.type == "cpu":
        return F._empty_pinned(shape, strides, dtype)
    return F._empty(shape, strides, dtype, device)


def number(op: str, name: str, value: Any) -> Any:
    """A Python number from a number or a 0-d tensor."""
    if hasattr(value, "_spec"):
        if value.ndim:
            raise TypeError(f"{op}: {name} must be a number, got a tensor of shape {value.shape}.")
        return value.item()
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "ndim", 0):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"{op}: {name} must be a number, got {received(value)}.")
    return value


def fitting(op: str, value: Any, dtype: dt.dtype) -> Any:
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
        if math.isfinite(value) and not low <= value <= high:
            _overflow(op, value, dtype)
        return value
    if not low <= value <= high:  # NaN neither
        _overflow(op, value, dtype)
    return int(value)


@functools.cache
def _limits(dtype: dt.dtype) -> tuple[Any, Any]:
    info: Any = (dt.finfo if dtype.category == dt.FLOAT else dt.iinfo)(dtype)
    return (info.min if dtype.is_signed else -info.max), info.max


def _overflow(op: str, value: Any, dtype: dt.dtype) -> None:
    fail(RuntimeError, op, f"value {value} cannot be converted to {dtype} without overflow.")
