"""Attention of packed sequences: the tiles of `attention/`, which look up where their sequence
lies. Lengths stay on the device, nothing is padded.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...common.slot import Slot
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.program import TYPE, Program
from ..programs.types import Run
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View, zero
from .attention.arguments import fits, packed, put, room, takes
from .attention.backward import backward
from .attention.forward import forward
from .attention.plain import plain_backward, plain_forward

STILL = (0, 0, 0, 0)  # no dropout


@triton.jit
def _check(fault, ends, N, total, most, BN: tl.constexpr):
    """Report ends that do not begin at 0, fall, pass the last position or lie too far apart."""
    n = tl.arange(0, BN)
    first = tl.load(ends + n, mask=n < N, other=0).to(tl.int64)
    last = tl.load(ends + n + 1, mask=n < N, other=0).to(tl.int64)
    wrong = (last < first) | (last > total) | (last - first > most) | ((n == 0) & (first != 0))
    if tl.max((wrong & (n < N)).to(tl.int32), 0) != 0:
        tl.store(fault, 1)


def _checking(ends: Slot, total: int, name: str) -> Any:
    """check(ends, longest): sequences lie one after another inside of the positions."""
    N = ends.shape[0] - 1
    program = Program(
        _check, ["*i32", "*" + TYPE[ends.dtype], "i32", "i64", "i64"], {"BN": next_power_of_two(max(N, 16))}
    )
    fault = faults.place(
        ValueError,
        f"varlen_attn: cu_seq_{name} must begin at 0, never fall, end within {total} positions and "
        f"have no sequence longer than max_{name}.",
    )
    return lambda ends, most: program((1,), fault, ends.ptr, N, total, most)


def _addresses(*given: Any) -> tuple[Any, ...]:
    return tuple(None if x is None else contiguous(x) for x in given)


@cuda("_varlen_attention", accepts=takes)
def varlen_attention(
    q: Slot,
    k: Slot,
    v: Slot,
    ends_q: Slot,
    ends_k: Slot,
    used: Slot | None,
    max_q: Slot,
    max_k: Slot,
    scale: float,
    left: int,
    right: int,
) -> Run:
    D, E = q.shape[2], v.shape[2]
    out = q.spec.dense_like() if D == E else q.spec.like((*q.shape[:2], E))
    sizes = (ends_q.shape[0] - 1, q.shape[1], q.shape[0], k.shape[0])
    types = tuple("*" + TYPE[(x or ends_q).dtype] for x in (ends_q, ends_k, used))
    make: Any = forward if fits(D, E, q.dtype) else plain_forward
    launch = make(q, k, v, None, out, sizes, 0.0, right >= 0, scale, left >= 0, types, used is not None)
    checks = _checking(ends_q, q.shape[0], "q"), _checking(ends_k, k.shape[0], "k")

    def run(
        outs: list[View], q: View, k: View, v: View, ends_q: View, ends_k: View, used: Any, max_q: int, max_k: int
    ) -> None:
        made = room(outs[0])
        zero(made)
        zero(outs[1])
        if not sizes[0]:
            return put(outs[0], made)
        where = _addresses(ends_q, ends_k, used)
        checks[0](where[0], int(max_q))
        checks[1](where[1], int(max_k))
        launch(
            made,
            outs[1],
            packed(q),
            packed(k),
            packed(v),
            0,
            tuple(0 if x is None else x.ptr for x in where),
            STILL,
            max(right, 0),
            -max(left, 0),
            int(max_q),
        )
        put(outs[0], made)

    return run


@cuda("_varlen_attention_backward", accepts=takes)
def varlen_attention_backward(
    g: Slot,
    g_lse: Slot,
    q: Slot,
    k: Slot,
    v: Slot,
    ends_q: Slot,
    ends_k: Slot,
    out: Slot,
    lse: Slot,
    max_q: Slot,
    max_k: Slot,
    scale: float,
    left: int,
    right: int,
) -> Run:
    sizes = (ends_q.shape[0] - 1, q.shape[1], q.shape[0], k.shape[0])
    types = tuple("*" + TYPE[x.dtype] for x in (ends_q, ends_k))
    results = tuple(x.spec.dense_like() for x in (q, k, v))
    make: Any = backward if fits(q.shape[2], v.shape[2], q.dtype) else plain_backward
    launch = make(q, k, v, g, out, None, results, sizes, 0.0, right >= 0, left >= 0, types)

    def run(
        outs: list[View],
        g: View,
        g_lse: View,
        q: View,
        k: View,
        v: View,
        ends_q: View,
        ends_k: View,
        out: View,
        lse: View,
        max_q: int,
        max_k: int,
    ) -> None:
        made = [room(x) for x in outs]
        for x in made:
            zero(x)
        if sizes[0]:
            where = _addresses(ends_q, ends_k)
            launch(
                made,
                packed(g),
                contiguous(g_lse),
                packed(q),
                packed(k),
                packed(v),
                0,
                packed(out),
                contiguous(lse),
                tuple(x.ptr for x in where),
                STILL,
                max(right, 0),
                -max(left, 0),
                scale,
                (int(max_q), int(max_k)),
            )
        for to, x in zip(outs, made, strict=True):
            put(to, x)

    return run
