"""Random numbers by the rule of `common/sampling.py`: a seed gives the same numbers as on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .....core import dtype as dt
from .....core.device import device
from .....core.layout import Layout, Spec, broadcast_strides
from .....formula import Formula, var
from ....common import sampling_bounds as bounds
from ....common.slot import Slot
from ...programs.checks import required
from ...programs.copy import copy_view
from ...programs.pointwise import compile_formula
from ...programs.program import TYPE
from ...programs.types import FLOATS, Ints, Run, floats
from ...rows import cuda
from ...runtime.faults import faults
from ...runtime.views import View, empty
from .draws import BERNOULLI, CAUCHY, CHANCES, EXPONENTIAL, LOG_NORMAL, NORMAL, UNIFORM, sampler


def _uniform(spec: Spec) -> Any:
    launch = sampler(UNIFORM, spec, spec.dtype is dt.float64)
    kind = spec.dtype.np
    real = np.float64 if spec.dtype is dt.float64 else np.float32

    def run(to: View, key: int, counter: int, low: float, high: float) -> None:
        bounds.check_uniform(low, high, kind)
        if (low, high) == (0, 1):
            return launch(to, key, counter, 0.0, 1.0, 1, 1.0)
        first, end = kind.type(low), kind.type(high)
        last = np.nextafter(end, first)
        launch(to, key, counter, float(real(first)), float(real(end) - real(first)), 0, float(last))

    return run


def _normal(spec: Spec, kind: int) -> Any:
    launch = sampler(kind, spec, spec.dtype is dt.float64)
    check = bounds.check_normal if kind == NORMAL else bounds.check_log_normal

    def run(to: View, key: int, counter: int, mean: float, std: float) -> None:
        check(std)
        launch(to, key, counter, float(mean), float(std), 0, 0.0)

    return run


@cuda("_uniform", accepts=floats, into=True, careful=True)
def uniform(x: Slot, key: Slot, counter: Slot, low: Slot, high: Slot) -> Run:
    draw = _uniform(x.spec.dense_like())
    return lambda outs, x, key, counter, low, high: draw(outs[0], key, counter, low, high)


@cuda("_new_uniform")
def new_uniform(size: Ints, dtype: dt.dtype, device: device, key: Slot, counter: Slot, low: Slot, high: Slot) -> Run:
    if dtype not in FLOATS:
        return None
    draw = _uniform(_row_major(size, dtype, device))
    return lambda outs, key, counter, low, high: draw(outs[0], key, counter, low, high)


def _row_major(size: Ints, dtype: dt.dtype, device: device) -> Spec:
    return Spec(Layout(tuple(size)), dtype, device)


@cuda("_normal", accepts=floats, into=True, careful=True)
def normal(x: Slot, key: Slot, counter: Slot, mean: Slot, std: Slot) -> Run:
    if any(isinstance(v.spec, Spec) for v in (mean, std)):
        return _normal_each(x, mean, std)
    draw = _normal(x.spec.dense_like(), NORMAL)
    kinds: tuple[object, ...] = (mean.spec, std.spec)
    if complex in kinds:
        return None
    return lambda outs, x, key, counter, mean, std: draw(outs[0], key, counter, mean, std)


def _normal_each(x: Slot, mean: Slot, std: Slot) -> Any:
    """Standard numbers first; then each gets its own mean and deviation."""
    out = x.spec.dense_like()
    wide = dt.float64 if x.dtype is dt.float64 else dt.float32
    row = x.spec.like(x.shape, dtype=wide)
    draw = _normal(row, NORMAL)
    z, s, d = var("z"), var("mean"), var("std")
    shift_, _ = compile_formula(
        Formula("normal", ("z", "mean", "std"), z * d + s),
        ["z", "mean", "std"],
        [_role(row, wide), _role(mean.spec, wide), _role(std.spec, wide)],
        [row, *(v.spec if isinstance(v.spec, Spec) else None for v in (mean, std))],
        out,
        None,
    )
    text = "normal expects all elements of std >= 0.0"
    check = required(std, "v < 0", text) if isinstance(std.spec, Spec) else bounds.check_normal

    def run(outs: list[View], x: View, key: int, counter: int, mean: View | None, std: Any) -> None:
        check(std)
        made = empty(row)
        draw(made, key, counter, 0.0, 1.0)
        copy_view(outs[0], shift_(made, mean, std)[1])

    return run


def _role(spec: object, compute: dt.dtype) -> tuple[Any, dt.dtype, None]:
    return (spec.dtype if isinstance(spec, Spec) else None), compute, None


@cuda("_new_normal")
def new_normal(size: Ints, dtype: dt.dtype, device: device, key: Slot, counter: Slot, mean: Slot, std: Slot) -> Run:
    if dtype not in FLOATS:
        return None
    draw = _normal(_row_major(size, dtype, device), NORMAL)
    return lambda outs, key, counter, mean, std: draw(outs[0], key, counter, mean, std)


@cuda("_log_normal", accepts=floats, into=True, careful=True)
def log_normal(x: Slot, key: Slot, counter: Slot, mean: Slot, std: Slot) -> Run:
    draw = _normal(x.spec.dense_like(), LOG_NORMAL)
    return lambda outs, x, key, counter, mean, std: draw(outs[0], key, counter, mean, std)


@cuda("_exponential", accepts=floats, into=True, careful=True)
def exponential(x: Slot, key: Slot, counter: Slot, lambd: Slot) -> Run:
    spec = x.spec.dense_like()
    launch = sampler(EXPONENTIAL, spec, spec.dtype is dt.float64)
    floor = 2.0**-24 if spec.dtype is dt.float16 else 2.0**-55 if spec.dtype is dt.float64 else 2.0**-26

    def run(outs: list[View], x: View, key: int, counter: int, lambd: float) -> None:
        bounds.check_exponential(lambd)
        launch(outs[0], key, counter, float(lambd), floor, 0, 0.0)

    return run


def threshold(p: float) -> int:
    return math.ceil(float(p) * 2.0**32)


@cuda("_bernoulli", accepts=lambda x, *rest: x.dtype in TYPE and floats(*rest), into=True, careful=True)
def bernoulli(x: Slot, key: Slot, counter: Slot, p: Slot) -> Run:
    if isinstance(p.spec, Spec):
        return _bernoulli_each(x, p)
    launch = sampler(BERNOULLI, x.spec.dense_like(), False)

    def run(outs: list[View], x: View, key: int, counter: int, p: float) -> None:
        bounds.check_bernoulli(p)
        launch(outs[0], key, counter, 0.0, 0.0, threshold(p), 0.0)

    return run


def _bernoulli_each(x: Slot, p: Slot) -> Any:
    each = p.spec.like(x.shape, strides=broadcast_strides(p.shape, p.strides, x.shape))
    launch = sampler(CHANCES, x.spec.dense_like(), False, each)
    text = "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    fault = faults.place(RuntimeError, text)

    def run(outs: list[View], x: View, key: int, counter: int, p: View) -> None:
        to = outs[0]
        apart = p.storage is to.storage and (p.ptr != to.ptr or each.strides != to.spec.strides)
        made = empty(x.spec.dense_like()) if apart else to  # the two may overlap: read all before the first write
        launch(made, key, counter, 0.0, 0.0, fault, 0.0, p.ptr)
        if apart:
            copy_view(to, made)

    return run


@cuda("_cauchy", accepts=floats, into=True, careful=True)
def cauchy(x: Slot, key: Slot, counter: Slot, median: Slot, sigma: Slot) -> Run:
    spec = x.spec.dense_like()
    launch = sampler(CAUCHY, spec, spec.dtype is dt.float64)

    def run(outs: list[View], x: View, key: int, counter: int, median: float, sigma: float) -> None:
        bounds.check_cauchy(sigma)
        launch(outs[0], key, counter, float(median), float(sigma), 0, 0.0)

    return run
