"""What the tiles of all attention kernels share: who sees whom, which weights dropout keeps, where
a sequence of a packed batch lies. Knows Triton only.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...programs.generator_state import philox_state


@triton.jit
def span(ends, b, total):
    """Where sequence `b` begins, and its length; wrong ends stay inside of the memory."""
    first = tl.minimum(tl.maximum(tl.load(ends + b).to(tl.int64), 0), total)
    last = tl.minimum(tl.maximum(tl.load(ends + b + 1).to(tl.int64), first), total)
    return first, (last - first).to(tl.int32)


@triton.jit
def seen(i, j, S, offset, lower, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, WHOLE: tl.constexpr):
    """Whether query i sees key j: up to i + offset, and from i + lower on. `WHOLE`: all keys of the
    tile exist, or what becomes of the others is not asked.
    """
    if CAUSAL:
        sees = j <= i + offset
        if WINDOW:
            sees = sees & (j >= i + lower)
        if not WHOLE:
            sees = sees & (j < S)
    elif WINDOW:
        sees = j >= i + lower
        if not WHOLE:
            sees = sees & (j < S)
    else:
        sees = (j < S) & (i == i)
    return sees


@triton.jit
def kept(moved, key, counter, highest, rows, start, S, NOISE: tl.constexpr, BN: tl.constexpr):
    """Whether dropout keeps the weights of some rows for keys `start`..: (rows, BN).

    Weight e of all weights is kept when word e of the draw is not above `highest`, as in
    `cpu/reference/dropout.py`.
    """
    key, begin = philox_state(key, counter, moved)
    first = (rows.to(tl.int64) * S + start)[:, None]
    if NOISE == 1:
        at = begin + (first >> 2) + tl.arange(0, BN // 4)[None, :]
    else:
        place = first + tl.arange(0, BN)[None, :]
        at = begin + (place >> 2)
    low = (at & 0xFFFFFFFF).to(tl.uint32)
    high = ((at >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(key, low, high, zero, zero)
    if NOISE == 1:
        words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    else:
        which = place & 3
        words = tl.where(which < 2, tl.where(which == 0, a, b), tl.where(which == 2, c, d))
    return words <= highest.to(tl.uint32)
