"""Modules for quantization: `quantized` (codes), `qat` (training with rounding), `intrinsic` (fused)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PARTS = ("intrinsic", "qat", "quantized")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})


__all__ = list(_PARTS)
