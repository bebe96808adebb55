"""Integers in the order of values: what is compared, sorted and searched. Knows no memory."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def key_of(v):
    """Integers in the order of the values; NaN is the largest, both zeros are the same."""
    if v.dtype.is_floating():
        if v.dtype == tl.float64:
            v = tl.where(v == 0, 0.0, v)
            b = v.to(tl.int64, bitcast=True)
            k = b ^ ((b >> 63) & 0x7FFFFFFFFFFFFFFF)
            k = tl.where(v != v, 0x7FFFFFFFFFFFFFFF, k)
        else:
            f = v.to(tl.float32)
            f = tl.where(f == 0, 0.0, f)
            b = f.to(tl.int32, bitcast=True)
            k = b ^ ((b >> 31) & 0x7FFFFFFF)
            k = tl.where(f != f, 0x7FFFFFFF, k)
    elif v.dtype == tl.int64:
        k = v
    else:
        k = v.to(tl.int32)
    return k


@triton.jit
def sought(v, LARGEST: tl.constexpr):
    """Keys of which the largest is wanted: NaN wins whichever end is looked for."""
    k = key_of(v)
    if not LARGEST:
        k = ~k
        if v.dtype.is_floating():
            if v.dtype == tl.float64:
                k = tl.where(v != v, 0x7FFFFFFFFFFFFFFF, k)
            else:
                k = tl.where(v != v, 0x7FFFFFFF, k)
    return k


@triton.jit
def value_of(k, T: tl.constexpr, LARGEST: tl.constexpr):
    """The value whose `sought` key this is."""
    if T.is_floating():
        if T == tl.float64:  # noqa: SIM300
            nan = k == 0x7FFFFFFFFFFFFFFF
            if not LARGEST:
                k = ~k
            v = (k ^ ((k >> 63) & 0x7FFFFFFFFFFFFFFF)).to(tl.float64, bitcast=True)
        else:
            nan = k == 0x7FFFFFFF
            if not LARGEST:
                k = ~k
            v = (k ^ ((k >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
        v = tl.where(nan, float("nan"), v)
    else:
        v = k if LARGEST else ~k
    return v.to(T)
