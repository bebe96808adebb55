"""batch_norm with its gradients, put together from reductions and elementwise kernels: statistics
first, then one pass that uses them. group_norm shares the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec, reduced_shape
from ....formula import Formula, const
from ....formula import var as variable
from ....formula.expr import Expr, apply
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.lane_reduction import moments
from ..programs.pointwise import build
from ..programs.reduction import reducer, wide_type
from ..programs.types import Ints, Run, floats
from ..rows import cuda
from ..runtime.views import View, empty
from .batch_norm_channels import few_of_channel, mover

_X, _G, _MEAN, _VAR, _W, _B = (variable(n) for n in ("x", "g", "mean", "spread", "weight", "bias"))


def _mul(a: Any, b: Any) -> Any:
    return apply("mul", a, b)


class Maker:
    """Kernels of formulas over tensors that broadcast to one shape."""

    def __init__(self, shape: Ints, wide: dt.dtype, specs: dict[str, Spec]) -> None:
        self.shape, self.wide, self.specs = shape, wide, specs

    def _roles(self, names: list[str]) -> Any:
        specs = [self.specs[n] for n in names]
        return [(s.dtype, self.wide, None) for s in specs], specs

    def summed(self, name: str, body: Expr, names: list[str], dims: Ints, out: dt.dtype, by: float) -> Any:
        """`run(out address, addresses)`: the formula added up over dimensions, divided by `by`."""
        roles, specs = self._roles(names)
        finish = Formula("finish", ("x",), apply("div", _X, const(by))) if by != 1 else None
        formula = Formula(name, tuple(names), body)
        return reducer(name, "sum", self.wide, formula, names, roles, specs, self.shape, dims, out, finish)

    def mapped(self, name: str, body: Expr, names: list[str], out: Spec) -> Any:
        """`run(out address, addresses)`: the formula everywhere."""
        roles, specs = self._roles(names)
        made = build(Formula(name, tuple(names), body), names, roles, specs, out)
        if made is None:
            return None
        program, numbers, grid = made
        return lambda to, *given: program(grid, to, *given, *numbers)


def _beside(spec: Spec, shape: Ints, at: dict[int, int]) -> Spec:
    """A vector or table seen with the rank of `shape`: dimension d is its dimension `at[d]`."""
    sizes = tuple(spec.shape[at[d]] if d in at else 1 for d in range(len(shape)))
    steps = tuple(spec.strides[at[d]] if d in at else 0 for d in range(len(shape)))
    return Spec(Layout(sizes, steps), spec.dtype, spec.device)


def _vector(spec: Spec, n: int, dtype: dt.dtype) -> Spec:
    return Spec(Layout((n,)), dtype, spec.device)


def normal(scale: Any, weight: Any, bias: Any) -> tuple[Any, list[str]]:
    """The text of a normalised value, and the names it uses beside x and the statistics."""
    y, names = _mul(apply("sub", _X, _MEAN), scale), []
    if weight is not None:
        y, names = _mul(y, _W), ["weight"]
    if bias is not None:
        y, names = apply("add", y, _B), [*names, "bias"]
    return y, names


def root(eps: float, variance: Expr = _VAR) -> Any:
    return apply("div", const(1.0), apply("sqrt", apply("add", variance, const(eps))))


@contextmanager
def statistics(outs: list[View], stat: Spec) -> Iterator[tuple[View, View]]:
    """Memory for two statistics, which end up in the last two results."""
    if all(o.spec.contiguous and o.spec.dtype is stat.dtype for o in outs[1:]):
        yield outs[1], outs[2]
        return
    made = empty(stat), empty(stat)
    yield made
    for to, v in zip(outs[1:], made, strict=True):
        copy_view(to, View(v.ptr, to.spec.like(to.spec.shape, dtype=stat.dtype), v.storage))


def present(**given: Any) -> dict[str, Spec]:
    return {n: v for n, v in given.items() if v is not None}


@cuda("_batch_norm", accepts=floats)
def batch_norm(x: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Run:
    if not x.numel:
        return None
    shape, wide = x.shape, wide_type(x.dtype)
    dims = (0, *range(2, x.ndim))
    stat = _vector(x.spec, shape[1], wide)
    flat = {1: 0}
    specs = {"x": x.spec, "mean": _beside(stat, shape, flat), "spread": _beside(stat, shape, flat)}
    specs |= present(
        **{k: None if v is None else _beside(v.spec, shape, flat) for k, v in (("weight", weight), ("bias", bias))}
    )
    make = Maker(shape, wide, specs)
    found = moments(x.spec, dims, lambda variance: variance, wide)
    body, extra = normal(root(float(eps)), weight, bias)
    names = ["x", "mean", "spread", *extra]
    small = few_of_channel(x, weight, bias, float(eps))
    kept: dict[Spec, Any] = {}

    def run(outs: list[View], x: View, weight: View | None = None, bias: View | None = None) -> None:
        out = outs[0]
        once = small(out.spec) if small is not None else None
        if once is not None:
            once(outs, x, weight, bias)
            return
        if out.spec not in kept:
            kept[out.spec] = make.mapped("batch_norm", body, names, out.spec)
        rest = [p.ptr for p in (weight, bias) if p is not None]
        with statistics(outs, stat) as (m, v):
            found(m.ptr, v.ptr, x.ptr)
            kept[out.spec](out.ptr, x.ptr, m.ptr, v.ptr, *rest)

    return run


@cuda("_batch_norm_by", accepts=floats)
def batch_norm_by(x: Slot, mean: Slot, var: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Run:
    if not x.numel:
        return None
    flat = {1: 0}
    specs = {"x": x.spec} | present(
        **{
            k: None if v is None else _beside(v.spec, x.shape, flat)
            for k, v in (("mean", mean), ("spread", var), ("weight", weight), ("bias", bias))
        }
    )
    make = Maker(x.shape, wide_type(x.dtype), specs)
    body, extra = normal(root(float(eps)), weight, bias)
    names = ["x", "mean", "spread", *extra]
    kept: dict[Spec, Any] = {}

    def run(outs: list[View], *given: Any) -> None:
        out = outs[0]
        if out.spec not in kept:
            kept[out.spec] = make.mapped("batch_norm_by", body, names, out.spec)
        kept[out.spec](out.ptr, *[v.ptr for v in given if v is not None])

    return run


def gradients(
    name: str,
    x: Any,
    specs: dict[str, Spec],
    dims: Ints,
    sums: Ints,
    eps: float | None,
    n: int,
    by_input: bool,
    by_affine: bool,
    fixed: bool,
) -> Any:
    """The gradients of normalisation. `dims`: what statistics were taken over, `sums`: what is
    added up for weight and bias. `eps` None: `spread` is the reciprocal root already.
    """
    wide = wide_type(specs["x"].dtype)
    shape = specs["x"].shape
    has = "weight" in specs
    rstd = _VAR if eps is None else root(eps)
    y = _mul(apply("sub", _X, _MEAN), rstd)
    h = _mul(_G, _W) if has else _G
    device = specs["x"].device
    stat = Spec(Layout(reduced_shape(shape, dims, True)), wide, device)
    specs = {**specs, "first": stat, "second": stat}
    make = Maker(shape, wide, specs)
    extra = ["weight"] if has else []
    names = ["x", "g", "mean", "spread", *extra]
    first: Any = None
    second: Any = None
    if by_input and not fixed:
        first = make.summed(f"{name}_first", h, ["g", *extra], dims, wide, n)
        second = make.summed(f"{name}_second", _mul(h, y), names, dims, wide, n)
    if by_input:
        if fixed:
            body, used = _mul(h, rstd), names
        else:
            away = apply("sub", apply("sub", h, variable("first")), _mul(y, variable("second")))
            body, used = _mul(away, rstd), [*names, "first", "second"]
    if by_affine:
        scale = make.summed(f"{name}_weight", _mul(_G, y), names[:4], sums, wide, 1)
        shift = make.summed(f"{name}_bias", _G, ["g"], sums, wide, 1)
    total = Spec(Layout(reduced_shape(shape, sums, False)), wide, device)
    kept: dict[Spec, Any] = {}

    def run(outs: list[View], gx: View, values: dict[str, int]) -> None:
        given = lambda wanted: [values[n] for n in wanted]
        if by_input:
            if first is not None:
                a, b = empty(stat), empty(stat)
                first(a.ptr, *given(["g", *extra]))
                second(b.ptr, *given(names))
                values = {**values, "first": a.ptr, "second": b.ptr}
            if gx.spec not in kept:
                kept[gx.spec] = make.mapped(f"{name}_input", body, used, gx.spec)
            kept[gx.spec](gx.ptr, *[values[n] for n in used])
        if by_affine:
            for k, fn, wanted in ((1, scale, names[:4]), (2, shift, ["g"])):
                made = empty(total)
                fn(made.ptr, *given(wanted))
                flat = Spec(Layout((math.prod(total.shape),)), wide, device)
                copy_view(outs[k], View(made.ptr, flat, made.storage))

    return run


def _batch_gradients(
    name: str,
    g: Slot,
    x: Slot,
    mean: Slot,
    var: Slot,
    weight: Slot | None,
    eps: float,
    by_input: bool,
    by_affine: bool,
    fixed: bool,
) -> Any:
    if not x.numel:
        return None
    flat = {1: 0}
    specs = {"x": x.spec, "g": g.spec} | present(
        **{
            k: None if v is None else _beside(v.spec, x.shape, flat)
            for k, v in (("mean", mean), ("spread", var), ("weight", weight))
        }
    )
    dims = (0, *range(2, x.ndim))
    count = x.numel // x.shape[1]
    go = gradients(name, x, specs, dims, dims, float(eps), count, by_input, by_affine, fixed)

    def run(outs: list[View], g: View, x: View, mean: View, var: View, weight: View | None = None) -> None:
        values = {"g": g.ptr, "x": x.ptr, "mean": mean.ptr, "spread": var.ptr}
        if weight is not None:
            values["weight"] = weight.ptr
        go(outs, outs[0], values)

    return run


@cuda("_batch_norm_backward", accepts=floats)
def batch_norm_backward(
    g: Slot, x: Slot, mean: Slot, var: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool
) -> Run:
    name = "batch_norm_backward"
    return _batch_gradients(name, g, x, mean, var, weight, eps, by_input, by_affine, False)


@cuda("_batch_norm_by_backward", accepts=floats)
def batch_norm_by_backward(
    g: Slot, x: Slot, mean: Slot, var: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool
) -> Run:
    name = "batch_norm_by_backward"
    return _batch_gradients(name, g, x, mean, var, weight, eps, by_input, by_affine, True)


@cuda("_move_statistics", accepts=floats)
def move_statistics(mean: Slot, var: Slot, means: Slot, variances: Slot, count: int, momentum: Slot) -> Run:
    if not isinstance(momentum.spec, (int, float)):
        return None
    return mover(mean, var, means, variances, count)
