"""What the parameters of a distribution may be, in torch's words. Pure checks; draws nothing.

Kernels of every device call these, so that a wrong parameter reads the same everywhere.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from ...core.errors import DtypeError, UnsupportedError, fail

_finfo: Any = ml_dtypes.finfo
FLOATS = tuple(np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(text)


@cache
def _largest(dtype: np.dtype[Any]) -> float:
    return float(_finfo(dtype).max)


def check_uniform(low: float, high: float, dtype: np.dtype[Any]) -> None:
    """[low, high) must be a range whose width `dtype` can hold."""
    largest = _largest(dtype)
    if -largest <= low <= high <= largest and high - low <= largest:
        return  # the names of NumPy's types take longer than a draw
    for name, value in (("from", low), ("to", high)):
        _require(-largest <= value <= largest, f"{name} is out of bounds for {dtype}")
    _require(low <= high, f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    _require(
        high - low <= largest,
        f"uniform_ expects to-from <= {largest:g}, the largest {dtype}, but found to={high:g} and "
        f"from={low:g} which result in to-from to exceed the limit",
    )


def check_normal(std: Any) -> None:
    """The standard deviation, a number or an array, must not be negative."""
    if std.__class__ in (float, int) and std >= 0:
        return
    if np.ndim(std) == 0:
        _require(float(std) >= 0, f"normal expects std >= 0.0, but found std {float(std):g}")
    else:
        values = np.asarray(std)
        _require(not (values < 0).any(), "normal expects all elements of std >= 0.0")


def check_exponential(lambd: float) -> None:
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")


def check_cauchy(sigma: float) -> None:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")


def check_log_normal(std: float) -> None:
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")


def check_geometric(p: float) -> None:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")


def check_bernoulli(p: Any) -> None:
    """Probabilities, a number or an array, must lie in [0, 1]."""
    if p.__class__ in (float, int) and 0 <= p <= 1:
        return
    if np.ndim(p) == 0:
        value = float(p)
        _require(0 <= value <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={value:g}")
        return
    values = np.asarray(p)
    inside = bool(((values >= 0) & (values <= 1)).all())
    _require(inside, "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def check_poisson(rate: np.ndarray[Any, Any]) -> None:
    _require(bool((rate >= 0).all()), "invalid Poisson rate, expected rate to be non-negative")


@cache
def integer_limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and largest integer that fit into `dtype`."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    if dtype in FLOATS:
        largest = int(float(_finfo(dtype).max))
        return -largest, largest
    fail(UnsupportedError, "random_", f"handles bool, integer and floating types, got {dtype}.")


def check_range(low: int, high: int, dtype: np.dtype[Any]) -> None:
    """[low, high) must not be empty and must fit into `dtype`."""
    smallest, largest = integer_limits(dtype)
    if not low < high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    # Whoever asks for all 64-bit integers in a floating type has asked for rounded ones.
    rounding_meant = high - low == 1 << 64
    exact = 1 << digits(dtype) if dtype in FLOATS and not rounding_meant else None
    if exact is None and smallest <= low < high <= largest + 1:
        return
    for name, value in (("from", low), ("to - 1", high - 1)):
        _require(smallest <= value <= largest, f"{name} is out of bounds for {dtype}")
        if exact is not None and abs(value) > exact:
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits(dtype)}), 2^{digits(dtype)}]. Due to "
                f"precision limitations {dtype} can support discrete uniform distribution only "
                "within this range.",
                stacklevel=3,
            )


def random_range(low: int, high: int | None, dtype: np.dtype[Any]) -> tuple[int, int]:
    """The half-open range that `random_(low, high)` means.

    An open end goes to the type's largest integer, for floating types to 2**digits (the last one
    up to which every integer is exact), inclusive. As in torch, -2**63 with an open end means all
    64-bit integers, whatever the type.
    """
    if high is not None:
        return low, high
    if dtype in FLOATS:
        if low == -(1 << 63):
            return low, 1 << 63
        last = 1 << digits(dtype)
    else:
        last = integer_limits(dtype)[1]
    _require(
        low <= last,
        "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
        f"dtype, but got from={low} > to_inc={last}",
    )
    return low, last + 1


def check_randperm(n: int, dtype: np.dtype[Any]) -> None:
    """All of 0 .. n-1 must be distinct in `dtype`."""
    _require(n >= 0, f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype in FLOATS:
        most = (1 << digits(dtype)) + 1
        _require(n <= most, f"n cannot be greater than {most} for {dtype} type.")
    elif dtype.kind in "iu":
        fits = n - 1 <= np.iinfo(dtype).max
        _require(fits, f"randperm: {n} cannot be converted to type {dtype} without overflow")
    else:
        fail(UnsupportedError, "randperm", f"not implemented for {dtype}.")


def check_multinomial(weights: np.ndarray[Any, Any], num_samples: int, replacement: bool) -> None:
    """Weights must be finite, not negative, and enough for the samples asked for."""
    if weights.dtype not in FLOATS:
        raise DtypeError(f"multinomial only supports floating-point dtypes for input, got: {weights.dtype}")
    _require(weights.ndim in (1, 2), "prob_dist must be 1 or 2 dim")
    _require(num_samples > 0, "cannot sample n_sample <= 0 samples")
    _require(
        replacement or num_samples <= weights.shape[-1],
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    valid = np.isfinite(weights) & (weights >= 0)
    _require(bool(valid.all()), "probability tensor contains either `inf`, `nan` or element < 0")
    positive = (weights > 0).sum(-1)
    _require(bool((positive > 0).all()), "invalid multinomial distribution (sum of probabilities <= 0)")
    _require(
        replacement or bool((positive >= num_samples).all()),
        "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)",
    )


def digits(dtype: np.dtype[Any]) -> int:
    """Significant bits of a floating-point type, the hidden one included."""
    return int(_finfo(dtype).nmant) + 1


def nearest_inside(value: int, kind: np.dtype[Any], direction: int) -> Any:
    """`value` in a floating type; where that rounds out of the range, the neighbour within."""
    near = kind.type(value)
    if (int(near) - value) * direction >= 0:
        return near
    return np.nextafter(near, kind.type(direction * np.inf))
