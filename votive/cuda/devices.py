"""Which GPUs there are, and which one is meant."""

from __future__ import annotations

from typing import Any

from ..backends.cuda import runtime as rt
from . import _here, _index


def current_device() -> int:
    """The number of the GPU that "cuda" means in this thread."""
    return int(_here().device)


def set_device(device: Any) -> None:
    """Let "cuda" mean another GPU in this thread."""
    index = _index(device)
    if index >= 0:
        _here().set_device(index)


class device:
    """`with votive.cuda.device(1):` lets "cuda" mean that GPU inside."""

    def __init__(self, device: Any) -> None:
        self.index = None if device is None else _index(device)

    def __enter__(self) -> None:
        self._before = current_device()
        if self.index is not None:
            set_device(self.index)

    def __exit__(self, *exc: object) -> None:
        set_device(self._before)


class device_of(device):
    """The GPU of a tensor; nothing happens for tensors elsewhere."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if getattr(obj, "is_cuda", False) else None)


def get_device_properties(device: Any = None) -> Any:
    """Name, memory, multiprocessors and limits of a GPU."""
    _here()
    return rt.runtime.property(_index(device))


def get_device_name(device: Any = None) -> str:
    """What the GPU is called."""
    return str(get_device_properties(device).name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The generation of the GPU, as (9, 0) for Hopper."""
    p = get_device_properties(device)
    return p.major, p.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 is computed in hardware, from (8, 0) on; with emulation always."""
    return including_emulation or get_device_capability() >= (8, 0)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU can read another's memory."""
    _here()
    return bool(rt.runtime.driver.can_access_peer(_index(device), _index(peer_device)))
