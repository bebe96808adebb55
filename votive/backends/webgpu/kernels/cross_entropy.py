"""Cross entropy and the loss on log-probabilities, by target or reduced, and their gradients. A target outside the
classes is an IndexError, unless it is the ignored one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View, empty
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.layouts import contiguous
from ..shaders.program import Program
from ..shaders.rows import Lines, shared, width
from .index import place

_NUMBERS = [("ignore", "i"), ("soft", "f"), ("mean", "I")]


def _dim(ndim: int) -> int:
    return 1 if ndim > 1 else 0


def _wrong(op: str, classes: int, ignore: int) -> int:
    return message(
        IndexError,
        f"{op}: target {{value}} is out of range for {classes} classes; use 0..{classes - 1} or ignore_index={ignore}.",
    )


def _target(fault: int, d: dt.dtype) -> str:
    return f"""  let target_ = {place("t_at(row)", d)};
  let used = target_ != P.ignore;
  if (used && (target_ < 0 || target_ >= i32(P.n))) {{ if (lane == 0u) {{ fail({fault}u, target_, P.n); }} return; }}
  let own = u32(select(0, target_, used));
"""


def _log_sum(value: str, threads: int) -> str:
    loop = f"for (var j = lane; j < P.n; j += {threads}u)"
    return f"""  var m = -f_inf();
  {loop} {{ m = f_maximum(m, {value}); }}
  m = all_max(lane, m);
  var e = 0.0;
  {loop} {{ e += f_exp({value} - m); }}
  e = all_sum(lane, e);
