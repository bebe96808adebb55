"""layer_norm and rms_norm, with their gradients: a workgroup per row; sums over rows by columns."""

from __future__ import annotations

import math
from typing import Any

from ....core import dtype as dt
from ...common.slot import Slot
from ..rows import Run, kind_of, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import contiguous
from ..shaders.program import Program
from ..shaders.rows import Target, shared, width

NUMBERS = [("rows", "I"), ("n", "I"), ("eps", "f")]


def sizes(x: Slot, dims: int) -> tuple[int, int]:
    """(how many rows, how long)."""
    split = x.ndim - dims
    return math.prod(x.shape[:split]), math.prod(x.shape[split:])


def forward(
    x: dt.dtype,
    out: dt.dtype,
    n: int,
    weight: dt.dtype | None,
    bias: dt.dtype | None,
    centre: bool,
    delta: dt.dtype | None = None,
    total: dt.dtype | None = None,
) -> Program:
    """The kernel of a norm: operands y, (mean), rstd, x, (weight), (bias); with `delta`, of a sum that is kept too."""
    threads = width(n)
    operands = [("y", out, "w"), ("rstd", dt.float32, "w"), ("x", x, "r")]
    operands += [("mean", dt.float32, "w")] if centre else []
    operands += [("w", weight, "r")] if weight else []
    operands += [("b", bias, "r")] if bias else []
    value = "x_at(at + j)"
    head = shared(threads)
    loop = f"for (var j = lane; j < P.n; j += {threads}u)"
    lines = ["  if (row >= P.rows) { return; }", "  let at = row * P.n;", "  let count = f32(P.n);"]
    if delta is not None and total is not None:
        operands += [("d", delta, "r"), ("t", total, "w")]
        lines.append(f"  {loop} {{ t_set(at + j, x_at(at + j) + d_at(at + j)); }}")
        value = "t_at(at + j)"  # what this thread wrote, rounded
    if centre:
        lines.append(f"  var m = 0.0;\n  {loop} {{ m += {value}; }}\n  m = all_sum(lane, m) / count;")
    else:
        lines.append("  let m = 0.0;")
    lines.append(f"  var q = 0.0;\n  {loop} {{ let v = {value} - m; q += v * v; }}")
    lines.append("  let r = f_rsqrt(all_sum(lane, q) / count + P.eps);")
    text = f"({value} - m) * r"
    text += " * w_at(j)" if weight else ""
    text += " + b_at(j)" if bias else ""
    lines.append(f"  {loop} {{ y_set(at + j, {text}); }}")
    lines.append(f"  if (lane == 0u) {{ rstd_set(row, r); {'mean_set(row, m);' if centre else ''} }}")
    return Program("norm", operands, NUMBERS, "\n".join(lines), group=threads, head=head)


@webgpu("_layer_norm", accepts=types.floats)
def layer_norm(x: Slot, weight: Slot | None, bias: Slot | None, dims: int, eps: float) -> Run:
    return _norm(x, weight, bias, dims, eps, True)


@webgpu("_rms_norm", accepts=types.floats)
def rms_norm(x: Slot, weight: Slot | None, dims: int, eps: float) -> Run:
    run = _norm(x, weight, None, dims, eps, False)
    return None if run is None else lambda outs, x, weight: run(outs, x, weight, None)


def _norm(x: Slot, weight: Slot | None, bias: Slot | None, dims: int, eps: float, centre: bool) -> Run:
    rows, n = sizes(x, dims)
    if not rows or not n:
        return None
    program = forward(x.dtype, x.dtype, n, kind_of(weight), kind_of(bias), centre)

    def run(outs: list[View], x: View, weight: View | None, bias: View | None) -> None:
        y = Target(outs[0])
        views = [y.view, outs[-1], contiguous(x), *([outs[1]] if centre else [])]
        views += [contiguous(v) for v in (weight, bias) if v is not None]
        program(rows, views, rows, n, float(eps))
        y.done()

    return run


