"""Attention and its gradients for float64, and for heads too wide for a tile: how the plain kernels
of `parts.py` are launched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.program import TYPE, Program
from ...runtime.views import View, empty
from .arguments import (
    NOISE_TYPES,
    made_up,
    mask_kind,
    mask_strides,
    mask_types,
    noise_kind,
    precision,
    stride_types,
    strides_of,
)
from .parts import backward_part, forward_part, row_means

# (queries, keys, features, warps) for half types, float32 and float64.
TILES = {dt.float32: (32, 32, 32, 4), dt.float64: (16, 16, 16, 8)}
TILE = (64, 64, 64, 8)


class Plain:
    """What the plain kernels of a call have in common: tile, types and constants."""

    def __init__(
        self,
        q: Slot,
        k: Slot,
        v: Slot,
        mask: Any,
        sizes: tuple[int, ...],
        p: float,
        causal: bool,
        window: bool,
        ends: tuple[str, ...],
    ) -> None:
        self.double = q.dtype is dt.float64
        self.number = "fp64" if self.double else "fp32"
        self.bm, self.bn, self.bf, self.warps = TILES.get(q.dtype, TILE)
        self.kind, self.mask_type = mask_kind(mask)
        _, H, T, S = sizes
        self.D, self.E = q.shape[-1], v.shape[-1]
        self.G = H // max(k.shape[1], 1)
        self.rows = (0, q.shape[0]) if ends else (H * T, T)
        at = 0 if ends else 2
        self.long, self.short = q.shape[at], k.shape[at]
        self.ends = ends
        self.mask_strides, self.far = mask_strides(mask), mask_types(mask, T, S)
        self.factor = made_up(p) if p else 1.0
        self.element = "*" + TYPE[q.dtype]
        self.wide = tl.float64 if self.double else tl.float32
        self.shared = {
            "CAUSAL": causal,
            "WINDOW": window,
            "MASK": self.kind,
            "NOISE": noise_kind(p, S),
            "PACKED": bool(ends),
            "WIDE": self.wide,
            "PRECISION": precision(q.dtype),
            "BM": self.bm,
            "BN": self.bn,
            "BF": self.bf,
        }

    def program(self, fn: Callable[..., Any], types: list[str], **more: Any) -> Program:
        # Without a bound, registers of doubles are spilled for the sake of occupancy.
        bound = {"maxnreg": 255} if self.double else {}
        return Program(fn, types, {**self.shared, **more}, warps=self.warps, stages=1, **bound)

    def strides(self, *slots: Any) -> tuple[int, ...]:
        return tuple(s for x in slots for s in strides_of(x))


def plain_forward(
    q: Slot,
    k: Slot,
    v: Slot,
    mask: Slot | None,
    out: Spec,
    sizes: tuple[int, ...],
    p: float,
    causal: bool,
    scale: float,
    window: bool = False,
    ends: tuple[str, ...] = (),
    used: bool = False,
) -> Any:
    """See `attention.forward`."""
    c = Plain(q, k, v, mask, sizes, p, causal, window, ends)
    B, H, T, S = sizes
    strides = c.strides(out, q, k, v)
    n = c.number
    program = c.program(
        forward_part,
        [
            c.element,
            "*" + n,
            *[c.element] * 3,
            c.mask_type,
            *(ends or ("*i32",) * 3),
            *NOISE_TYPES,
            *["i32"] * 10,
            n,
            n,
            "i64",
            "i64",
            *stride_types(strides, (c.long, c.long, c.short, c.short)),
            *c.far,
        ],
        USED=used,
    )
    parts = max(-(-c.E // c.bf), 1)

    def launch(
        out: View,
        lse: View,
        q: View,
        k: View,
        v: View,
        mask: int,
        where: tuple[int, int, int],
        noise: Any,
        offset: int,
        lower: int,
        longest: int = T,
    ) -> None:
        tiles = -(-longest // c.bm)
        if tiles * B * H:
            program(
                (tiles * parts * B * H,), out.ptr, lse.ptr, q.ptr, k.ptr, v.ptr, mask, *where,
                *noise, H, c.G, T, S, c.D, c.E, offset, lower, tiles, parts, scale, c.factor,
                *c.rows, *strides, *c.mask_strides,
            )  # fmt: skip

    return launch


def means_for(c: Plain, g: Slot, y: Slot, sizes: tuple[int, ...]) -> Any:
    """means(g, y, g_lse, ends) -> `sum(g y) - g_lse` of each row."""
    B, H, T, _ = sizes
    strides = c.strides(g, y)
    number = "*" + c.number
    program = Program(
        row_means,
        [
            number,
            *[c.element] * 2,
            number,
            (c.ends or ("*i32",))[0],
            *["i32"] * 4,
            "i64",
            "i64",
            *stride_types(strides, (c.long, c.long)),
        ],
        {"PACKED": bool(c.ends), "WIDE": c.wide, "BM": 32, "BF": 64},
        warps=4,
        stages=1,
    )
    dtype = dt.float64 if c.double else dt.float32
    rows = Spec(Layout((H * c.long * (1 if c.ends else B),)), dtype, g.spec.device)

    def launch(g: View, y: View, g_lse: View, ends: int = 0, longest: int = T) -> View:
        made, tiles = empty(rows), -(-longest // 32)
        if tiles * B * H:
            program((tiles * B * H,), made.ptr, g.ptr, y.ptr, g_lse.ptr, ends, H, T, c.E, tiles, *c.rows, *strides)
        return made

    return launch


def plain_backward(
    q: Slot,
    k: Slot,
    v: Slot,
    g: Slot,
    y: Any,
    mask: Any,
    outs: tuple[Any, Any, Any],
    sizes: tuple[int, ...],
    p: float,
    causal: bool,
    window: bool = False,
    ends: tuple[str, ...] = (),
) -> Any:
    """See `attention_backward.backward`."""
    c = Plain(q, k, v, mask, sizes, p, causal, window, ends)
    B, H, T, S = sizes
    KH = k.shape[1]
    n = c.number
    means = means_for(c, g, y, sizes)
    sides = []
    for side, (heads, block, width) in enumerate(((H, c.bm, c.D), (KH, c.bn, c.D), (KH, c.bn, c.E))):
        strides = c.strides(outs[side], q, k, v, g)
        reach = (c.long if side == 0 else c.short, c.long, c.short, c.short, c.long)
        program = c.program(
            backward_part,
            [
                *[c.element] * 5,
                "*" + n,
                "*" + n,
                c.mask_type,
                *(ends or ("*i32",) * 2),
                *NOISE_TYPES,
                *["i32"] * 10,
                n,
                n,
                "i64",
                "i64",
                *stride_types(strides, reach),
                *c.far,
            ],
            SIDE=side,
        )
        sides.append((program, block, -(-width // c.bf), heads * B, strides))

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
        mean = means(g, y, g_lse, where[0], longest[0])
        lengths = (longest[0], longest[1], longest[1])
        for out, length, (program, block, parts, heads, strides) in zip(outs, lengths, sides, strict=True):
            tiles = -(-length // block)
            if tiles * parts * heads:
                program(
                    (tiles * parts * heads,), out.ptr, q.ptr, k.ptr, v.ptr, g.ptr, lse.ptr,
                    mean.ptr, mask, *where, *noise, H, c.G, T, S, c.D, c.E, offset, lower, tiles,
                    parts, scale, c.factor, *c.rows, *strides, *c.mask_strides,
                )  # fmt: skip

    return launch
