"""Which GPUs there are, and which one is meant."""

from __future__ import annotations

from typing import Any

from ..backends.cuda import runtime as rt
from ..core.device import DeviceLike
from . import _here, _index, is_available


def current_device() -> int:
    """The number of the GPU that "cuda" means in this thread.

    >>> votive.cuda.current_device() if votive.cuda.is_available() else 0
    0
    """
    return int(_here().device)


def set_device(device: DeviceLike) -> None:
    """Let "cuda" mean another GPU in this thread; a negative number changes nothing.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.set_device("cuda:0")
    """
    if isinstance(device, int) and device < 0:
        return
    _here().set_device(_index(device))


class device:
    """`with votive.cuda.device(1):` lets "cuda" mean that GPU inside; None changes nothing.

    >>> if votive.cuda.is_available():
    ...     with votive.cuda.device(0):
    ...         assert votive.cuda.current_device() == 0
    """

    def __init__(self, device: DeviceLike) -> None:
        self.index = None if device is None else _index(device)

    def __enter__(self) -> None:
        if self.index is not None and self.index >= 0:
            self._before = current_device()
            set_device(self.index)

    def __exit__(self, *exc: object) -> None:
        if self.index is not None and self.index >= 0:
            set_device(self._before)


class device_of(device):
    """The GPU of a tensor; nothing happens for tensors elsewhere.

    >>> with votive.cuda.device_of(votive.ones(2)):
    ...     y = votive.ones(2)
    """

    def __init__(self, obj: object) -> None:
        super().__init__(getattr(obj, "device", None) if getattr(obj, "is_cuda", False) else None)


def get_device_properties(device: DeviceLike = None) -> Any:
    """Name, memory, multiprocessors and limits of a GPU.

    >>> if votive.cuda.is_available():
    ...     assert votive.cuda.get_device_properties().total_memory > 0
    """
    _here()
    index = _index(device)
    rt.runtime.check(index)
    return rt.runtime.property(index)


def get_device_name(device: DeviceLike = None) -> str:
    """What the GPU is called.

    >>> isinstance(votive.cuda.get_device_name() if votive.cuda.is_available() else "none", str)
    True
    """
    return str(get_device_properties(device).name)


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """The generation of the GPU, as (9, 0) for Hopper.

    >>> votive.cuda.get_device_capability() >= (7, 0) if votive.cuda.is_available() else True
    True
    """
    p = get_device_properties(device)
    return p.major, p.minor


def get_arch_list() -> list[str]:
    """What kernels are compiled for: the GPUs that are here, since they are compiled when needed.

    >>> bool(votive.cuda.get_arch_list()) == votive.cuda.is_available()
    True
    """
    if not is_available():
        return []
    found = {rt.runtime.property(i) for i in range(rt.runtime.driver.count)}
    return sorted({f"sm_{p.major}{p.minor}" for p in found})


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a GPU that computes in bfloat16: in hardware from (8, 0) on, else emulated.

    >>> votive.cuda.is_bf16_supported() == votive.cuda.is_available()
    True
    """
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """Whether the GPU multiplies in TF32, which is so from (8, 0) on.

    >>> votive.cuda.is_tf32_supported() <= votive.cuda.is_available()
    True
    """
    return is_available() and get_device_capability() >= (8, 0)


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether one GPU can read another's memory.

    >>> votive.cuda.can_device_access_peer(0, 0) if votive.cuda.is_available() else False
    False
    """
    _here()
    one, other = _index(device), _index(peer_device)
    rt.runtime.check(one)
    rt.runtime.check(other)
    return bool(rt.runtime.driver.can_access_peer(one, other))


def ipc_collect() -> None:
    """Nothing: memory is not shared with other processes. Programs written for torch call it.

    >>> votive.cuda.ipc_collect()
    """
