"""batch_norm: a workgroup per channel; with given statistics, a thread per element."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import Walk, contiguous
from ..shaders.program import Program, groups_for
from ..shaders.rows import Lines, shared

_THREADS = 256
_EACH = f"for (var j = lane; j < P.n; j += {_THREADS}u)"


def _others(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim))


@webgpu("_batch_norm", accepts=types.floats)
def batch_norm(x: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Run:
    if not x.numel:
        return None
    made: dict[Any, tuple[Program, Lines]] = {}

    def run(outs: list[View], x: View, weight: View | None, bias: View | None) -> None:
        y, mean, var = outs
        if y.spec not in made:
            lines = Lines(x.spec.shape, [x.spec.strides, y.spec.strides], _others(x.spec.ndim))
            text = "(x_at(at + x_col(j)) - m) * r" + (" * w_at(row)" if weight is not None else "")
            text += " + b_at(row)" if bias is not None else ""
            body = f"""  if (row >= P.rows) {{ return; }}
  let at = x_row(row);
  let to = y_row(row);
  var m = 0.0;
  {_EACH} {{ m += x_at(at + x_col(j)); }}
  m = all_sum(lane, m) / f32(P.n);
  // What rounding took from a large mean is in the distances from it.
  var rest = 0.0;
  {_EACH} {{ rest += x_at(at + x_col(j)) - m; }}
  m += all_sum(lane, rest) / f32(P.n);
  var q = 0.0;
  {_EACH} {{ let v = x_at(at + x_col(j)) - m; q += v * v; }}
  q = all_sum(lane, q) / f32(P.n);
  let r = f_rsqrt(q + P.eps);
  {_EACH} {{ y_set(to + y_col(j), {text}); }}
  if (lane == 0u) {{ mean_set(row, m); var_set(row, q); }}"""
            operands = [("y", y.spec.dtype, "w"), ("x", x.spec.dtype, "r")]
            operands += [("mean", mean.spec.dtype, "w"), ("var", var.spec.dtype, "w")]
            operands += [(n, v.spec.dtype, "r") for n, v in (("w", weight), ("b", bias)) if v is not None]
            fields = [*lines.numbers, ("eps", "f")]
            head = shared(_THREADS) + lines.head("x", "y")
            body, operands, head = (_safe(body), [(_name(n), d, m) for n, d, m in operands], head)
            made[y.spec] = Program("batch_norm", operands, fields, body, group=_THREADS, head=head), lines
        program, lines = made[y.spec]
        views = [y, x, mean, var, *[contiguous(v) for v in (weight, bias) if v is not None]]
        program(lines.rows, views, *lines.values, float(eps))

    return run


def _name(name: str) -> str:
    return "vary" if name == "var" else name


def _safe(text: str) -> str:
    """`var` is a word of WGSL's."""
    return text.replace("var_set(", "vary_set(").replace("var_at(", "vary_at(")


def _backward(x: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool, given: bool) -> Run:
    """run(outs, g, x, mean, var, weight). `given`: the statistics are no function of x."""
    if not x.numel:
        return None
    made: dict[Any, tuple[Program, Lines]] = {}

    def run(outs: list[View], g: View, x: View, mean: View, var: View, weight: View | None) -> None:
        key = (outs[0].spec, outs[1].spec)
        if key not in made:
            to = outs[0].spec.strides if by_input else x.spec.strides
            lines = Lines(x.spec.shape, [x.spec.strides, g.spec.strides, to], _others(x.spec.ndim))
            h = "g_at(ga + g_col(j))"
            scale = "w_at(row)" if weight is not None else "1.0"
            inner = f"r * {scale} * {h}" if given else f"r * {scale} * ({h} - s / f32(P.n) - y * q / f32(P.n))"
            body = f"""  if (row >= P.rows) {{ return; }}
  let at = x_row(row);
  let ga = g_row(row);
  let m = mean_at(row);
  let r = f_rsqrt(var_at(row) + P.eps);
  var s = 0.0;
  var q = 0.0;
  {_EACH} {{ let g = {h}; s += g; q += g * ((x_at(at + x_col(j)) - m) * r); }}
  s = all_sum(lane, s);
  q = all_sum(lane, q);
"""
            if by_input:
                body += f"  let to = y_row(row);\n  {_EACH} {{ let y = (x_at(at + x_col(j)) - m) * r; "
                body += f"y_set(to + y_col(j), {inner}); }}\n"
            if by_affine:
                body += "  if (lane == 0u) { dw_set(row, q); db_set(row, s); }"
            operands = [("x", x.spec.dtype, "r"), ("g", g.spec.dtype, "r"), ("mean", mean.spec.dtype, "r")]
            operands += [("vary", var.spec.dtype, "r")]
            operands += [("w", weight.spec.dtype, "r")] if weight is not None else []
            operands += [("y", outs[0].spec.dtype, "w")] if by_input else []
            operands += [("dw", outs[1].spec.dtype, "w"), ("db", outs[2].spec.dtype, "w")] if by_affine else []
            fields = [*lines.numbers, ("eps", "f")]
            head = shared(_THREADS) + lines.head("x", "g", "y")
            made[key] = Program("batch_norm_backward", operands, fields, _safe(body), group=_THREADS, head=head), lines
        program, lines = made[key]
        views = [x, g, contiguous(mean), contiguous(var), *([] if weight is None else [contiguous(weight)])]
        views += [outs[0]] if by_input else []
        views += [outs[1], outs[2]] if by_affine else []
        program(lines.rows, views, *lines.values, float(eps))

    return run


