"""`votive.mps`: there is no backend for Apple's GPUs; questions are answered, the rest says so."""

from __future__ import annotations

from typing import Any

from .absent_device import AbsentDeviceError, refusal

__all__ = ["AbsentDeviceError", "device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be placed on Apple's GPUs: no.

    >>> votive.mps.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are to use: none.

    >>> votive.mps.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generator of a device that is not there: nothing happens, as in torch.

    >>> votive.mps.manual_seed(0)
    """


_NAMES = (
    "Event",
    "compile_shader",
    "current_allocated_memory",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "load_metallib",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
)
_refused = refusal(__name__, "Apple's GPUs", _NAMES)


def __getattr__(name: str) -> Any:
    return _refused(name)
