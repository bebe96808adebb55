"""Convolutions whose results are sums of few terms, such as those of one channel each: too few for a product of
matrices, so every result adds up its own. One launch; nothing is staged, and padding is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ...programs.layouts import contiguous, next_power_of_two
from ...programs.lines import shared_program
from ...programs.program import pointer
from ...programs.types import Ints, wide
from ...runtime import here_count
from ...runtime.views import View, empty
from .implicit import Convolve, Weigh, divider, three
from .kernels import within
from .staging import flat_step
from .taps import quotient
from .weight_taps import join_weights

MOST_CHANNELS = 4  # of a group, into and out of it: always by these kernels
MOST_TAPS = 128
MOST_TERMS = 64  # of a result, with any number of channels
UNROLLED = 32  # taps whose loads are written out
TILE = 512


@triton.jit
def source(o, t, size, stride, by, padding, dilation, TRANSPOSED: tl.constexpr):
    """(coordinate, whether it is there) of what a result at `o` reads at tap `t`. `by`: divides by the stride."""
    if TRANSPOSED:
        at = o + padding - t * dilation
        i = quotient(at, by)
        return i, (at >= 0) & (i * stride == at) & (i < size)
    else:
        i = o * stride - padding + t * dilation
        return i, within(i, size)


@triton.jit
def _term(
    acc, x, w, first, row, p, kd, kh, kw, d, h, v, inside, there, ID, IH, IW, KH, KW, sd, sh, sw, zd, zh, zw, pd, ph,
    pw, dd, dh, dw, xc, xd, xh, xw, wp, wt, P, DIMS: tl.constexpr, TRANSPOSED: tl.constexpr, PADDED: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One more term: channel p of the group at a tap. `first`, `row`: where the group's first channel and its weights
    lie; `there`: which channels of the result are.
    """
    good = inside & (p < P)
    at = first + p * xc
    if DIMS > 2:
        i, here = source(d, kd, ID, sd, zd, pd, dd, TRANSPOSED)
        at += i * xd
        if PADDED:
            good = good & here
    if DIMS > 1:
        i, here = source(h, kh, IH, sh, zh, ph, dh, TRANSPOSED)
        at += i * xh
        if PADDED:
            good = good & here
    i, here = source(v, kw, IW, sw, zw, pw, dw, TRANSPOSED)
    if PADDED:
        good = good & here
    a = tl.load(x + (at + i * xw), mask=good, other=0.0).to(WIDE)
    tap = (kd * KH + kh) * KW + kw
    b = tl.load(w + (row + p * wp + tap * wt), mask=there & (p < P), other=0.0).to(WIDE)
    if PADDED:
        return tl.where(good, acc + a * b, acc)
    else:
        return acc + a * b


