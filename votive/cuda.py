"""`votive.cuda`: whether a GPU can be used. There is no CUDA backend yet, so it cannot.

Programs ask `is_available()` and then stay on the CPU; asking for more says why it is not there.
"""

from __future__ import annotations

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
