"""Taking floats apart, and the neighbours of floats: arithmetic on their bits."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec, broadcast_strides
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import IndexSpace, cached_by_spec
from ..programs.program import pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View, empty

_BITS = {2: ("tl.int16", "*i16"), 4: ("tl.int32", "*i32"), 8: ("tl.int64", "*i64")}


@cuda("_frexp", accepts=floats)
def frexp(x: Slot) -> Run:
    long = x.dtype is dt.float64
    wide, whole = ("tl.float64", "tl.int64") if long else ("tl.float32", "tl.int32")
    # digits of the mantissa, the exponent's mask, the exponent of numbers from 1/2 to 1
    shift, mask, half = (52, 0x7FF, 1022) if long else (23, 0xFF, 126)
    out, exponents = x.spec.dense_like(), x.spec.dense_like(dt.int32)
    p = IndexSpace(x.shape, [out.strides, exponents.strides, x.strides])
    small, scale, up = (2.0**-1000, 2.0**100, 100) if long else (2.0**-100, 2.0**64, 64)
    run = p.kernel(
        "frexp",
        {"o": pointer(x.dtype), "e": "*i32", "x": pointer(x.dtype)},
        [
            f"v = {p.load('x', 2)}.to({wide}) + (r * 0 + n * 0).to({wide})",
            # Subnormal numbers are brought up first.
            f"low = tl.abs(v) < {small!r}",
            f"b = tl.where(low, v * {scale!r}, v).to({whole}, bitcast=True)",
            f"k = ((b >> {shift}) & {mask}) - {half} - tl.where(low, {up}, 0)",
            f"b = (b & ~({mask} << {shift})) | ({half} << {shift})",
            "whole = (v != 0) & (v == v) & (tl.abs(v) < float('inf'))",
            f"y = tl.where(whole, b.to({wide}, bitcast=True), v)",
            p.store("y.to(o.dtype.element_ty)"),
            p.store("tl.where(whole, k, 0).to(tl.int32)", 1, "e"),
        ],
    )
    return lambda outs, x: run(outs[0].ptr, outs[1].ptr, x.ptr)


@cuda("nextafter", accepts=floats, into=True)
def nextafter(a: Slot, b: Slot) -> Run:
    def build(out: Spec) -> Any:
        whole, _ = _BITS[out.dtype.itemsize]
        kind = pointer(out.dtype)
        steps = [broadcast_strides(v.shape, v.strides, out.shape) for v in (a, b)]
        p = IndexSpace(out.shape, [out.strides, *steps])
        top = f"((r * 0 + n * 0 + 1).to({whole}) << {8 * out.dtype.itemsize - 1})"
        wide = "tl.float64" if out.dtype is dt.float64 else "tl.float32"
        return p.kernel(
            "nextafter",
            {"o": kind, "a": kind, "b": kind},
            [
                f"raw = {p.load('a', 1)} + (r * 0 + n * 0).to(o.dtype.element_ty)",
                f"u, v = raw.to({wide}), {p.load('b', 2)}.to({wide}) + (r * 0 + n * 0).to({wide})",
                f"bits = raw.to({whole}, bitcast=True)",
                # Away from zero the bits count up.
                "one = (bits * 0 + 1).to(bits.dtype)",
                "moved = tl.where((u < v) == (u > 0), bits + one, bits - one).to(bits.dtype)",
                f"least = tl.where(v > 0, one, one | {top}).to(bits.dtype)",
                "moved = tl.where(u == 0, least, moved)",
                "y = moved.to(o.dtype.element_ty, bitcast=True)",
                "y = tl.where(u == v, v.to(o.dtype.element_ty), y)",
                "y = tl.where((u != u) | (v != v), (u + v).to(o.dtype.element_ty), y)",
                p.store("y"),
            ],
        )

    find = cached_by_spec(build)

    def cast(v: View, kind: dt.dtype) -> View:
        if v.spec.dtype is kind:
            return v
        made = empty(v.spec.like(dtype=kind))
        copy_view(made, v)
        return made

    def run(outs: list[View], a: View, b: View) -> None:
        kind = outs[0].spec.dtype
        a, b = cast(a, kind), cast(b, kind)
        find(outs[0].spec)(outs[0].ptr, a.ptr, b.ptr)

    return run
