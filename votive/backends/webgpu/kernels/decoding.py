"""What one token of a decoder takes, in few dispatches: a norm with the products behind it, a product with the sum
behind it, and heads that are rotated, kept and attended with.
"""

from __future__ import annotations

from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import contiguous, reshaped
from ..shaders.matmul import Product, Side
from ..shaders.program import Program
from ..shaders.rows import shared
from .index import place
from .matmul_activation import rounded

# Rows that the joined products take.
_MOST = 8


@webgpu("_norm_linear")
def norm_linear(x: Slot, norm: Slot, eps: float, weights: tuple[Slot, ...], gated: bool) -> Run:
    k = x.shape[-1]
    rows = x.numel // k if k else 0
    if not types.floats(x, norm, *weights) or not 0 < rows <= _MOST or len(weights) > 3:
        return None
    if any(w.ndim != 2 or w.strides[1] != 1 for w in weights):
        return None
    sides = 2 if gated else 1
    names = [f"w{i}" for i in range(len(weights))]
    # A column belongs to one of the weights, or with a gate to both.
    reads = "fn weight_at(n: u32, k: u32) -> f32 {\n  var c = n;\n"
    for name, w in zip(names, weights, strict=True):
        inside = f"return {name}_at(c * P.d{name} + k);"
        reads += f"  if (c < {w.shape[0]}u) {{ {inside} }}\n  c -= {w.shape[0]}u;\n"
    reads += "  return 0.0;\n}\n"
    columns = weights[0].shape[0] if gated else sum(w.shape[0] for w in weights)
    y = rounded("x_at(i * P.K + k) * scales[i] * norm_at(k)", x.dtype)
    loads = " ".join(
        f"let y{i} = {y.replace('(i ', f'({i}u ').replace('[i]', f'[{i}]')}; "
        + " ".join(f"s{i}_{g} += y{i} * v{g};" for g in range(sides))
        for i in range(rows)
    )
    values = " ".join(f"let v{g} = weight_at(n + {g * columns}u, k);" for g in range(sides))
    puts = " ".join(
        f"parts[{(i * sides + g) * 64}u + c * 16u + q] = s{i}_{g};" for i in range(rows) for g in range(sides)
    )
    total = "\n".join(
        f"    var t{g} = 0.0;\n"
        f"    for (var i = 0u; i < 16u; i++) {{ t{g} += parts[(q * {sides}u + {g}u) * 64u + c * 16u + i]; }}"
        for g in range(sides)
    )
    result = "t0"
    if gated:
        gate, up = (rounded(f"t{g}", x.dtype) for g in range(2))
        result = f"{rounded(f'({gate}) * f_sigmoid({gate})', x.dtype)} * {up}"
    body = f"""  for (var i = 0u; i < {rows}u; i++) {{
    var a = 0.0;
    for (var k = lane; k < P.K; k += 64u) {{ let v = x_at(i * P.K + k); a += v * v; }}
    a = all_sum(lane, a);
    if (lane == 0u) {{ scales[i] = f_rsqrt(a / f32(P.K) + P.eps); }}
  }}
  workgroupBarrier();
  let q = lane % 16u;
  let c = lane / 16u;
  let n = row * 4u + c;
  {" ".join(f"var s{i}_{g} = 0.0;" for i in range(rows) for g in range(sides))}
  if (n < P.N) {{
    for (var k = q; k < P.K; k += 16u) {{ {values} {loads} }}
  }}
  {puts}
  workgroupBarrier();
  if (q < {rows}u && n < P.N) {{
{total}
    y_set(q * P.N + n, {result});
  }}"""
    head = shared(64) + f"var<workgroup> scales: array<f32, {rows}>;\n"
    head += f"var<workgroup> parts: array<f32, {64 * rows * sides}>;\n" + reads
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), ("norm", norm.dtype, "r")]
    operands += [(n, w.dtype, "r") for n, w in zip(names, weights, strict=True)]
    numbers = [("N", "I"), ("K", "I"), ("eps", "f"), *[(f"d{n}", "I") for n in names]]
    program = Program("norm_linear", operands, numbers, body, head=head)
    steps = [w.strides[0] for w in weights]

    def run(outs: list[View], x: View, norm: View, weights: list[View]) -> None:
        program(-(-columns // 4), [outs[0], contiguous(x), contiguous(norm), *weights], columns, k, float(eps), *steps)

    return run


@webgpu("_linear_add")
def linear_add(x: Slot, weight: Slot, residual: Slot) -> Run:
    if not types.floats(x, weight, residual) or weight.ndim != 2 or not x.numel or not residual.numel:
        return None
    n, k = weight.shape
    m = x.numel // k
    product = Product(
        "linear_add",
        (),
        (m, n, k),
        Side(x.dtype, k, 1, ()),
        Side(weight.dtype, weight.strides[1], weight.strides[0], ()),
        Side(residual.dtype, n, 1, ()),
        epilogue=f"res_at(m * P.N + n) + {rounded('v', residual.dtype)}",
        more=[("res", residual.dtype)],
    )

    def run(outs: list[View], x: View, weight: View, residual: View) -> None:
        product([outs[0], reshaped(contiguous(x), (m, k)), weight, contiguous(residual)])

    return run


_OUT = message(IndexError, "rotate_and_attend: position {value} is out of range for a cache of {size}.")


@webgpu("_rotate_and_attend")
def rotate_and_attend(
    qkv: Slot,
    q_norm: Slot | None,
    k_norm: Slot | None,
    eps: float,
    cos: Slot,
    sin: Slot,
    keys: Slot,
    values: Slot,
    position: Slot,
    counts: Slot,
    heads: int,
    scale: float,
) -> Run:
    batch, kept, length, width = keys.shape
    if not types.floats(qkv, cos, sin, keys, values) or width > 512 or cos.strides != sin.strides or cos.ndim != 2:
        return None
    if position.dtype not in types.INTEGERS or keys.strides != values.strides:
        return None
    angles = cos.shape[-1]
    threads = 64
    one = "1u" if cos.shape[0] > 1 else "0u"
    normed = q_norm is not None and k_norm is not None
    # A head of the token, normed and rotated as if it were stored: 0 a query, 1 a key.
    low, high = f"d < {angles}u", f"d < {2 * angles}u"
    scales = [f"{name}_at({{0}})" if normed else "1.0" for name in ("qn", "kn")]
    partner = f"select(d - {angles}u, d + {angles}u, {low})"
    turned = "".join(
        f"""fn turned_{name}(source: u32, r: f32, at: u32, d: u32) -> f32 {{
  var v = x_at(source + d) * r * {scale_.format("d")};
  if ({high}) {{
    let e = {partner};
    let o = x_at(source + e) * r * {scale_.format("e")};
    let t = at * {one} * P.down + select(e, d, {low}) * P.right;
    v = select(v * cos_at(t) + o * sin_at(t), v * cos_at(t) - o * sin_at(t), {low});
  }}
  return {rounded("v", stored)};
}}
"""
        for name, scale_, stored in (("q", scales[0], qkv.dtype), ("k", scales[1], keys.dtype))
    )
    norm = f"""fn root(lane: u32, source: u32) -> f32 {{
  var a = 0.0;
  for (var d = lane; d < P.W; d += {threads}u) {{ let v = x_at(source + d); a += v * v; }}
  return f_rsqrt(all_sum(lane, a) / f32(P.W) + P.eps);
}}
"""
    each = -(-width // threads)
    body = f"""  let at = {place("at_at(0u)", position.dtype)};
  if (at < 0 || u32(at) >= P.L) {{ if (lane == 0u) {{ fail({_OUT}u, at, P.L); }} return; }}
  let last = u32(at);
  let head = row % P.H;
  let b = row / P.H;
  let share = P.H / P.S;
  let token = b * (P.H + 2u * P.S) * P.W;
  let own = token + head * P.W;
  let new_key = token + (P.H + head / share) * P.W;
  let new_value = new_key + P.S * P.W;
  let rq = {"root(lane, own)" if normed else "1.0"};
  let rk = {"root(lane, new_key)" if normed else "1.0"};
  let base = b * P.k0 + (head / share) * P.k1;
  // Every head makes the key and value of the token for itself; one of those that share them keeps them.
  for (var d = lane; d < P.W; d += {threads}u) {{
    query[d] = turned_q(own, rq, last, d) * P.scale;
    key[d] = turned_k(new_key, rk, last, d);
    if (head % share == 0u) {{
      keys_set(base + last * P.k2 + d * P.k3, key[d]);
      values_set(base + last * P.k2 + d * P.k3, x_at(new_value + d));
    }}
  }}
  workgroupBarrier();
  var m = -f_inf();
  var l = 0.0;
  var acc: array<f32, {each}>;
  for (var s0 = 0u; s0 <= last; s0 += {threads}u) {{
    let s = s0 + lane;
    var score = -f_inf();
    if (s <= last) {{
      score = 0.0;
      if (s == last) {{ for (var d = 0u; d < P.W; d++) {{ score += query[d] * key[d]; }} }}
      else {{ for (var d = 0u; d < P.W; d++) {{ score += query[d] * keys_at(base + s * P.k2 + d * P.k3); }} }}
    }}
    let top = f_maximum(m, all_max(lane, score));
    var p = 0.0;
    if (s <= last) {{ p = f_exp(score - top); }}
    var shrink = 0.0;
    if (!f_isneginf(m)) {{ shrink = f_exp(m - top); }}
    weights[lane] = p;
    l = l * shrink + all_sum(lane, p);
    let count = min({threads}u, last - s0);
    for (var r = 0u; r < {each}u; r++) {{
      let d = lane + r * {threads}u;
      if (d < P.W) {{
        var a = acc[r] * shrink;
        for (var j = 0u; j < count; j++) {{ a += weights[j] * values_at(base + (s0 + j) * P.k2 + d * P.k3); }}
        if (s0 + {threads}u > last) {{ a += weights[last - s0] * {rounded("x_at(new_value + d)", values.dtype)}; }}
        acc[r] = a;
      }}
    }}
    m = top;
    workgroupBarrier();
  }}
  for (var r = 0u; r < {each}u; r++) {{
    let d = lane + r * {threads}u;
    if (d < P.W) {{ y_set(row * P.W + d, acc[r] / l); }}
  }}"""
    names = ("H", "S", "L", "W", "down", "right", "k0", "k1", "k2", "k3")
    numbers = [*[(n, "I") for n in names], ("eps", "f"), ("scale", "f")]
    head = shared(threads) + turned + (norm if normed else "")
    head += f"var<workgroup> query: array<f32, {width}>;\nvar<workgroup> key: array<f32, {width}>;\n"
    head += f"var<workgroup> weights: array<f32, {threads}>;\n"
    operands = [("y", qkv.dtype, "w"), ("keys", keys.dtype, "w"), ("values", values.dtype, "w")]
    operands += [("x", qkv.dtype, "r"), ("cos", cos.dtype, "r"), ("sin", sin.dtype, "r"), ("at", position.dtype, "r")]
    if q_norm is not None and k_norm is not None:
        operands += [("qn", q_norm.dtype, "r"), ("kn", k_norm.dtype, "r")]
    program = Program("rotate_and_attend", operands, numbers, body, head=head, faults=True)
    given = (heads, kept, length, width, *cos.strides, *keys.strides, float(eps), float(scale))

    def run(
        outs: list[View],
        qkv: View,
        q_norm: View | None,
        k_norm: View | None,
        cos: View,
        sin: View,
        keys: View,
        values: View,
        position: View,
        counts: View,
    ) -> None:
        norms = [contiguous(v) for v in (q_norm, k_norm) if v is not None]
        views = [outs[0], keys, values, contiguous(qkv), cos, sin, position, *norms]
        program(batch * heads, views, *given)

    return run
