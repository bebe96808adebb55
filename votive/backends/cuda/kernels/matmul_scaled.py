"""Products of 8-bit numbers: cuBLASLt where it takes the shape, tensor cores by Triton else; the
faster of the two where both do.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from .. import runtime as rt
from ..libraries import cublas
from ..programs.copy import copy_view
from ..programs.layouts import contiguous
from ..programs.program import TYPE, Program
from ..programs.types import Run
from ..rows import cuda
from ..runtime.autotune import Autotuned
from ..runtime.views import View, empty, zero
from .matmul.kernels import Whole
from .matmul.plan import transposed
from .matmul.tiles import GROUP, place
from .matmul_gradient import library, side

# Rows, columns and inner size of a tile, warps and stages.
LARGE, SMALL, TINY = (128, 128, 128, 8, 3), (64, 64, 64, 4, 3), (32, 32, 32, 4, 1)


@triton.jit
def _bytes_product(
    o,
    a,
    b,
    sa,
    sb,
    bias,
    sr,
    M,
    N,
    K,
    am,
    bn,
    WIDE: tl.constexpr,
    SCALED: tl.constexpr,
    BY_ROWS: tl.constexpr,
    BIAS: tl.constexpr,
    RESULT: tl.constexpr,
    LOOSE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Rows of a and columns of b are dense. LOOSE: how many products tensor cores may add up before
    float32 does; a tile has BK.
    """
    row, col = place(M, N, BM, BN, GROUP)
    i = row * BM + tl.arange(0, BM)
    j = col * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = a + i[:, None].to(tl.int64) * am + k[None, :]
    right = b + j[None, :].to(tl.int64) * bn + k[:, None]
    total = tl.zeros((BM, BN), WIDE)
    for start in range(0, K, BK):
        known = k < K - start
        x = tl.load(left, mask=(i[:, None] < M) & known[None, :], other=0.0)
        y = tl.load(right, mask=(j[None, :] < N) & known[:, None], other=0.0)
        total = tl.dot(x, y, total, max_num_imprecise_acc=LOOSE, out_dtype=WIDE)
        left += BK
        right += BK
    if SCALED:
        if BY_ROWS:
            total *= tl.load(sa + i, mask=i < M, other=0.0)[:, None]
            total *= tl.load(sb + j, mask=j < N, other=0.0)[None, :]
        else:
            total *= tl.load(sa)
            total *= tl.load(sb)
    if BIAS:
        total += tl.load(bias + j, mask=j < N, other=0.0).to(tl.float32)[None, :]
    if RESULT:
        total *= tl.load(sr)
    inside = (i[:, None] < M) & (j[None, :] < N)
    at = o + i[:, None].to(tl.int64) * N + j[None, :]
    tl.store(at, total.to(o.dtype.element_ty), mask=inside)


