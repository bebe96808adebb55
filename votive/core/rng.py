"""Generators: a seed and a position in a counter space. Pure state; makes no random number itself.

A generator is two 64-bit integers, the seed and the offset. Whoever draws numbers first reserves a
run of counters; element `i` of the draw is then a function of (seed, first counter, i) alone.
So neither the device, nor the thread count, nor the split of the work changes what comes out.

The counter of Philox has 128 bits. A generator hands out only the low 64; the high 64 are the
attempt number of samplers that reject, so those never run out of what they reserved.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING, Self, SupportsIndex, SupportsInt

from .device import DeviceLike, cpu, resolve
from .device import device as Device

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The seed of a fresh generator, as in torch: a large prime, the same in every process.
DEFAULT_SEED = 67280421310721
STATE_BYTES = 16
# Is told of each draw, or seed (True), and may refuse it; see backends/cuda/programs/generator_state.py.
watch: Callable[[Generator, bool], None] | None = None
# Are told of each draw: generator, how many counters, (key, first counter).
watchers: list[Callable[[Generator, int, tuple[int, int]], None]] = []
_SPACE = 1 << 64


def _checked_seed(seed: SupportsIndex) -> int:
    """`seed` as an unsigned 64-bit integer; negative seeds count back from 2**64, as in torch."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise RuntimeError(f"manual_seed: expected an integer seed, got {type(seed).__name__}.")
    value = index(seed)
    if not -(1 << 63) <= value < _SPACE:
        raise RuntimeError(f"manual_seed: seed {value} is out of range; use -2**63 .. 2**64 - 1.")
    return value % _SPACE


class Generator:
    """A source of reproducible random numbers.

    >>> votive.Generator().manual_seed(7).initial_seed()
    7
    """

    __slots__ = ("__weakref__", "_lock", "_offset", "_seed", "device")
    device: Device

    def __init__(self, device: DeviceLike = "cpu") -> None:
        self.device = Device(device)
        self._lock = threading.Lock()
        self._seed = DEFAULT_SEED
        self._offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start again at `seed`.

        >>> votive.Generator().manual_seed(-1).initial_seed() == 2**64 - 1
        True
        """
        value = _checked_seed(seed)
        if watch is not None:
            watch(self, True)
        with self._lock:
            self._seed, self._offset = value, 0
        return self

    def seed(self) -> int:
        """Start again at a seed taken from the operating system, and return it.

        >>> g = votive.Generator()
        >>> g.seed() == g.initial_seed()
        True
        """
        value = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(value)
        return value

    def initial_seed(self) -> int:
        """The seed this generator was last started at.

        >>> votive.Generator().initial_seed()
        67280421310721
        """
        return self._seed

    def get_state(self) -> bytes:
        """Seed and offset, as 16 little-endian bytes.

        >>> len(votive.Generator().get_state())
        16
        """
        with self._lock:
            return self._seed.to_bytes(8, "little") + self._offset.to_bytes(8, "little")

    def set_state(self, state: Buffer) -> None:
        """Go to a position that `get_state` returned; any object with a byte buffer will do.

        >>> g = votive.Generator()
        >>> g.set_state(g.get_state())
        """
        try:
            view = memoryview(state)
        except TypeError:
            kind = type(state).__name__
            raise TypeError(f"set_state: expected what get_state returned, got {kind}.") from None
        if view.itemsize != 1:
            raise TypeError(f"set_state: expected single bytes, got items of {view.itemsize} bytes.")
        if view.nbytes != STATE_BYTES:
            raise RuntimeError(
                f"set_state: a state has {STATE_BYTES} bytes, got {view.nbytes}; pass what get_state returned."
            )
        raw = view.tobytes()
        with self._lock:
            self._seed = int.from_bytes(raw[:8], "little")
            self._offset = int.from_bytes(raw[8:], "little")

    def clone_state(self) -> Self:
        """A second generator at the same position, independent from now on.

        >>> votive.Generator().manual_seed(3).clone_state().initial_seed()
        3
        """
        twin = type(self)(self.device)
        twin.set_state(self.get_state())
        return twin

    def get_offset(self) -> int:
        """The number of counters used since seeding.

        >>> votive.Generator().get_offset()
        0
        """
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Jump to counter `offset` of the same seed.

        >>> votive.Generator().set_offset(8)
        """
        value = index(offset)
        if not 0 <= value < _SPACE:
            raise RuntimeError(f"set_offset: offset {value} is out of range; use 0 .. 2**64 - 1.")
        with self._lock:
            self._offset = value

    def reserve(self, n: int) -> tuple[int, int]:
        """Take `n` counters: (key, first counter). The next reservation begins after them."""
        if not 0 <= n < _SPACE:
            raise ValueError(f"reserve: the number of counters must be 0 .. 2**64 - 1, got {n}.")
        if watch is not None:
            watch(self, False)
        with self._lock:
            start = self._offset
            # No run may cross the end of the 64-bit space: its carry would be an attempt number.
            if start + n > _SPACE:
                start = 0
            self._offset = (start + n) % _SPACE
            taken = self._seed, start
        for seen in watchers:
            seen(self, n, taken)
        return taken

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.device, Generator.get_state(self)))

    def __repr__(self) -> str:
        return f"Generator(device={str(self.device)!r}, seed={self._seed}, offset={self._offset})"


