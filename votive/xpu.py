"""`votive.xpu`: there is no backend for Intel's GPUs; questions are answered, the rest says so."""

from __future__ import annotations

from typing import Any

from .absent_device import AbsentDeviceError, refusal
from .core.words import words as _words

__all__ = ["AbsentDeviceError", "device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be placed on Intel's GPUs: no.

    >>> votive.xpu.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are to use: none.

    >>> votive.xpu.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generator of a device that is not there: nothing happens, as in torch.

    >>> votive.xpu.manual_seed(0)
    """


def manual_seed_all(seed: int) -> None:
    """Seed the generators of devices that are not there: nothing happens, as in torch.

    >>> votive.xpu.manual_seed_all(0)
    """


def is_initialized() -> bool:
    """Whether the device was started: no.

    >>> votive.xpu.is_initialized()
    False
    """
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with there: no.

    >>> votive.xpu.is_bf16_supported()
    False
    """
    return False


default_generators: tuple[Any, ...] = ()


_NAMES = _words(
    "Event MemPool Stream StreamContext XPUGraph XPUPluggableAllocator can_device_access_peer "
    "change_current_allocator clock_rate current_device current_stream device device_memory_used device_of "
    "empty_cache get_arch_list get_device_capability get_device_name get_device_properties get_gencode_flags "
    "get_per_process_memory_fraction get_rng_state get_rng_state_all get_stream_from_external graph graph_pool_handle "
    "init initial_seed is_current_stream_capturing make_graphed_callables max_memory_allocated max_memory_reserved "
    "mem_get_info memory_allocated memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict "
    "memory_usage power_draw reset_accumulated_memory_stats reset_peak_memory_stats seed seed_all set_device "
    "set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream stream synchronize temperature "
    "use_mem_pool utilization"
)
_refused = refusal(__name__, "Intel's GPUs", _NAMES)


def __getattr__(name: str) -> Any:
    return _refused(name)
