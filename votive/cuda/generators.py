"""Random numbers on the GPU: the same Philox stream as on the CPU, a generator per device."""

from __future__ import annotations

from typing import Any

from ..core import rng
from . import _index, device_count


def _generator(device: Any) -> rng.Generator:
    return rng.default_generator(f"cuda:{_index(None if device == 'cuda' else device)}")


def manual_seed(seed: int) -> None:
    """Start the current device's generator at a seed; without a GPU nothing happens."""
    if device_count():
        _generator("cuda").manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start every device's generator at a seed."""
    for i in range(device_count()):
        _generator(i).manual_seed(seed)


def seed() -> None:
    """Start the current device's generator at a seed from the operating system."""
    if device_count():
        _generator("cuda").seed()


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator("cuda").initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator as a tensor of bytes."""
    return _generator(device).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put a state back."""
    _generator(device).set_state(new_state)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(_generator(i) for i in range(device_count()))
    raise AttributeError(name)
