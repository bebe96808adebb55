"""Pictures: what torchvision does. Parts are imported when they are first asked for."""

from __future__ import annotations

from importlib import import_module

_PARTS = ("datasets", "io", "models", "ops", "transforms", "utils")
__all__ = list(_PARTS)


def __getattr__(name: str) -> object:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
