"""Running sums, products and extremes along a dimension: the threads of a workgroup share a line, a run each."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.program import Program
from ..shaders.rows import Lines
from .extremum import better
from .fill import fill_view


def _scan(
    name: str, x: Slot, dim: int, value: str, member: str, begin: str, join: str, results: list[tuple[str, dt.dtype]]
) -> Run:
    """`join` puts the state `o` of an element or a run behind the state `s`; results are expressions of `s`."""
    if not x.numel:
        return lambda outs, x: None
    made: dict[Any, tuple[Program, Lines]] = {}

    def run(outs: list[View], x: View) -> None:
        key = tuple(o.spec for o in outs)
        if key not in made:
            lines = Lines(x.spec.shape, [x.spec.strides, *[s.strides for s in key]], (dim,))
            names = [f"y{k}" for k in range(len(outs))]
            threads = 64 if lines.n > 64 else 1
            stores = " ".join(
                f"{n}_set({n}_row(row_) + {n}_col(j), {text});" for n, (text, _) in zip(names, results, strict=True)
            )
            step = f"let r = x_at(at + x_col(j)); let o = S({value}); {join}"
            head = lines.head("x", *names) + f"struct S {{ {member} }}\n"
            if threads == 1:
                body = f"""  if (index >= P.rows) {{ return; }}
  let row_ = index;
  let at = x_row(row_);
  var s = S({begin});
  for (var j = 0u; j < P.n; j++) {{ {step} {stores} }}"""
            else:
                head += "var<workgroup> runs: array<S, 64>;\n"
                body = f"""  if (row >= P.rows) {{ return; }}
  let row_ = row;
  let at = x_row(row_);
  let each = (P.n + 63u) / 64u;
  let first = lane * each;
  let last = min(first + each, P.n);
  var s = S({begin});
  for (var j = first; j < last; j++) {{ {step} }}
  runs[lane] = s;
  workgroupBarrier();
  s = S({begin});
  for (var k = 0u; k < lane; k++) {{ let o = runs[k]; {join} }}
  for (var j = first; j < last; j++) {{ {step} {stores} }}"""
            operands = [("x", x.spec.dtype, "r"), *[(n, s.dtype, "w") for n, s in zip(names, key, strict=True)]]
            made[key] = Program(name, operands, lines.numbers, body, head=head), lines
        program, lines = made[key]
        groups = lines.rows if lines.n > 64 else -(-lines.rows // 64)
        program(groups, [x, *outs], *lines.values)

    return run


def _running(name: str, x: Slot, dim: int, dtype: dt.dtype, product: bool) -> Run:
    if x.dtype not in types.NUMBERS or dtype not in types.NUMBERS or dtype is dt.bool_:
        return None
    if not x.ndim:
        return lambda outs, x: copy_view(outs[0], x)
    compute = dt.compute_type(dtype)
    kind = types.KIND[compute]
    value = types.cast("r", x.dtype, compute)
    bits = 8 * dtype.itemsize
    result = f"{kind}_wrap{bits}(s.a)" if kind in "iu" and bits < 32 else "s.a"
    if product:
        begin = {"f": "1.0", "i": "1i", "u": "1u", "l": "vec2<u32>(1u, 0u)"}[kind]
        join = "s.a = l_mul(s.a, o.a);" if kind == "l" else "s.a = s.a * o.a;"
        return _scan(name, x, dim, value, f"a: {types.WGSL[kind]}", begin, join, [(result, dtype)])
    if kind == "f":
        # What rounding loses is carried along.
        join = "let t = s.a + o.a; let big = f_abs(s.a) >= f_abs(o.a); "
        join += "let e = select((o.a - t) + s.a, (s.a - t) + o.a, big); "
        join += "s = S(t, s.c + o.c + select(0.0, e, f_isfinite(t)));"
        return _scan(name, x, dim, f"{value}, 0.0", "a: f32, c: f32", "0.0, 0.0", join, [("(s.a + s.c)", dtype)])
    join = "s.a = l_add(s.a, o.a);" if kind == "l" else "s.a = s.a + o.a;"
    return _scan(name, x, dim, value, f"a: {types.WGSL[kind]}", types.ZERO[kind], join, [(result, dtype)])


@webgpu("cumsum")
def cumsum(x: Slot, dim: int, dtype: dt.dtype) -> Run:
    return _running("cumsum", x, dim, dtype, False)


@webgpu("cumprod")
def cumprod(x: Slot, dim: int, dtype: dt.dtype) -> Run:
    return _running("cumprod", x, dim, dtype, True)


@webgpu("logcumsumexp", accepts=types.floats)
def logcumsumexp(x: Slot, dim: int) -> Run:
    if not x.ndim:
        return lambda outs, x: copy_view(outs[0], x)
    return _scan("logcumsumexp", x, dim, "r", "a: f32", "-f_inf()", "s.a = f_logaddexp(s.a, o.a);", [("s.a", x.dtype)])


def _extreme(name: str, x: Slot, dim: int, largest: bool) -> Run:
    if x.dtype not in types.NUMBERS:
        return None
    if not x.ndim:

        def alone(outs: list[View], x: View) -> None:
            copy_view(outs[0], x)
            fill_view(outs[1], 0)

        return alone
    kind = types.KIND[x.dtype]
    # A place that equals the running extreme sets it, the last of equals winning; so does each NaN.
    keeps = better(kind, "s.a", "o.a", largest)
    join = f"if (o.k != 0u && (s.k == 0u || !{keeps})) {{ s = o; }}"
    member = f"a: {types.WGSL[kind]}, i: u32, k: u32"
    results = [("s.a", x.dtype), ("vec2<u32>(s.i, 0u)", dt.int64)]
    return _scan(name, x, dim, "r, j, 1u", member, f"{types.ZERO[kind]}, 0u, 0u", join, results)


@webgpu("_cummax")
def cummax(x: Slot, dim: int) -> Run:
    return _extreme("cummax", x, dim, True)


@webgpu("_cummin")
def cummin(x: Slot, dim: int) -> Run:
    return _extreme("cummin", x, dim, False)
