"""Resizing with the reference's tables of samples and weights, one dimension after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from ..cpu.reference.interpolate import _tables
from .copy import copy_view
from .data import View, empty, to_device
from .places import Places, without
from .program import pointer
from .rows import cuda
from .softmax import floats


def _kind(dtype: dt.dtype) -> Any:
    """The dtype the reference computes with."""
    return np.float32 if dtype in dt.HALF else dtype.np


def turned(index: Any, weight: Any, size: int) -> tuple[Any, Any]:
    """The transpose of a table: for each input the outputs it is part of, with their weights."""
    inputs, outputs = index.reshape(-1), np.repeat(np.arange(len(index)), index.shape[1])
    parts = weight.reshape(-1)
    real = parts != 0
    inputs, outputs, parts = inputs[real], outputs[real], parts[real]
    order = np.argsort(inputs, kind="stable")
    inputs, outputs, parts = inputs[order], outputs[order], parts[order]
    counts = np.bincount(inputs, minlength=size)
    slot = np.arange(len(inputs)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(int(counts.max()), 1)
    at, by = np.zeros((size, most), np.int64), np.zeros((size, most))
    at[inputs, slot], by[inputs, slot] = outputs, parts
    return at, by


class _Pass:
    """One dimension resized: each result is a sum of inputs that a table names."""

    def __init__(
        self, name: str, source: Spec, out: Spec, axis: int, index: Any, weight: Any, plain: bool
    ) -> None:
        self.out = out
        d = len(out.shape) + axis
        self.tables = (
            np.ascontiguousarray(index, np.int32),
            np.ascontiguousarray(weight, np.float64 if source.dtype is dt.float64 else np.float32),
        )
        self._held: tuple[View, View] | None = None
        p = Places(out.shape, [out.strides, without(source.strides, d)], apart=(d,))
        step, most = p.arg("xs", source.strides[d]), p.arg("most", index.shape[1])
        wide = "tl.float64" if source.dtype is dt.float64 else "tl.float32"
        at, offset = p.at(d), p.offsets[1] or "0"
        spot = f"(({at}) * {most} + t + r * 0 + n * 0)"
        if plain:
            body = [
                "t = 0", f"i = tl.load(index + {spot}, mask=inside, other=0)",
                f"y = tl.load(x + ({offset} + i * {step}), mask=inside, other=0)",
            ]  # fmt: skip
        else:
            body = [
                f"y = (r * 0 + n * 0).to({wide})", f"for t in range({most}):",
                f"    i = tl.load(index + {spot}, mask=inside, other=0)",
                f"    w = tl.load(weight + {spot}, mask=inside, other=0)",
                f"    v = tl.load(x + ({offset} + i * {step}), mask=inside, other=0).to({wide})",
                # A weight of zero leaves its input out, infinite or not.
                "    y += tl.where(w != 0, v * w, 0)",
            ]  # fmt: skip
        types = {
            "o": pointer(out.dtype), "x": pointer(source.dtype), "index": "*i32",
            "weight": "*fp64" if wide == "tl.float64" else "*fp32",
        }  # fmt: skip
        self.kernel = p.kernel(name, types, [*body, p.store("y.to(o.dtype.element_ty)")])

    def __call__(self, to: View, x: View) -> None:
        if self._held is None:
            made = []
            for table in self.tables:
                kind = dt.from_numpy(table.dtype)
                v = empty(Spec(Layout((table.size,)), kind, self.out.device))
                to_device(v.ptr, table)
                made.append(v)
            self._held = made[0], made[1]
        self.kernel(to.ptr, x.ptr, self._held[0].ptr, self._held[1].ptr)


def _chain(x: Any, out: tuple[int, ...], steps: list[tuple[int, Any, Any]], plain: bool) -> Any:
    """Passes over the dimensions; what lies between two is kept wide."""
    if 0 in out:
        return lambda outs, x: None
    wide = x.dtype if plain or x.dtype is dt.float64 else dt.float32
    passes: list[_Pass] = []
    spec, shape = x.spec, list(x.shape)
    for axis, index, weight in steps:
        shape[axis] = len(index)
        made = Spec(Layout(tuple(shape)), wide, x.spec.device)
        passes.append(_Pass("resample", spec, made, axis, index, weight, plain))
        spec = made

    def run(outs: list[View], x: View) -> None:
        for step in passes:
            made = empty(step.out)
            step(made, x)
            x = made
        copy_view(outs[0], x)

    return run


@cuda("_resample")
def resample(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
    plain = mode.startswith("nearest")
    if not (floats(x) or (plain and x.dtype is dt.uint8)):
        return None
    tables = list(_tables(x.shape[2:], size, mode, align, smooth, scales, _kind(x.dtype)))
    return _chain(x, (*x.shape[:2], *size), tables, plain)


@cuda("_resample_transpose", accepts=floats)
def resample_transpose(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
    steps = [
        (axis, *turned(index, weight, size[axis]))
        for axis, index, weight in _tables(
            size, x.shape[2:], mode, align, smooth, scales, _kind(x.dtype)
        )
    ]
    return _chain(x, (*x.shape[:2], *size), steps, False)
