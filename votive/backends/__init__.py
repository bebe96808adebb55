"""Where operators run: the kernel table and the devices."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("cpu", "cuda"):  # found when first asked for
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
