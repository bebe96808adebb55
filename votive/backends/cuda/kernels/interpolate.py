"""Resizing with the reference's tables of samples and weights, one dimension after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.interpolation import fixed_point, resampling_tables, transposed_table
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import IndexSpace, cached_by_spec, without
from ..programs.program import pointer
from ..programs.types import Ints, Run, floats
from ..rows import cuda
from ..runtime.tables import Table
from ..runtime.views import View, empty
from .index import reach

MOST_UNROLLED = 16  # inputs of a result that are read in one pass
MOST_SMALL, SMALL = 256, 1 << 16  # where results are so few that a launch takes longer


def _kind(dtype: dt.dtype) -> Any:
    """The dtype the reference computes with."""
    return np.float32 if dtype in dt.HALF else dtype.np


class _Pass:
    """One dimension resized: each result is a sum of inputs that a table names."""

    def __init__(
        self, name: str, source: Spec, out: Spec, axis: int, index: Slot, weight: Any, plain: bool, bits: int = 0
    ) -> None:
        self.out = out
        d = len(out.shape) + axis
        self.tables = (
            np.ascontiguousarray(index, np.int32),
            np.ascontiguousarray(weight, np.int32 if bits else _kind(source.dtype)),
        )
        self._held: list[Table] = []
        steps = [out.strides, without(source.strides, d)]
        p = IndexSpace(out.shape, steps, apart=(d,), reach=reach(source))
        step, most = p.arg("xs", source.strides[d]), p.arg("most", index.shape[1])
        kind = "fp64" if source.dtype is dt.float64 else "i32" if bits else "fp32"
        wide = {"fp64": "tl.float64", "fp32": "tl.float32", "i32": "tl.int32"}[kind]
        at, offset = p.at(d), p.offsets[1] or "0"
        spot = f"(({at}) * {most} + t + r * 0 + n * 0)"
        if plain:
            body = [
                "t = 0",
                f"i = tl.load(index + {spot}, mask=inside, other=0)",
                f"y = tl.load(x + ({offset} + i * {step}), mask=inside, other=0)",
            ]
        else:
            body = [
                f"y = (r * 0 + n * 0).to({wide})",
                f"for t in range({most}):",
                f"    i = tl.load(index + {spot}, mask=inside, other=0)",
                f"    w = tl.load(weight + {spot}, mask=inside, other=0)",
                f"    v = tl.load(x + ({offset} + i * {step}), mask=inside, other=0).to({wide})",
                # A weight of zero leaves its input out, infinite or not.
                "    y += tl.where(w != 0, v * w, 0)",
            ]
        if bits:
            shift = p.arg("bits", bits)
            body += [f"y = (y + (1 << ({shift} - 1))) >> {shift}"]
            body += ["y = tl.minimum(tl.maximum(y, 0), 255)"]
        types = {"o": pointer(out.dtype), "x": pointer(source.dtype), "index": "*i32", "weight": f"*{kind}"}
        self.kernel = p.kernel(name, types, [*body, p.store("y.to(o.dtype.element_ty)")])

    def __call__(self, to: View, x: View) -> None:
        if not self._held:
            self._held = [Table(t, self.out.device.index or 0) for t in self.tables]
        self.kernel(to.ptr, x.ptr, *[t.ptr for t in self._held])


class _Fused:
    """All dimensions resized at once: each result is a sum over a small box of inputs, the last dimension first."""

    def __init__(self, x: Slot, out: Spec, steps: list[Any], plain: bool) -> None:
        self.device = out.device.index or 0
        self.steps = sorted(steps, key=lambda s: int(s[0]))
        dims = [x.ndim + axis for axis, *_ in self.steps]
        p = IndexSpace(out.shape, [out.strides, without(x.strides, *dims)], apart=dims, reach=reach(x), heavy=True)
        kind = "fp64" if x.dtype is dt.float64 else "fp32"
        wide = "tl.float64" if x.dtype is dt.float64 else "tl.float32"
        types: dict[str, str | None] = {"o": pointer(out.dtype), "x": pointer(x.dtype)}
        lines, pad, offset = ["z = r * 0 + n * 0"], "", f"{p.offsets[1] or '0'} + z"
        last = len(dims) - 1
        for k, (d, (_, index, _)) in enumerate(zip(dims, self.steps, strict=True)):
            types |= {f"index{k}": "*i32", f"weight{k}": f"*{kind}"}
            taps, at = index.shape[1], p.at(d)
            mask = "" if at == "0" else f", mask={p.column if at == 'n' else p.row}, other=0"
            most = p.arg(f"most{k}", taps)
            if not plain:
                lines.append(f"{pad}y{k} = z.to({wide})")
                few = math.prod(i.shape[1] for _, i, _ in self.steps) <= MOST_UNROLLED
                lines.append(f"{pad}for t{k} in " + (f"tl.static_range({taps}):" if few else f"range({most}):"))
                pad += "    "
            spot = f"({at} * {most} + {'0' if plain else f't{k}'})"
            lines.append(f"{pad}i{k} = tl.load(index{k} + {spot}{mask})")
            if not plain:
                lines.append(f"{pad}w{k} = tl.load(weight{k} + {spot}{mask})")
            offset += f" + i{k} * {p.arg(f'xs{k}', x.strides[d])}"
        if plain:
            lines.append(f"y0 = tl.load(x + ({offset}), mask=inside, other=0)")
        else:
            lines.append(f"{pad}v = tl.load(x + ({offset}), mask=inside, other=0).to({wide})")
            for k in range(last, -1, -1):
                # A weight of zero leaves its input out, infinite or not.
                value = "v" if k == last else f"y{k + 1}"
                lines.append(f"{pad}y{k} += tl.where(w{k} != 0, {value} * w{k}, 0)")
                pad = pad[4:]
        lines.append(p.store("y0.to(o.dtype.element_ty)"))
        self.kernel = p.kernel("resample_at_once", types, lines)
        real = np.float64 if kind == "fp64" else np.float32
        self.tables = [t for _, i, w in self.steps for t in (i.astype(np.int32), w.astype(real))]
        self._held: list[Table] = []

    def __call__(self, to: View, x: View) -> None:
        if not self._held:
            self._held = [Table(t, self.device) for t in self.tables]
        self.kernel(to.ptr, x.ptr, *[t.ptr for t in self._held])


def _at_once(x: Slot, out: Ints, steps: list[Any], plain: bool) -> bool:
    """Whether one pass reads less than several would read and write."""
    taps = math.prod(index.shape[1] for _, index, *_ in steps)
    return plain or len(steps) == 1 or taps <= (MOST_SMALL if math.prod(out) <= SMALL else MOST_UNROLLED)


def _chain(x: Slot, out: Ints, steps: list[Any], plain: bool) -> Any:
    """Passes over the dimensions: axis, elements, weights, and the bits of weights that are whole
    numbers. What lies between two passes is kept wide; bytes are rounded, as Pillow does.
    """
    if 0 in out:
        return lambda outs, x: None
    if not steps:
        return lambda outs, x: copy_view(outs[0], x)
    if all(len(step) == 3 for step in steps) and _at_once(x, out, steps, plain):
        fused = cached_by_spec(lambda to: _Fused(x, to, steps, plain))
        return lambda outs, x: fused(outs[0].spec)(outs[0], x)
    wide = x.dtype if plain or x.dtype in (dt.float64, dt.uint8) else dt.float32
    passes: list[_Pass] = []
    spec, shape = x.spec, list(x.shape)
    for axis, index, weight, *bits in steps[:-1]:
        shape[axis] = len(index)
        made = Spec(Layout(tuple(shape)), wide, x.spec.device)
        passes.append(_Pass("resample", spec, made, axis, index, weight, plain, *bits))
        spec = made
    axis, index, weight, *bits = steps[-1]
    end = cached_by_spec(lambda to: _Pass("resample", spec, to, axis, index, weight, plain, *bits))

    def run(outs: list[View], x: View) -> None:
        for step in passes:
            made = empty(step.out)
            step(made, x)
            x = made
        end(outs[0].spec)(outs[0], x)

    return run


@cuda("_resample")
def resample(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Run:
    plain = mode.startswith("nearest")
    if not (floats(x) or x.dtype is dt.uint8):
        return None
    tables = list(resampling_tables(x.shape[2:], size, mode, align, smooth, scales, _kind(x.dtype)))
    if x.dtype is dt.uint8 and not plain:
        steps = [(axis, index, *fixed_point(index, weight)) for axis, index, weight in tables]
        # Weights beyond 2^15 have no fractional bits: pictures of one pixel that is stretched.
        return None if any(s[3] < 1 for s in steps) else _chain(x, (*x.shape[:2], *size), steps, False)
    return _chain(x, (*x.shape[:2], *size), tables, plain)


@cuda("_resample_transpose", accepts=floats)
def resample_transpose(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Run:
    steps = [
        (axis, *transposed_table(index, weight, size[axis]))
        for axis, index, weight in resampling_tables(size, x.shape[2:], mode, align, smooth, scales, _kind(x.dtype))
    ]
    return _chain(x, (*x.shape[:2], *size), steps, False)