@webgpu("_batch_norm_backward", accepts=types.floats)
def batch_norm_backward(
    g: Slot, x: Slot, mean: Slot, var: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool
) -> Run:
    return _backward(x, weight, eps, by_input, by_affine, False)


@webgpu("_batch_norm_by_backward", accepts=types.floats)
def batch_norm_by_backward(
    g: Slot, x: Slot, mean: Slot, var: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool
) -> Run:
    return _backward(x, weight, eps, by_input, by_affine, True)


@webgpu("_batch_norm_by", accepts=types.floats)
def batch_norm_by(x: Slot, mean: Slot, var: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Run:
    if not x.numel:
        return None
    made: dict[Any, tuple[Program, Walk]] = {}

    def run(outs: list[View], x: View, mean: View, var: View, weight: View | None, bias: View | None) -> None:
        spec = outs[0].spec
        if spec not in made:
            channel = tuple(int(d == 1) for d in range(spec.ndim))
            walk = Walk("k", spec.shape, [spec.strides, x.spec.strides, channel])
            text = "(x_at(k1) - mean_at(k2)) * r" + (" * w_at(k2)" if weight is not None else "")
            text += " + b_at(k2)" if bias is not None else ""
            body = f"""  if (index < P.n) {{
{walk.lines("index")}    let r = 1.0 / sqrt(vary_at(k2) + P.eps);
    y_set(k0, {text});
  }}"""
            operands = [("y", spec.dtype, "w"), ("x", x.spec.dtype, "r"), ("mean", mean.spec.dtype, "r")]
            operands += [("vary", var.spec.dtype, "r")]
            operands += [(n, v.spec.dtype, "r") for n, v in (("w", weight), ("b", bias)) if v is not None]
            made[spec] = Program("batch_norm_by", operands, [("n", "I"), ("eps", "f"), *walk.numbers], body), walk
        program, walk = made[spec]
        views = [outs[0], x, *[contiguous(v) for v in (mean, var, weight, bias) if v is not None]]
        program(groups_for(spec.numel), views, spec.numel, float(eps), *walk.values)

    return run


@webgpu("_move_statistics", accepts=types.floats)
def move_statistics(mean: Slot, var: Slot, means: Slot, variances: Slot, count: int, momentum: Slot) -> Run:
    n = mean.numel
    if means.numel != n or count < 2 or any(s.dtype is not dt.float32 for s in (mean, var, means, variances)):
        return None
    if not (mean.contiguous and var.contiguous):
        return None
    body = """  if (index < P.n) {
    m_set(index, m_at(index) * (1.0 - P.share) + a_at(index) * P.share);
    v_set(index, v_at(index) * (1.0 - P.share) + b_at(index) * P.count / (P.count - 1.0) * P.share);
  }"""
    f32 = dt.float32
    operands = [("m", f32, "w"), ("v", f32, "w"), ("a", f32, "r"), ("b", f32, "r")]
    program = Program("move_statistics", operands, [("n", "I"), ("count", "f"), ("share", "f")], body)

    def run(outs: list[View], mean: View, var: View, means: View, variances: View, momentum: float) -> None:
        views = [mean, var, contiguous(means), contiguous(variances)]
        program(groups_for(n), views, n, float(count), float(momentum))

    return run