"""


class Losses:
    """The loss of each target, and the parts of their mean."""

    def __init__(
        self, op: str, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, log: bool
    ) -> None:
        self.lines = Lines(x.shape, [x.strides], (_dim(x.ndim),))
        threads = width(self.lines.n)
        fault = _wrong("cross_entropy" if log else "nll_loss", self.lines.n, ignore)
        read = "x_at(at + x_col(j))"
        lp = "((x_at(at + x_col({0})) - m) - l)" if log else "x_at(at + x_col({0}))"
        body = "  if (row >= P.rows) { return; }\n  let at = x_row(row);\n" + _target(fault, t.dtype)
        body += _log_sum(read, threads) + "  let l = f_log(e);\n" if log else "  let m = 0.0;\n  let e = 0.0;\n"
        picked = lp.format("own") + (" * w_at(own)" if weight else "")
        body += f"  var v = {picked};\n"
        if smoothing:
            each = lp.format("j") + (" * w_at(j)" if weight else "")
            body += f"  var a = 0.0;\n  for (var j = lane; j < P.n; j += {threads}u) {{ a += {each}; }}\n"
            body += "  a = all_sum(lane, a);\n  v = (1.0 - P.soft) * v + P.soft / f32(P.n) * a;\n"
        part = "w_at(own)" if weight else "1.0"
        body += f"""  if (lane == 0u) {{
    y_set(row, select(0.0, -v, used));
    k_set(row, select(0.0, {part}, used));
    s_set(row, m);
    s_set(P.rows + row, e);
  }}"""
        f32 = dt.float32
        operands = [("y", f32, "w"), ("k", f32, "w"), ("s", f32, "w"), ("x", x.dtype, "r"), ("t", t.dtype, "r")]
        operands += [("w", weight.dtype, "r")] if weight else []
        self.program = Program(
            op, operands, [*self.lines.numbers, *_NUMBERS], body, group=threads,
            head=shared(threads) + self.lines.head("x"), faults=True,
        )  # fmt: skip
        self.given = (*self.lines.values, ignore if abs(ignore) < 2**31 else -(2**31), float(smoothing), 0)
        self.where = x.spec.device

    def __call__(self, x: View, t: View, weight: View | None) -> tuple[View, View, View]:
        """(losses, weights of targets, statistics), a number per target in float32."""
        n = self.lines.rows

        def new(k: int) -> View:
            return empty(Spec(Layout((k,)), dt.float32, self.where))

        y, k, s = new(n), new(n), new(2 * n)
        views = [y, k, s, x, contiguous(t), *([] if weight is None else [contiguous(weight)])]
        self.program(n, views, *self.given)
        return y, k, s


def _allowed(x: Slot, t: Slot, weight: Slot | None) -> bool:
    return bool(
        x.dtype in types.FLOATS
        and t.dtype in types.INTEGERS
        and x.numel
        and (weight is None or weight.dtype in types.FLOATS)
    )


def _each(op: str, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, log: bool) -> Run:
    if not _allowed(x, t, weight):
        return None
    losses = Losses(op, x, t, weight, ignore, smoothing, log)

    def run(outs: list[View], x: View, t: View, weight: View | None) -> None:
        y, _, _ = losses(x, t, weight)
        shape = outs[0].spec.shape
        copy_view(outs[0], View(y.storage, 0, Spec(Layout(shape), dt.float32, y.spec.device)))

    return run


@webgpu("_nll")
def nll(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Run:
    return _each("nll", x, t, weight, ignore, smoothing, False)


@webgpu("_cross_entropy")
def cross_entropy(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Run:
    return _each("cross_entropy", x, t, weight, ignore, smoothing, True)


def _joined(outs: Sequence[dt.dtype], mean: bool) -> Program:
    body = f"""  var a = 0.0;
  var b = 0.0;
  for (var j = lane; j < P.n; j += 256u) {{ a += x_at(j); b += k_at(j); }}
  a = all_sum(lane, a);
  b = all_sum(lane, b);
  if (lane == 0u) {{ y_set(0u, {"a / b" if mean else "a"}); total_set(0u, b); }}"""
    operands = [("y", outs[0], "w"), ("total", outs[1], "w"), ("x", dt.float32, "r"), ("k", dt.float32, "r")]
    return Program("loss", operands, [("n", "I")], body, group=256, head=shared(256))


def _reduced(
    op: str, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, mean: bool, log: bool
) -> Run:
    if not _allowed(x, t, weight):
        return None
    losses = Losses(op, x, t, weight, ignore, smoothing, log)
    made: dict[Any, Program] = {}

    def run(outs: list[View], x: View, t: View, weight: View | None) -> None:
        y, k, s = losses(x, t, weight)
        key = (outs[0].spec.dtype, outs[1].spec.dtype)
        if key not in made:
            made[key] = _joined(key, mean)
        made[key](1, [outs[0], outs[1], y, k], losses.lines.rows)
        if log:
            to = outs[2]
            copy_view(to, View(s.storage, 0, Spec(Layout(to.spec.shape), dt.float32, to.spec.device)))

    return run


@webgpu("_nll_reduced")
def nll_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool) -> Run:
    return _reduced("nll_reduced", x, t, weight, ignore, 0.0, mean, False)


@webgpu("_cross_entropy_reduced")
def cross_entropy_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, mean: bool) -> Run:
    return _reduced("cross_entropy_reduced", x, t, weight, ignore, smoothing, mean, True)


def _backward(
    op: str,
    out: Spec,
    g: Slot,
    x: Slot | None,
    t: Slot,
    weight: Slot | None,
    ignore: int,
    smoothing: float,
    total: Slot | None,
    mean: bool,
) -> Any:
    """run(out, g, x, t, weight, total): `g (Q softmax(x) - q)`, or `-g q` without x."""
    kinds = [s.dtype for s in (g, x, weight, total) if s is not None]
    if any(k not in types.FLOATS for k in kinds) or t.dtype not in types.INTEGERS or not out.numel:
        return None
    strides = [out.strides, *([] if x is None else [x.strides])]
    lines = Lines(out.shape, strides, (_dim(out.ndim),))
    threads = width(lines.n)
    fault = _wrong("nll_loss" if x is None else "cross_entropy", lines.n, ignore)
    body = "  if (row >= P.rows) { return; }\n" + _target(fault, t.dtype)
    if total is None:
        body += "  var g = g_at(row);\n"
    else:
        body += "  var g = g_at(0u)" + (" / total_at(0u);\n" if mean else ";\n")
    body += f"  g = select(0.0, g, used);\n  let hit = g * (1.0 - P.soft){' * w_at(own)' if weight else ''};\n"
    body += "  let share = g * P.soft / f32(P.n);\n  let yb = y_row(row);\n"
    loop = f"for (var j = lane; j < P.n; j += {threads}u)"
    q = f"(select(0.0, hit, j == own) + share{' * w_at(j)' if weight else ''})"
    if x is None:
        body += f"  {loop} {{ y_set(yb + y_col(j), -{q}); }}"
    else:
        body += "  let at = x_row(row);\n" + _log_sum("x_at(at + x_col(j))", threads)
        body += f"  var a = 0.0;\n  {loop} {{ a += {q}; }}\n  let scale = all_sum(lane, a) / e;\n"
        body += f"  {loop} {{ y_set(yb + y_col(j), f_exp(x_at(at + x_col(j)) - m) * scale - {q}); }}"
    operands = [("y", out.dtype, "w"), ("g", g.dtype, "r"), ("t", t.dtype, "r")]
    operands += [("x", x.dtype, "r")] if x is not None else []
    operands += [("w", weight.dtype, "r")] if weight else []
    operands += [("total", total.dtype, "r")] if total is not None else []
    names = ["y", *([] if x is None else ["x"])]
    program = Program(
        op, operands, [*lines.numbers, *_NUMBERS], body, group=threads, head=shared(threads) + lines.head(*names),
        faults=True,
    )  # fmt: skip
    given = (*lines.values, ignore if abs(ignore) < 2**31 else -(2**31), float(smoothing), int(mean))

    def run(y: View, g: View, x: View | None, t: View, weight: View | None, total: View | None) -> None:
        views = [y, contiguous(g), contiguous(t), *[v for v in (x,) if v is not None]]
        views += [contiguous(v) for v in (weight, total) if v is not None]
        program(lines.rows, views, *given)

    return run


@webgpu("_nll_backward")
def nll_backward(
    g: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, size: tuple[int, ...], dtype: dt.dtype
) -> Run:
    out = g.spec.like(size, dtype=dtype)
    run = _backward("nll_backward", out, g, None, t, weight, ignore, smoothing, None, False)
    return None if run is None else lambda outs, g, t, weight: run(outs[0], g, None, t, weight, None)


@webgpu("_nll_reduced_backward")
def nll_reduced_backward(
    g: Slot, total: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool, size: tuple[int, ...], dtype: dt.dtype
) -> Run:
    out = g.spec.like(size, dtype=dtype)
    run = _backward("nll_reduced_backward", out, g, None, t, weight, ignore, 0.0, total, mean)
    return None if run is None else lambda outs, g, total, t, weight: run(outs[0], g, None, t, weight, total)


@webgpu("_cross_entropy_backward")
def cross_entropy_backward(g: Slot, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float) -> Run:
    run = _backward("cross_entropy_backward", x.spec.dense_like(), g, x, t, weight, ignore, smoothing, None, False)
    return None if run is None else lambda outs, g, x, t, weight: run(outs[0], g, x, t, weight, None)


@webgpu("_cross_entropy_reduced_backward")
def cross_entropy_reduced_backward(
    g: Slot,
    x: Slot,
    t: Slot,
    weight: Slot | None,
    total: Slot,
    statistics: Slot,
    ignore: int,
    smoothing: float,
    mean: bool,
) -> Run:
    out = x.spec.dense_like()
    run = _backward("cross_entropy_reduced_backward", out, g, x, t, weight, ignore, smoothing, total, mean)
    return None if run is None else lambda outs, g, x, t, weight, total, s: run(outs[0], g, x, t, weight, total)
