"""float32 to the types whose numbers come from a codebook (IQ1, IQ2, IQ3), by search over scales and points.

A super-block is x ≈ d·(2s + 1)·q: q are signed points of a codebook, s a small integer per group, d of half precision.
Scales of groups are tried, each with the nearest points for it; given the points the best scale is a weighted
least-squares solution. Then d and s are chosen to be near those scales, the points again for what will be stored, and
d and s for the points. Each function takes (super-blocks, 256) and returns records. Knows arrays, not files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .bits import Array
from .codebooks import codebook
from .decode_iq import DELTA
from .encode_k import column_weights
from .encode_plain import inverse, records
from .search import nearest

# Where a first scale is looked for, before points are: the share of the largest number that the largest level stands
# for. And which multiples of the best one are tried with points.
_SHARES = np.linspace(0.5, 1.2, 15, dtype=np.float32)
_TRIES = (1.0, 0.9, 1.1)
_FLAT = 1.5
# Alternate between points and scales as they are stored: more rounds gain less than one part in 200.
_ROUNDS = 2
# How far d departs from where the largest scale gets the largest s.
_STEPS = np.linspace(0.85, 1.3, 19, dtype=np.float32)


@dataclass(frozen=True)
class _Kind:
    """How a type lays out its codes: elements per scale, d's factor, the largest s, and rules of signs."""

    book: str
    group: int
    factor: float
    top: int
    even: bool = False  # the number of minus signs in 8 elements is even
    moved: int = 0  # points are moved by an eighth up or down, alike in so many elements


class _Found(NamedTuple):
    """The codes of groups: multipliers q (n, group) with signs, and what they are made of."""

    q: Array
    points: Array  # their indices, (n, vectors)
    minus: Array  # (n, group), bool
    down: Array  # (n, directions), bool


_KINDS = {
    "iq2_xxs": _Kind("iq2_xxs", 32, 1 / 8, 15, even=True),
    "iq2_xs": _Kind("iq2_xs", 16, 1 / 8, 15, even=True),
    "iq2_s": _Kind("iq2_s", 16, 1 / 8, 15),
    "iq3_xxs": _Kind("iq3_xxs", 32, 1 / 4, 15, even=True),
    "iq3_s": _Kind("iq3_s", 32, 1.0, 15),
    "iq1_s": _Kind("iq1", 32, 1.0, 7, moved=32),
    "iq1_m": _Kind("iq1", 16, 1.0, 7, moved=8),
}


def _total(a: Array) -> Array:
    return a.sum(axis=-1, keepdims=True)


def _points(book: str, x: Array, w: Array) -> tuple[Array, Array, Array]:
    """The nearest points to groups of numbers: their values, their indices and the errors of each vector."""
    points = codebook(book).points
    width = points.shape[1]
    index = nearest(book, x.reshape(-1, width), w.reshape(-1, width)).reshape(len(x), -1)
    q = points[index].reshape(x.shape)
    r = x - q
    return q, index, (w * r * r).reshape(len(x), -1, width).sum(axis=-1)


def _signs(kind: _Kind, x: Array, w: Array, second: bool = False) -> Array:
    """Which elements have a minus. Where their number must be even, the element that matters least (or the one after
    it) gets the wrong sign: an error that costs 4 w |x| p, with p the smallest level in all likelihood."""
    minus = x < 0
    if not kind.even:
        return minus
    eights = minus.reshape(len(x), -1, 8)
    odd = np.bitwise_xor.reduce(eights, axis=-1)
    cost = (w * np.abs(x)).reshape(eights.shape)
    which = np.argpartition(cost, 1, axis=-1)[..., 1] if second else cost.argmin(axis=-1)
    flip = (np.arange(8) == which[..., None]) & odd[..., None]
    found: Array = (eights ^ flip).reshape(x.shape)
    return found


