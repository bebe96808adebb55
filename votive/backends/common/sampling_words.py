"""From random words to numbers of the unit interval, and the loop over blocks. Knows no generators.

A type is `wide` when an element takes 64 bits (float64 and the integers) and narrow when it takes
one word (float32 and the half types, which compute in float32). Multiplying by a power of two is
exact, so these conversions give the same bits on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.errors import UnsupportedError, fail
from .philox import Words, as_uint64, word_blocks
from .sampling_bounds import FLOATS, digits

Array = NDArray[Any]

COMPLEX_PARTS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


def float_type(op: str, dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype` as a NumPy type, if it is one of the four floating-point types samplers know."""
    kind = np.dtype(dtype)
    if kind not in FLOATS:
        fail(UnsupportedError, op, f"needs float16, bfloat16, float32 or float64, got {kind}.")
    return kind


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Whether one element takes 64 bits rather than one word."""
    return dtype == np.float64 or dtype.kind in "biu"


def words_each(dtype: np.dtype[Any]) -> int:
    """Words that one element of `dtype` takes."""
    return 2 if is_wide(dtype) else 1


def compute_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    """The type a sampler calculates in before rounding to `dtype`."""
    return np.float64 if is_wide(dtype) else np.float32


def unit(words: Words, dtype: np.dtype[Any]) -> Array:
    """[0, 1): the top bits, as many as `dtype` has digits; every value is exact, 1 never occurs."""
    bits = digits(dtype)
    if is_wide(dtype):
        return (as_uint64(words) >> np.uint64(64 - bits)) * np.float64(2.0**-bits)
    return (words >> np.uint32(32 - bits)).astype(np.float32) * np.float32(2.0**-bits)


def open_unit(words: Words, wide: bool) -> Array:
    """(0, 1]: all bits, centred in their cell, so a logarithm is finite and its tail long."""
    if wide:
        return as_uint64(words) * np.float64(2.0**-64) + np.float64(2.0**-65)
    return words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def centred_unit(words: Words, wide: bool) -> Array:
    """[-1/2, 1/2]: the same cells read as signed integers, so both sides are equally fine."""
    if wide:
        return as_uint64(words).view(np.int64) * np.float64(2.0**-64) + np.float64(2.0**-65)
    return words.view(np.int32).astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def standard_exponential(words: Words, dtype: np.dtype[Any]) -> Array:
    """-log of `open_unit`, held above the zero that it rounds to next to one.

    The floor is the mean of what rounds to zero, cells within 2**-25 (wide: 2**-54) of one. That
    would itself be zero in float16, whose smallest number stands in.
    """
    wide = is_wide(dtype)
    floor = 2.0**-24 if dtype == np.float16 else 2.0**-55 if wide else 2.0**-26
    return np.maximum(-np.log(open_unit(words, wide)), compute_type(dtype)(floor))


def fill(
    key: int,
    counter: int,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    each: int,
    draw: Callable[[Words], Array],
    finish: Callable[[Array, slice], Array] | None = None,
) -> Array:
    """An array whose element `i` comes from words `each*i ...`; the work stays in cache.

    `draw` sees whole counters and gives one value for every `each` words; `finish` sees the values
    that are kept and where they go, and applies parameters.
    """
    out = np.empty(tuple(shape), dtype=dtype)
    flat = out.reshape(-1)
    # Rounding to a half type may pass its largest value; infinity is the right answer then.
    with np.errstate(over="ignore"):
        for first, words in word_blocks(key, counter, flat.size * each):
            start = first // each
            stop = min(flat.size, start + words.size // each)
            values = draw(words)[: stop - start]
            where = slice(start, stop)
            flat[where] = values if finish is None else finish(values, where)
    return out


def spread(value: Any, shape: Sequence[int], dtype: DTypeLike) -> Callable[[slice], Any]:
    """A parameter, number or array, as a function of the flat positions it is wanted for."""
    array = np.asarray(value, dtype=dtype)
    if array.ndim == 0:
        return lambda where: array[()]
    flat = np.broadcast_to(array, tuple(shape)).reshape(-1)
    return lambda where: flat[where]
