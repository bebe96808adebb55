"""How an approximation runs over an array: blocks, masks, polynomials, fits. Names no function."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

# 64 KiB of float64: the dozen temporaries of one block stay in the second-level cache.
BLOCK = 1 << 13

# B(2), B(4), ..., B(24): DLMF table 24.2.1.
BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
    -236364091 / 2730,
)

EULER_GAMMA = 0.57721566490153286061


def elementwise(kernel: Callable[..., F64]) -> Callable[..., NDArray]:
    """Lift a function of flat float64 arrays to arrays of any shape, strides and float dtype.

    All arithmetic is float64, so a float32 result is the float64 one rounded once. An integer
    argument beside a floating one is taken as a plain number and does not widen the result.
    """
    name = kernel.__name__.strip("_")

    @functools.wraps(kernel)
    def call(*args: NDArray) -> NDArray:
        arrays = [np.asarray(a) for a in args]
        floats = [a.dtype for a in arrays if a.dtype.kind not in "biuc"]
        if not floats or any(a.dtype.kind == "c" for a in arrays):
            got = ", ".join(str(a.dtype) for a in arrays)
            raise TypeError(f"{name}: needs a real floating dtype, got {got}; use float64.")
        if len(arrays) > 1:
            arrays = list(np.broadcast_arrays(*arrays))
        out = np.empty(arrays[0].shape, np.result_type(*floats))
        flat, flats = out.reshape(-1), [a.reshape(-1) for a in arrays]
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, BLOCK):
                part = slice(start, start + BLOCK)
                flat[part] = kernel(*(a[part].astype(np.float64, copy=False) for a in flats))
        return out

    return call


def fill(out: F64, where: Mask, fn: Callable[..., F64], *args: F64) -> None:
    """Set `out[where] = fn(*args)[where]`, computing only those elements."""
    count = np.count_nonzero(where)
    if count == where.size:
        out[...] = fn(*args)
    elif count:
        out[where] = fn(*(a[where] for a in args))


def horner(coefficients: Sequence[float], x: F64) -> F64:
    """c[0] + c[1] x + c[2] x² + ..."""
    y = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        y *= x
        y += c
    return y


def chebyshev(fn: Callable[[float], float], terms: int) -> tuple[float, ...]:
    """Coefficients of the Chebyshev interpolant of `fn` on [-1, 1] (DLMF 3.11.10)."""

    def cosine(m: int) -> float:
        """cos(πm / 2·terms); folded into a quarter turn, where the argument rounds least."""
        m %= 4 * terms
        m = min(m, 4 * terms - m)
        return -cosine(2 * terms - m) if m > terms else math.cos(math.pi * m / (2 * terms))

    odd = range(1, 2 * terms, 2)
    values = [fn(cosine(j)) for j in odd]
    sums = [math.fsum(v * cosine(k * j) for v, j in zip(values, odd)) for k in range(terms)]
    return (sums[0] / terms, *(2 * s / terms for s in sums[1:]))


def clenshaw(coefficients: Sequence[float], t: F64) -> F64:
    """The Chebyshev series at t in [-1, 1] (DLMF 3.11.15)."""
    t2 = 2 * t
    b, after = np.full_like(t, coefficients[-1]), np.zeros_like(t)
    for c in coefficients[-2:0:-1]:
        after *= -1
        after += t2 * b
        after += c
        b, after = after, b
    return t * b - after + coefficients[0]


def trapezoid(fn: Callable[[float], float], step: float, stop: float) -> float:
    """∫ fn over [0, stop] for an even fn that has died out at `stop`.

    For such an analytic fn the error falls like exp(-2πd/step), where d is the distance of the
    nearest singularity from the real axis (Trefethen & Weideman, SIAM Review 56, 2014).
    """
    inner = (fn(k * step) for k in range(1, math.ceil(stop / step) + 1))
    return step * math.fsum((fn(0.0) / 2, *inner))
