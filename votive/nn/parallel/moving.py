"""Arguments of a module on the device that it is on: tensors inside lists, tuples and dicts."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...tensor import Tensor


def moved(x: Any, device: Any = None, dtype: dt.dtype | None = None) -> Any:
    """The same with tensors on a device, and those of floating point as another type.

    >>> votive.nn.parallel.moving.moved([votive.ones(1), (votive.arange(1), "x")], dtype=votive.float64)
    [tensor([1.], dtype=votive.float64), (tensor([0]), 'x')]
    """
    if isinstance(x, Tensor):
        there = x if device is None else x.to(device)
        return there.to(dtype) if dtype is not None and there.is_floating_point() else there
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(moved(i, device, dtype) for i in x))
    if isinstance(x, (list, tuple)):
        return type(x)(moved(i, device, dtype) for i in x)
    if isinstance(x, dict):
        copied = x.copy()
        copied.update({k: moved(v, device, dtype) for k, v in x.items()})
        return copied
    return x
