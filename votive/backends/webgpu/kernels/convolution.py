"""Convolutions in one to three dimensions, their transposes and the gradients of weights: a thread per result (of
weights, a workgroup). Padding takes no part.
"""

from __future__ import annotations

import math

from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import contiguous
from ..shaders.program import Program, groups_for
from ..shaders.rows import Target, shared

Ints = tuple[int, ...]
_FIELDS = ("x", "y", "k", "s", "p", "d")  # sizes of input, output and kernel; stride, padding, dilation


def _numbers(n: int) -> list[tuple[str, str]]:
    found = [(name, "I") for name in ("count", "N", "I", "O", "groups")]
    return found + [(f"{f}{d}", "I") for f in _FIELDS for d in range(n)]


def _loops(n: int, size: str, name: str, inner: str) -> str:
    """Nested loops over the dimensions."""
    for d in range(n - 1, -1, -1):
        inner = f"for (var {name}{d} = 0u; {name}{d} < P.{size}{d}; {name}{d}++) {{ {inner} }}"
    return inner


def _flat(n: int, size: str, name: str) -> str:
    text = f"{name}0"
    for d in range(1, n):
        text = f"({text} * P.{size}{d} + {name}{d})"
    return text


def _parts(n: int, size: str, name: str, of: str) -> str:
    """The coordinates of a flat position."""
    text = f"var {name}r = {of}; "
    for d in range(n - 1, -1, -1):
        text += f"let {name}{d} = {name}r % P.{size}{d}; {name}r = {name}r / P.{size}{d}; "
    return text


def _area(n: int, size: str) -> str:
    return " * ".join(f"P.{size}{d}" for d in range(n))


@webgpu("_convolution", accepts=types.floats)
def convolution(
    x: Slot, weight: Slot, bias: Slot | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Run:
    n = x.ndim - 2
    if not x.numel or not weight.numel or x.dtype is not weight.dtype or any(p < 0 for p in padding):
        return None
    tap = " ".join(
        f"let i{d} = i32(o{d} * P.s{d} + k{d} * P.d{d}) - i32(P.p{d}); "
        f"if (i{d} < 0 || i{d} >= i32(P.x{d})) {{ continue; }}"
        for d in range(n)
    )
    at = _flat(n, "x", "j")
    casts = " ".join(f"let j{d} = u32(i{d});" for d in range(n))
    inner = f"{tap} {casts} v += w_at(wb + {_flat(n, 'k', 'k')}) * x_at(xb + {at});"
    body = f"""  if (index >= P.count) {{ return; }}
  {_parts(n, "y", "o", "index")}
  let o = or % P.O;
  let b = or / P.O;
  let each = P.I / P.groups;
  let group = o / (P.O / P.groups);
  var v = 0.0;
  for (var c = 0u; c < each; c++) {{
    let wb = (o * each + c) * {_area(n, "k")};
    let xb = (b * P.I + group * each + c) * {_area(n, "x")};
    {_loops(n, "k", "k", inner)}
  }}
  y_set(index, v{" + b_at(o)" if bias else ""});"""
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), ("w", weight.dtype, "r")]
    operands += [("b", bias.dtype, "r")] if bias else []
    program = Program("convolution", operands, _numbers(n), body)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        to = Target(outs[0])
        shape = outs[0].spec.shape
        count = math.prod(shape)
        sizes = (x.spec.shape[2:], shape[2:], weight.spec.shape[2:], stride, padding, dilation)
        given = (count, x.spec.shape[0], x.spec.shape[1], shape[1], groups, *(v for s in sizes for v in s))
        views = [to.view, contiguous(x), contiguous(weight), *([] if bias is None else [contiguous(bias)])]
        program(groups_for(count), views, *given)
        to.done()

    return run


