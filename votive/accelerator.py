"""`votive.accelerator`: the GPU, whatever its kind; here it is CUDA's or none. The names are torch's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import cuda
from .core.device import device as Device

if TYPE_CHECKING:
    from .core.device import DeviceLike

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a GPU to compute with.

    >>> votive.accelerator.is_available() == votive.cuda.is_available()
    True
    """
    return cuda.is_available()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The kind of device that accelerates here, or None.

    >>> votive.accelerator.current_accelerator() in (None, votive.device("cuda"))
    True
    """
    return Device("cuda") if is_available() else None


def device_count() -> int:
    """How many there are.

    >>> votive.accelerator.device_count() == votive.cuda.device_count()
    True
    """
    return cuda.device_count() if is_available() else 0


def _there() -> Any:
    """`votive.cuda`, or an error."""
    if not is_available():
        raise RuntimeError(f"Cannot access accelerator device when none is available: {cuda.why_not()}.")
    return cuda


def _number(device: DeviceLike) -> int | None:
    """The number of a device that is given as one, by name, or not at all."""
    if device is None or isinstance(device, int):
        return device
    given = Device(device) if isinstance(device, str) else device
    if given.type != "cuda":
        raise ValueError(f"{given.type} doesn't match the current accelerator cuda.")
    return int(_there().current_device()) if given.index is None else int(given.index)


def current_device_index() -> int:
    """The number of the device in use.

    >>> if votive.accelerator.is_available():
    ...     assert votive.accelerator.current_device_index() >= 0
    """
    return int(_there().current_device())


current_device_idx = current_device_index


def set_device_index(device: DeviceLike, /) -> None:
    """Use another device from now on; a negative number changes nothing.

    >>> if votive.accelerator.is_available():
    ...     votive.accelerator.set_device_index(0)
    """
    number = _number(device)
    there = _there()
    if number is not None and number >= 0:
        there.set_device(number)


set_device_idx = set_device_index


def current_stream(device: DeviceLike | None = None, /) -> Any:
    """The stream that kernels of a device go to.

    >>> if votive.accelerator.is_available():
    ...     votive.accelerator.current_stream().synchronize()
    """
    return _there().current_stream(_number(device))


def set_stream(stream: Any) -> None:
    """Let kernels go to another stream.

    >>> if votive.accelerator.is_available():
    ...     votive.accelerator.set_stream(votive.accelerator.current_stream())
    """
    _there().set_stream(stream)


def synchronize(device: DeviceLike | None = None, /) -> None:
    """Wait until a device has done all it was given.

    >>> if votive.accelerator.is_available():
    ...     votive.accelerator.synchronize()
    """
    _there().synchronize(_number(device))


def get_device_capability(device: DeviceLike | None = None, /) -> dict[str, Any]:
    """The dtypes that a device computes with.

    >>> if votive.accelerator.is_available():
    ...     assert votive.float32 in votive.accelerator.get_device_capability()["supported_dtypes"]
    """
    _there()
    types = import_module("votive.core.dtype")
    return {"supported_dtypes": {t for t in vars(types).values() if isinstance(t, types.dtype)}}


class device_index:
    """Use a device inside a block; None changes nothing.

    >>> with votive.accelerator.device_index(None):
    ...     pass
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def empty_cache() -> None:
    """Give memory that is kept for reuse back to the device; nothing happens where there is none.

    >>> votive.accelerator.empty_cache()
    """
    if is_available():
        cuda.empty_cache()


def empty_host_cache() -> None:
    """Give pinned memory that is kept for reuse back to the system; votive keeps none.

    >>> votive.accelerator.empty_host_cache()
    """


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free bytes and all bytes of a device.

    >>> if votive.accelerator.is_available():
    ...     assert len(votive.accelerator.get_memory_info()) == 2
    """
    free, whole = _there().mem_get_info(_number(device_index))
    return free, whole


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """What the allocator of a device counts; empty where there is none.

    >>> isinstance(votive.accelerator.memory_stats(), dict)
    True
    """
    return dict(cuda.memory_stats(_number(device_index))) if is_available() else {}


def _bytes(name: str, device: DeviceLike) -> int:
    return int(getattr(cuda, name)(_number(device))) if is_available() else 0


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes that tensors hold.

    >>> votive.accelerator.memory_allocated() >= 0
    True
    """
    return _bytes("memory_allocated", device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that tensors held.

    >>> votive.accelerator.max_memory_allocated() >= 0
    True
    """
    return _bytes("max_memory_allocated", device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that tensors and the cache hold.

    >>> votive.accelerator.memory_reserved() >= 0
    True
    """
    return _bytes("memory_reserved", device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that tensors and the cache held.

    >>> votive.accelerator.max_memory_reserved() >= 0
    True
    """
    return _bytes("max_memory_reserved", device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Count allocations anew.

    >>> votive.accelerator.reset_accumulated_memory_stats()
    """
    if is_available():
        cuda.reset_accumulated_memory_stats(_number(device_index))


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Count the peak anew.

    >>> votive.accelerator.reset_peak_memory_stats()
    """
    if is_available():
        cuda.reset_peak_memory_stats(_number(device_index))
