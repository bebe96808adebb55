"""The names torch keeps under `torch.utils`."""

from __future__ import annotations

from typing import Any

from . import checkpoint

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    # Loaders need sockets and processes, which a program that only computes should not wait for.
    if name == "data":
        import importlib

        return importlib.import_module(f"{__name__}.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