@webgpu("_convolution_transpose", accepts=types.floats)
def convolution_transpose(
    x: Slot, weight: Slot, bias: Slot | None, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Run:
    n = x.ndim - 2
    if not x.numel or not weight.numel or x.dtype is not weight.dtype or any(p < 0 for p in padding):
        return None
    # The places of x that reach element o through tap k.
    tap = " ".join(
        f"let q{d} = i32(o{d} + P.p{d}) - i32(k{d} * P.d{d}); "
        f"if (q{d} < 0 || q{d} % i32(P.s{d}) != 0 || q{d} / i32(P.s{d}) >= i32(P.x{d})) {{ continue; }}"
        for d in range(n)
    )
    casts = " ".join(f"let j{d} = u32(q{d}) / P.s{d};" for d in range(n))
    inner = f"{tap} {casts} v += w_at(wb + {_flat(n, 'k', 'k')}) * x_at(xb + {_flat(n, 'x', 'j')});"
    body = f"""  if (index >= P.count) {{ return; }}
  {_parts(n, "y", "o", "index")}
  let o = or % P.O;
  let b = or / P.O;
  let each = P.I / P.groups;
  let made = P.O / P.groups;
  let group = o / made;
  var v = 0.0;
  for (var c = 0u; c < each; c++) {{
    let wb = ((group * each + c) * made + o % made) * {_area(n, "k")};
    let xb = (b * P.I + group * each + c) * {_area(n, "x")};
    {_loops(n, "k", "k", inner)}
  }}
  y_set(index, v{" + b_at(o)" if bias else ""});"""
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), ("w", weight.dtype, "r")]
    operands += [("b", bias.dtype, "r")] if bias else []
    program = Program("convolution_transpose", operands, _numbers(n), body)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        to = Target(outs[0])
        shape = outs[0].spec.shape
        count = math.prod(shape)
        sizes = (x.spec.shape[2:], shape[2:], weight.spec.shape[2:], stride, padding, dilation)
        given = (count, x.spec.shape[0], x.spec.shape[1], shape[1], groups, *(v for s in sizes for v in s))
        views = [to.view, contiguous(x), contiguous(weight), *([] if bias is None else [contiguous(bias)])]
        program(groups_for(count), views, *given)
        to.done()

    return run


@webgpu("_convolution_weight", accepts=types.floats)
def convolution_weight(
    x: Slot, grad: Slot, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Run:
    n = x.ndim - 2
    if not x.numel or not grad.numel or any(p < 0 for p in padding):
        return None
    tap = " ".join(
        f"let i{d} = i32(o{d} * P.s{d} + k{d} * P.d{d}) - i32(P.p{d}); "
        f"if (i{d} < 0 || i{d} >= i32(P.x{d})) {{ continue; }} let j{d} = u32(i{d});"
        for d in range(n)
    )
    body = f"""  if (row >= P.count) {{ return; }}
  {_parts(n, "k", "k", "row")}
  let each = P.I / P.groups;
  let c = kr % each;
  let o = kr / each;
  let channel = (o / (P.O / P.groups)) * each + c;
  let area = {_area(n, "y")};
  var v = 0.0;
  for (var at = lane; at < P.N * area; at += 64u) {{
    {_parts(n, "y", "o", "at")}
    {tap}
    let xb = (or * P.I + channel) * ({_area(n, "x")});
    v += g_at((or * P.O + o) * area + at % area) * x_at(xb + {_flat(n, "x", "j")});
  }}
  v = all_sum(lane, v);
  if (lane == 0u) {{ y_set(row, v); }}"""
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), ("g", grad.dtype, "r")]
    program = Program("convolution_weight", operands, _numbers(n), body, head=shared(64))

    def run(outs: list[View], x: View, grad: View) -> None:
        to = Target(outs[0])
        count = outs[0].spec.numel
        sizes = (x.spec.shape[2:], grad.spec.shape[2:], kernel, stride, padding, dilation)
        given = (count, x.spec.shape[0], x.spec.shape[1], grad.spec.shape[1], groups, *(v for s in sizes for v in s))
        program(count, [to.view, contiguous(x), contiguous(grad)], *given)
        to.done()

    return run
