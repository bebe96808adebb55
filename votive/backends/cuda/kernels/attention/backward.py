"""The gradients of attention: weights are made again from the rows' log-sum-exp, tile by tile. One
kernel goes along keys for queries, then one along queries for keys and values.
"""

from __future__ import annotations

from typing import Any

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.attention import How
from ....common.slot import Slot
from ...programs.layouts import contiguous, next_power_of_two
from ...programs.program import TYPE, Program
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty
from .arguments import (
    LOG2E,
    NOISE_TYPES,
    even,
    fits,
    made_up,
    mask_kind,
    mask_strides,
    mask_types,
    noise_for,
    noise_kind,
    packed,
    precision,
    put,
    room,
    stride_types,
    strides_of,
    takes,
)
from .backward_keys import by_keys
from .backward_queries import by_queries
from .tile_sizes import AHEAD, KEYS, QUERIES, tile


def backward(
    q: Slot,
    k: Slot,
    v: Slot,
    g: Slot,
    y: Slot,
    mask: Any,
    outs: tuple[Any, Any, Any],
    sizes: tuple[int, ...],
    p: float,
    causal: bool,
    window: bool = False,
    ends: tuple[str, ...] = (),
) -> Any:
    """launch(outs, g, g_lse, q, k, v, mask, y, lse, where, noise, offset, lower, scale) for Views
    with dense features. `sizes`: batch, query heads, queries, keys. `ends`: types of the ends of
    packed sequences; `where` then has their addresses, and `longest` are the longest of them.
    """
    B, H, T, S = sizes
    KH, D, E = k.shape[1], q.shape[-1], v.shape[-1]
    G = H // max(KH, 1)
    bd, be = next_power_of_two(max(D, 16)), next_power_of_two(max(E, 16))
    kind, mask_type = mask_kind(mask)
    noise = noise_kind(p, S)
    fixed = {
        "CAUSAL": causal,
        "WINDOW": window,
        "MASK": kind,
        "NOISE": noise,
        "PACKED": bool(ends),
        "PRECISION": precision(q.dtype),
        "D": D,
        "BD": bd,
        "E": E,
        "BE": be,
    }
    element = ["*" + TYPE[s.dtype] for s in (q, k, v, g)]
    at = 0 if ends else 2
    long, short = q.shape[at], k.shape[at]
    sides = ["*fp32", "*fp32", mask_type, *(ends or ("*i32",) * 2), *NOISE_TYPES]
    numbers = [*["i32"] * 7, "fp32", "fp32", "fp32", "i64", "i64"]
    far = mask_types(mask, T, S)
    rows = (0, long) if ends else (H * T, T)
    factor = made_up(p) if p else 1.0

    bm, n, warps, stages, more = tile(QUERIES, q.dtype, max(bd, be), kind, noise)
    strides = tuple(s for x in (outs[0], q, k, v, g, y) for s in strides_of(x)) + mask_strides(mask)
    one = Program(
        by_queries,
        [
            element[0],
            "*fp32",
            "*fp32",
            *element,
            "*" + TYPE[y.dtype],
            *sides[:2],
            mask_type,
            *sides[3:],
            *numbers,
            *stride_types(strides, (long, long, short, short, long, long)),
            *far,
        ],
        {**fixed, "WHOLE": not ends and S % n == 0, "AHEAD": AHEAD[QUERIES], "BM": bm, "BN": n},
        warps=warps,
        stages=stages,
        **more,
    )
    one.divisible = even((*rows, *strides), 27)

    m, bn, warps, stages, more = tile(KEYS, q.dtype, max(bd, be), kind, noise)
    key_strides = tuple(s for x in (outs[1], outs[2], q, k, v, g) for s in strides_of(x)) + mask_strides(mask)
    two = Program(
        by_keys,
        [
            element[1],
            element[2],
            *element,
            *sides,
            *numbers,
            *stride_types(key_strides, (short, short, long, short, short, long)),
            *far,
        ],
        {**fixed, "AHEAD": AHEAD[KEYS], "BM": m, "BN": bn, "G": G, "TAIL": bool(ends) or window or T % m != 0},
        warps=warps,
        stages=stages,
        **more,
    )
    two.divisible = even((*rows, *key_strides), 25)
    count = Spec(Layout((H * long * (1 if ends else B),)), dt.float32, q.spec.device)

    def launch(
        outs: list[View],
        g: View,
        g_lse: View,
        q: View,
        k: View,
        v: View,
        mask: int,
        y: View,
        lse: View,
        where: tuple[int, int],
        noise: Any,
        offset: int,
        lower: int,
        scale: float,
        longest: tuple[int, int] = (T, S),
    ) -> None:
        tops, means = empty(count), empty(count)
        tiles_q, tiles_k = -(-longest[0] // bm), -(-longest[1] // bn)
        how = (*where, *noise)
        base = (T, S, offset, lower)
        scales = (scale * LOG2E, scale, factor, *rows)
        if tiles_q * B * H:
            one(
                (tiles_q * B * H,),
                outs[0].ptr,
                tops.ptr,
                means.ptr,
                q.ptr,
                k.ptr,
                v.ptr,
                g.ptr,
                y.ptr,
                lse.ptr,
                g_lse.ptr,
                mask,
                *how,
                H,
                G,
                *base,
                tiles_q,
                *scales,
                *strides,
            )
        if tiles_k * B * KH:
            two(
                (tiles_k * B * KH,),
                outs[1].ptr,
                outs[2].ptr,
                q.ptr,
                k.ptr,
                v.ptr,
                g.ptr,
                tops.ptr,
                means.ptr,
                mask,
                *how,
                H,
                KH,
                *base,
                tiles_k,
                *scales,
                *key_strides,
            )

    return launch


@cuda("_attention_backward", accepts=lambda g, g_lse, q, *rest: takes(q))
def attention_backward(
    g: Slot, g_lse: Slot, q: Slot, k: Slot, v: Slot, mask: Slot | None, out: Slot, lse: Slot, *given: Any
) -> Run:
    from .backward_mask import mask_gradient
    from .plain import plain_backward
    from .products import backward_by_products, pays

    how = How(*given)
    B, H, T, D = q.shape
    S, E = k.shape[2], v.shape[3]
    results = tuple(x.spec.dense_like() for x in (q, k, v))
    sizes = (B, H, T, S)
    products = pays(q, k, v, sizes)
    if products:
        launch = backward_by_products(q, k, v, mask, sizes, how.dropout_p, how.is_causal)
    else:
        make: Any = backward if fits(D, E, q.dtype) else plain_backward
        launch = make(q, k, v, g, out, mask, results, sizes, how.dropout_p, how.is_causal)
    of_mask = None
    if how.by_mask and mask is not None:
        of_mask = mask_gradient(q, k, v, g, out, mask, how.dropout_p, how.is_causal)
    noise = noise_for(how.dropout_p)

    def run(outs: list[View], *views: Any) -> None:
        *_, mask, out, lse, seed, counter, offset = views
        g, q, k, v, out = (packed(x) for x in (views[0], *views[2:5], out))
        g_lse, lse = contiguous(views[1]), contiguous(lse)
        drawn = noise(seed, counter)
        at = 0 if mask is None else mask.ptr
        if products:
            launch(outs[:3], g, g_lse, q, k, v, at, lse, drawn, int(offset), how.scale)
        else:
            made = [room(x) for x in outs[:3]]
            launch(made, g, g_lse, q, k, v, at, out, lse, (0, 0), drawn, int(offset), 0, how.scale)
            for to, x in zip(outs, made, strict=False):
                put(to, x)
        if of_mask is not None:
            of_mask(outs[3], g, g_lse, q, k, v, mask, out, lse, drawn, int(offset), how.scale)

    return run
