"""What the positional arguments of `to` mean, for tensors that are made of others."""

from __future__ import annotations

from typing import Any

from ..core.device import DeviceLike
from ..core.dtype import dtype as Dtype
from ..tensor import Tensor


def destination(
    args: tuple[Any, ...], dtype: Dtype | None, device: DeviceLike, non_blocking: bool
) -> tuple[Dtype | None, DeviceLike, bool]:
    """(dtype, device, non_blocking), each from the arguments by position or else as given by name."""
    for a in args:
        if isinstance(a, Dtype):
            dtype = a
        elif isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, bool):
            non_blocking = a
        elif a is not None:
            device = a
    return dtype, device, non_blocking
