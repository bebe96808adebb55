"""float32 to super-blocks (Q2_K … Q6_K), by search: scales are fitted, not read off the extremes.

A super-block is x ≈ d·s·q (- dmin·m): small integers q per element, s and m per group, d and dmin
of half precision per super-block. For each group several roundings of x to codes are tried; given
the codes the best scale (and minimum) is a weighted least-squares solution, and the best try is
kept. Then s and m are rounded, the codes are chosen again for what will be stored, and d and dmin
are fitted to them. Each function takes (super-blocks, 256) and returns records. Knows arrays, not
files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .bits import Array, pack, pack_k_scales, pack_q3_scales
from .encode_plain import inverse, records

# How far a try departs from the range that just covers the group, in steps of the grid. A smaller
# range clips the extremes and serves the many numbers in between better. Twice as many tries gain
# less than one part in 200.
_AFFINE_TRIES = np.linspace(-1.0, 1.0, 9, dtype=np.float32)
_SYMMETRIC_TRIES = np.linspace(-1.0, 1.0, 5, dtype=np.float32)
# Alternate between codes and d, dmin: more rounds changed the error by less than one part in 1000.
_ROUNDS = 2


def column_weights(x: Array, importance: Array | None) -> Array:
    """What an error in each number matters: more for large ones, which move the output most.

    With the mean squares of what each number is multiplied with, it matters in proportion to them. A group that
    was never reached has no such squares, and is fitted as without.
    """
    square = x * x
    mean = square.mean(axis=-1, keepdims=True)
    own = np.abs(x) + np.sqrt(mean)
    if importance is None:
        return own
    w = importance.reshape(x.shape) * np.sqrt(mean + square)
    return np.where(w.sum(axis=-1, keepdims=True) > 0, w, own)


def _codes(x: Array, scale: Array, offset: Array, low: int, high: int) -> Array:
    """The nearest codes to x = scale·q - offset."""
    return np.clip(np.rint((x + offset) * inverse(scale)), low, high).astype(np.float32)


def _error(x: Array, w: Array, fit: Array) -> Array:
    r = x - fit
    return (w * r * r).sum(axis=-1, keepdims=True)


def _fit_symmetric(x: Array, w: Array, levels: int) -> Array:
    """The scale of each group (last axis) for codes -levels .. levels-1; (..., 1)."""
    at = np.abs(x).argmax(axis=-1)[..., None]
    extreme = np.take_along_axis(x, at, axis=-1)
    zero = np.zeros_like(extreme)
    best, best_error = zero, _error(x, w, zero)
    for sign in (-1, 1):  # the extreme number at the end of the codes that reaches further, or not
        for delta in _SYMMETRIC_TRIES:
            q = _codes(x, extreme / (sign * (levels - 0.5 + delta)), zero, -levels, levels - 1)
            norm = (w * q * q).sum(axis=-1, keepdims=True)
            scale = (w * x * q).sum(axis=-1, keepdims=True) * inverse(norm)
            error = _error(x, w, scale * q)
            better = error < best_error
            best, best_error = np.where(better, scale, best), np.where(better, error, best_error)
    return best


def _fit_affine(x: Array, w: Array, top: int) -> tuple[Array, Array]:
    """Scale and minimum, both not negative, of each group for x = scale·q - minimum."""
    low = np.minimum(x.min(axis=-1, keepdims=True), 0)
    high = x.max(axis=-1, keepdims=True)
    zero = np.zeros_like(low)
    # All-negative groups of equal numbers have no range: the minimum alone describes them.
    best, best_min = zero, -low
    best_error = _error(x, w, low + zero)
    for delta in _AFFINE_TRIES:
        span = (high - low) / np.float32(top + delta)
        q = _codes(x, span, -low, 0, top)
        scale, minimum = _solve(w, q, x)
        error = _error(x, w, scale * q - minimum)
        better = error < best_error
        best = np.where(better, scale, best)
        best_min = np.where(better, minimum, best_min)
        best_error = np.where(better, error, best_error)
    return best, best_min


def _solve(w: Array, q: Array, x: Array) -> tuple[Array, Array]:
    """Weighted least squares for x = scale·q - minimum with scale, minimum ≥ 0; (..., 1) each."""

    def total(a: Array) -> Array:
        return a.sum(axis=-1, keepdims=True, dtype=np.float64)

    sw, sq, sqq = total(w), total(w * q), total(w * q * q)
    sx, sxq = total(w * x), total(w * x * q)
    determinant = sw * sqq - sq * sq
    scale = (sw * sxq - sq * sx) * _inverse64(determinant)
    minimum = (sq * sxq - sqq * sx) * _inverse64(determinant)
    # Outside the quarter plane the best point lies on its edge. With all codes equal there is a
    # line of best points, one of them on that edge.
    alone = (minimum < 0) | (determinant <= 1e-9 * sw * sqq)
    scale = np.where(alone, sxq * _inverse64(sqq), scale)
    minimum = np.where(alone, 0, minimum)
    flat = scale < 0
    minimum = np.where(flat, np.maximum(-sx * _inverse64(sw), 0), minimum)
    return np.maximum(scale, 0).astype(np.float32), minimum.astype(np.float32)


def _inverse64(a: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(a == 0, 0, 1 / a)


def _half(a: Array) -> Array:
    """What float16 makes of it, as float32."""
    return a.astype(np.float16).astype(np.float32)


def _half_above(a: Array) -> Array:
    """The nearest float16 not closer to zero: tiny scales keep their range, at fewer steps."""
    h = a.astype(np.float16)
    further = np.nextafter(h, np.copysign(np.float16(np.inf), a.astype(np.float16)))
    return np.where(np.abs(h.astype(np.float32)) < np.abs(a), further, h).astype(np.float32)


def _affine(x: Array, importance: Array | None, group: int, top: int, steps: int) -> tuple[Array, ...]:
    """d, dmin, scales, minima and codes of super-blocks; `steps` is the largest s and m."""
    x = x.reshape(len(x), -1, group)
    w = column_weights(x, importance)
    scale, minimum = (a[..., 0] for a in _fit_affine(x, w, top))  # (super-blocks, groups)
    d = _half_above(scale.max(axis=1, keepdims=True) / np.float32(steps))
    dmin = _half_above(minimum.max(axis=1, keepdims=True) / np.float32(steps))
    s = np.clip(np.rint(scale * inverse(d)), 0, steps)
    m = np.clip(np.rint(minimum * inverse(dmin)), 0, steps)

    def codes(d: Array, dmin: Array) -> tuple[Array, Array]:
        step, offset = (d * s)[..., None], (dmin * m)[..., None]
        q = _codes(x, step, offset, 0, top)
        return q, _error(x, w, step * q - offset).sum(axis=1)

    q, error = codes(d, dmin)
    for _ in range(_ROUNDS):
        d2, dmin2 = (_half(a) for a in _refit(x, w, s[..., None] * q, m[..., None]))
        q2, error2 = codes(d2, dmin2)
        better = error2 < error
        d, dmin = np.where(better, d2, d), np.where(better, dmin2, dmin)
        q, error = np.where(better[..., None], q2, q), np.where(better, error2, error)
    return d[:, 0], dmin[:, 0], s.astype(np.uint8), m.astype(np.uint8), _flat(q)


def _refit(x: Array, w: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """Weighted least squares for x = d·u - dmin·v over a super-block; d, dmin ≥ 0."""

    def total(a: Array) -> Array:
        return a.sum(axis=(1, 2), dtype=np.float64)[:, None]

    uu, uv, vv = total(w * u * u), total(w * u * v), total(w * v * v)
    xu, xv = total(w * x * u), total(w * x * v)
    inv = _inverse64(uu * vv - uv * uv)
    d, dmin = (vv * xu - uv * xv) * inv, (uv * xu - uu * xv) * inv
    # With no minima at all, or dependent ones, only d is left to fit.
    alone = (inv == 0) | (dmin < 0)
    d = np.where(alone, xu * _inverse64(uu), d)
    return np.maximum(d, 0).astype(np.float32), np.where(alone, 0, dmin).astype(np.float32)


def _refit_scale(x: Array, w: Array, u: Array) -> Array:
    """Weighted least squares for x = d·u over a super-block."""
    uu = (w * u * u).sum(axis=(1, 2), dtype=np.float64)[:, None]
    return ((w * x * u).sum(axis=(1, 2), dtype=np.float64)[:, None] * _inverse64(uu)).astype("f4")


def _symmetric(x: Array, importance: Array | None, levels: int, steps: int) -> tuple[Array, Array, Array]:
    """d, scales -steps .. steps-1 and codes 0 .. 2·levels-1 of super-blocks in groups of 16."""
    x = x.reshape(len(x), -1, 16)
    w = column_weights(x, importance)
    scale = _fit_symmetric(x, w, levels)[..., 0]
    at = np.abs(scale).argmax(axis=1)[:, None]
    d = _half_above(np.take_along_axis(scale, at, axis=1) / np.float32(-steps))
    s = np.clip(np.rint(scale * inverse(d)), -steps, steps - 1)
    zero = np.zeros((len(x), 1, 1), np.float32)

    def codes(d: Array) -> tuple[Array, Array]:
        step = (d * s)[..., None]
        q = _codes(x, step, zero, -levels, levels - 1)
        return q, _error(x, w, step * q).sum(axis=1)

    q, error = codes(d)
    for _ in range(_ROUNDS):
        d2 = _half(_refit_scale(x, w, s[..., None] * q))
        q2, error2 = codes(d2)
        better = error2 < error
        d, error = np.where(better, d2, d), np.where(better, error2, error)
        q = np.where(better[..., None], q2, q)
    return d[:, 0], s.astype(np.int8), _flat(q + np.float32(levels))


def _flat(q: Array) -> Array:
    return q.astype(np.uint8).reshape(len(q), -1)


def q2_k(x: Array, importance: Array | None) -> Array:
    """Four levels; scale and minimum of 4 bits for each 16."""
    d, dmin, s, m, q = _affine(x, importance, 16, 3, 15)
    return records("q2_k", d=d, dmin=dmin, scales=s | (m << 4), qs=pack(q, 2, 32))


def q3_k(x: Array, importance: Array | None) -> Array:
    """Eight levels; scale of 6 bits for each 16."""
    d, s, q = _symmetric(x, importance, 4, 32)
    scales = pack_q3_scales(s)
    return records("q3_k", d=d, scales=scales, qs=pack(q, 2, 32), qh=pack(q >> 2, 1, 32))


def q4_k(x: Array, importance: Array | None) -> Array:
    """Sixteen levels; scale and minimum of 6 bits for each 32."""
    d, dmin, s, m, q = _affine(x, importance, 32, 15, 63)
    return records("q4_k", d=d, dmin=dmin, scales=pack_k_scales(s, m), qs=pack(q, 4, 32))


def q5_k(x: Array, importance: Array | None) -> Array:
    """Thirty-two levels; scale and minimum of 6 bits for each 32."""
    d, dmin, s, m, q = _affine(x, importance, 32, 31, 63)
    scales = pack_k_scales(s, m)
    return records("q5_k", d=d, dmin=dmin, scales=scales, qs=pack(q, 4, 32), qh=pack(q >> 4, 1, 32))


def q6_k(x: Array, importance: Array | None) -> Array:
    """Sixty-four levels; scale of 8 bits for each 16."""
    d, s, q = _symmetric(x, importance, 32, 128)
    return records("q6_k", d=d, scales=s, qs=pack(q, 4, 64), qh=pack(q >> 4, 2, 32))


ENCODE_K: dict[str, Callable[[Any, Array | None], Array]] = {
    "q2_k": q2_k,
    "q3_k": q3_k,
    "q4_k": q4_k,
    "q5_k": q5_k,
    "q6_k": q6_k,
}