@triton.jit
def depthwise(
    o, x, w, bias, N, CH, OD, OH, OW, ID, IH, IW, sd, sh, sw, pd, ph, pw, dd, dh, dw, xn, xc, xd, xh, xw, on, oc,
    od, oh, ow, wo, wi, wt, P, COL, mr, mh, mw, mc, zd, zh, zw, KD: tl.constexpr, KH: tl.constexpr,
    KW: tl.constexpr, DIMS: tl.constexpr, TRANSPOSED: tl.constexpr, PADDED: tl.constexpr, BIAS: tl.constexpr,
    LAST: tl.constexpr, UNROLL: tl.constexpr, SEVERAL: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr,
    BC: tl.constexpr,
):  # fmt: skip
    """SEVERAL: how many channels of a group are read at once. `mr` to `zw` divide: rows, sizes, channels, strides."""
    # Grid: (blocks of columns times blocks of rows,). LAST: channels are columns and positions rows;
    # else positions of a plane are columns, and samples times channels rows.
    places = OD * OH * OW
    if LAST:
        rows, columns = N * places, CH
    else:
        rows, columns = N * CH, places
    across = tl.cdiv(columns, BC)
    r = (tl.program_id(0) // across * BR + tl.arange(0, BR))[:, None]
    k = (tl.program_id(0) % across * BC + tl.arange(0, BC))[None, :]
    inside = (r < rows) & (k < columns)
    n = quotient(r, mr)
    if LAST:
        s, c, there = r - n * places, k, k < columns
    else:
        s, c, there = k, r - n * CH, r < rows
    rest = quotient(s, mw)
    v = s - rest * OW
    d = quotient(rest, mh)
    h = rest - d * OH
    group = quotient(c, mc)
    first = n * xn + group * P * xc
    if TRANSPOSED:
        row, wp = group * P * wo + (c - group * COL) * wi, wo
    else:
        row, wp = c * wo, wi
    acc = tl.zeros((BR, BC), WIDE)
    for begin in range(0, P, SEVERAL):
        for more in tl.static_range(SEVERAL):
            if UNROLL:
                for line in tl.static_range(KD * KH):
                    for kw in tl.static_range(KW):
                        acc = _term(
                            acc, x, w, first, row, begin + more, line // KH, line % KH, kw, d, h, v, inside, there,
                            ID, IH, IW, KH, KW, sd, sh, sw, zd, zh, zw, pd, ph, pw, dd, dh, dw, xc, xd, xh, xw, wp,
                            wt, P, DIMS, TRANSPOSED, PADDED, WIDE,
                        )  # fmt: skip
            else:
                for line in range(KD * KH):
                    for kw in tl.static_range(KW):
                        acc = _term(
                            acc, x, w, first, row, begin + more, line // KH, line % KH, kw, d, h, v, inside, there,
                            ID, IH, IW, KH, KW, sd, sh, sw, zd, zh, zw, pd, ph, pw, dd, dh, dw, xc, xd, xh, xw, wp,
                            wt, P, DIMS, TRANSPOSED, PADDED, WIDE,
                        )  # fmt: skip
    if BIAS:
        acc += tl.load(bias + c, mask=there, other=0.0).to(WIDE)
    if LAST:
        at = n * on + c + d * od + h * oh + v * ow
    else:
        at = n * on + c * oc + s
    tl.store(o + at, acc.to(o.dtype.element_ty), mask=inside)


@triton.jit
def depthwise_weight(
    sums, x, y, N, CH, OD, OH, OW, ID, IH, IW, KH, KW, T, sd, sh, sw, pd, ph, pw, dd, dh, dw, xn, xc, xd, xh, xw,
    yn, yc, yd, yh, yw, P, COL, part, LAST: tl.constexpr, WIDE: tl.constexpr, BT: tl.constexpr,
    BS: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    # Grid: (blocks of channels, blocks of taps times channels of a group, parts of positions). A tile
    # is taps by positions of one channel; LAST: positions by channels at one tap.
    c = tl.program_id(0) * BC + tl.arange(0, BC)[None, :]
    p = tl.program_id(1) % P
    t = tl.program_id(1) // P * BT + tl.arange(0, BT)[:, None]
    total = N * OD * OH * OW
    begin = tl.program_id(2) * part
    end = tl.minimum(begin + part, total)
    tw = t % KW * dw - pw
    th = t // KW % KH * dh - ph
    td = t // KW // KH * dd - pd
    if LAST:
        acc = tl.zeros((BS, BC), WIDE)
    else:
        acc = tl.zeros((BT, BS), WIDE)
    for start in range(begin, end, BS):
        if LAST:
            m = start + tl.arange(0, BS)[:, None]
        else:
            m = start + tl.arange(0, BS)[None, :]
        v = m % OW
        h = m // OW % OH
        rest = m // OW // OH
        d = rest % OD
        n = rest // OD
        iw, ih, id = v * sw + tw, h * sh + th, d * sd + td
        here = (m < end) & (c < CH)
        good = here & (t < T) & (iw >= 0) & (iw < IW) & (ih >= 0) & (ih < IH) & (id >= 0) & (id < ID)
        b = tl.load(y + (n * yn + c * yc + d * yd + h * yh + v * yw), mask=here, other=0.0).to(WIDE)
        given = c // COL * P + p
        a = tl.load(x + (n * xn + given * xc + id * xd + ih * xh + iw * xw), mask=good, other=0.0).to(WIDE)
        acc += tl.where(good, a * b, 0.0)
    if LAST:
        at = (tl.program_id(2) * CH + c) * T * P + t * P + p
        tl.store(sums + at, tl.sum(acc, 0)[None, :], mask=(c < CH) & (t < T))
    else:
        at = (tl.program_id(2) * CH + c) * T * P + t * P + p
        tl.store(sums + at, tl.sum(acc, 1)[:, None], mask=(c < CH) & (t < T))


def five(spec: Spec) -> Ints:
    """Strides of (N, C, depth, height, width)."""
    return (*spec.strides[:2], *three(spec.strides[2:], 0))


def near(*specs: Spec) -> bool:
    """Whether every element can be counted in 32 bits, and none is seen from two places apart."""
    return all(sum(abs(s) * n for s, n in zip(x.strides, x.shape, strict=True)) < 2**30 for x in specs)


def _last(spec: Spec) -> bool:
    return spec.strides[1] == 1 and spec.shape[1] > 1


def _few(groups: int, per: int, columns: int, taps: int) -> bool:
    """Whether groups are so small that no other kernel is worth asking."""
    return groups > 1 and per <= MOST_CHANNELS and columns <= MOST_CHANNELS and taps <= MOST_TAPS


def direct(p: Convolve, out: Spec) -> list[Callable[..., None]]:
    """`run(out, x, weight, bias)` for few terms, or nothing."""
    x, w = p.x, p.weight
    per, taps = x.shape[1] // p.groups, math.prod(w.shape[2:])
    small = _few(p.groups, per, p.columns, taps) or per * taps <= MOST_TERMS
    geometry = (*three(p.stride, 1), *three(p.padding, 0), *three(p.dilation, 1))
    if not small or not near(x.spec, out) or max(geometry) >= 2**20:
        return []
    last = _last(out)
    places = math.prod(p.size)
    columns = out.shape[1] if last else places
    rows = x.shape[0] * (places if last else out.shape[1])
    tile = TILE if rows * columns > 256 * TILE else TILE // 4
    bc = min(tile if not last else 64, max(16, next_power_of_two(columns)))
    br = max(1, min(tile // bc, next_power_of_two(rows)))
    kind = pointer(x.dtype)
    kernel = three(w.shape[2:], 1)
    several = 1 if per == 1 or taps > 9 else 2 if taps > 4 else 4
    constants = dict(zip(("KD", "KH", "KW"), kernel, strict=True))
    constants |= {"DIMS": x.ndim - 2, "TRANSPOSED": p.transposed, "PADDED": p.transposed or any(p.padding)}
    # Long rows of taps are walked, or the text of the kernel would never end.
    constants |= {"BIAS": p.bias, "LAST": last, "UNROLL": taps <= UNROLLED or math.prod(kernel[:2]) == 1}
    constants |= {"SEVERAL": several, "WIDE": wide(x.dtype), "BR": br, "BC": bc}
    program = shared_program(depthwise, [kind] * 4 + ["i32"] * 32 + ["i64"] * 7, constants)
    divided = (places if last else out.shape[1], *three(p.size, 1)[1:], p.columns, *three(p.stride, 1))
    sizes = (x.shape[0], out.shape[1], *three(p.size, 1), *three(x.shape[2:], 1), *geometry)
    step = flat_step(tuple(w.shape[2:]), tuple(w.strides[2:]))
    dense = step is None or not near(w.spec)
    laid = (w.shape[1] * taps, taps, 1) if dense else (*w.strides[:2], step or 0)
    numbers = (*sizes, *five(x.spec), *five(out), *laid, per, p.columns, *map(divider, divided))
    grid = (-(-columns // bc) * -(-rows // br),)

    def run(out: View, x: View, w: View, bias: View | None) -> None:
        if dense:
            w = contiguous(w)
        program(grid, out.ptr, x.ptr, w.ptr, w.ptr if bias is None else bias.ptr, *numbers)

    run.__name__ = "direct"
    return [run]


def direct_weight(p: Weigh, out: Spec) -> list[Callable[..., None]]:
    """`run(out, x, grad)` for small groups, or nothing."""
    x, y = p.x, p.grad
    per, columns, taps = x.shape[1] // p.groups, y.shape[1] // p.groups, math.prod(p.kernel)
    geometry = (*three(p.stride, 1), *three(p.padding, 0), *three(p.dilation, 1))
    if not _few(p.groups, per, columns, taps) or not near(x.spec, y.spec) or max(geometry) >= 2**20:
        return []
    last = _last(y.spec)
    channels, positions = y.shape[1], y.numel // y.shape[1]
    bc = min(64, next_power_of_two(channels)) if last else 1
    bt = 1 if last else min(16, next_power_of_two(taps))
    bs = min(1024 // bc if last else 2048 // bt, max(16, next_power_of_two(positions)))
    blocks = -(-channels // bc) * -(-taps // bt) * per
    parts = max(1, min(4 * here_count() // blocks, positions // (4 * bs), 1024))
    part = -(-positions // parts)
    part += -part % bs
    parts = -(-positions // part)
    kind = pointer(x.dtype)
    total = dt.float64 if x.dtype is dt.float64 else dt.float32
    fixed = {"LAST": last, "WIDE": wide(x.dtype), "BT": bt, "BS": bs, "BC": bc}
    program = shared_program(depthwise_weight, [pointer(total), kind, kind, *["i32"] * 33], fixed)
    kernel = three(p.kernel, 1)
    sizes = (x.shape[0], channels, *three(y.shape[2:], 1), *three(x.shape[2:], 1), *kernel[1:], taps, *geometry)
    numbers = (*sizes, *five(x.spec), *five(y.spec), per, columns, part)
    grid = (-(-channels // bc), -(-taps // bt) * per, parts)
    n = channels * per * taps
    sums = Spec(Layout((parts * n,)), total, out.device)
    join = shared_program(
        join_weights, [kind, pointer(total), *["i32"] * 6, *["i64"] * 4, "i32"], {"WIDE": wide(x.dtype), "BLOCK": 256}
    )
    if not out.contiguous:
        return []
    after = (n, per, taps, per, channels, channels, per * taps, taps, 1, n, parts)

    def run(out: View, x: View, y: View) -> None:
        made = empty(sums)
        program(grid, made.ptr, x.ptr, y.ptr, *numbers)
        join((-(-n // 256),), out.ptr, made.ptr, *after)

    run.__name__ = "direct"
    return [run]