def _search(kind: _Kind, x: Array, w: Array, scale: Array, second: bool = False) -> _Found:
    """The nearest codes for groups with these scales, (n, 1)."""
    y = x * inverse(scale)
    if kind.moved:
        return _search_moved(kind, y, w)
    minus = _signs(kind, x, w, second)
    q, index, _ = _points(kind.book, np.where(minus, -y, y), w)
    return _Found(np.where(minus, -q, q), index, minus, np.zeros((len(x), 0), bool))


def _search_moved(kind: _Kind, y: Array, w: Array) -> _Found:
    n = len(y)
    up, up_index, up_error = _points(kind.book, y - DELTA, w)
    low, low_index, low_error = _points(kind.book, y + DELTA, w)
    parts = y.shape[1] // kind.moved
    down = low_error.reshape(n, parts, -1).sum(axis=-1) < up_error.reshape(n, parts, -1).sum(axis=-1)
    each = np.repeat(down, kind.moved, axis=1)
    index = np.where(np.repeat(down, kind.moved // 8, axis=1), low_index, up_index)
    return _Found(np.where(each, low - DELTA, up + DELTA), index, np.zeros(y.shape, bool), down)


def _solve(x: Array, w: Array, q: Array) -> tuple[Array, Array, Array]:
    """The least-squares scale of groups, how much of their squares it explains, and the weight of the scale."""
    xq, qq = _total(w * x * q), _total(w * q * q)
    scale = np.maximum(xq * inverse(qq), 0)
    return scale, scale * xq, qq


def _first(kind: _Kind, x: Array, w: Array) -> Array:
    """The scale that serves best if every element chose its level alone."""
    levels = np.concatenate([[-1 - DELTA, DELTA, 1 + DELTA] if kind.moved else codebook(kind.book).values])
    levels = np.asarray(levels, np.float32)
    a = x if kind.moved else np.abs(x)
    middles = (levels[1:] + levels[:-1]) / 2
    largest = np.abs(x).max(axis=1, keepdims=True)
    best, most = np.zeros_like(largest), np.full_like(largest, -1)
    for share in _SHARES:
        scale = largest * (share / levels[-1])
        q = levels[np.searchsorted(middles, a * inverse(scale))]
        solved, explained, _ = _solve(a, w, q)
        better = explained > most
        best, most = np.where(better, solved, best), np.where(better, explained, most)
    return best


def _scales(kind: _Kind, x: Array, w: Array) -> tuple[Array, Array]:
    """The best scale of each group found, and the weight of its error; (n, 1) each."""
    start = _first(kind, x, w)
    best, most, weight = start, np.full_like(start, -1), np.ones_like(start)

    def attempt(rows: Array | slice, tried: Array) -> None:
        solved, explained, qq = _solve(x[rows], w[rows], _search(kind, x[rows], w[rows], tried).q)
        better = explained > most[rows]
        best[rows] = np.where(better, solved, best[rows])
        weight[rows] = np.where(better, qq, weight[rows])
        most[rows] = np.where(better, explained, most[rows])

    for factor in _TRIES:
        attempt(slice(None), start * np.float32(factor))
    attempt(slice(None), best.copy())
    # Where magnitudes are nearly the same any level would do alone, but few points have the same one everywhere.
    a = np.abs(x)
    flat = np.flatnonzero(a.max(axis=1) < _FLAT * a.mean(axis=1))
    if len(flat) and not kind.moved:
        attempt(flat, a[flat].mean(axis=1, keepdims=True) / codebook(kind.book).values[0])
    return best, weight


def _half(a: Array) -> Array:
    return a.astype(np.float16).astype(np.float32)


def _stored(kind: _Kind, scale: Array, weight: Array, d: Array) -> tuple[Array, Array]:
    """The nearest s to scales (super-blocks, groups), and the error that is left."""
    unit = d * np.float32(kind.factor)
    s = np.clip(np.rint((scale * inverse(unit) - 1) / 2), 0, kind.top)
    return s, _total(weight * np.square(scale - unit * (2 * s + 1)))


def _grid(kind: _Kind, scale: Array, weight: Array) -> tuple[Array, Array]:
    """d and s of super-blocks for the scales of their groups."""
    most = scale.max(axis=1, keepdims=True)
    best = np.zeros_like(most)
    s, least = np.zeros_like(scale), np.full_like(most, np.inf)
    for step in _STEPS:
        d = _half(most * (step / np.float32(kind.factor * (2 * kind.top + 1))))
        tried, error = _stored(kind, scale, weight, d)
        better = error < least
        best, s, least = np.where(better, d, best), np.where(better, tried, s), np.where(better, error, least)
    return best, s


def _encode(kind: _Kind, x: Array, importance: Array | None) -> tuple[Array, Array, _Found]:
    """d (super-blocks,), s (super-blocks, groups) and the codes of all groups."""
    blocks = len(x)
    x = x.reshape(blocks, -1, kind.group)
    w = column_weights(x, importance)
    # Only ratios of weights count; products of matrices lose less where they are near one.
    w = w * inverse(w.mean(axis=(1, 2), keepdims=True))
    flat, weights = x.reshape(-1, kind.group), w.reshape(-1, kind.group)
    shape = (blocks, x.shape[1])
    scale, weight = (a.reshape(shape) for a in _scales(kind, flat, weights))
    d, s = _grid(kind, scale, weight)

    def codes(d: Array, s: Array, second: bool = False) -> tuple[_Found, Array]:
        each = (d * np.float32(kind.factor) * (2 * s + 1)).reshape(-1, 1)
        found = _search(kind, flat, weights, each, second)
        return found, _total(weights * np.square(flat - each * found.q)).reshape(shape)

    found, error = codes(d, s)
    for _ in range(_ROUNDS):
        solved, _, qq = (a.reshape(shape) for a in _solve(flat, weights, found.q))
        u = np.float32(kind.factor) * (2 * s + 1)
        d2 = _half(_total(qq * u * solved) * inverse(_total(qq * u * u)))
        s2, _ = _stored(kind, solved, qq, d2)
        found2, error2 = codes(d2, s2)
        better = _total(error2) < _total(error)
        d, s, error = np.where(better, d2, d), np.where(better, s2, s), np.where(better, error2, error)
        found = _chosen(np.repeat(better[:, 0], shape[1]), found2, found)
    if kind.even:
        found2, error2 = codes(d, s, second=True)
        found = _chosen((error2 < error).reshape(-1), found2, found)
    return d[:, 0], s.astype(np.uint8), found


def _chosen(better: Array, a: _Found, b: _Found) -> _Found:
    return _Found(*(np.where(better[:, None], new, old) for new, old in zip(a, b)))


def _by_block(found: _Found, blocks: int) -> tuple[Array, Array]:
    """Indices of points and bytes of signs, one row for each super-block."""
    signs = np.packbits(found.minus.reshape(blocks, 256), axis=1, bitorder="little")
    return found.points.reshape(blocks, -1), signs


def _nibbles(low: Array, high: Array) -> Array:
    return (low | (high << 4)).astype(np.uint8)


def iq2_xxs(x: Array, importance: Array | None) -> Array:
    """Points of 8 of 256; a scale of 4 bits for each 32."""
    d, s, found = _encode(_KINDS["iq2_xxs"], x, importance)
    index, signs = _by_block(found, len(x))
    words = np.empty((len(x), 8, 4), np.uint16)
    words[..., :2] = np.ascontiguousarray(index.astype(np.uint8)).view("<u2").reshape(len(x), 8, 2)
    words[..., 2:] = _sevens(signs, s).view("<u2").reshape(len(x), 8, 2)
    return records("iq2_xxs", d=d, qs=words.reshape(len(x), -1))


def _sevens(signs: Array, s: Array) -> Array:
    """32-bit words of four times seven signs, the eighth follows from them, and a scale above."""
    fields = (signs & 127).reshape(len(signs), -1, 4).astype(np.uint32) << np.arange(0, 28, 7, dtype=np.uint32)
    return np.asarray(np.bitwise_or.reduce(fields, axis=2) | (s.astype(np.uint32) << 28), "<u4")


def iq2_xs(x: Array, importance: Array | None) -> Array:
    """Points of 8 of 512; a scale of 4 bits for each 16."""
    d, s, found = _encode(_KINDS["iq2_xs"], x, importance)
    index, signs = _by_block(found, len(x))
    qs = index.astype(np.uint16) | ((signs & 127).astype(np.uint16) << 9)
    return records("iq2_xs", d=d, qs=qs, scales=_nibbles(s[:, ::2], s[:, 1::2]))


def iq2_s(x: Array, importance: Array | None) -> Array:
    """Points of 8 of 1024 with all signs; a scale of 4 bits for each 16."""
    d, s, found = _encode(_KINDS["iq2_s"], x, importance)
    index, signs = _by_block(found, len(x))
    high = ((index >> 8).reshape(len(x), -1, 4).astype(np.uint8) << np.arange(0, 8, 2, dtype=np.uint8)).sum(axis=2)
    scales = _nibbles(s[:, ::2], s[:, 1::2])
    return records("iq2_s", d=d, qs=index & 255, signs=signs, qh=high, scales=scales)


def iq3_xxs(x: Array, importance: Array | None) -> Array:
    """Points of 4 of 256; a scale of 4 bits for each 32."""
    d, s, found = _encode(_KINDS["iq3_xxs"], x, importance)
    index, signs = _by_block(found, len(x))
    return records("iq3_xxs", d=d, qs=index, signs=_sevens(signs, s))


def iq3_s(x: Array, importance: Array | None) -> Array:
    """Points of 4 of 512 with all signs; a scale of 4 bits for each 32."""
    d, s, found = _encode(_KINDS["iq3_s"], x, importance)
    index, signs = _by_block(found, len(x))
    high = np.packbits((index >> 8).astype(bool), axis=1, bitorder="little")
    scales = _nibbles(s[:, ::2], s[:, 1::2])
    return records("iq3_s", d=d, qs=index & 255, qh=high, signs=signs, scales=scales)


def iq1_s(x: Array, importance: Array | None) -> Array:
    """Ternary points of 8 of 2048; a scale of 3 bits and a direction for each 32."""
    d, s, found = _encode(_KINDS["iq1_s"], x, importance)
    index = found.points.reshape(len(x), 8, 4).astype(np.uint16)
    high = np.bitwise_or.reduce((index >> 8) << np.arange(0, 12, 3, dtype=np.uint16), axis=2)
    down = found.down.reshape(len(x), 8).astype(np.uint16)
    qh = high | (s.astype(np.uint16) << 12) | (down << 15)
    return records("iq1_s", d=d, qs=(index & 255).reshape(len(x), -1), qh=qh)


def iq1_m(x: Array, importance: Array | None) -> Array:
    """Ternary points of 8 of 2048, each with a direction; a scale of 3 bits for each 16."""
    d, s, found = _encode(_KINDS["iq1_m"], x, importance)
    index = found.points.reshape(len(x), 32).astype(np.uint16)
    high = (index >> 8) | (found.down.reshape(len(x), 32).astype(np.uint16) << 3)
    fields = s.reshape(len(x), 4, 4).astype(np.uint16) << np.arange(0, 12, 3, dtype=np.uint16)
    half = d.astype(np.float16).view(np.uint16)[:, None] >> np.arange(0, 16, 4, dtype=np.uint16)
    scales = np.bitwise_or.reduce(fields, axis=2) | ((half & 15) << 12)
    return records("iq1_m", qs=index & 255, qh=_nibbles(high[:, ::2], high[:, 1::2]), scales=scales)


ENCODE_IQ: dict[str, Callable[[Any, Array | None], Array]] = {
    "iq2_xxs": iq2_xxs,
    "iq2_xs": iq2_xs,
    "iq2_s": iq2_s,
    "iq3_xxs": iq3_xxs,
    "iq3_s": iq3_s,
    "iq1_s": iq1_s,
    "iq1_m": iq1_m,
}
