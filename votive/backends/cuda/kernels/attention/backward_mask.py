"""The gradient of attention by its mask: one program for each tile of the mask gathers from all
heads, queries and keys that the mask was stretched over. Nothing but the result is written down.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....common.slot import Slot
from ...programs.program import Program
from ...runtime.views import View
from .arguments import NOISE_TYPES, stride_types
from .parts import by_scores, scores
from .plain import Plain, means_for


@triton.jit
def _by_mask(
    o, q, k, v, g, tops, means, mask, moved, key, counter, highest,
    G, T, S, D, E, H_OUT, B_IN, H_IN, T_IN, S_IN, offset, down, across, scale, factor,
    rb, rh, qb, qh, qt, kb, kh, kt, vb, vh, vt, gb, gh, gt, mb, mh, mt, ms, ob, oh, ot, os,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    PACKED: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """`*_IN`: over how many batches, heads, and tiles of queries and keys the mask is stretched.
    `ROWS`, `COLUMNS`: it has queries and keys of its own. Grid: (down x across x its heads,).
    """
    at = tl.program_id(0)
    row = at // across % down
    column = at % across
    head = at // across // down
    own_b = (head // H_OUT).to(tl.int64)
    own_h = (head % H_OUT).to(tl.int64)
    total = tl.zeros((BM, BN), WIDE)
    for n in range(B_IN * H_IN):
        b = own_b + n // H_IN
        h = own_h + n % H_IN
        rows = b * rb + h * rh
        for r in range(T_IN):
            for c in range(S_IN):
                i = (row + r) * BM + tl.arange(0, BM)
                first = (column + c) * BN
                j = first + tl.arange(0, BN)
                s = scores(
                    q + b * qb + h * qh,
                    k + b * kb + h // G * kh,
                    mask + b * mb + h * mh,
                    i,
                    j,
                    T,
                    S,
                    offset,
                    0,
                    qt,
                    kt,
                    mt,
                    ms,
                    scale,
                    D,
                    CAUSAL,
                    WINDOW,
                    MASK,
                    WIDE,
                    PRECISION,
                    BM,
                    BN,
                    BF,
                )
                total += by_scores(
                    s, g + b * gb + h * gh, v + b * vb + h // G * vh, tops, means, i, j, rows + i,
                    first, T, S, gt, vt, E, factor, moved, key, counter, highest,
                    NOISE, WIDE, PRECISION, BM, BN, BF,
                )  # fmt: skip
    o += own_b * ob + own_h * oh
    i = row * BM + tl.arange(0, BM)
    j = column * BN + tl.arange(0, BN)
    kind = o.dtype.element_ty
    if ROWS and COLUMNS:
        tl.store(o + i[:, None] * ot + j[None, :] * os, total.to(kind), mask=(i[:, None] < T) & (j[None, :] < S))
    elif ROWS:
        tl.store(o + i * ot, tl.sum(total, 1).to(kind), mask=i < T)
    elif COLUMNS:
        tl.store(o + j * os, tl.sum(total, 0).to(kind), mask=j < S)
    else:
        tl.store(o, tl.sum(tl.sum(total, 1), 0).to(kind))


def mask_gradient(q: Slot, k: Slot, v: Slot, g: Slot, y: Slot, mask: Slot, p: float, causal: bool) -> Any:
    """launch(out, g, g_lse, q, k, v, mask, y, lse, noise, offset, scale)."""
    B, H, T, _ = q.shape
    S = k.shape[2]
    sizes = (B, H, T, S)
    c = Plain(q, k, v, mask, sizes, p, causal, False, ())
    means = means_for(c, g, y, sizes)
    own = (*[1] * (4 - mask.ndim), *mask.shape)
    batch, heads = own[:2]
    rows, columns = own[2] == T, own[3] == S
    down, across = -(-T // c.bm), -(-S // c.bn)
    inside = (1 if batch == B else B, 1 if heads == H else H, 1 if rows else down, 1 if columns else across)
    down, across = down if rows else 1, across if columns else 1
    strides = c.strides(q, k, v, g)
    # The result is dense, in the order of the mask's dimensions.
    to = (heads * own[2] * own[3], own[2] * own[3], own[3], 1)
    n = c.number
    program = Program(
        _by_mask,
        [
            c.mask_type,
            *[c.element] * 4,
            "*" + n,
            "*" + n,
            c.mask_type,
            *NOISE_TYPES,
            *["i32"] * 13,
            n,
            n,
            "i64",
            "i64",
            *stride_types(strides, (T, S, S, T)),
            *c.far,
            *["i64"] * 4,
        ],
        {**c.shared, "ROWS": rows, "COLUMNS": columns},
        warps=c.warps,
        stages=1,
    )
    grid = (down * across * batch * heads,)

    def launch(
        out: View,
        g: View,
        g_lse: View,
        q: View,
        k: View,
        v: View,
        mask: View,
        y: View,
        lse: View,
        noise: Any,
        offset: int,
        scale: float,
    ) -> None:
        if grid[0]:
            mean = means(g, y, g_lse)
            program(
                grid, out.ptr, q.ptr, k.ptr, v.ptr, g.ptr, lse.ptr, mean.ptr, mask.ptr,
                *noise, c.G, T, S, c.D, c.E, heads, *inside, offset, down, across, scale, c.factor,
                *c.rows, *strides, *c.mask_strides, *to,
            )  # fmt: skip

    return launch
