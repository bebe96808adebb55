"""Draws of random numbers by the rule of `common/sampling.py`: the words of counters, and elements made of them.

Into memory in row-major order a program makes the words of some counters, all of which it uses. Elsewhere memory is
read and written in whole lines, and each element, or where that is possible each four, makes the words of its counter.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec, contiguous_strides
from ...device import math as m
from ...device.guarded import guarded_load, guarded_store
from ...programs.generator_state import philox_state, shift
from ...programs.index_space import IndexSpace, cached_by_spec
from ...programs.program import Program, pointer
from ...runtime.views import View
from ..index import reach

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
def _normal(first, second, WIDE: tl.constexpr):
    """The two normal numbers of two words (Box and Muller 1958)."""
    radius = m.f_sqrt(m.f_log(_open(first, WIDE)) * -2.0)
    if WIDE:
        angle = second.to(tl.float64) * 3.4061215800865545e-19
    else:
        angle = second.to(tl.float32) * 1.4629180792671596e-09
    return radius * m.f_cos(angle), radius * m.f_sin(angle)


@triton.jit
def _element(w, x, p, q, r, t, KIND: tl.constexpr, BITS: tl.constexpr, WIDE: tl.constexpr, kind: tl.constexpr):
    """What a word makes of type `kind`; of a normal number, the word is that number already. `x`: what is there."""
    if KIND == 0:  # uniform: first, width, last; r says whether it is the plain [0, 1)
        if WIDE:
            unit = (w >> (64 - BITS)).to(tl.float64) * (1.0 / (1 << BITS))
        else:
            unit = (w >> (32 - BITS)).to(tl.float32) * (1.0 / (1 << BITS))
        y = unit.to(kind)
        if r == 0:
            y = tl.minimum((unit * q + p).to(kind).to(unit.dtype), t.to(unit.dtype)).to(kind)
    elif KIND == 1 or KIND == 2:  # normal, log_normal: mean, std
        z = w * q + p
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
    elif KIND == 8:  # bernoulli with the chances in x; what is none is told at the address r
        wrong = ((x >= 0) & (x <= 1)) == 0
        tl.store(r.to(tl.pointer_type(tl.int32)) + tl.zeros_like(wrong.to(tl.int32)), 1, mask=wrong)
        y = tl.where(w.to(tl.float64) < m.f_ceil(x.to(tl.float64) * 4294967296.0), 1, 0).to(kind)
    elif KIND == 9:  # geometric: log(1 - p); integers end at r
        trials = tl.maximum(m.f_ceil(m.f_div(m.f_log(_open(w, WIDE)), p)), 1.0)
        if kind.is_floating():
            y = trials.to(kind)
        else:
            over = trials >= r.to(trials.dtype)
            y = tl.where(over, r, tl.where(over, 1.0, trials).to(tl.int64)).to(kind)
    else:  # dropout: threshold in r, scale in p
        y = (x.to(p.dtype) * tl.where(w.to(tl.int64) < r, p, 0.0)).to(kind)
    return y


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
    if KIND == 1 or KIND == 2:
        first, second = tl.split(tl.reshape(w, (SIZE // 2, 2)))
        even, odd = _normal(first, second, WIDE)
        w = tl.interleave(even, odd)
    v = w
    if KIND == 7 or KIND == 8:
        v = guarded_load(x + i, inside, whole)
    guarded_store(o + i, _element(w, v, p, q, r, t, KIND, BITS, WIDE, o.dtype.element_ty), inside, whole)


@triton.jit
def counter_words(i, key, counter, moved, KIND: tl.constexpr, WIDE: tl.constexpr):
    """The four words of 32 bits, or two of 64, of the counter that element i belongs to; of a normal distribution the
    normal numbers.
    """
    key, counter = philox_state(key, counter, moved)
    at = i // (2 if WIDE else 4) + counter
    low = (at & 0xFFFFFFFF).to(tl.uint32)
    high = ((at >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(key, low, high, zero, zero)
    if WIDE:
        first, second = a.to(tl.uint64) | (b.to(tl.uint64) << 32), c.to(tl.uint64) | (d.to(tl.uint64) << 32)
        if KIND == 1 or KIND == 2:
            first, second = _normal(first, second, WIDE)
        return first, second
    else:
        return a, b, c, d


@triton.jit
def own_word(i, key, counter, moved, KIND: tl.constexpr, WIDE: tl.constexpr):
    """The word of element i, or of a normal distribution the normal number, made for it alone."""
    odd = (i & 1) == 1
    if WIDE:
        first, second = counter_words(i, key, counter, moved, KIND, WIDE)
    else:
        a, b, c, d = counter_words(i, key, counter, moved, KIND, WIDE)
        late = (i & 2) == 2
        first, second = tl.where(late, c, a), tl.where(late, d, b)
        if KIND == 1 or KIND == 2:
            first, second = _normal(first, second, WIDE)
    return tl.where(odd, second, first)


@triton.jit
def own_words(i, key, counter, moved, KIND: tl.constexpr):
    """The words of elements i to i + 3, which share a counter."""
    a, b, c, d = counter_words(i, key, counter, moved, KIND, False)
    if KIND == 1 or KIND == 2:
        first, second = _normal(a, b, False)
        third, fourth = _normal(c, d, False)
        return first, second, third, fourth
    else:
        return a, b, c, d


def _bits(dtype: dt.dtype) -> int:
    return int(ml_dtypes.finfo(dtype.np).nmant) + 1


def _types(kind: int, dtype: dt.dtype, wide: bool) -> tuple[str, str]:
    """The types of a distribution's parameters: of p and q, and of t."""
    number = "fp64" if dtype is dt.float64 or (wide and kind == GEOMETRIC) else "fp32"
    return number, "i64" if kind == INTEGERS else number


