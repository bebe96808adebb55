"""Devices: a type and an index. Knows no backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from .errors import DeviceError
from .similar import similar

# "trace" is where functions are turned into formulas: its tensors hold expressions.
KNOWN = ("cpu", "cuda", "meta", "remote", "trace", "webgpu")
# What people call a GPU, and devices of torch that there are no kernels for.
_GPUS = ("gpu", "nvidia", "hip", "rocm")
_OTHERS = ("mps", "xpu", "xla", "tpu", "npu", "hpu", "vulkan", "ipu", "mtia", "maia")
# Programs compare with these before they ask whether there is one, so they can be named; no tensor lives there.
_NAMED = frozenset(_OTHERS) - {"tpu", "npu"}


class _Present:
    """Which devices tensors can be placed on here; the backends answer.

    `address` gives the device at a URL, `current` the index that a kind means when none is given.
    """

    names: Callable[[], list[str]] = staticmethod(lambda: ["cpu"])
    address: Callable[[str], device]
    current: Callable[[str], int] = staticmethod(lambda kind: 0)


present = _Present()


def unknown(kind: str) -> NoReturn:
    """Raise the error for a device that is not there, naming those that are."""
    close = similar(kind, ("cpu", "cuda", "webgpu"), 1)
    if kind.lower() in _GPUS:
        hint = "; GPUs of NVIDIA are called 'cuda', any other 'webgpu'"
    elif kind.lower() in _OTHERS:
        hint = "; votive computes on CPUs, on GPUs of NVIDIA ('cuda') and on others through 'webgpu'"
    else:
        hint = f"; did you mean {close[0]!r}?" if close else ""
    here = ", ".join(present.names())
    text = f"there is no device {kind!r}{hint}"
    raise DeviceError(f"device: {text}{'' if text.endswith('?') else '.'} This machine has: {here}.")


class device:
    """Where a tensor's memory lives.

    >>> votive.device("cuda", 1)
    device(type='cuda', index=1)
    """

    __slots__ = ("index", "type")
    _interned: dict[tuple[str, int | None], device] = {}
    type: str
    index: int | None

    def __new__(cls, type: object = "cpu", index: int | None = None) -> device:
        if type.__class__ is str:
            known = cls._interned.get((type, index))
            if known is not None:
                return known
        if isinstance(type, device):
            if index is not None:
                raise RuntimeError("device: an index cannot be given together with a device.")
            return type
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", int(type)
        if not isinstance(type, str):
            if not isinstance(getattr(type, "type", None), str) or not hasattr(type, "index"):
                raise TypeError(f"device: expected a string or an index, got {type!r}.")
            type = str(type)  # a device of torch writes itself as ours do
        if type.startswith("remote://"):
            if index is not None:
                raise RuntimeError(f"device: {type!r} takes no index.")
            return present.address(type)
        kind, _, number = type.partition(":")
        if number or ":" in type:
            if index is not None:
                raise RuntimeError(f"device: the index is given twice, in {type!r} and {index}.")
            if not number.isdigit():
                raise RuntimeError(f"device: invalid device string {type!r}; write 'cuda:0'.")
            index = int(number)
        if kind not in KNOWN and kind not in _NAMED:
            unknown(kind)
        if index is not None and index < 0:
            raise RuntimeError(f"device: the index must not be negative, got {index}.")
        key = (kind, index)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.type, found.index = kind, index
            cls._interned[key] = found
        return found

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type={self.type!r})"
        return f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[object, ...]:
        return (device, (self.type, self.index))

    def __enter__(self) -> device:
        _stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _stack.pop()


# What a `device=` argument may be; None means the default device.
DeviceLike = device | str | int | None

cpu = device("cpu")
meta = device("meta")
_stack: list[device] = []
_default: device = cpu
# Called when the default device changes.
default_listeners: list[Callable[[], None]] = []


def get_default_device() -> device:
    """The device new tensors are made on.

    >>> votive.get_default_device()
    device(type='cpu')
    """
    return _stack[-1] if _stack else _default


_named = device


def set_default_device(device: DeviceLike) -> None:
    """Change the device new tensors are made on; None goes back to the CPU.

    >>> votive.set_default_device("cpu")
    """
    global _default
    _default = cpu if device is None else _named(device)
    for tell in default_listeners:
        tell()


# Which GPU "cuda" means when no index is given; the CUDA runtime answers once it is in use.
current_cuda: Callable[[], int] = lambda: 0


def resolve(dev: DeviceLike) -> device:
    """The device meant by an optional `device=` argument."""
    if dev is None:
        dev = _stack[-1] if _stack else _default
    elif dev.__class__ is not device:
        dev = device(dev)
    if dev.index is None and dev.type == "cuda":
        return device("cuda", current_cuda())
    if dev.index is None and dev.type == "remote":
        return device("remote", present.current("remote"))
    if dev.index is None and dev.type == "webgpu":
        return device("webgpu", 0)
    return dev