class Bytes:
    """Any product of two matrices of 8-bit numbers, the first in rows, the second in columns."""

    def __init__(
        self,
        a: Spec,
        b: Spec,
        out: dt.dtype,
        *,
        scaled: bool = False,
        by_rows: bool = False,
        bias: dt.dtype | None = None,
        result: bool = False,
        fast: bool = True,
    ) -> None:
        (m, k), n = a.shape, b.shape[1]
        tile = LARGE if m > 64 and n > 64 else SMALL
        bm, bn, bk, warps, stages = TINY if rt.runtime.driver.emulated else tile
        kinds = (out, a.dtype, b.dtype, dt.float32, dt.float32, bias or dt.float32, dt.float32)
        types = ["*" + TYPE[d] for d in kinds] + ["i32"] * 3 + ["i64"] * 2
        self.numbers = (m, n, k, a.strides[0], b.strides[1])
        self.program = Program(
            _bytes_product,
            types,
            {
                "WIDE": tl.float32 if scaled else tl.int32,
                "SCALED": scaled,
                "BY_ROWS": by_rows,
                "BIAS": bias is not None,
                "RESULT": result,
                "LOOSE": bk if fast else bk // 2,
                "BM": bm,
                "BN": bn,
                "BK": bk,
                "GROUP": GROUP,
            },
            warps=warps,
            stages=stages,
        )
        self.program.divisible = tuple(7 + i for i, v in enumerate(self.numbers) if v % 16 == 0)
        self.grid = (-(-m // bm) * -(-n // bn),)

    def __call__(self, a: int, b: int, out: int, sa: int = 0, sb: int = 0, bias: int = 0, sr: int = 0) -> None:
        self.program(self.grid, out, a, b, sa, sb, bias, sr, *self.numbers)


def _along(a: Spec, b: Spec) -> tuple[Spec, Spec]:
    """Specs with the inner dimension dense in both: what 8-bit products of the library want."""
    left = a if a.strides[1] == 1 and a.strides[0] >= a.shape[1] else a.like(a.shape)
    if b.strides[0] == 1 and b.strides[1] >= b.shape[0]:
        return left, b
    return left, b.like(b.shape, strides=(1, b.shape[0]))


def _moved(v: View, to: Spec) -> View:
    """The values in the order of another spec of the same shape."""
    if v.spec is to:
        return v
    if to.contiguous:
        return contiguous(v)
    made = contiguous(View(v.ptr, transposed(v.spec), v.storage))
    return View(made.ptr, to, made.storage)


def _aligned(v: View) -> View:
    """The same at an address that is a multiple of 16, which the library wants of factors."""
    if v.ptr & 15 == 0:
        return v
    made = empty(v.spec.like(v.spec.shape))
    copy_view(made, v)
    return made


def _work(a: Spec, b: Spec) -> int:
    return 2 * a.numel * b.shape[1]


@cuda("_scaled_product")
def scaled_product(
    a: Slot,
    b: Slot,
    scale_a: Slot,
    scale_b: Slot,
    bias: Slot | None,
    scale_result: Slot | None,
    dtype: dt.dtype,
    fast: bool,
) -> Run:
    if not a.shape[0] or not b.shape[1]:
        return lambda outs, *given: None
    by_rows = scale_a.numel > 1 or scale_b.numel > 1
    kind = None if bias is None else bias.dtype
    left, right = _along(a.spec, b.spec)
    own = Bytes(left, right, dtype, scaled=True, by_rows=by_rows, bias=kind, result=scale_result is not None, fast=fast)

    def apart(outs: list[View], a: View, b: View, sa: View, sb: View, bias: View | None, sr: Any) -> None:
        a, b = _moved(a, left), _moved(b, right)
        places = (0 if v is None else v.ptr for v in (sa, sb, bias, sr))
        own(a.ptr, b.ptr, outs[0].ptr, *places)

    candidates: list[Any] = [apart]
    fused = _scaled_by_library(left, right, by_rows, kind, dtype, fast)
    if fused is not None:
        candidates.insert(0, fused)
    choose = Autotuned(candidates, _work(a.spec, b.spec))

    def run(outs: list[View], a: View, b: View, sa: View, sb: View, bias: View | None, sr: Any) -> None:
        choose(outs, a, b, sa, sb, None if bias is None else contiguous(bias), sr)

    return run


def _scaled_by_library(a: Spec, b: Spec, by_rows: bool, bias: dt.dtype | None, out: dt.dtype, fast: bool) -> Any:
    """The library's product, or None: it wants sizes in sixteens, and a bias of the result's type."""
    if a.shape[1] % 16 or b.shape[1] % 16 or not cublas.library.load():
        return None
    narrow = out in dt.FLOAT8
    if (bias is not None and (bias not in dt.HALF or not (narrow or bias is out))) or (narrow and by_rows):
        return None
    if a.strides[0] % 16 or b.strides[1] % 16:
        return None
    left, right = a, b
    made = library(
        left,
        right,
        Spec(a.like((a.shape[0], b.shape[1])).layout, out, a.device),
        epilogue=cublas.PLAIN if bias is None else cublas.BIAS,
        bias=bias,
        by_rows=by_rows,
        fast=fast,
        add=(bias or dt.bfloat16) if narrow else None,
    )
    if made is None:
        return None

    def run(outs: list[View], a: View, b: View, sa: View, sb: View, bias: View | None, sr: View | None) -> None:
        a, b = _moved(a, left), _moved(b, right)
        sa, sb = _aligned(sa), _aligned(sb)
        # In columns: the right operand comes first.
        made(
            a.ptr,
            b.ptr,
            outs[0].ptr,
            a_scale=sb.ptr,
            b_scale=sa.ptr,
            d_scale=0 if sr is None else sr.ptr,
            bias=0 if bias is None else bias.ptr,
        )

    return run


@cuda("_whole_product")
def whole_product(a: Slot, b: Slot) -> Run:
    if not a.numel or not b.numel:
        return lambda outs, a, b: zero(outs[0])
    out = a.spec.like((a.shape[0], b.shape[1]), dtype=dt.int32)
    if a.dtype is dt.uint8:  # tensor cores multiply only what is alike
        whole = Whole(side(a.spec), side(b.spec), side(out), 1, False, False, "")
        return lambda outs, a, b: whole(a.ptr, b.ptr, outs[0].ptr)
    left, right = _along(a.spec, b.spec)
    candidates: list[Any] = [_copied(Bytes(left, right, dt.int32), left, right)]
    for first, second in dict.fromkeys(((left, right), (a.spec, b.spec))):
        made = library(first, second, out)
        if made is not None:
            candidates.insert(0, _copied(made, first, second))
    return Autotuned(candidates, _work(a.spec, b.spec))


def _copied(product: Any, left: Spec, right: Spec) -> Any:
    def run(outs: list[View], a: View, b: View) -> None:
        a, b = _moved(a, left), _moved(b, right)
        product(a.ptr, b.ptr, outs[0].ptr)

    return run
