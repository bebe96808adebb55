"""Tensors of random numbers for tests."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor


def _bounds(low: float | None, high: float | None, lowest: float, highest: float, default: tuple[int, int]) -> Any:
    """Both ends, within what the dtype holds."""
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    return low, high, max(low, lowest), min(high, highest)


def _check(low: float, high: float, dtype: Any, lowest: float, highest: float) -> None:
    if low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{lowest}, {highest})"
        )


def _drawn(shape: tuple[int, ...], dtype: Any, device: Any, low: float | None, high: float | None) -> Tensor:
    if dtype is dt.bool_:
        a, b, start, end = _bounds(low, high, 0, 2, (0, 2))
        _check(a, b, dtype, 0, 2)
        return F.randint(math.ceil(start), math.ceil(end), shape, device=device).to(dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        info = dt.iinfo(dtype)
        default = (0, 10) if info.min == 0 else (-9, 10)
        a, b, start, end = _bounds(low, high, info.min, info.max + 1, default)
        _check(a, b, dtype, info.min, info.max)
        first, last = math.ceil(start), min(math.ceil(end), 2**63 - 1)
        if first >= last:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={first} >= to={last}")
        return F.randint(first, last, shape, device=device, dtype=dt.int64).to(dtype)
    real = {dt.complex64: dt.float32, dt.complex128: dt.float64}.get(dtype, dtype)
    ends = dt.finfo(real)
    a, b, start, end = _bounds(low, high, ends.min, ends.max, (-9, 9))
    if a > b:
        _check(a, b, dtype, ends.min, ends.max)
    drawn = dt.float64 if real is dt.float64 else dt.float32
    parts = [F.rand(shape, device=device, dtype=drawn) for _ in range(1 + dtype.is_complex)]
    # The ends are weighted, not subtracted: their difference may be more than a float holds.
    values = [start * (1 - u) + end * u for u in parts]
    if dtype.is_complex:
        return F.complex(values[0], values[1]).to(dtype)
    return values[0].to(dtype)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers between `low` and `high`: -9 and 9, or 0 and 9 for unsigned integers, unless given.

    `noncontiguous` gives one with gaps in memory, `exclude_zero` one without zeros.

    >>> x = votive.testing.make_tensor(2, 3, dtype=votive.int64, device="cpu", low=1, high=4)
    >>> x.shape, 1 <= x.min() and x.max() < 4
    (votive.Size([2, 3]), tensor(True))
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        (shape,) = shape
    sizes = tuple(int(n) for n in shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    made = _drawn(sizes, dtype, device, low, high)
    if noncontiguous and made.numel() > 1:
        made = made.repeat_interleave(2, -1)[..., ::2]
    elif memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    if exclude_zero:
        tiny = 1 if not (dtype.is_floating_point or dtype.is_complex) else dt.finfo(made.real.dtype).tiny
        made[made == 0] = tiny
    return made.requires_grad_(requires_grad)
