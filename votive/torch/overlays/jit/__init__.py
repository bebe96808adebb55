"""`torch.jit`: the annotation for attributes that never change, which Python's own stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Fn = TypeVar("Fn", bound=Callable[..., Any])

__all__ = ["Final", "_overload", "_overload_method"]


def _overload(func: Fn) -> Fn:
    """A signature for TorchScript's compiler, which is not here: the last definition is the function."""
    return func


_overload_method = _overload
