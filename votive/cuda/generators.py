"""Random numbers on the GPU: the same Philox stream as on the CPU, a generator per device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core import rng
from ..core.device import DeviceLike
from . import _index, device_count

if TYPE_CHECKING:
    from typing_extensions import Buffer


def _generator(device: DeviceLike) -> rng.Generator:
    return rng.default_generator(f"cuda:{_index(None if device == 'cuda' else device)}")


def manual_seed(seed: int) -> None:
    """Start the current device's generator at a seed; without a GPU nothing happens.

    >>> votive.cuda.manual_seed(0)
    """
    if device_count():
        _generator("cuda").manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start every device's generator at a seed; without a GPU nothing happens.

    >>> votive.cuda.manual_seed_all(0)
    """
    for i in range(device_count()):
        _generator(i).manual_seed(seed)


def seed() -> None:
    """Start the current device's generator at a seed from the operating system.

    >>> votive.cuda.seed()
    """
    if device_count():
        _generator("cuda").seed()


def seed_all() -> None:
    """Start every device's generator at one seed from the operating system.

    >>> votive.cuda.seed_all()
    """
    if device_count():
        manual_seed_all(_generator(0).seed())


def initial_seed() -> int:
    """The seed of the current device's generator.

    >>> votive.cuda.manual_seed(5)
    >>> votive.cuda.initial_seed() if votive.cuda.is_available() else 5
    5
    """
    return _generator("cuda").initial_seed()


def get_rng_state(device: DeviceLike = "cuda") -> bytes:
    """The state of a device's generator.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.set_rng_state(votive.cuda.get_rng_state())
    """
    return _generator(device).get_state()


def set_rng_state(new_state: Buffer, device: DeviceLike = "cuda") -> None:
    """Put a state back.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.set_rng_state(votive.cuda.get_rng_state())
    """
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[bytes]:
    """The states of all devices' generators.

    >>> len(votive.cuda.get_rng_state_all()) == votive.cuda.device_count()
    True
    """
    return [_generator(i).get_state() for i in range(device_count())]


def set_rng_state_all(new_states: Iterable[Buffer]) -> None:
    """Put the states of all devices back.

    >>> votive.cuda.set_rng_state_all(votive.cuda.get_rng_state_all())
    """
    for i, state in enumerate(new_states):
        _generator(i).set_state(state)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(_generator(i) for i in range(device_count()))
    raise AttributeError(name)
