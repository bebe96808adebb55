"""Attention with online softmax, and its gradients: a workgroup per row, keys 64 at a time.

No weights are kept: the gradients compute them again from the log-sum-exp.
"""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import broadcast_strides
from ...common.attention import How
from ...common.slot import Slot
from ..rows import Run, kind_of, webgpu
from ..runtime.views import View, empty
from ..shaders import philox, types
from ..shaders.copy import copy_view
from ..shaders.layouts import contiguous
from ..shaders.program import Program
from ..shaders.rows import Target, shared

_SIZES = [(n, "I") for n in ("B", "H", "T", "S", "D", "E", "share")]
_HOW = [("scale", "f"), ("offset", "i"), ("below", "I"), ("kept", "f")]


def _strides(*names: str) -> list[tuple[str, str]]:
    return [(f"{n}{d}", "I") for n in names for d in range(4)]


def _score(mask: dt.dtype | None, is_causal: bool) -> str:
    """WGSL of the score of row t and column s from their product `dot`."""
    text = "fn scored(dot: f32, b: u32, h: u32, t: u32, s: u32) -> f32 {\n"
    if is_causal:
        text += "  if (i32(s) > i32(t) + P.offset) { return -f_inf(); }\n"
    if mask is not None:
        at = "m_at(b * P.m0 + h * P.m1 + t * P.m2 + s * P.m3)"
        text += f"  if ({at} == 0u) {{ return -f_inf(); }}\n" if mask is dt.bool_ else f"  return dot + {at};\n"
        if mask is not dt.bool_:
            return text + "}\n"
    return text + "  return dot;\n}\n"


def _kept(dropout: bool) -> str:
    if not dropout:
        return "fn kept(b: u32, h: u32, t: u32, s: u32) -> f32 { return 1.0; }\n"
    return philox.HEAD + (
        "fn kept(b: u32, h: u32, t: u32, s: u32) -> f32 {\n"
        "  return select(0.0, P.kept, random_word(((b * P.H + h) * P.T + t) * P.S + s) < P.below);\n}\n"
    )


_ROW = """  let t = row % P.T;
  let h = (row / P.T) % P.H;
  let b = row / (P.T * P.H);
  if (b >= P.B) { return; }
  let g = h / P.share;
  let qb = b * P.q0 + h * P.q1 + t * P.q2;
  let kb = b * P.k0 + g * P.k1;
  let vb = b * P.v0 + g * P.v1;
  for (var d = lane; d < P.D; d += 64u) { q_row[d] = q_at(qb + d * P.q3) * P.scale; }
"""


def _end(is_causal: bool) -> str:
    """How many columns a row may see."""
    return "u32(clamp(i32(t) + P.offset + 1, 0, i32(P.S)))" if is_causal else "P.S"


