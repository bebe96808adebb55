"""`votive.webgpu`: any GPU through Metal, Vulkan or Direct3D 12. Nothing here starts a device until one is asked for.

Programs ask `is_available()`; `why_not()` says what is missing.
"""

from __future__ import annotations

from typing import Any

from .backends.webgpu.cpu_fallback import WebGpuFallbackWarning, counts
from .backends.webgpu.runtime import runtime as _runtime
from .backends.webgpu.runtime.gpu import adapters
from .core.device import DeviceLike
from .core.device import device as Device
from .core.errors import OutOfMemoryError, WebGpuError

__all__ = [
    "OutOfMemoryError",
    "WebGpuError",
    "WebGpuFallbackWarning",
    "cpu_fallbacks",
    "current_device",
    "device_count",
    "dispatch_count",
    "get_shaders",
    "empty_cache",
    "get_adapters",
    "get_device_properties",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_by_owner",
    "memory_stats",
    "reset_peak_memory_stats",
    "synchronize",
    "why_not",
]


def is_available() -> bool:
    """Whether tensors can be placed on the device "webgpu".

    >>> votive.webgpu.is_available() == (votive.webgpu.why_not() == "")
    True
    """
    return why_not() == ""


def why_not() -> str:
    """The reason why `is_available()` is false, or nothing.

    >>> isinstance(votive.webgpu.why_not(), str)
    True
    """
    try:
        _runtime.start()
    except WebGpuError as e:
        return str(e).removeprefix("webgpu: ").rstrip(".")
    return ""


def device_count() -> int:
    """How many devices there are: the best adapter is one.

    >>> votive.webgpu.device_count() == int(votive.webgpu.is_available())
    True
    """
    return int(is_available())


def current_device() -> int:
    """The number of the device in use.

    >>> votive.webgpu.current_device() if votive.webgpu.is_available() else 0
    0
    """
    _runtime.start()
    return 0


def get_adapters() -> list[dict[str, str]]:
    """The adapters of this machine, the one that is used first. VOTIVE_WEBGPU_ADAPTER chooses by a part of its name.

    >>> adapters = votive.webgpu.get_adapters() if votive.webgpu.is_available() else []
    >>> all("backend_type" in a for a in adapters)
    True
    """
    return adapters()


def get_device_properties(device: DeviceLike = None) -> dict[str, Any]:
    """The adapter in use: its name, features and limits.

    >>> if votive.webgpu.is_available():
    ...     assert votive.webgpu.get_device_properties()["limits"]["max-buffer-size"] > 0
    """
    _checked(device)
    gpu = _runtime.start().gpu
    return {**gpu.info, "features": sorted(gpu.features), "limits": dict(gpu.limits)}


def _checked(device: DeviceLike) -> None:
    if device is not None and device != 0:
        given = Device(device)
        if given.type != "webgpu" or given.index not in (None, 0):
            raise WebGpuError(f"webgpu: there is no device {given}; there is one, 'webgpu'.")


def synchronize(device: DeviceLike = None) -> None:
    """Wait until everything that was asked of the device is done. Errors that kernels found are raised here.

    >>> if votive.webgpu.is_available():
    ...     votive.webgpu.synchronize()
    """
    _checked(device)
    if _runtime.started:
        _runtime.synchronize()


def empty_cache() -> None:
    """Give memory that no tensor uses back to the driver.

    >>> votive.webgpu.empty_cache()
    """
    if _runtime.started:
        _runtime.allocator.empty_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Bytes in use, at peak and kept for later, and how often kept memory served.

    >>> sorted(votive.webgpu.memory_stats())
    ['allocated_bytes', 'cached_bytes', 'hits', 'misses', 'peak_bytes']
    """
    _checked(device)
    if _runtime.started:
        return _runtime.allocator.stats()
    return dict.fromkeys(("allocated_bytes", "peak_bytes", "cached_bytes", "hits", "misses"), 0)


def memory_by_owner(device: DeviceLike = None) -> dict[str, int]:
    """Bytes in use by the module whose call made them, under its path; "" is everything else.

    >>> all(n > 0 for n in votive.webgpu.memory_by_owner().values())
    True
    """
    _checked(device)
    return dict(_runtime.allocator.owners) if _runtime.started else {}


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors use.

    >>> votive.webgpu.memory_allocated() >= 0
    True
    """
    return memory_stats(device)["allocated_bytes"]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors used at most.

    >>> votive.webgpu.max_memory_allocated() >= votive.webgpu.memory_allocated()
    True
    """
    return memory_stats(device)["peak_bytes"]


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Count the peak from now on.

    >>> votive.webgpu.reset_peak_memory_stats()
    """
    _checked(device)
    if _runtime.started:
        _runtime.allocator.peak = _runtime.allocator.allocated


def cpu_fallbacks() -> dict[str, int]:
    """The operators that were computed on the CPU for want of a kernel, and how often.

    >>> isinstance(votive.webgpu.cpu_fallbacks(), dict)
    True
    """
    return dict(counts)


def get_shaders(name: str = "") -> dict[str, list[str]]:
    """The WGSL texts of the kernels that were compiled so far, by the operator they serve; of one, by its name.

    >>> if votive.webgpu.is_available():
    ...     _ = votive.ones(3, device="webgpu").tanh()
    ...     assert "fn f_tanh" in votive.webgpu.get_shaders("tanh")["tanh"][0]
    """
    if not _runtime.started:
        return {}
    from .backends.webgpu.shaders.program import compiled

    return {k: list(v) for k, v in compiled.items() if name in ("", k)}


def dispatch_count() -> int:
    """How many kernels were run since the start.

    >>> votive.webgpu.dispatch_count() >= 0
    True
    """
    return _runtime.dispatches