def backward_rows(
    g: dt.dtype, x: dt.dtype, out: dt.dtype, n: int, weight: dt.dtype | None, centre: bool, more: Any
) -> Program:
    """The gradient by the input: operands y, g, x, rstd, (mean), (weight), (what is added)."""
    threads = width(n)
    operands = [("y", out, "w"), ("g", g, "r"), ("x", x, "r"), ("rstd", dt.float32, "r")]
    operands += [("mean", dt.float32, "r")] if centre else []
    operands += [("w", weight, "r")] if weight else []
    operands += [("more", more, "r")] if more else []
    loop = f"for (var j = lane; j < P.n; j += {threads}u)"
    h = "g_at(at + j)" + (" * w_at(j)" if weight else "")
    mean = "mean_at(row)" if centre else "0.0"
    body = f"""  if (row >= P.rows) {{ return; }}
  let at = row * P.n;
  let r = rstd_at(row);
  let m = {mean};
  var a = 0.0;
  var b = 0.0;
  {loop} {{ let h = {h}; a += h; b += h * ((x_at(at + j) - m) * r); }}
  {"a = all_sum(lane, a) / f32(P.n);" if centre else "a = 0.0;"}
  b = all_sum(lane, b) / f32(P.n);
  {loop} {{
    let h = {h};
    let y = (x_at(at + j) - m) * r;
    y_set(at + j, r * (h - a - y * b){" + more_at(at + j)" if more else ""});
  }}"""
    return Program("norm_backward", operands, NUMBERS[:2], body, group=threads, head=shared(threads))


def backward_columns(g: dt.dtype, x: dt.dtype, out: dt.dtype, centre: bool) -> Program:
    """The gradients by weight and bias: sums over rows. Operands w, (b), g, x, rstd, (mean)."""
    operands = [("w", out, "w"), ("g", g, "r"), ("x", x, "r"), ("rstd", dt.float32, "r")]
    operands += [("mean", dt.float32, "r"), ("b", out, "w")] if centre else []
    body = f"""  let column = row * 16u + lid.x;
  var a = 0.0;
  var b = 0.0;
  if (column < P.n) {{
    for (var i = lid.y; i < P.rows; i += 16u) {{
      let g = g_at(i * P.n + column);
      a += g * ((x_at(i * P.n + column) - {"mean_at(i)" if centre else "0.0"}) * rstd_at(i));
      b += g;
    }}
  }}
  sums[lid.y * 16u + lid.x] = vec2<f32>(a, b);
  workgroupBarrier();
  if (lid.y == 0u && column < P.n) {{
    var t = vec2<f32>(0.0, 0.0);
    for (var k = 0u; k < 16u; k++) {{ t += sums[k * 16u + lid.x]; }}
    w_set(column, t.x);
    {"b_set(column, t.y);" if centre else ""}
  }}"""
    head = "var<workgroup> sums: array<vec2<f32>, 256>;\n"
    return Program("norm_columns", operands, NUMBERS[:2], body, group=(16, 16), head=head)


@webgpu("_layer_norm_backward", accepts=types.floats)
def layer_norm_backward(
    g: Slot, x: Slot, mean: Slot, rstd: Slot, weight: Slot | None, dims: int, by_input: bool, by_affine: bool
) -> Run:
    return backward(g, x, True, weight, dims, by_input, by_affine)


@webgpu("_rms_norm_backward", accepts=types.floats)
def rms_norm_backward(
    g: Slot, x: Slot, rstd: Slot, weight: Slot | None, dims: int, by_input: bool, by_weight: bool
) -> Run:
    run = backward(g, x, False, weight, dims, by_input, by_weight)
    return None if run is None else lambda outs, g, x, rstd, weight: run(outs, g, x, None, rstd, weight)


def backward(
    g: Slot,
    x: Slot,
    centre: bool,
    weight: Slot | None,
    dims: int,
    by_input: bool,
    by_affine: bool,
    more: Slot | None = None,
) -> Run:
    """run(outs, g, x, mean, rstd, weight): outs are the gradients by the input, by weight and (centred) by bias."""
    rows, n = sizes(x, dims)
    if not rows or not n:
        return None
    made: dict[Any, Program] = {}

    def run(
        outs: list[View], g: View, x: View, mean: View | None, rstd: View, weight: View | None, more: View | None = None
    ) -> None:
        g, x = contiguous(g), contiguous(x)
        given = [] if mean is None else [contiguous(mean)]
        if by_input:
            key = (outs[0].spec.dtype, more and more.spec.dtype)
            if key not in made:
                w = weight.spec.dtype if weight is not None else None
                made[key] = backward_rows(g.spec.dtype, x.spec.dtype, key[0], n, w, centre, key[1])
            y = Target(outs[0])
            views = [y.view, g, x, contiguous(rstd), *given, *[contiguous(v) for v in (weight, more) if v is not None]]
            made[key](rows, views, rows, n)
            y.done()
        if by_affine:
            columns = made.get("columns")
            if columns is None:
                columns = backward_columns(g.spec.dtype, x.spec.dtype, outs[1].spec.dtype, centre)
                made["columns"] = columns
            columns(-(-n // 16), [outs[1], g, x, contiguous(rstd), *given, *([outs[2]] if centre else [])], rows, n)

    return run
