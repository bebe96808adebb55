"""Random numbers and dropout on native kernels: rows of the kernel table.

Parameters are checked where the numbers are drawn, in the words of `sampling_bounds.py`. What is
rare (complex types, parameters that are tensors) is left to the reference.
"""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...base import kernel
from ...common import sampling_bounds
from ...common.slot import Slot
from ..arrays import Args, Array, Ints
from .dtypes import FLOATS, first_float
from .loader import codes, module
from .rows import OUT, native

_WIDE = (1 << 64) - 1


def _kinds(*numbers: Slot) -> int | None:
    """Which numbers are ints, as bits; None when one is neither int nor float."""
    bits = 0
    for k, slot in enumerate(numbers):
        kind = type(slot.spec)
        if kind not in (int, float):
            return None
        bits |= (kind is int) << k
    return bits


def _distribution(name: str) -> None:
    # What is overwritten is not read.
    @native(f"_{name}", name, accepts=first_float, careful=True)
    def arrange(x: Slot, key: Slot, counter: Slot, *numbers: Slot) -> Args:
        kinds = _kinds(*numbers)
        return None if kinds is None else (OUT, key, counter, *numbers, kinds)


for _name in ("uniform", "normal", "log_normal", "exponential", "cauchy", "geometric"):
    _distribution(_name)


def _new_distribution(name: str) -> None:
    @native(f"_new_{name}", name)
    def arrange(size: Ints, dtype: dt.dtype, device: object, key: Slot, counter: Slot, *numbers: Slot) -> Args:
        kinds = _kinds(*numbers)
        if kinds is None or dtype not in FLOATS:
            return None
        return OUT, key, counter, *numbers, kinds


for _name in ("uniform", "normal"):
    _new_distribution(_name)


def _real(*specs: Spec) -> bool:
    return all(s.dtype in codes and not s.dtype.is_complex for s in specs)


def _filled_floats(*specs: Spec) -> bool:
    return all(s.dtype in FLOATS and s.numel for s in specs)


@native("_multinomial", "multinomial", accepts=_filled_floats, optional=True)
def multinomial(x: Slot, key: Slot, counter: Slot, num_samples: int, replacement: bool) -> Args:
    return (x, OUT, key, counter) if replacement or num_samples == 1 else None


@native("_bernoulli", "bernoulli", accepts=_real)
def bernoulli(x: Slot, key: Slot, counter: Slot, p: Slot) -> Args:
    if hasattr(p, "shape"):
        same = p.shape == x.shape and p.dtype in FLOATS
        return (OUT, p, key, counter) if same else None
    kinds = _kinds(p)
    return None if kinds is None else (OUT, None, key, counter, p, kinds)


_INTEGERS = frozenset((dt.bool_, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64))
_EXACT = frozenset((dt.float32, dt.float64))

if module is not None:
    _integers = module.Kernel("random_integers")
    _order = module.Kernel("random_order")

    @kernel(
        "_random",
        priority=10,
        widen=False,
        into=True,
        label="native",
        accepts=lambda x: x.dtype in _INTEGERS or x.dtype in _EXACT,
    )
    def random(x: Array, key: int, counter: int, low: int, high: int | None, out: Array) -> None:
        low, high = sampling_bounds.random_range(low, high, out.dtype)
        sampling_bounds.check_range(low, high, out.dtype)
        span = (high - low) & _WIDE
        if out.dtype.kind != "f":
            _integers(out, key, counter, low, span)
            return
        first = sampling_bounds.nearest_inside(low, out.dtype, 1)
        last = sampling_bounds.nearest_inside(high - 1, out.dtype, -1)
        _integers(out, key, counter, low, span, float(first), float(last))

    @kernel(
        "_randperm",
        priority=10,
        widen=False,
        into=True,
        label="native",
        accepts=lambda x: x.dtype in _INTEGERS or x.dtype in FLOATS,
    )
    def randperm(x: Array, key: int, counter: int, out: Array) -> None:
        sampling_bounds.check_randperm(len(out), out.dtype)
        _order(out, key, counter)


@native("_new_random", "random_between")
def new_random(size: Ints, dtype: dt.dtype, device: object, key: Slot, counter: Slot, low: Slot, high: Slot) -> Args:
    if dtype not in _INTEGERS or type(low.spec) is not int or type(high.spec) is not int:
        return None
    smallest, largest = sampling_bounds.integer_limits(dtype.np)
    return OUT, key, counter, low, high, smallest, largest


@native("_new_randperm", "random_order")
def new_randperm(size: Ints, dtype: dt.dtype, device: object, key: Slot, counter: Slot) -> Args:
    if dtype not in _INTEGERS and dtype not in FLOATS:
        return None
    sampling_bounds.check_randperm(size[0], dtype.np)
    return OUT, key, counter
