"""`votive.cuda`: GPUs as torch users know them. Nothing here starts a GPU until one is asked for.

Programs ask `is_available()`; `why_not()` says what is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core import device as _device
from ..core.device import DeviceLike
from ..core.errors import CudaError, OutOfMemoryError

_HOME = {
    "streams": (
        "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
        "get_stream_from_external", "get_sync_debug_mode", "set_stream", "set_sync_debug_mode",
        "stream", "synchronize",
    ),
    "memory": (
        "caching_allocator_alloc", "caching_allocator_delete", "device_memory_used", "empty_cache",
        "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
        "host_memory_stats_as_nested_dict",
        "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
        "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict",
        "memory_summary", "reset_accumulated_memory_stats", "reset_peak_host_memory_stats",
        "reset_peak_memory_stats", "set_per_process_memory_fraction",
    ),
    "devices": (
        "can_device_access_peer", "current_device", "device", "device_of", "get_arch_list",
        "get_device_capability", "get_device_name", "get_device_properties", "ipc_collect",
        "is_bf16_supported", "is_tf32_supported", "set_device",
    ),
    "graphs": (
        "CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed",
    ),
    "graphed_callables": ("make_graphed_callables",),
    "older_names": (
        "max_memory_cached", "memory_cached", "reset_max_memory_allocated",
        "reset_max_memory_cached",
    ),
    "sensors": ("clock_rate", "memory_usage", "power_draw", "temperature", "utilization"),
    "generators": (
        "default_generators", "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed",
        "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all",
    ),
}  # fmt: skip
# Modules that are there under torch's names.
_MODULES = {
    "graphs": "graphs",
    "memory": "memory",
    "nvtx": "nvtx",
    "profiler": "profiler",
    "random": "generators",
    "streams": "streams",
}
_WHERE = {name: home for home, names in _HOME.items() for name in names}


def _runtime() -> Any:
    from ..backends.cuda import runtime

    return runtime


def is_available() -> bool:
    """Whether tensors can be placed on a GPU.

    >>> votive.cuda.is_available() == (votive.cuda.why_not() == "")
    True
    """
    return why_not() == ""


def why_not() -> str:
    """The reason why `is_available()` is false, or nothing.

    >>> isinstance(votive.cuda.why_not(), str)
    True
    """
    rt = _runtime().runtime
    if rt.driver is not None:
        return ""
    try:
        rt.start()
    except CudaError as e:
        return str(e).removeprefix("cuda: ").rstrip(".")
    return ""


def device_count() -> int:
    """How many GPUs can be used.

    >>> votive.cuda.device_count() >= 0
    True
    """
    return int(_runtime().runtime.driver.count) if is_available() else 0


def init() -> None:
    """Start the GPU now instead of when the first tensor is placed there.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.init()
    """
    _here()


def is_initialized() -> bool:
    """Whether something was placed on a GPU already.

    >>> isinstance(votive.cuda.is_initialized(), bool)
    True
    """
    return _runtime().here is not None


def _here() -> Any:
    """The thread's state; an error that says why when there is no GPU."""
    from ..backends.base import BACKENDS

    _ = BACKENDS["cuda"]
    here = _runtime().here
    _ = here.device  # a thread's state is made, and a device made its own, when first looked at
    return here


def _index(device: DeviceLike = None) -> int:
    """The number of a device that was given in any of the usual ways."""
    here = _here()
    if device is None:
        return int(here.device)
    if isinstance(device, int):
        return device
    found = _device.device(device)
    if found.type != "cuda":
        raise ValueError(f"cuda: expected a cuda device, got {found}.")
    return int(here.device if found.index is None else found.index)


def __getattr__(name: str) -> Any:
    if name == "amp":  # mixed precision brings the optimizers with it; most programs need neither
        import_module("votive.amp")
        return globals()["amp"]
    if name in _MODULES:
        module = globals()[name] = import_module(f"{__name__}.{_MODULES[name]}")
        return module
    home = _WHERE.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    if name != "default_generators":  # which is empty while no GPU is in use
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_MODULES, "amp"})


__all__ = ["CudaError", "OutOfMemoryError", "device_count", "init", "is_available", "is_initialized", "why_not"]