def _program(kind: int, dtype: dt.dtype, wide: bool, source: dt.dtype | None = None) -> Program:
    number, last = _types(kind, dtype, wide)
    pointers = [pointer(dtype), pointer(source or dtype), "*i64"]
    types = [*pointers, "i64", "i64", "i64", number, number, "i64", last]
    bits = _bits(dtype) if kind == UNIFORM else 0
    return Program(_draw, types, {"KIND": kind, "BITS": bits, "WIDE": wide, "BC": COUNTERS}, **EXACT)


def _anywhere(kind: int, out: Spec, wide: bool, source: Spec | None) -> Any:
    """The same for memory of any layout, and `source` of another one. Where memory goes across the elements of a
    counter, these stay together.
    """
    number, last = _types(kind, out.dtype, wide)
    each, end = 2 if wide else 4, out.ndim - 1
    inner = min((s for n, s in zip(out.shape, out.strides, strict=True) if n > 1), default=0)
    together = out.ndim > 1 and out.shape[end] % each == 0 and out.strides[end] != inner
    specs = [out.strides, contiguous_strides(out.shape)] + ([] if source is None else [source.strides])
    shape, strides = out.shape, [tuple(s) for s in specs]
    if together:
        shape = (*shape[:end], shape[end] // each)
        strides = [(*s[:end], s[end] * each) for s in strides]
    space = IndexSpace(shape, strides, reach=max(reach(v) for v in (out, source or out)))
    fixed = f"{kind}, {_bits(out.dtype) if kind == UNIFORM else 0}, {wide}"
    given = "i, key, counter, moved"
    lines = [f"i = ({space.offsets[1] or '0'} + r * 0 + n * 0).to(tl.int64)"]
    if not together:
        lines.append(f"w0 = own_word({given}, {kind}, {wide})")
    elif wide:
        lines.append(f"w0, w1 = counter_words({given}, {kind}, {wide})")
    else:
        lines.append(f"w0, w1, w2, w3 = own_words({given}, {kind})")
    for k in range(each if together else 1):
        value = f"w{k}"
        if source is not None:
            value = f"v{k}"
            beside = space.arg(f"beside{k}", k * source.strides[end]) if k else ""
            lines.append(f"v{k} = {space.load('x', 2, '' if beside == '0' else beside)}")
        made = f"element(w{k}, {value}, first, second, third, fourth, {fixed}, o.dtype.element_ty)"
        lines.append(space.store(made, extra=space.arg(f"step{k}", k * out.strides[end]) if k else ""))
    types = {"o": pointer(out.dtype), "x": pointer((source or out).dtype), "moved": "*i64", "key": "i64"}
    types |= {"counter": "i64", "first": number, "second": number, "third": "i64", "fourth": last}
    known = {"own_word": own_word, "own_words": own_words, "counter_words": counter_words, "element": _element}
    return space.kernel("draw_anywhere", types, lines, known, **EXACT)


def _word(value: int) -> int:
    """64 bits as the signed number that a kernel is given."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def sampler(kind: int, spec: Spec, wide: bool, source: Spec | None = None) -> Any:
    """launch(to, key, counter, p, q, r, t) for the elements of a spec, into memory of any strides. `source`: what is
    read beside, of the same shape.
    """
    program = _program(kind, spec.dtype, wide, None if source is None else source.dtype)
    each = COUNTERS * (2 if wide else 4)
    n = spec.numel
    grid = (-(-n // each),)
    program.divisible = (5,) if n % 16 == 0 else ()
    along = source is None or source.contiguous
    elsewhere = cached_by_spec(lambda out: _anywhere(kind, out, wide, source))

    def launch(to: View, key: int, counter: int, p: float, q: float, r: int, t: float, x: int = 0) -> None:
        if not n:
            return
        if key >> 63:
            key -= 1 << 64
        if counter >> 63:
            counter -= 1 << 64
        if along and to.spec.contiguous:
            program(grid, to.ptr, x or to.ptr, shift(), key, counter, n, p, q, r, t)
        else:
            elsewhere(to.spec)(to.ptr, x or to.ptr, shift(), key, counter, p, q, r, t)

    return launch
