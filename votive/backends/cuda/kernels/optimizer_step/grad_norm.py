"""Norms and scaling of many tensors at once: one launch, and nothing is read on the host."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.multi_tensor import Table, addresses, alike, kinds, place, sizes_of
from ...programs.program import TYPE, Program
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty


@triton.jit
def _scale(
    table, factor, found, count, chunks, CHECK: tl.constexpr, T: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    which, first, n = place(table, count, chunks, 1)
    p = tl.load(table + which).to(tl.pointer_type(T))
    f = tl.load(factor).to(WIDE)
    last = tl.where(f == 1, 0, n)  # a factor of one changes nothing
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(p + i, mask=i < n, other=0.0).to(WIDE)
        if CHECK:
            bad = tl.max(tl.where((v - v) != 0, 1, 0), 0)
            tl.store(found, 1.0, mask=bad != 0)
        tl.store(p + i, (v * f).to(T), mask=i < last)


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


@triton.jit
def _update(scale, tracker, found, growth, backoff, interval):
    old, good = tl.load(scale), tl.load(tracker) + 1
    bad = tl.load(found) != 0
    grown = (old.to(tl.float64) * growth).to(tl.float32)
    grows = (good == interval) & ((grown - grown) == 0)
    shrunk = (old.to(tl.float64) * backoff).to(tl.float32)
    tl.store(scale, tl.where(bad, shrunk, tl.where(grows, grown, old)))
    tl.store(tracker, tl.where(bad | (good == interval), 0, good))


def _in_place(tensors: Any, factor: Slot, check: bool) -> Any:
    fixed = kinds(tensors, tensors)
    if fixed is None or not alike(tensors) or factor.dtype not in (dt.float32, dt.float64):
        return None
    fixed.pop("G")
    types = ["*i64", "*" + TYPE[factor.dtype], "*fp32", "i32", "i32"]
    return Program(_scale, types, {"CHECK": check, **fixed})


@cuda("_scale_")
def scale(tensors: tuple[Slot, ...], factor: Slot) -> Run:
    program = _in_place(tensors, factor, False)
    if program is None:
        return None
    sizes, table = sizes_of(tensors), Table()

    def run(outs: list[View], tensors: Any, factor: View) -> None:
        at = table.write([addresses(tensors)], sizes)
        if table.chunks:
            program((table.chunks,), at, factor.ptr, factor.ptr, len(tensors), table.chunks)

    return run


@cuda("_amp_foreach_non_finite_check_and_unscale_")
def check_and_unscale(grads: tuple[Slot, ...], found_inf: Slot, inv_scale: Slot) -> Run:
    if not grads:
        return lambda *nothing: None
    program = _in_place(grads, inv_scale, True)
    if program is None:
        return None
    sizes, table = sizes_of(grads), Table()

    def run(outs: list[View], grads: Any, found_inf: View, inv_scale: View) -> None:
        at = table.write([addresses(grads)], sizes)
        if table.chunks:
            program((table.chunks,), at, inv_scale.ptr, found_inf.ptr, len(grads), table.chunks)

    return run


@cuda("_amp_update_scale_")
def update_scale(scale: Slot, tracker: Slot, found_inf: Slot, growth: Slot, backoff: Slot, interval: Slot) -> Run:
    program = Program(_update, ["*fp32", "*i32", "*fp32", "fp64", "fp64", "i32"], warps=1)

    def run(
        outs: list[View], scale: View, tracker: View, found_inf: View, growth: float, backoff: float, interval: int
    ) -> None:
        program((1,), scale.ptr, tracker.ptr, found_inf.ptr, growth, backoff, int(interval))

    return run


@cuda("_total_norm")
def total_norm(tensors: tuple[Slot, ...], ord: float) -> Run:
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
