"""Norms and scaling of many tensors at once: one launch, and nothing is read on the host."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from . import device_math as m
from .data import View, empty, zero
from .many import Table, addresses, alike, kinds, place, sizes_of
from .program import TYPE, Program
from .rows import cuda


@triton.jit
def _scale(
    table,
    factor,
    found,
    count,
    chunks,
    CHECK: tl.constexpr,
    T: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    which, first, n = place(table, count, chunks, 1)
    p = tl.load(table + which).to(tl.pointer_type(T))
    f = tl.load(factor).to(WIDE)
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(p + i, mask=i < n, other=0.0).to(WIDE)
        if CHECK:
            bad = tl.max(tl.where((v - v) != 0, 1, 0), 0)
            tl.store(found, 1.0, mask=bad != 0)
        tl.store(p + i, (v * f).to(T), mask=i < n)


@triton.jit
def _squares(o, table, count, chunks, T: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    which, first, n = place(table, count, chunks, 1)
    p = tl.load(table + which).to(tl.pointer_type(T))
    total = tl.zeros((BLOCK,), WIDE)
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(p + i, mask=i < n, other=0.0).to(WIDE)
        total += v * v
    tl.store(o + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def _root(o, parts, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), parts.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(parts + i, mask=i < n, other=0.0)
    tl.store(o, m.f_sqrt(tl.sum(total, 0)).to(o.dtype.element_ty))


def _in_place(tensors: Any, check: bool) -> Any:
    fixed = kinds(tensors, tensors)
    if fixed is None or not alike(tensors):
        return None
    fixed.pop("G")
    factor = "*fp64" if fixed["WIDE"] == tl.float64 else "*fp32"
    return Program(_scale, ["*i64", factor, "*fp32", "i32", "i32"], {"CHECK": check, **fixed})


def _factor_type(tensors: Any, factor: Any) -> bool:
    return bool(tensors) and factor.dtype is (
        dt.float64 if tensors[0].dtype is dt.float64 else dt.float32
    )


@cuda("_scale_")
def scale(tensors: Any, factor: Any) -> Any:
    program = _in_place(tensors, False) if _factor_type(tensors, factor) else None
    if program is None:
        return None
    sizes, table = sizes_of(tensors), Table()

    def run(outs: Any, tensors: Any, factor: View) -> None:
        at = table.write([addresses(tensors)], sizes)
        if table.chunks:
            program((table.chunks,), at, factor.ptr, factor.ptr, len(tensors), table.chunks)

    return run


@cuda("_unscale_")
def unscale(grads: Any, inv_scale: Any) -> Any:
    program = _in_place(grads, True) if _factor_type(grads, inv_scale) else None
    if program is None:
        return None
    sizes, table = sizes_of(grads), Table()

    def run(outs: Any, grads: Any, inv_scale: View) -> None:
        zero(outs[0])
        at = table.write([addresses(grads)], sizes)
        if table.chunks:
            program((table.chunks,), at, inv_scale.ptr, outs[0].ptr, len(grads), table.chunks)

    return run


@cuda("_total_norm")
def total_norm(tensors: Any, ord: float) -> Any:
    fixed = kinds(tensors, tensors)
    if fixed is None or ord != 2 or not alike(tensors) or not sum(sizes_of(tensors)):
        return None
    fixed.pop("G")
    number = "*fp64" if fixed["WIDE"] == tl.float64 else "*fp32"
    squares = Program(_squares, [number, "*i64", "i32", "i32"], fixed)
    root = Program(_root, ["*" + TYPE[tensors[0].dtype], number, "i32"], {"BLOCK": 1024}, warps=8)
    sizes, table = sizes_of(tensors), Table()
    kind = dt.float64 if number == "*fp64" else dt.float32
    where = tensors[0].spec.device

    def run(outs: list[View], tensors: Any) -> None:
        at = table.write([addresses(tensors)], sizes)
        parts = empty(Spec(Layout((table.chunks,)), kind, where))
        squares((table.chunks,), parts.ptr, at, len(tensors), table.chunks)
        root((1,), outs[0].ptr, parts.ptr, table.chunks)

    return run
