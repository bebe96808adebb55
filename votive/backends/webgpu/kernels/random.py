"""Random numbers into memory: the words of every device, made into numbers by the rules in `common/sampling.py`.

What WGSL cannot give to the last digit (draws that take 64 bits, such as those of doubles) is drawn on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import device
from ....core.layout import Spec
from ...common import sampling
from ...common import sampling_bounds as bounds
from ...common.slot import Slot
from .. import cpu_fallback
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View
from ..shaders import philox, types
from ..shaders.layouts import Walk, strides_as
from ..shaders.program import Program, groups_for

Ints = tuple[int, ...]
_UNIT = """fn open_unit(w: u32) -> f32 { return f_from_u(w) * 2.3283064365386963e-10 + 1.1641532182693481e-10; }
"""
_NORMAL = (
    _UNIT
    + """fn standard_normal(i: u32) -> f32 {
  let four = random_four(i >> 2u);
  let late = (i & 2u) != 0u;
  let a = select(four.x, four.z, late);
  let b = select(four.y, four.w, late);
  let radius = sqrt(f_log(open_unit(a)) * -2.0);
  let angle = f_from_u(b) * 1.4629180792671596e-9;
  return radius * select(f_cos(angle), f_sin(angle), (i & 1u) != 0u);
}
"""
)
# Values of element i by distribution, with the parameters p, q and (of uniform) the last value.
_TEXTS = {
    "uniform": "min(round_to(f32(random_word(i) >> P.shift) * P.unit * P.q + P.p), P.last)",
    "normal": "standard_normal(i) * P.q + P.p",
    "log_normal": "f_exp(standard_normal(i) * P.q + P.p)",
    "exponential": "max(-f_log(open_unit(random_word(i))), P.last) / P.p",
    "bernoulli": "select(0.0, 1.0, P.shift != 0u || random_word(i) < P.below)",
    "integers": "below_span(i)",
}
_INTEGERS = """fn below_span(i: u32) -> vec2<u32> {
  // floor(bits * span / 2^64) from the low end, for a span of one word.
  let four = random_four(i >> 1u);
  let low = select(four.x, four.z, (i & 1u) != 0u);
  let high = select(four.y, four.w, (i & 1u) != 0u);
  let a = l_wide(low, P.below).y;
  let b = l_wide(high, P.below);
  return l_add(vec2<u32>(b.y + select(0u, 1u, b.x + a < a), 0u), vec2<u32>(P.from0, P.from1));
}
"""
_FIELDS = [("n", "I"), ("p", "f"), ("q", "f"), ("last", "f"), ("unit", "f")]
_FIELDS += [("shift", "I"), ("below", "I"), ("from0", "I"), ("from1", "I"), *philox.NUMBERS]
_programs: dict[Any, tuple[Program, Walk]] = {}


def _rounded(d: dt.dtype) -> str:
    text = {dt.float16: "h_widened(h_narrowed(v))", dt.bfloat16: "bitcast<f32>(b_narrowed(v) << 16u)"}.get(d, "v")
    return f"fn round_to(v: f32) -> f32 {{ return {text}; }}\n"


def _draw(kind: str, to: View, key: int, counter: int, **given: Any) -> None:
    """Fill memory of any layout: element i, counted row-major, is that of every device."""
    spec = to.spec
    if not spec.numel:
        return
    if (kind, spec) not in _programs:
        if len(_programs) > 1024:
            _programs.clear()
        walk = Walk("k", spec.shape, [spec.strides])
        head = philox.HEAD + {"normal": _NORMAL, "log_normal": _NORMAL, "exponential": _UNIT}.get(kind, "")
        head += _rounded(spec.dtype) if kind == "uniform" else _INTEGERS if kind == "integers" else ""
        have = dt.int64 if kind == "integers" else dt.float32
        value = _TEXTS[kind] if spec.dtype in types.FLOATS and have is dt.float32 else types.cast("v", have, spec.dtype)
        body = f"""  if (index < P.n) {{
    let i = index;
    let v = {_TEXTS[kind]};
{walk.lines("index")}    y_set(k0, {"v" if value == _TEXTS[kind] else value});
  }}"""
        made = Program(kind, [("y", spec.dtype, "w")], [*_FIELDS, *walk.numbers], body, head=head)
        _programs[kind, spec] = made, walk
    program, walk = _programs[kind, spec]
    names = ("p", "q", "last", "unit", "shift", "below", "from0", "from1")
    defaults = (0.0, 1.0, 0.0, 1.0, 0, 0, 0, 0)
    values = [given.get(n, d) for n, d in zip(names, defaults, strict=True)]
    program(groups_for(spec.numel), [to], spec.numel, *values, *philox.values(int(key), int(counter)), *walk.values)


def _uniform(to: View, key: int, counter: int, low: float, high: float) -> None:
    kind = to.spec.dtype.np
    bounds.check_uniform(low, high, kind)
    first, end = kind.type(low), kind.type(high)
    last, bits = np.nextafter(end, first), bounds.digits(kind)
    if (low, high) == (0, 1):
        last = np.float32(1)
    width = np.float32(end) - np.float32(first)
    _draw(
        "uniform", to, key, counter, p=float(first), q=float(width), last=float(last), unit=2.0**-bits, shift=32 - bits
    )


def _normal(to: View, key: int, counter: int, mean: Any, std: Any) -> None:
    bounds.check_normal(std)
    _draw("normal", to, key, counter, p=float(mean), q=float(std))


def _integers(to: View, key: int, counter: int, low: int, high: int | None) -> None:
    kind = to.spec.dtype.np
    first, end = bounds.random_range(int(low), None if high is None else int(high), kind)
    if end - first >= 1 << 32 or to.spec.dtype not in types.INTEGERS | {dt.bool_}:
        cpu_fallback.store(sampling.random(key, counter, to.spec.shape, first, end, kind), to)
        return
    bounds.check_range(first, end, kind)
    word = first % (1 << 64)
    _draw("integers", to, key, counter, below=end - first, from0=word & 0xFFFFFFFF, from1=word >> 32)


def _exponential(to: View, key: int, counter: int, lambd: float) -> None:
    bounds.check_exponential(lambd)
    floor = 2.0**-24 if to.spec.dtype is dt.float16 else 2.0**-26
    _draw("exponential", to, key, counter, p=float(lambd), last=floor)


def _log_normal(to: View, key: int, counter: int, mean: float, std: float) -> None:
    bounds.check_log_normal(std)
    _draw("log_normal", to, key, counter, p=float(mean), q=float(std))


def _register(name: str, draw: Callable[..., None], fresh: bool) -> None:
    def allowed(d: dt.dtype) -> bool:
        return d in types.FLOATS or (name == "random" and d in types.NUMBERS)

    @webgpu(f"_{name}", into=True)
    def into(x: Slot, key: Slot, counter: Slot, *parameters: Slot | None) -> Run:
        if not allowed(x.dtype) or any(p is not None and p.spec.__class__ is Spec for p in parameters):
            return None
        return lambda outs, x, *given: draw(outs[0], *given)

    if fresh:

        @webgpu(f"_new_{name}")
        def new(size: Ints, dtype: dt.dtype, device: device, *rest: Slot) -> Run:
            return (lambda outs, *given: draw(outs[0], *given)) if allowed(dtype) else None


_register("uniform", _uniform, True)
_register("normal", _normal, True)
_register("random", _integers, True)
_register("exponential", _exponential, False)
_register("log_normal", _log_normal, False)

_WRONG = message(RuntimeError, "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


@webgpu("_bernoulli", into=True)
def bernoulli(x: Slot, key: Slot, counter: Slot, p: Slot) -> Run:
    if x.dtype not in types.NUMBERS:
        return None
    if p.spec.__class__ is not Spec:

        def run(outs: list[View], x: View, key: int, counter: int, p: float) -> None:
            bounds.check_bernoulli(p)
            below = math.ceil(float(p) * 2.0**32)
            _draw("bernoulli", outs[0], key, counter, below=min(below, 0xFFFFFFFF), shift=int(below >> 32 > 0))

        return run
    if p.dtype not in types.FLOATS or not p.ndim:
        return None

    def each(outs: list[View], x: View, key: int, counter: int, p: View) -> None:
        spec = outs[0].spec
        if not spec.numel:
            return
        known = ("bernoulli", spec, p.spec)
        if known not in _programs:
            walk = Walk("k", spec.shape, [spec.strides, strides_as(p.spec, spec.shape)])
            value = types.cast("v", dt.bool_, spec.dtype)
            body = f"""  if (index < P.n) {{
{walk.lines("index")}    let p = p_at(k1);
    if (!(p >= 0.0 && p <= 1.0)) {{ fail({_WRONG}u, 0, 0u); return; }}
    let below = ceil(p * 4294967296.0);
    var v = 1u;
    if (below < 4294967296.0) {{ v = select(0u, 1u, random_word(index) < u32(below)); }}
    y_set(k0, {value});
  }}"""
            operands = [("y", spec.dtype, "w"), ("p", p.spec.dtype, "r")]
            fields = [("n", "I"), *philox.NUMBERS, *walk.numbers]
            _programs[known] = Program("bernoulli", operands, fields, body, head=philox.HEAD, faults=True), walk
        program, walk = _programs[known]
        numbers = philox.values(int(key), int(counter))
        program(groups_for(spec.numel), [outs[0], p], spec.numel, *numbers, *walk.values)

    return each
