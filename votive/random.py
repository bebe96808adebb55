"""Seeds, generators and their states as tensors: `votive.random`. Draws nothing itself.

The state of a generator is a uint8 tensor here, as in torch; below, in `core.rng`, it is bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .core import dtype as dt
from .core import rng
from .core.device import DeviceLike
from .core.rng import fork_rng, initial_seed, manual_seed, seed
from .surface.interchange import from_numpy
from .tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def _as_tensor(state: bytes | Tensor) -> Tensor:
    if isinstance(state, Tensor):
        return state
    return from_numpy(np.frombuffer(state, np.uint8).copy())


def _as_bytes(state: Buffer | Tensor) -> Buffer:
    """What `core.rng` takes: the bytes of a uint8 tensor."""
    if not isinstance(state, Tensor):
        return state
    if state.dtype is not dt.uint8:
        raise TypeError(f"set_state: a state is a uint8 tensor, got {state.dtype}.")
    return state.detach().numpy(force=True).tobytes()


class Generator(rng.Generator):
    """A source of reproducible random numbers.

    >>> g = votive.Generator().manual_seed(7)
    >>> votive.rand(1, generator=g) == votive.rand(1, generator=g.manual_seed(7))
    tensor([True])
    """

    __slots__ = ()

    def get_state(self) -> Tensor:  # type: ignore[override]  # bytes below, a tensor for users
        """Seed and offset, as a uint8 tensor.

        >>> votive.Generator().get_state().shape
        votive.Size([16])
        """
        return _as_tensor(super().get_state())

    def set_state(self, state: Buffer | Tensor) -> None:
        """Go to a position that `get_state` returned.

        >>> g = votive.Generator()
        >>> g.set_state(g.get_state())
        """
        super().set_state(_as_bytes(state))


def _default() -> Generator:
    """The CPU's default generator, made one whose states are tensors like those of any other."""
    mine = Generator()
    mine.set_state(rng.default_generator("cpu").get_state())
    rng._registry[mine.device] = mine
    return mine


default_generator = _default()


def get_rng_state(device: DeviceLike = "cpu") -> Tensor:
    """The state of the default generator of `device`, a uint8 tensor.

    >>> votive.get_rng_state().dtype
    votive.uint8
    """
    return _as_tensor(rng.get_rng_state(device))


def set_rng_state(new_state: Buffer | Tensor, device: DeviceLike = "cpu") -> None:
    """Put the default generator of `device` back to a state that `get_rng_state` returned.

    >>> state = votive.get_rng_state()
    >>> a = votive.rand(3)
    >>> votive.set_rng_state(state)
    >>> bool((votive.rand(3) == a).all())
    True
    """
    rng.set_rng_state(_as_bytes(new_state), device)
