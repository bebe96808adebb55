"""`votive.mtia`: there is no backend for Meta's accelerators; questions are answered, the rest says so."""

from __future__ import annotations

from typing import Any

from .absent_device import AbsentDeviceError, refusal
from .core.words import words as _words

__all__ = ["AbsentDeviceError", "device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be placed on Meta's accelerators: no.

    >>> votive.mtia.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are to use: none.

    >>> votive.mtia.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generator of a device that is not there: nothing happens, as in torch.

    >>> votive.mtia.manual_seed(0)
    """


def manual_seed_all(seed: int) -> None:
    """Seed the generators of devices that are not there: nothing happens, as in torch.

    >>> votive.mtia.manual_seed_all(0)
    """


def is_initialized() -> bool:
    """Whether the device was started: no.

    >>> votive.mtia.is_initialized()
    False
    """
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with there: no.

    >>> votive.mtia.is_bf16_supported()
    False
    """
    return False


default_generators: tuple[Any, ...] = ()


_NAMES = _words(
    "MTIAGraph attach_out_of_memory_observer current_device current_stream default_stream device empty_cache "
    "get_device_capability get_device_properties get_rng_state get_rng_state_all graph graph_pool_handle init "
    "initial_seed max_memory_allocated memory_allocated memory_stats record_memory_history reset_peak_memory_stats "
    "seed seed_all set_device set_rng_state set_rng_state_all set_stream snapshot stream synchronize"
)
_refused = refusal(__name__, "Meta's accelerators", _NAMES)


def __getattr__(name: str) -> Any:
    return _refused(name)
