"""`votive.cuda`: whether a GPU can be used. There is no CUDA backend yet, so it cannot.

Programs ask `is_available()` and then stay on the CPU; asking for more says why it is not there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHY = "votive has no CUDA backend yet; use device='cpu'"


def is_available() -> bool:
    """Whether tensors can be placed on a GPU.

    >>> votive.cuda.is_available()
    False
    """
    return False


def why_not() -> str:
    """The reason why `is_available()` is false.

    >>> votive.cuda.why_not()
    "votive has no CUDA backend yet; use device='cpu'"
    """
    return _WHY


def device_count() -> int:
    """How many GPUs can be used.

    >>> votive.cuda.device_count()
    0
    """
    return 0


def __getattr__(name: str) -> Any:
    if name == "amp":  # mixed precision brings the optimizers with it; most programs need neither
        import_module("votive.amp")
        return globals()["amp"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
