"""The names torch keeps under `torch.utils`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import checkpoint

# Imported when first asked for: loaders need sockets and processes, others are tools that few programs use.
_MODULES = frozenset(("data", "dlpack", "flop_counter", "model_zoo", "tensorboard"))
__all__ = ["checkpoint", *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