def _restore(cls: type[Generator], device: Device, state: bytes) -> Generator:
    generator = cls(device)
    generator.set_state(state)
    return generator


_registry: dict[Device, Generator] = {}
_registry_lock = threading.RLock()


def _free_locks() -> None:
    """In a forked child: locks that another thread of the parent held would never be freed."""
    global _registry_lock
    _registry_lock = threading.RLock()
    for generator in _registry.values():
        generator._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
# What `manual_seed` said last: a device first used afterwards starts there too.
_global_seed: int | None = None


class _Own(threading.local):
    generators: dict[Device, Generator] | None = None  # of a thread that plays a process of its own


_own = _Own()
_some_own = False  # whether any thread ever had its own


@contextmanager
def own_generators() -> Iterator[None]:
    """Give this thread default generators of its own, which begin where those of the process are.

    >>> from votive.core.rng import own_generators
    >>> with own_generators():
    ...     _ = votive.manual_seed(3)
    """
    global _some_own
    with _registry_lock:
        copies = {device: generator.clone_state() for device, generator in _registry.items()}
    before, _own.generators, _some_own = _own.generators, copies, True
    try:
        yield
    finally:
        _own.generators = before


def _mine(device: DeviceLike) -> Generator:
    """The generator of a thread that has its own."""
    assert _own.generators is not None
    dev = _canonical(device)
    if dev not in _own.generators:
        found = Generator(dev)
        if _global_seed is None:
            found.seed()
        else:
            found.manual_seed(_global_seed)
        _own.generators[dev] = found
    return _own.generators[dev]


def _canonical(device: DeviceLike) -> Device:
    dev = resolve(device)
    if dev.type == "cpu":
        return cpu
    return dev if dev.index is not None else Device(dev.type, 0)


def default_generator(device: DeviceLike = "cpu") -> Generator:
    """The generator that draws on `device` use when none is given.

    >>> votive.default_generator("cpu") is votive.default_generator("cpu")
    True
    """
    if _some_own and _own.generators is not None:
        return _mine(device)
    found = _registry.get(device) if isinstance(device, Device) else None
    if found is not None:
        return found
    dev = _canonical(device)
    found = _registry.get(dev)
    return found if found is not None else _register(dev)


def default_generators() -> list[Generator]:
    """The generators of all devices that have been used."""
    if _own.generators is not None:
        return list(_own.generators.values())
    with _registry_lock:
        return list(_registry.values())


def forget(dev: Device) -> None:
    """Drop the default generator of a device that is gone."""
    with _registry_lock:
        _registry.pop(dev, None)


def _register(dev: Device) -> Generator:
    with _registry_lock:
        if dev not in _registry:
            fresh = Generator(dev)
            if _global_seed is None:
                fresh.seed()
            else:
                fresh.manual_seed(_global_seed)
            _registry[dev] = fresh
        return _registry[dev]


def manual_seed(seed: SupportsInt) -> Generator:
    """Start the default generators of all devices at `seed`; returns the one of the CPU.

    >>> votive.manual_seed(0).initial_seed()
    0
    """
    global _global_seed
    value = _checked_seed(int(seed))
    if _own.generators is not None:
        for generator in _own.generators.values():
            generator.manual_seed(value)
        return _mine(cpu).manual_seed(value)
    with _registry_lock:
        _global_seed = value
        for generator in _registry.values():
            generator.manual_seed(value)
        return default_generator(cpu)


def seed() -> int:
    """Start the default generators of all devices at one seed from the operating system.

    >>> votive.seed() == votive.initial_seed()
    True
    """
    value = int.from_bytes(os.urandom(8), "little")
    manual_seed(value)
    return value


def initial_seed() -> int:
    """The seed of the CPU's default generator.

    >>> votive.manual_seed(5) and votive.initial_seed()
    5
    """
    return default_generator(cpu).initial_seed()


def get_rng_state(device: DeviceLike = "cpu") -> bytes:
    """The state of the default generator of `device`.

    >>> votive.set_rng_state(votive.get_rng_state())
    """
    return default_generator(device).get_state()


def set_rng_state(new_state: Buffer, device: DeviceLike = "cpu") -> None:
    """Put the default generator of `device` back to a state that `get_rng_state` returned.

    >>> votive.set_rng_state(votive.get_rng_state())
    """
    default_generator(device).set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[DeviceLike] | None = None, enabled: bool = True, device_type: str = "cuda"
) -> Iterator[None]:
    """Undo, on leaving, whatever the block did to the default generators.

    Without `devices` all devices are covered, also those first used inside the block; with it, the
    CPU and the ones named (a bare number is an index of `device_type`).

    >>> with votive.fork_rng():
    ...     _ = votive.manual_seed(0)
    """
    global _global_seed
    if not enabled:
        yield
        return
    default_generator(cpu)
    if devices is None:
        covered = default_generators()
    else:
        named = (Device(device_type, d) if isinstance(d, int) else d for d in devices)
        covered = [default_generator(cpu), *(default_generator(d) for d in named)]
    saved = [(generator, generator.get_state()) for generator in covered]
    seed_before = _global_seed
    try:
        yield
    finally:
        for generator, state in saved:
            generator.set_state(state)
        if devices is None:
            with _registry_lock:
                _global_seed = seed_before
                born_inside = [g for g in _registry.values() if g not in covered]
                for generator in born_inside:
                    if seed_before is not None:
                        generator.manual_seed(seed_before)
