"""Rotary position embedding: a thread per element, which reads its partner too."""

from __future__ import annotations

from typing import Any

from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import Walk
from ..shaders.program import Program, groups_for


@webgpu("_rope", accepts=types.floats)
def rope(x: Slot, cos: Slot, sin: Slot, offset: Slot, interleaved: bool) -> Run:
    if not x.numel:
        return lambda outs, *values: None
    lead, (length, width) = x.shape[:-2], x.shape[-2:]
    angles = cos.shape[-1]
    if cos.shape != sin.shape or cos.strides != sin.strides or len(cos.shape) > x.ndim:
        return None
    # Tables broadcast over the leading dimensions, and are read from a row on.
    missing = len(lead) - (cos.ndim - 2)
    shape = (*[1] * missing, *cos.shape[:-2])
    steps = (*[0] * missing, *cos.strides[:-2])
    tables = tuple(0 if n == 1 else s for n, s in zip(shape, steps, strict=True))
    made: dict[Any, tuple[Program, Walk]] = {}
    down, right = cos.strides[-2:]

    def run(outs: list[View], x: View, cos: View, sin: View, offset: int) -> None:
        spec = outs[0].spec
        if spec not in made:
            strides = [spec.strides[:-2], x.spec.strides[:-2], tables]
            walk = Walk("k", lead, strides)
            pair = "f / 2u" if interleaved else f"f % {angles}u"
            other = "f + 1u - 2u * (f % 2u)" if interleaved else f"select(f - {angles}u, f + {angles}u, f < {angles}u)"
            first = "f % 2u == 0u" if interleaved else f"f < {angles}u"
            body = f"""  if (index < P.n) {{
    let f = index % P.w;
    let t = (index / P.w) % P.t;
{walk.lines("(index / (P.w * P.t))")}    let own = x_at(k1 + t * P.xt + f * P.xf);
    var v = own;
    if (f < {2 * angles}u) {{
      let at = k2 + (P.first + t) * P.down + ({pair}) * P.right;
      let o = x_at(k1 + t * P.xt + ({other}) * P.xf);
      let c = cos_at(at);
      let s = sin_at(at);
      v = select(own * c + o * s, own * c - o * s, {first});
    }}
    y_set(k0 + t * P.yt + f * P.yf, v);
  }}"""
            operands = [("y", spec.dtype, "w"), ("x", x.spec.dtype, "r"), ("cos", cos.spec.dtype, "r")]
            operands.append(("sin", sin.spec.dtype, "r"))
            names = ("n", "w", "t", "xt", "xf", "yt", "yf", "first", "down", "right")
            made[spec] = Program("rope", operands, [*[(k, "I") for k in names], *walk.numbers], body), walk
        program, walk = made[spec]
        n = spec.numel
        given = (n, width, length, *x.spec.strides[-2:], *spec.strides[-2:], int(offset), down, right)
        program(groups_for(n), [outs[0], x, cos, sin], *given, *walk.values)

    return run
