"""Random numbers by the rule of `common/sampling.py`: a seed gives the same numbers as on
the CPU. A program makes the words of some counters and turns them into elements.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.device import device
from .....core.layout import Layout, Spec
from .....formula import Formula, var
from ....common import sampling_bounds as bounds
from ....common.slot import Slot
from ...device import math as m
from ...device.guarded import guarded_load, guarded_store
from ...programs.checks import required
from ...programs.copy import copy_view
from ...programs.generator_state import philox_state, shift
from ...programs.layouts import contiguous_output, expanded
from ...programs.pointwise import compile_formula
from ...programs.program import TYPE, Program
from ...programs.types import FLOATS, Ints, Run, floats
from ...rows import cuda
from ...runtime.views import View, empty

COUNTERS = 256  # that a program takes: four words each
(UNIFORM, NORMAL, LOG_NORMAL, EXPONENTIAL, CAUCHY, BERNOULLI, INTEGERS, DROPOUT, CHANCES, GEOMETRIC) = range(10)
# Fusing a product and a sum would round once where the rule rounds twice.
EXACT = {"enable_fp_fusion": False}


@triton.jit
def words(key, counter, moved, WIDE: tl.constexpr, BC: tl.constexpr):
    """The words of BC counters in order: 4 BC of 32 bits, or 2 BC of 64."""
    key, counter = philox_state(key, counter, moved)
    at = tl.program_id(0).to(tl.int64) * BC + tl.arange(0, BC) + counter
    low = (at & 0xFFFFFFFF).to(tl.uint32)
    high = ((at >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(key, low, high, zero, zero)
    if WIDE:
        return tl.interleave(a.to(tl.uint64) | (b.to(tl.uint64) << 32), c.to(tl.uint64) | (d.to(tl.uint64) << 32))
    else:
        return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


@triton.jit
def _open(w, WIDE: tl.constexpr):
    """(0, 1]."""
    if WIDE:
        return w.to(tl.float64) * 5.421010862427522e-20 + 2.710505431213761e-20
    else:
        return w.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10


@triton.jit
def _centred(w, WIDE: tl.constexpr):
    """[-1/2, 1/2]."""
    if WIDE:
        return w.to(tl.int64).to(tl.float64) * 5.421010862427522e-20 + 2.710505431213761e-20
    else:
        signed = w.to(tl.int32, bitcast=True).to(tl.float32)
        return signed * 2.3283064365386963e-10 + 1.1641532182693481e-10


@triton.jit
def _draw(
    o,
    x,
    moved,
    key,
    counter,
    n,
    p,
    q,
    r,
    t,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    WIDE: tl.constexpr,
    BC: tl.constexpr,
):
    w = words(key, counter, moved, WIDE, BC)
    SIZE: tl.constexpr = BC * 2 if WIDE else BC * 4
    i = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = i < n
    whole = tl.program_id(0).to(tl.int64) * SIZE + SIZE <= n
    kind = o.dtype.element_ty

    if KIND == 0:  # uniform: first, width, last; r says whether it is the plain [0, 1)
        if WIDE:
            unit = (w >> (64 - BITS)).to(tl.float64) * (1.0 / (1 << BITS))
        else:
            unit = (w >> (32 - BITS)).to(tl.float32) * (1.0 / (1 << BITS))
        y = unit.to(kind)
        if r == 0:
            y = tl.minimum((unit * q + p).to(kind).to(unit.dtype), t.to(unit.dtype)).to(kind)
    elif KIND == 1 or KIND == 2:  # normal, log_normal: mean, std
        pairs = tl.reshape(w, (SIZE // 2, 2))
        first, second = tl.split(pairs)
        radius = m.f_sqrt(m.f_log(_open(first, WIDE)) * -2.0)
        if WIDE:
            angle = second.to(tl.float64) * 3.4061215800865545e-19
        else:
            angle = second.to(tl.float32) * 1.4629180792671596e-09
        z = tl.interleave(radius * m.f_cos(angle), radius * m.f_sin(angle)) * q + p
        y = (m.f_exp(z) if KIND == 2 else z).to(kind)
    elif KIND == 3:  # exponential: rate, floor
        y = m.f_div(tl.maximum(-m.f_log(_open(w, WIDE)), q), p).to(kind)
    elif KIND == 4:  # cauchy: median, sigma
        y = (m.f_tan(_centred(w, WIDE) * 3.141592653589793) * q + p).to(kind)
    elif KIND == 5:  # bernoulli: threshold in r
        y = tl.where(w.to(tl.int64) < r, 1, 0).to(kind)
    elif KIND == 6:  # integers: low in r, span in t (as an unsigned word, 0 for 2**64)
        drawn = tl.where(t == 0, w, tl.umulhi(w, t.to(tl.uint64)))
        y = (drawn.to(tl.int64) + r).to(kind)
        if kind.is_floating():  # first, last: what rounds out of the range stays inside
            y = tl.minimum(tl.maximum(y.to(p.dtype), p), q).to(kind)
    elif KIND == 8:  # bernoulli with the chances in x
        chance = guarded_load(x + i, inside, whole).to(tl.float64)
        y = tl.where(w.to(tl.float64) < m.f_ceil(chance * 4294967296.0), 1, 0).to(kind)
    elif KIND == 9:  # geometric: log(1 - p); integers end at r
        trials = tl.maximum(m.f_ceil(m.f_div(m.f_log(_open(w, WIDE)), p)), 1.0)
        if kind.is_floating():
            y = trials.to(kind)
        else:
            over = trials >= r.to(trials.dtype)
            y = tl.where(over, r, tl.where(over, 1.0, trials).to(tl.int64)).to(kind)
    else:  # dropout: threshold in r, scale in p
        v = guarded_load(x + i, inside, whole).to(tl.float32)
        y = (v * tl.where(w.to(tl.int64) < r, p, 0.0)).to(kind)

    guarded_store(o + i, y, inside, whole)


def _bits(dtype: dt.dtype) -> int:
    return int(ml_dtypes.finfo(dtype.np).nmant) + 1


def _program(kind: int, dtype: dt.dtype, wide: bool, source: dt.dtype | None = None) -> Program:
    number = "fp64" if wide and (dtype is dt.float64 or kind == GEOMETRIC) else "fp32"
    last = "i64" if kind == INTEGERS else number
    pointers = ["*" + TYPE[dtype], "*" + TYPE[source or dtype], "*i64"]
    types = [*pointers, "i64", "i64", "i64", number, number, "i64", last]
    bits = _bits(dtype) if kind == UNIFORM else 0
    return Program(_draw, types, {"KIND": kind, "BITS": bits, "WIDE": wide, "BC": COUNTERS}, **EXACT)


def _word(value: int) -> int:
    """64 bits as the signed number that a kernel is given."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def sampler(kind: int, spec: Spec, wide: bool, source: dt.dtype | None = None) -> Any:
    """launch(to, key, counter, p, q, r, t) for the elements of a spec. `source`: the dtype of what
    is read beside.
    """
    program = _program(kind, spec.dtype, wide, source)
    each = COUNTERS * (2 if wide else 4)
    n = spec.numel
    grid = (-(-n // each),)
    program.divisible = (5,) if n % 16 == 0 else ()

    def launch(to: View, key: int, counter: int, p: float, q: float, r: int, t: float, x: int = 0) -> None:
        if not n:
            return
        with contiguous_output(to) as rows:
            program(grid, rows.ptr, x or rows.ptr, shift(), _word(key), _word(counter), n, p, q, r, t)

    return launch


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


@cuda("_uniform", accepts=floats, into=False)
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


@cuda("_normal", accepts=floats)
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


@cuda("_log_normal", accepts=floats)
def log_normal(x: Slot, key: Slot, counter: Slot, mean: Slot, std: Slot) -> Run:
    draw = _normal(x.spec.dense_like(), LOG_NORMAL)
    return lambda outs, x, key, counter, mean, std: draw(outs[0], key, counter, mean, std)


@cuda("_exponential", accepts=floats)
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


@cuda("_bernoulli", accepts=lambda x, *rest: x.dtype in TYPE and floats(*rest))
def bernoulli(x: Slot, key: Slot, counter: Slot, p: Slot) -> Run:
    if isinstance(p.spec, Spec):
        return _bernoulli_each(x, p)
    launch = sampler(BERNOULLI, x.spec.dense_like(), False)

    def run(outs: list[View], x: View, key: int, counter: int, p: float) -> None:
        bounds.check_bernoulli(p)
        launch(outs[0], key, counter, 0.0, 0.0, threshold(p), 0.0)

    return run


def _bernoulli_each(x: Slot, p: Slot) -> Any:
    launch = sampler(CHANCES, x.spec.dense_like(), False, p.dtype)
    text = "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    check = required(p, "((v >= 0) & (v <= 1)) == 0", text)

    def run(outs: list[View], x: View, key: int, counter: int, p: View) -> None:
        check(p)
        each = expanded(p, x.spec.shape)
        launch(outs[0], key, counter, 0.0, 0.0, 0, 0.0, each.ptr)

    return run


@cuda("_cauchy", accepts=floats)
def cauchy(x: Slot, key: Slot, counter: Slot, median: Slot, sigma: Slot) -> Run:
    spec = x.spec.dense_like()
    launch = sampler(CAUCHY, spec, spec.dtype is dt.float64)

    def run(outs: list[View], x: View, key: int, counter: int, median: float, sigma: float) -> None:
        bounds.check_cauchy(sigma)
        launch(outs[0], key, counter, float(median), float(sigma), 0, 0.0)

    return run