def _forward(q: Slot, k: Slot, v: Slot, mask: Slot | None, out: dt.dtype, lse: dt.dtype, how: How) -> Program:
    D, E = q.shape[-1], v.shape[-1]
    each = max(-(-E // 64), 1)
    body = f"""{_ROW}  workgroupBarrier();
  var m = -f_inf();
  var l = 0.0;
  var acc: array<f32, {each}>;
  let end = {_end(how.is_causal)};
  for (var s0 = 0u; s0 < end; s0 += 64u) {{
    let s = s0 + lane;
    var score = -f_inf();
    if (s < end) {{
      var dot = 0.0;
      let at = kb + s * P.k2;
      for (var d = 0u; d < P.D; d++) {{ dot += q_row[d] * k_at(at + d * P.k3); }}
      score = scored(dot, b, h, t, s);
    }}
    let top = f_maximum(m, all_max(lane, score));
    var p = 0.0;
    if (!f_isneginf(score)) {{ p = f_exp(score - top); }}
    var shrink = 0.0;
    if (!f_isneginf(m)) {{ shrink = f_exp(m - top); }}
    weights[lane] = p;
    if (s < end) {{ weights[lane] = p * kept(b, h, t, s); }}
    l = l * shrink + all_sum(lane, p);
    let count = min(64u, end - s0);
    for (var r = 0u; r < {each}u; r++) {{
      let d = lane + r * 64u;
      if (d < P.E) {{
        var a = acc[r] * shrink;
        for (var j = 0u; j < count; j++) {{ a += weights[j] * v_at(vb + (s0 + j) * P.v2 + d * P.v3); }}
        acc[r] = a;
      }}
    }}
    m = top;
    workgroupBarrier();
  }}
  for (var r = 0u; r < {each}u; r++) {{
    let d = lane + r * 64u;
    if (d < P.E) {{ y_set(row * P.E + d, select(acc[r] / l, 0.0, l == 0.0)); }}
  }}
  if (lane == 0u) {{
    if (l == 0.0) {{ lse_set(row, -f_inf()); }} else {{ lse_set(row, m + f_log(l)); }}
  }}"""
    head = f"var<workgroup> q_row: array<f32, {max(D, 1)}>;\nvar<workgroup> weights: array<f32, 64>;\n" + shared(64)
    head += _score(kind_of(mask), how.is_causal) + _kept(how.dropout_p > 0)
    operands = [("y", out, "w"), ("lse", lse, "w"), ("q", q.dtype, "r"), ("k", k.dtype, "r"), ("v", v.dtype, "r")]
    operands += [("m", mask.dtype, "r")] if mask else []
    return Program("attention", operands, _numbers(mask is not None), body, head=head)


def _numbers(mask: bool) -> list[tuple[str, str]]:
    return [*_SIZES, *_HOW, *_strides("q", "k", "v", *(["m"] if mask else [])), *philox.NUMBERS]


class Given:
    """The numbers that kernels of one plan are given."""

    def __init__(self, q: Slot, k: Slot, v: Slot, mask: Slot | None, how: How) -> None:
        self.b, self.h, self.t, d = q.shape
        self.hk, self.s = k.shape[1], k.shape[2]
        self.how = how
        self.sizes = (self.b, self.h, self.t, self.s, d, v.shape[3], self.h // self.hk)
        self.strides = [*q.strides, *k.strides, *v.strides]
        if mask is not None:
            self.strides += broadcast_strides(mask.shape, mask.strides, (self.b, self.h, self.t, self.s))

    def __call__(self, seed: Any, counter: Any, offset: Any) -> tuple[Any, ...]:
        p = self.how.dropout_p
        below = philox.threshold(1 - p) if p < 1 else 0
        kept = 1 / (1 - p) if p < 1 else 0.0
        moved = max(min(int(offset), 1 << 30), -(1 << 30))
        draw = philox.values(int(seed), int(counter)) if p else (0,) * 6
        return (*self.sizes, float(self.how.scale), moved, below, kept, *self.strides, *draw)


def _served(q: Slot, k: Slot, v: Slot, mask: Slot | None) -> bool:
    if not types.floats(q, k, v) or not q.numel or not k.numel or not v.numel or q.shape[-1] > 2048:
        return False
    return mask is None or mask.dtype is dt.bool_ or mask.dtype in types.FLOATS


@webgpu("_attention")
def attention(q: Slot, k: Slot, v: Slot, mask: Slot | None, *given: Any) -> Run:
    how = How(*given)
    if not _served(q, k, v, mask):
        return None
    numbers = Given(q, k, v, mask, how)
    made: dict[Any, Program] = {}

    def run(
        outs: list[View], q: View, k: View, v: View, mask: View | None, seed: int, counter: int, offset: int
    ) -> None:
        y, lse = Target(outs[0]), Target(outs[1])
        key = (outs[0].spec.dtype, outs[1].spec.dtype)
        if key not in made:
            made[key] = _forward(q_slot, k_slot, v_slot, mask_slot, *key, how)
        views = [y.view, lse.view, q, k, v, *([] if mask is None else [mask])]
        made[key](numbers.b * numbers.h * numbers.t, views, *numbers(seed, counter, offset))
        y.done()
        lse.done()

    q_slot, k_slot, v_slot, mask_slot = q, k, v, mask
    return run


def _by_queries(q: Slot, k: Slot, v: Slot, mask: Slot | None, g: dt.dtype, how: How) -> Program:
    D = q.shape[-1]
    each = max(-(-D // 64), 1)
    body = f"""{_ROW}  var part = 0.0;
  for (var d = lane; d < P.E; d += 64u) {{
    g_row[d] = g_at(row * P.E + d);
    part += g_row[d] * y_at(row * P.E + d);
  }}
  let mean = all_sum(lane, part) - gl_at(row);
  let lse = lse_at(row);
  if (lane == 0u) {{ mean_set(row, mean); }}
  var acc: array<f32, {each}>;
  let end = {_end(how.is_causal)};
  for (var s0 = 0u; s0 < end; s0 += 64u) {{
    let s = s0 + lane;
    var ds = 0.0;
    if (s < end) {{
      var dot = 0.0;
      for (var d = 0u; d < P.D; d++) {{ dot += q_row[d] * k_at(kb + s * P.k2 + d * P.k3); }}
      let score = scored(dot, b, h, t, s);
      if (!f_isneginf(score)) {{
        var by = 0.0;
        for (var d = 0u; d < P.E; d++) {{ by += g_row[d] * v_at(vb + s * P.v2 + d * P.v3); }}
        ds = f_exp(score - lse) * (by * kept(b, h, t, s) - mean);
      }}
    }}
    weights[lane] = ds;
    workgroupBarrier();
    let count = min(64u, end - s0);
    for (var r = 0u; r < {each}u; r++) {{
      let d = lane + r * 64u;
      if (d < P.D) {{
        for (var j = 0u; j < count; j++) {{ acc[r] += weights[j] * k_at(kb + (s0 + j) * P.k2 + d * P.k3); }}
      }}
    }}
    workgroupBarrier();
  }}
  for (var r = 0u; r < {each}u; r++) {{
    let d = lane + r * 64u;
    if (d < P.D) {{ dq_set(row * P.D + d, acc[r] * P.scale); }}
  }}"""
    f32 = dt.float32
    head = f"var<workgroup> q_row: array<f32, {D}>;\nvar<workgroup> g_row: array<f32, {v.shape[-1]}>;\n"
    head += "var<workgroup> weights: array<f32, 64>;\n" + shared(64)
    head += _score(kind_of(mask), how.is_causal) + _kept(how.dropout_p > 0)
    operands = [("dq", f32, "w"), ("mean", f32, "w"), ("g", g, "r"), ("gl", f32, "r"), ("q", q.dtype, "r")]
    operands += [("k", k.dtype, "r"), ("v", v.dtype, "r"), ("y", q.dtype, "r"), ("lse", f32, "r")]
    operands += [("m", mask.dtype, "r")] if mask else []
    return Program("attention_by_queries", operands, _numbers(mask is not None), body, head=head)


def _by_keys(q: Slot, k: Slot, v: Slot, mask: Slot | None, g: dt.dtype, how: How) -> Program:
    D, E = q.shape[-1], v.shape[-1]
    each, more = max(-(-D // 64), 1), max(-(-E // 64), 1)
    body = f"""  let s = row % P.S;
  let group = (row / P.S) % (P.H / P.share);
  let b = row / (P.S * (P.H / P.share));
  if (b >= P.B) {{ return; }}
  let kb = b * P.k0 + group * P.k1 + s * P.k2;
  let vb = b * P.v0 + group * P.v1 + s * P.v2;
  for (var d = lane; d < P.D; d += 64u) {{ k_row[d] = k_at(kb + d * P.k3) * P.scale; }}
  for (var d = lane; d < P.E; d += 64u) {{ v_row[d] = v_at(vb + d * P.v3); }}
  workgroupBarrier();
  var dk: array<f32, {each}>;
  var dv: array<f32, {more}>;
  for (var i = 0u; i < P.share; i++) {{
    let h = group * P.share + i;
    let first = (b * P.H + h) * P.T;
    let qb = b * P.q0 + h * P.q1;
    for (var t0 = 0u; t0 < P.T; t0 += 64u) {{
      let t = t0 + lane;
      var ds = 0.0;
      var p = 0.0;
      if (t < P.T) {{
        var dot = 0.0;
        for (var d = 0u; d < P.D; d++) {{ dot += k_row[d] * q_at(qb + t * P.q2 + d * P.q3); }}
        let score = scored(dot, b, h, t, s);
        if (!f_isneginf(score)) {{
          var by = 0.0;
          for (var d = 0u; d < P.E; d++) {{ by += v_row[d] * g_at((first + t) * P.E + d); }}
          p = f_exp(score - lse_at(first + t));
          let n = kept(b, h, t, s);
          ds = p * (by * n - mean_at(first + t));
          p = p * n;
        }}
      }}
      weights[lane] = vec2<f32>(ds, p);
      workgroupBarrier();
      let count = min(64u, P.T - t0);
      for (var r = 0u; r < {each}u; r++) {{
        let d = lane + r * 64u;
        if (d < P.D) {{
          for (var j = 0u; j < count; j++) {{ dk[r] += weights[j].x * q_at(qb + (t0 + j) * P.q2 + d * P.q3); }}
        }}
      }}
      for (var r = 0u; r < {more}u; r++) {{
        let d = lane + r * 64u;
        if (d < P.E) {{
          for (var j = 0u; j < count; j++) {{ dv[r] += weights[j].y * g_at((first + t0 + j) * P.E + d); }}
        }}
      }}
      workgroupBarrier();
    }}
  }}
  for (var r = 0u; r < {each}u; r++) {{
    let d = lane + r * 64u;
    if (d < P.D) {{ dk_set(row * P.D + d, dk[r] * P.scale); }}
  }}
  for (var r = 0u; r < {more}u; r++) {{
    let d = lane + r * 64u;
    if (d < P.E) {{ dv_set(row * P.E + d, dv[r]); }}
  }}"""
    f32 = dt.float32
    head = f"var<workgroup> k_row: array<f32, {D}>;\nvar<workgroup> v_row: array<f32, {E}>;\n"
    head += "var<workgroup> weights: array<vec2<f32>, 64>;\n"
    head += _score(kind_of(mask), how.is_causal) + _kept(how.dropout_p > 0)
    operands = [("dk", f32, "w"), ("dv", f32, "w"), ("mean", f32, "r"), ("g", g, "r"), ("q", q.dtype, "r")]
    operands += [("k", k.dtype, "r"), ("v", v.dtype, "r"), ("lse", f32, "r")]
    operands += [("m", mask.dtype, "r")] if mask else []
    return Program("attention_by_keys", operands, _numbers(mask is not None), body, head=head)


@webgpu("_attention_backward")
def attention_backward(
    g: Slot, g_lse: Slot, q: Slot, k: Slot, v: Slot, mask: Slot | None, out: Slot, lse: Slot, *given: Any
) -> Run:
    how = How(*given)
    if not _served(q, k, v, mask) or how.by_mask or not types.floats(g, out) or q.shape[-1] + v.shape[-1] > 2048:
        return None
    numbers = Given(q, k, v, mask, how)
    by_queries, by_keys = _by_queries(q, k, v, mask, g.dtype, how), _by_keys(q, k, v, mask, g.dtype, how)

    def run(
        outs: list[View],
        g: View,
        g_lse: View,
        q: View,
        k: View,
        v: View,
        mask: View | None,
        out: View,
        lse: View,
        seed: int,
        counter: int,
        offset: int,
    ) -> None:
        def wide(x: View) -> View:
            if x.spec.dtype is dt.float32 and x.spec.contiguous:
                return x
            made = empty(x.spec.like(x.spec.shape, dtype=dt.float32))
            copy_view(made, x)
            return made

        values = numbers(seed, counter, offset)
        made = [empty(o.spec.like(o.spec.shape, dtype=dt.float32)) for o in outs[:3]]
        g, out, g_lse, lse = contiguous(g), contiguous(out), wide(g_lse), wide(lse)
        mean = empty(lse.spec)
        more = [] if mask is None else [mask]
        rows = numbers.b * numbers.h * numbers.t
        by_queries(rows, [made[0], mean, g, g_lse, q, k, v, out, lse, *more], *values)
        by_keys(numbers.b * numbers.hk * numbers.s, [made[1], made[2], mean, g, q, k, v, lse, *more], *values)
        for o, m in zip(outs, made, strict=False):
            copy_view(o, m)

    return run
