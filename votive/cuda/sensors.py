"""What NVIDIA's management library measures: load, temperature, power, clocks. Knows no tensors.

The library comes with the driver. A GPU is found there by its place on the bus, since numbers may
differ (CUDA_VISIBLE_DEVICES).
"""

from __future__ import annotations

import ctypes as c
from functools import cache
from typing import Any

from ..core.device import DeviceLike
from ..core.errors import CudaError
from .devices import get_device_properties


class _Rates(c.Structure):
    _fields_ = [("gpu", c.c_uint), ("memory", c.c_uint)]


@cache
def _library() -> Any:
    try:
        lib = c.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise CudaError("cuda: libnvidia-ml.so.1, which measurements need, cannot be loaded.") from None
    _check(lib.nvmlInit_v2(), "nvmlInit")
    return lib


def _check(code: int, what: str) -> None:
    if code:
        raise CudaError(f"{what}: NVIDIA's management library returned error {code}.")


def _ask(device: DeviceLike, what: str, out: Any, *more: Any) -> Any:
    p = get_device_properties(device)  # says why when there is no GPU
    lib, handle = _library(), c.c_void_p()
    place = f"0000:{p.pci_bus_id:02x}:{p.pci_device_id:02x}.0".encode()
    found = lib.nvmlDeviceGetHandleByPciBusId_v2(place, c.byref(handle))
    _check(found, "nvmlDeviceGetHandleByPciBusId")
    _check(getattr(lib, what)(handle, *more, c.byref(out)), what)
    return out


def utilization(device: DeviceLike = None) -> int:
    """Per cent of the last sample period in which a kernel ran.

    >>> if votive.cuda.is_available():
    ...     try:
    ...         assert 0 <= votive.cuda.utilization() <= 100
    ...     except votive.cuda.CudaError:  # not measured on this machine
    ...         pass
    """
    return int(_ask(device, "nvmlDeviceGetUtilizationRates", _Rates()).gpu)


def memory_usage(device: DeviceLike = None) -> int:
    """Per cent of the last sample period in which memory was read or written.

    >>> if votive.cuda.is_available():
    ...     try:
    ...         assert 0 <= votive.cuda.memory_usage() <= 100
    ...     except votive.cuda.CudaError:  # not measured on this machine
    ...         pass
    """
    return int(_ask(device, "nvmlDeviceGetUtilizationRates", _Rates()).memory)


def temperature(device: DeviceLike = None) -> int:
    """Degrees Celsius of the GPU.

    >>> if votive.cuda.is_available():
    ...     try:
    ...         assert votive.cuda.temperature() > 0
    ...     except votive.cuda.CudaError:  # not measured on this machine
    ...         pass
    """
    return int(_ask(device, "nvmlDeviceGetTemperature", c.c_uint(), 0).value)


def power_draw(device: DeviceLike = None) -> int:
    """Milliwatts that the GPU takes.

    >>> if votive.cuda.is_available():
    ...     try:
    ...         assert votive.cuda.power_draw() > 0
    ...     except votive.cuda.CudaError:  # not measured on this machine
    ...         pass
    """
    return int(_ask(device, "nvmlDeviceGetPowerUsage", c.c_uint()).value)


def clock_rate(device: DeviceLike = None) -> int:
    """Megahertz of the multiprocessors now.

    >>> if votive.cuda.is_available():
    ...     try:
    ...         assert votive.cuda.clock_rate() >= 0
    ...     except votive.cuda.CudaError:  # not measured on this machine
    ...         pass
    """
    return int(_ask(device, "nvmlDeviceGetClockInfo", c.c_uint(), 1).value)
