"""Pooling windows: largest values with their places, means, and the gradients of both."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View, empty
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.layouts import contiguous
from ..shaders.program import Program, groups_for
from ..shaders.rows import Target
from .convolution import _area, _flat, _loops, _parts
from .extremum import better
from .fill import fill_view
from .scatter import Scatter, neutral

Ints = tuple[int, ...]
_FIELDS = ("x", "y", "k", "s", "p", "d")


def _numbers(n: int) -> list[tuple[str, str]]:
    return [("count", "I"), ("by", "f"), *[(f"{f}{d}", "I") for f in _FIELDS for d in range(n)]]


def _largest(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: bool) -> Run:
    n = len(size)
    if x.dtype not in types.NUMBERS or not x.numel:
        return None
    kind = types.KIND[x.dtype]
    tap = " ".join(
        f"let i{d} = i32(o{d} * P.s{d} + k{d} * P.d{d}) - i32(P.p{d}); "
        f"if (i{d} < 0 || i{d} >= i32(P.x{d})) {{ continue; }} let j{d} = u32(i{d});"
        for d in range(n)
    )
    # Among equal values the first counts, among NaN the last.
    wins = better(kind, "v", "best", True) + (" || f_isnan(v)" if kind == "f" else "")
    inner = f"{tap} let e = {_flat(n, 'x', 'j')}; let v = x_at(b + e); "
    inner += f"if (!some || {wins}) {{ best = v; at = e; some = true; }}"
    body = f"""  if (index >= P.count) {{ return; }}
  {_parts(n, "y", "o", "index")}
  let b = or * {_area(n, "x")};
  var best = {neutral("amax", x.dtype)};
  var at = 0u;
  var some = false;
  {_loops(n, "k", "k", inner)}
  y_set(index, best);
  {"i_set(index, vec2<u32>(at, 0u));" if places else ""}"""
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), *([("i", dt.int64, "w")] if places else [])]
    program = Program("max_pool", operands, _numbers(n), body)
    given = (1.0, *(v for s in (x.shape[-n:], size, kernel, stride, padding, dilation) for v in s))

    def run(outs: list[View], x: View) -> None:
        to = [Target(o) for o in outs]
        count = outs[0].spec.numel
        program(groups_for(count), [to[0].view, contiguous(x), *[t.view for t in to[1:]]], count, *given)
        for t in to:
            t.done()

    return run


@webgpu("_max_pool")
def max_pool(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Run:
    return _largest(x, size, kernel, stride, padding, dilation, True)


@webgpu("_max_pool_values")
def max_pool_values(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Run:
    return _largest(x, size, kernel, stride, padding, dilation, False)


@webgpu("_max_pool_transpose")
def max_pool_transpose(x: Slot, index: Slot, size: Ints, windows: Ints) -> Run:
    if x.dtype not in types.FLOATS or not x.numel:
        return None
    n = len(size)
    lead, elements = math.prod(x.shape[: x.ndim - n]), math.prod(size)
    places = math.prod(x.shape[x.ndim - n :])
    where = x.spec.device

    def flat(d: dt.dtype, columns: int) -> Spec:
        return Spec(Layout((lead, columns)), d, where)

    wide = flat(dt.float32, elements)
    kernel = Scatter(
        "max_pool_transpose", wide, 1, flat(index.dtype, places), flat(x.dtype, places), "add", RuntimeError
    )

    def run(outs: list[View], x: View, index: View) -> None:
        to = empty(wide)
        fill_view(to, 0)
        kernel([to, contiguous(index), contiguous(x)])
        shape = outs[0].spec.shape
        copy_view(outs[0], View(to.storage, 0, Spec(Layout(shape), dt.float32, where)))

    return run


def _box(n: int, include_pad: bool, size: str) -> str:
    """WGSL of the range of a box in each dimension, clipped to the input, and of how many elements it counts."""
    text = "var many = 1;\n"
    for d in range(n):
        text += f"  let a{d} = i32(o{d} * P.s{d}) - i32(P.p{d});\n"
        text += f"  let z{d} = min(a{d} + i32(P.k{d}), i32(P.{size}{d} + P.p{d}));\n"
        text += f"  let f{d} = max(a{d}, 0); let l{d} = min(z{d}, i32(P.{size}{d}));\n"
        text += f"  many = many * {f'(z{d} - a{d})' if include_pad else f'(l{d} - f{d})'};\n"
    return text


@webgpu("_avg_pool", accepts=types.floats)
def avg_pool(
    x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Run:
    n = len(size)
    if not x.numel:
        return None
    inner = f"v += x_at(b + {_flat(n, 'x', 'j')});"
    for d in range(n - 1, -1, -1):
        inner = f"for (var i{d} = f{d}; i{d} < l{d}; i{d}++) {{ let j{d} = u32(i{d}); {inner} }}"
    body = f"""  if (index >= P.count) {{ return; }}
  {_parts(n, "y", "o", "index")}
  let b = or * {_area(n, "x")};
  {_box(n, include_pad, "x")}
  var v = 0.0;
  {inner}
  y_set(index, v / {"f32(many)" if divisor is None else "P.by"});"""
    program = Program("avg_pool", [("y", x.dtype, "w"), ("x", x.dtype, "r")], _numbers(n), body)
    ones = (1,) * n
    given = (float(divisor or 1), *(v for s in (x.shape[-n:], size, kernel, stride, padding, ones) for v in s))

    def run(outs: list[View], x: View) -> None:
        to = Target(outs[0])
        count = outs[0].spec.numel
        program(groups_for(count), [to.view, contiguous(x)], count, *given)
        to.done()

    return run


@webgpu("_avg_pool_transpose", accepts=types.floats)
def avg_pool_transpose(
    x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Run:
    n = len(size)
    if not x.numel:
        return None
    # Each element gathers from the boxes that hold it: x is smaller, its sizes are those of `y`.
    inner = f"{_box(n, include_pad, 'x')} v += x_at(b + {_flat(n, 'y', 'o')}) / "
    inner += "f32(many);" if divisor is None else "P.by;"
    for d in range(n - 1, -1, -1):
        first = f"max((i32(e{d} + P.p{d}) - i32(P.k{d}) + i32(P.s{d})) / i32(P.s{d}), 0)"
        # The quotient rounds toward zero; what lies before the first box is none.
        inner = (
            f"let u{d} = select({first}, 0, i32(e{d} + P.p{d}) < i32(P.k{d})); "
            f"for (var o{d} = u32(u{d}); o{d} < min((e{d} + P.p{d}) / P.s{d} + 1u, P.y{d}); o{d}++) {{ {inner} }}"
        )
    body = f"""  if (index >= P.count) {{ return; }}
  {_parts(n, "x", "e", "index")}
  let b = er * {_area(n, "y")};
  var v = 0.0;
  {inner}
  y_set(index, v);"""
    program = Program("avg_pool_transpose", [("y", x.dtype, "w"), ("x", x.dtype, "r")], _numbers(n), body)
    ones = (1,) * n
    given = (float(divisor or 1), *(v for s in (size, x.shape[-n:], kernel, stride, padding, ones) for v in s))

    def run(outs: list[View], x: View) -> None:
        to = Target(outs[0])
        count = outs[0].spec.numel
        program(groups_for(count), [to.view, contiguous(x)], count, *given)
        to.done()

    return run
