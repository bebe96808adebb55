"""`torch.utils.checkpoint`: the states of generators, for libraries that run parts again themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive

from ....tensor import Tensor

__all__ = ["DefaultDeviceType", "get_device_states", "set_device_states"]


class DefaultDeviceType:
    """The type of device whose generator is kept where arguments lie on none but the CPU."""

    _chosen: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose the type of device."""
        DefaultDeviceType._chosen = device

    @staticmethod
    def get_device_type() -> str:
        """The type of device that was chosen; without a choice that of the GPU, where there is one."""
        return DefaultDeviceType._chosen or ("cuda" if votive.cuda.is_available() else "cpu")


def _devices(values: Any, found: list[int]) -> list[int]:
    for v in values:
        if isinstance(v, Tensor) and v.device.type == "cuda" and v.get_device() not in found:
            found.append(v.get_device())
        elif isinstance(v, list | tuple):
            _devices(v, found)
        elif isinstance(v, dict):
            _devices(v.values(), found)
    return found


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs that tensors lie on, and the states of their generators."""
    devices = _devices(args, [])
    return devices, [votive.cuda.get_rng_state(d) for d in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Put the states of generators back."""
    if device_type not in (None, "cuda", "cpu"):
        raise NotImplementedError(f"set_device_states: devices are GPUs here, got {device_type!r}.")
    for d, state in zip(devices, states, strict=True):
        votive.cuda.set_rng_state(state, d)
