"""Sums, products, tests and log-sum-exp over dimensions."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.reduction import Rule, added, compile_reduction
from .fill import fill_view

Ints = tuple[int, ...]


def _size(x: Slot, dim: Ints) -> int:
    return math.prod(x.shape[d] for d in dim)


def _widened(x: Slot, to: dt.dtype) -> str | None:
    """An element, read as `r`, in the type that sums are taken in; None where kernels have none."""
    if x.dtype not in types.NUMBERS or to not in types.NUMBERS:
        return None
    return types.cast("r", x.dtype, dt.compute_type(to))


def _sum(name: str, x: Slot, dim: Ints, dtype: dt.dtype, nan: bool = False, mean: bool = False) -> Run:
    value = _widened(x, dtype)
    if value is None:
        return None
    if not x.numel:
        if mean:
            return lambda outs, x: fill_view(outs[0], math.nan)
        return lambda outs, x: fill_view(outs[0], 0)
    if dtype is dt.bool_:
        return _test("any", x, dim, True)
    if nan and x.dtype.is_floating_point:
        value = f"select({value}, 0.0, f_isnan(r))"
    kind = types.KIND[dtype]
    rule = added(kind)
    result = rule.results[0]
    if mean:
        result = f"({result} / f32(n))"
    bits = 8 * dtype.itemsize
    if kind in "iu" and bits < 32:
        result = f"{kind}_wrap{bits}({result})"
    return compile_reduction(name, x.spec, dim, value, Rule(rule.members, rule.step, rule.join, (result,)), [dtype])


@webgpu("sum")
def sum_(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Run:
    return _sum("sum", x, dim, dtype)


@webgpu("nansum")
def nansum(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Run:
    return _sum("nansum", x, dim, dtype, nan=True)


@webgpu("mean")
def mean(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Run:
    if not dtype.is_floating_point:
        return None
    return _sum("mean", x, dim, dtype, mean=True)


@webgpu("prod")
def prod(x: Slot, dim: int | None, keepdim: bool, dtype: dt.dtype) -> Run:
    dims = tuple(range(x.ndim)) if dim is None or x.ndim == 0 else (dim,)
    value = _widened(x, dtype)
    if value is None:
        return None
    if not x.numel:
        return lambda outs, x: fill_view(outs[0], 1)
    if dtype is dt.bool_:
        return _test("all", x, dims, False)
    kind = types.KIND[dtype]
    one = {"f": "1.0", "i": "1i", "u": "1u", "l": "vec2<u32>(1u, 0u)"}[kind]
    times = "s.a = l_mul(s.a, {});" if kind == "l" else "s.a = s.a * {};"
    bits = 8 * dtype.itemsize
    result = f"{kind}_wrap{bits}(s.a)" if kind in "iu" and bits < 32 else "s.a"
    rule = Rule((("a", types.WGSL[kind], one),), times.format("v"), times.format("o.a"), (result,))
    return compile_reduction("prod", x.spec, dims, value, rule, [dtype])


def _test(name: str, x: Slot, dim: Ints, wanted: bool) -> Run:
    """Whether any element is true (`wanted`), or none is false."""
    if x.dtype not in types.NUMBERS:
        return None
    if not x.numel:
        return lambda outs, x: fill_view(outs[0], 0 if wanted else 1)
    begin, sign = ("0u", "|") if wanted else ("1u", "&")
    rule = Rule((("a", "u32", begin),), f"s.a = s.a {sign} v;", f"s.a = s.a {sign} o.a;", ("s.a",))
    return compile_reduction(name, x.spec, dim, types.cast("r", x.dtype, dt.bool_), rule, [dt.bool_])


@webgpu("all")
def all_(x: Slot, dim: Ints, keepdim: bool) -> Run:
    return None if x.dtype is dt.uint8 else _test("all", x, dim, False)


@webgpu("any")
def any_(x: Slot, dim: Ints, keepdim: bool) -> Run:
    return None if x.dtype is dt.uint8 else _test("any", x, dim, True)


@webgpu("count_nonzero")
def count_nonzero(x: Slot, dim: Ints) -> Run:
    if x.dtype not in types.NUMBERS:
        return None
    if not x.numel:
        return lambda outs, x: fill_view(outs[0], 0)
    rule = Rule((("a", "u32", "0u"),), "s.a = s.a + v;", "s.a = s.a + o.a;", ("vec2<u32>(s.a, 0u)",))
    return compile_reduction("count_nonzero", x.spec, dim, types.cast("r", x.dtype, dt.bool_), rule, [dt.int64])


@webgpu("logsumexp", accepts=types.floats)
def logsumexp(x: Slot, dim: Ints, keepdim: bool) -> Run:
    if not x.numel:
        return lambda outs, x: fill_view(outs[0], -math.inf)
    if not dim:
        return lambda outs, x: copy_view(outs[0], x)
    # The largest so far, and the sum of exponentials under it; infinite ones are no help as a shift.
    rule = Rule(
        (("m", "f32", "-f_inf()"), ("a", "f32", "0.0")),
        "if (f_isnan(v)) { s.m = v; } else if (v > s.m) { s.a = s.a * f_exp(s.m - v) + 1.0; s.m = v; } "
        "else if (!f_isneginf(v)) { s.a = s.a + select(f_exp(v - s.m), 1.0, v == s.m); }",
        "if (f_isnan(o.m) || f_isnan(s.m)) { s.m = f_nan(); } "
        "else if (o.m > s.m) { s.a = s.a * f_exp(s.m - o.m) + o.a; s.m = o.m; } "
        "else if (!f_isneginf(o.m)) { s.a = s.a + o.a * select(f_exp(o.m - s.m), 1.0, o.m == s.m); }",
        ("lse(s)",),
    )
    extra = "fn lse(s: S) -> f32 { if (f_isnan(s.m) || f_isinf(s.m)) { return s.m; } return s.m + f_log(s.a); }"
    return compile_reduction("logsumexp", x.spec, dim, "r", rule, [x.dtype], extra)


@webgpu("_vector_norm", accepts=types.floats)
def vector_norm(x: Slot, ord: float, dim: Ints, keepdim: bool) -> Run:
    if not x.numel or isinstance(ord, complex):
        return None
    size = "f_abs(r)"
    if ord in (math.inf, -math.inf):
        pick = "f_maximum" if ord > 0 else "f_minimum"
        begin = "0.0" if ord > 0 else "f_inf()"
        rule = Rule((("a", "f32", begin),), f"s.a = {pick}(s.a, v);", f"s.a = {pick}(s.a, o.a);", ("s.a",))
        return compile_reduction("vector_norm", x.spec, dim, size, rule, [x.dtype])
    plain = added("f")
    results: dict[float, str] = {0: "s.a", 1: "s.a", 2: "sqrt(s.a)"}
    result = results.get(ord, f"f_pow(s.a, {float(1 / ord if ord else 0)!r}f)")
    powers: dict[float, str] = {0: "select(0.0, 1.0, r != 0.0)", 1: size, 2: "r * r"}
    value = powers.get(ord, f"f_pow(f_abs(r), {float(ord)!r}f)")
    return compile_reduction(
        "vector_norm", x.spec, dim, value, Rule(plain.members, plain.step, plain.join, (result,)), [x.dtype]
    )


@webgpu("_var", accepts=types.floats)
def var(x: Slot, dim: Ints, correction: float, keepdim: bool) -> Run:
    return _spread("var", x, dim, correction)


@webgpu("_std", accepts=types.floats)
def std(x: Slot, dim: Ints, correction: float, keepdim: bool) -> Run:
    return _spread("std", x, dim, correction)


def _spread(name: str, x: Slot, dim: Ints, correction: float) -> Run:
    if not x.numel:
        return lambda outs, x: fill_view(outs[0], math.nan)
    # Welford's running mean and squares, joined as Chan, Golub and LeVeque do it.
    over = max(_size(x, dim) - correction, 0.0)
    text = f"s.q / {over!r}f" if over else "f_nan() + s.q * 0.0"
    if not over:
        text = "select(f_nan(), f_inf(), s.q > 0.0)"
    rule = Rule(
        (("m", "f32", "0.0"), ("q", "f32", "0.0"), ("k", "f32", "0.0")),
        "s.k = s.k + 1.0; let d = v - s.m; s.m = s.m + d / s.k; s.q = s.q + d * (v - s.m);",
        "if (o.k > 0.0) { let k = s.k + o.k; let d = o.m - s.m; s.q = s.q + o.q + d * d * (s.k * o.k / k); "
        "s.m = s.m + d * (o.k / k); s.k = k; }",
        (text if name == "var" else f"sqrt({text})",),
    )
    return compile_reduction(name, x.spec, dim, "r", rule, [x.dtype])
