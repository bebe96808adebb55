"""Softmax, its logarithm and their gradients: a workgroup per row, whichever dimension the rows lie along."""

from __future__ import annotations

from typing import Any

from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.program import Program
from ..shaders.rows import Lines, shared, width
from .fill import fill_view


def _run(name: str, slots: dict[str, Slot], dim: int, body: str, alone: float) -> Run:
    """A kernel over rows: operands by name, the result `y` laid out as the first of them."""
    first = next(iter(slots.values()))
    if not first.numel:
        return lambda outs, *values: None
    if not first.ndim:
        return lambda outs, *values: fill_view(outs[0], alone)
    made: dict[Any, tuple[Program, Lines]] = {}

    def run(outs: list[View], *values: View) -> None:
        key = outs[0].spec
        if key not in made:
            lines = Lines(first.shape, [key.strides, *[s.strides for s in slots.values()]], (dim,))
            threads = width(lines.n)
            text = "  if (row >= P.rows) { return; }\n" + "".join(
                f"  let {n}b = {n}_row(row);\n" for n in ("y", *slots)
            )
            text += body.replace("EACH", f"for (var j = lane; j < P.n; j += {threads}u)")
            operands = [("y", key.dtype, "w"), *[(n, s.dtype, "r") for n, s in slots.items()]]
            head = shared(threads) + lines.head("y", *slots)
            made[key] = Program(name, operands, lines.numbers, text, group=threads, head=head), lines
        program, lines = made[key]
        program(lines.rows, [outs[0], *values], *lines.values)

    return run


_TOP = """  var m = -f_inf();
  EACH { m = f_maximum(m, x_at(xb + x_col(j))); }
  m = all_max(lane, m);
  var t = 0.0;
  EACH { t += f_exp(x_at(xb + x_col(j)) - m); }
  t = all_sum(lane, t);
"""


@webgpu("_softmax", accepts=types.floats)
def softmax(x: Slot, dim: int) -> Run:
    body = _TOP + "  EACH { y_set(yb + y_col(j), f_exp(x_at(xb + x_col(j)) - m) / t); }"
    return _run("softmax", {"x": x}, dim, body, 1.0)


@webgpu("_log_softmax", accepts=types.floats)
def log_softmax(x: Slot, dim: int) -> Run:
    body = _TOP + "  let l = f_log(t);\n  EACH { y_set(yb + y_col(j), (x_at(xb + x_col(j)) - m) - l); }"
    return _run("log_softmax", {"x": x}, dim, body, 0.0)


@webgpu("_softmax_backward", accepts=types.floats)
def softmax_backward(g: Slot, out: Slot, dim: int) -> Run:
    body = """  var t = 0.0;
  EACH { t += g_at(gb + g_col(j)) * x_at(xb + x_col(j)); }
  t = all_sum(lane, t);
  EACH { y_set(yb + y_col(j), x_at(xb + x_col(j)) * (g_at(gb + g_col(j)) - t)); }"""
    return _run("softmax_backward", {"g": g, "x": out}, dim, body, 0.0)


@webgpu("_log_softmax_backward", accepts=types.floats)
def log_softmax_backward(g: Slot, out: Slot, dim: int) -> Run:
    body = """  var t = 0.0;
  EACH { t += g_at(gb + g_col(j)); }
  t = all_sum(lane, t);
  EACH { y_set(yb + y_col(j), g_at(gb + g_col(j)) - f_exp(x_at(xb + x_col(j))) * t); }"""
    return _run("log_softmax_backward", {"g": g, "x": out}, dim, body, 0.0)
