"""Copies and casts."""

from __future__ import annotations

from typing import Any

from ....core.device import device
from ....core.dtype import dtype
from ...base import kernel
from ...common.assign import assign
from ..arrays import Array, Ints


@kernel("_copy_as", into=True, widen=False)
def copy_as(x: Array, dtype: dtype, stride: Ints, out: Array) -> None:
    assign(out, x)


@kernel("copy", into=True, widen=False)
def copy(x: Array, src: Array, out: Array) -> None:
    assign(out, src)


@kernel("_to_device", widen=False)
def to_device(x: Array, device: device, non_blocking: bool) -> Any:
    """Hand the values to another device, or copy them here."""
    from ....core import dtype as dt
    from ....core.layout import Layout, Spec
    from ...base import BACKENDS

    d = dt.from_numpy(x.dtype)
    here = Spec(Layout(x.shape, tuple(s // d.itemsize for s in x.strides)), d, device)
    if device.type == "cpu":
        return x.copy(order="K")
    return BACKENDS[device.type].receive(x, here.dense_like(), non_blocking)


@kernel("_transfer_", widen=False)
def transfer(x: Array, src: Array, non_blocking: bool) -> tuple[()]:
    assign(x, src)
    return ()


@kernel("_pin_memory", widen=False)
def pin_memory(x: Array) -> tuple[Any, ...]:
    """The values in memory that the backend of a GPU has page-locked."""
    from ...base import BACKENDS

    storage, data, spec = BACKENDS["cuda"].pinned(x.shape, x.strides, x.dtype)
    assign(data, x)
    return storage, data, spec


@kernel("_empty_pinned", widen=False)
def empty_pinned(size: Ints, stride: Ints, dtype: dtype) -> tuple[Any, ...]:
    from ...base import BACKENDS

    strides = tuple(s * dtype.itemsize for s in stride)
    return BACKENDS["cuda"].pinned(size, strides, dtype.np)
