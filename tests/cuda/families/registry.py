"""Where families are entered, and what their values are made by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FAMILIES: dict[str, Callable[[Any], None]] = {}


def family(fn: Callable[[Any], None]) -> Callable[[Any], None]:
    FAMILIES[fn.__name__] = fn
    return fn


def tensor_of(vt: Any, *shape: int, dtype: str = "bfloat16") -> Any:
    return vt.empty(*shape, dtype=getattr(vt, dtype), device="cuda")
