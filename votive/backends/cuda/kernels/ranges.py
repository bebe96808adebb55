"""Values that follow a rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import device
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.index_space import IndexSpace
from ..programs.program import TYPE, pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty, to_device


def _stored(dtype: dt.dtype) -> list[str]:
    """Lines that turn a number of double width into an element."""
    if dtype is dt.bool_:
        return ["y = tl.where(y != 0, 1, 0)"]
    if dtype in dt.HALF:
        return ["y = y.to(tl.float32)"]
    return []


@cuda("_arange")
def arange(start: Slot, step: Slot, size: int, dtype: dt.dtype, device: device) -> Run:
    if dtype not in TYPE or any(isinstance(v.spec, complex) for v in (start, step)):
        return None
    kind = ("i64", int) if dtype.category == dt.INT else ("fp64", float)
    p = IndexSpace((size,), [(1,)], apart=(0,))
    y = "y = start + n.to(tl.int64) * step" if kind[0] == "i64" else ("y = start + n.to(tl.float64) * step")
    body = [y, *_stored(dtype), *p.stores("y.to(o.dtype.element_ty)")]
    run = p.kernel("arange", {"o": pointer(dtype), "start": kind[0], "step": kind[0]}, body)
    return lambda outs, start, step: run(outs[0].ptr, kind[1](start), kind[1](step))


def _spaced(name: str, steps: int, dtype: dt.dtype, power: list[str], types: dict[str, str]) -> Any:
    p = IndexSpace((steps,), [(1,)], apart=(0,))
    # Counted from the nearer end, so that both are exact.
    body = [
        "i = n.to(tl.float64)",
        f"y = tl.where(n < {p.arg('half', steps // 2)}, start + step * i, end - step * (last - i))",
        *power,
        *_stored(dtype),
    ]
    if not dtype.is_floating_point and dtype is not dt.bool_:
        body.append("y = y.to(tl.int64)")
    body += p.stores("y.to(o.dtype.element_ty)")
    numbers = dict.fromkeys(("start", "end", "step", "last"), "fp64")
    return p.kernel(name, {"o": pointer(dtype), **numbers, **types}, body)


def _ends(start: Any, end: Any, steps: int, dtype: dt.dtype) -> tuple[float, ...]:
    if steps < 2:
        return float(start), float(start), 0.0, 0.0
    if dtype.category == dt.INT:
        start, end = int(start), int(end)
    return float(start), float(end), (end - start) / (steps - 1), float(steps - 1)


@cuda("_linspace")
def linspace(start: Slot, end: Slot, steps: int, dtype: dt.dtype, device: device) -> Run:
    if dtype not in TYPE or any(isinstance(v.spec, complex) for v in (start, end)):
        return None
    run = _spaced("linspace", steps, dtype, [], {})
    return lambda outs, start, end: run(outs[0].ptr, *_ends(start, end, steps, dtype))


@cuda("_logspace")
def logspace(start: Slot, end: Slot, steps: int, base: float, dtype: dt.dtype, device: device) -> Run:
    if dtype not in TYPE or any(isinstance(v.spec, complex) for v in (start, end)):
        return None
    power = ["y = m.f_pow(base + y * 0, y)"]
    run = _spaced("logspace", steps, dtype, power, {"base": "fp64"})

    def launch(outs: list[View], start: Any, end: Any, *rest: Any) -> None:
        b = rest[0] if rest else base
        run(outs[0].ptr, *_ends(start, end, steps, dtype), float(b))

    return launch


@cuda("_triangle")
def triangle(row: int, col: int, offset: int, lower: bool, dtype: dt.dtype, device: device) -> Run:
    def run(outs: list[View]) -> None:
        # Known on the host already: made there and copied.
        made = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
        to_device(outs[0].ptr, np.array(made, dtype.np))

    return run


@cuda("_choose")
def choose(n: int, r: int, with_replacement: bool, device: device) -> Run:
    """Row k counts down: for each candidate, how many combinations begin with it."""
    # ways[c][left]: how to choose the rest once c is taken as the first of `left`.
    ways = np.zeros((n + 1, r + 1), np.int64)
    for c in range(n):
        for left in range(1, r + 1):
            among = n - c + left - 2 if with_replacement else n - c - 1
            ways[c, left] = math.comb(among, left - 1)
    count = math.comb(n + r - 1, r) if with_replacement else math.comb(n, r)
    p = IndexSpace((count if n else 0,), [(r,)], apart=(0,), reach=count * r)
    width, steps = p.arg("width", r + 1), p.arg("steps", n + r)
    again = "0" if with_replacement else "1"
    run = p.kernel(
        "choose",
        {"o": "*i64", "ways": "*i64"},
        [
            f"rank = ({p.at(0)} + r * 0 + n * 0).to(tl.int64)",
            "row = rank",
            "c = rank * 0",
            f"left = c + {p.arg('chosen', r)}",
            f"for _ in range({steps}):",
            "    open_ = inside & (left > 0)",
            f"    some = tl.load(ways + c * {width} + left, mask=open_, other=0)",
            "    take = open_ & (rank < some)",
            f"    tl.store(o + row * {p.arg('chosen', r)} + {p.arg('chosen', r)} - left, c, mask=take)",
            "    rank = tl.where(open_ & (take == 0), rank - some, rank)",
            f"    c = c + tl.where(take, {again}, tl.where(open_, 1, 0))",
            "    left = left - tl.where(take, 1, 0)",
        ],
    )

    def launch(outs: list[View]) -> None:
        if outs[0].spec.numel:
            table = empty(Spec(Layout(ways.shape), dt.int64, outs[0].spec.device))
            to_device(table.ptr, ways)
            run(outs[0].ptr, table.ptr)

    return launch
