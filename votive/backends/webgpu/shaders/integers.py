"""Functions of integers in WGSL: `i_` on i32, `u_` on u32, `l_` on 64 bits.

WGSL has no 64-bit integers that every device knows, so they are pairs of words (low, high) in two's complement, and
int64 tensors are exact.
"""

from __future__ import annotations

_SIGNED = {
    "i_abs": "fn i_abs(x: i32) -> i32 { return select(x, -x, x < 0); }",
    "i_sign": "fn i_sign(x: i32) -> i32 { return select(0, 1, x > 0) - select(0, 1, x < 0); }",
    "i_signbit": "fn i_signbit(x: i32) -> bool { return x < 0; }",
    "i_maximum": "fn i_maximum(a: i32, b: i32) -> i32 { return max(a, b); }",
    "i_minimum": "fn i_minimum(a: i32, b: i32) -> i32 { return min(a, b); }",
    "i_trunc_divide": "fn i_trunc_divide(a: i32, b: i32) -> i32 { return a / b; }",
    "i_fmod": "fn i_fmod(a: i32, b: i32) -> i32 { return a % b; }",
    "i_floor_divide": """fn i_floor_divide(a: i32, b: i32) -> i32 {
  let q = a / b;
  return select(q, q - 1, q * b != a && ((a < 0) != (b < 0)));
}""",
    "i_remainder": """fn i_remainder(a: i32, b: i32) -> i32 {
  let r = a % b;
  return select(r, r + b, r != 0 && ((r < 0) != (b < 0)));
}""",
    "i_pow": """fn i_pow(a: i32, b: i32) -> i32 {
  if (b < 0) { return select(0, select(1, a, (b & 1) != 0), a == 1 || a == -1); }
  var y = 1;
  var p = a;
  var n = u32(b);
  while (n != 0u) { if ((n & 1u) != 0u) { y *= p; } p *= p; n = n >> 1u; }
  return y;
}""",
    "i_gcd": """fn i_gcd(a: i32, b: i32) -> i32 {
  var x = abs(a);
  var y = abs(b);
  while (y != 0) { let r = x % y; x = y; y = r; }
  return x;
}""",
    "i_lcm": """fn i_lcm(a: i32, b: i32) -> i32 {
  let g = i_gcd(a, b);
  if (g == 0) { return 0; }
  return abs(a / g * b);
}""",
}

# The same on u32, where nothing is negative.
_UNSIGNED = {
    "u_abs": "fn u_abs(x: u32) -> u32 { return x; }",
    "u_sign": "fn u_sign(x: u32) -> u32 { return select(0u, 1u, x > 0u); }",
    "u_signbit": "fn u_signbit(x: u32) -> bool { return false; }",
    "u_maximum": "fn u_maximum(a: u32, b: u32) -> u32 { return max(a, b); }",
    "u_minimum": "fn u_minimum(a: u32, b: u32) -> u32 { return min(a, b); }",
    "u_trunc_divide": "fn u_trunc_divide(a: u32, b: u32) -> u32 { return a / b; }",
    "u_floor_divide": "fn u_floor_divide(a: u32, b: u32) -> u32 { return a / b; }",
    "u_fmod": "fn u_fmod(a: u32, b: u32) -> u32 { return a % b; }",
    "u_remainder": "fn u_remainder(a: u32, b: u32) -> u32 { return a % b; }",
    "u_pow": """fn u_pow(a: u32, b: u32) -> u32 {
  var y = 1u;
  var p = a;
  var n = b;
  while (n != 0u) { if ((n & 1u) != 0u) { y *= p; } p *= p; n = n >> 1u; }
  return y;
}""",
    "u_gcd": """fn u_gcd(a: u32, b: u32) -> u32 {
  var x = a;
  var y = b;
  while (y != 0u) { let r = x % y; x = y; y = r; }
  return x;
}""",
    "u_lcm": """fn u_lcm(a: u32, b: u32) -> u32 {
  let g = u_gcd(a, b);
  if (g == 0u) { return 0u; }
  return a / g * b;
}""",
}


def _shifts(kind: str, type_: str, bits: int) -> dict[str, str]:
    zero = "0i" if kind == "i" else "0u"
    bad = f"(b < {zero} || b >= {bits})" if kind == "i" else f"(b >= {bits}u)"
    filler = f"select({zero}, -1i, a < {zero})" if kind == "i" else zero
    left, right = (f"{kind}_bitwise_{side}_shift{bits}" for side in ("left", "right"))
    return {
        left: f"""fn {left}(a: {type_}, b: {type_}) -> {type_} {{
  if {bad} {{ return {zero}; }}
  return a << u32(b);
}}""",
        right: f"""fn {right}(a: {type_}, b: {type_}) -> {type_} {{
  if {bad} {{ return {filler}; }}
  return a >> u32(b);
}}""",
    }


_L = "vec2<u32>"
_LONG = {
    "l_neg": f"fn l_neg(x: {_L}) -> {_L} {{ let y = ~x; return l_add(y, {_L}(1u, 0u)); }}",
    "l_add": f"""fn l_add(a: {_L}, b: {_L}) -> {_L} {{
  let low = a.x + b.x;
  return {_L}(low, a.y + b.y + select(0u, 1u, low < a.x));
}}""",
    "l_sub": f"""fn l_sub(a: {_L}, b: {_L}) -> {_L} {{
  return {_L}(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}}""",
    "l_wide": f"""fn l_wide(a: u32, b: u32) -> {_L} {{
  // The whole product of two words.
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let low = al * bl;
  let middle = ah * bl + (low >> 16u);
  let other = al * bh + (middle & 0xffffu);
  return {_L}((other << 16u) | (low & 0xffffu), ah * bh + (middle >> 16u) + (other >> 16u));
}}""",
    "l_mul": f"""fn l_mul(a: {_L}, b: {_L}) -> {_L} {{
  let p = l_wide(a.x, b.x);
  return {_L}(p.x, p.y + a.x * b.y + a.y * b.x);
}}""",
    "l_square": f"fn l_square(x: {_L}) -> {_L} {{ return l_mul(x, x); }}",
    "l_eq": f"fn l_eq(a: {_L}, b: {_L}) -> bool {{ return all(a == b); }}",
    "l_ne": f"fn l_ne(a: {_L}, b: {_L}) -> bool {{ return any(a != b); }}",
    "l_lt": f"""fn l_lt(a: {_L}, b: {_L}) -> bool {{
  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}}""",
    "l_gt": f"fn l_gt(a: {_L}, b: {_L}) -> bool {{ return l_lt(b, a); }}",
    "l_le": f"fn l_le(a: {_L}, b: {_L}) -> bool {{ return !l_lt(b, a); }}",
    "l_ge": f"fn l_ge(a: {_L}, b: {_L}) -> bool {{ return !l_lt(a, b); }}",
    "l_signbit": f"fn l_signbit(x: {_L}) -> bool {{ return (x.y >> 31u) != 0u; }}",
    "l_abs": f"fn l_abs(x: {_L}) -> {_L} {{ if (l_signbit(x)) {{ return l_neg(x); }} return x; }}",
    "l_sign": f"""fn l_sign(x: {_L}) -> {_L} {{
  if (l_signbit(x)) {{ return {_L}(0xffffffffu, 0xffffffffu); }}
  return {_L}(select(0u, 1u, any(x != {_L}(0u, 0u))), 0u);
}}""",
    "l_maximum": f"fn l_maximum(a: {_L}, b: {_L}) -> {_L} {{ if (l_lt(a, b)) {{ return b; }} return a; }}",
    "l_minimum": f"fn l_minimum(a: {_L}, b: {_L}) -> {_L} {{ if (l_lt(b, a)) {{ return b; }} return a; }}",
    "l_below": f"fn l_below(a: {_L}, b: {_L}) -> bool {{ return a.y < b.y || (a.y == b.y && a.x < b.x); }}",
    "l_divided": f"""fn l_divided(a: {_L}, b: {_L}) -> vec4<u32> {{
  // Quotient and rest of numbers without sign, a bit at a time.
  if (a.y == 0u && b.y == 0u && b.x != 0u) {{ return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }}
  var q = {_L}(0u, 0u);
  var r = {_L}(0u, 0u);
  for (var k = 0u; k < 64u; k++) {{
    let at = 63u - k;
    let bit = select(a.x >> (at & 31u), a.y >> (at & 31u), at >= 32u) & 1u;
    let over = (r.y >> 31u) != 0u;
    r = {_L}((r.x << 1u) | bit, (r.y << 1u) | (r.x >> 31u));
    if (over || !l_below(r, b)) {{
      r = l_sub(r, b);
      if (at >= 32u) {{ q.y = q.y | (1u << (at & 31u)); }} else {{ q.x = q.x | (1u << at); }}
    }}
  }}
  return vec4<u32>(q, r);
}}""",
    "l_trunc_divide": f"""fn l_trunc_divide(a: {_L}, b: {_L}) -> {_L} {{
  let q = l_divided(l_abs(a), l_abs(b)).xy;
  if (l_signbit(a) != l_signbit(b)) {{ return l_neg(q); }}
  return q;
}}""",
    "l_fmod": f"""fn l_fmod(a: {_L}, b: {_L}) -> {_L} {{
  let r = l_divided(l_abs(a), l_abs(b)).zw;
  if (l_signbit(a)) {{ return l_neg(r); }}
  return r;
}}""",
    "l_floor_divide": f"""fn l_floor_divide(a: {_L}, b: {_L}) -> {_L} {{
  let q = l_trunc_divide(a, b);
  if (l_signbit(a) != l_signbit(b) && any(l_mul(q, b) != a)) {{ return l_sub(q, {_L}(1u, 0u)); }}
  return q;
}}""",
    "l_remainder": f"""fn l_remainder(a: {_L}, b: {_L}) -> {_L} {{
  let r = l_fmod(a, b);
  if (any(r != {_L}(0u, 0u)) && l_signbit(r) != l_signbit(b)) {{ return l_add(r, b); }}
  return r;
}}""",
    "l_pow": f"""fn l_pow(a: {_L}, b: {_L}) -> {_L} {{
  let one = {_L}(1u, 0u);
  if (l_signbit(b)) {{
    if (all(a == one)) {{ return a; }}
    if (all(a == {_L}(0xffffffffu, 0xffffffffu))) {{ if ((b.x & 1u) != 0u) {{ return a; }} return one; }}
    return {_L}(0u, 0u);
  }}
  var y = one;
  var p = a;
  var n = b;
  while (any(n != {_L}(0u, 0u))) {{
    if ((n.x & 1u) != 0u) {{ y = l_mul(y, p); }}
    p = l_mul(p, p);
    n = {_L}((n.x >> 1u) | (n.y << 31u), n.y >> 1u);
  }}
  return y;
}}""",
    "l_gcd": f"""fn l_gcd(a: {_L}, b: {_L}) -> {_L} {{
  var x = l_abs(a);
  var y = l_abs(b);
  while (any(y != {_L}(0u, 0u))) {{ let r = l_divided(x, y).zw; x = y; y = r; }}
  return x;
}}""",
    "l_lcm": f"""fn l_lcm(a: {_L}, b: {_L}) -> {_L} {{
  let g = l_gcd(a, b);
  if (all(g == {_L}(0u, 0u))) {{ return g; }}
  return l_abs(l_mul(l_trunc_divide(a, g), b));
}}""",
    "l_bitwise_left_shift": f"""fn l_bitwise_left_shift(a: {_L}, b: {_L}) -> {_L} {{
  if (b.y != 0u || b.x >= 64u) {{ return {_L}(0u, 0u); }}
  if (b.x == 0u) {{ return a; }}
  if (b.x >= 32u) {{ return {_L}(0u, a.x << (b.x - 32u)); }}
  return {_L}(a.x << b.x, (a.y << b.x) | (a.x >> (32u - b.x)));
}}""",
    "l_bitwise_right_shift": f"""fn l_bitwise_right_shift(a: {_L}, b: {_L}) -> {_L} {{
  let fill = select(0u, 0xffffffffu, l_signbit(a));
  if (b.y != 0u || b.x >= 64u) {{ return {_L}(fill, fill); }}
  if (b.x == 0u) {{ return a; }}
  let high = bitcast<i32>(a.y);
  if (b.x >= 32u) {{ return {_L}(bitcast<u32>(high >> (b.x - 32u)), fill); }}
  return {_L}((a.x >> b.x) | (a.y << (32u - b.x)), bitcast<u32>(high >> b.x));
}}""",
    "l_from_i": f"fn l_from_i(x: i32) -> {_L} {{ return {_L}(bitcast<u32>(x), select(0u, 0xffffffffu, x < 0)); }}",
    "l_from_u": f"fn l_from_u(x: u32) -> {_L} {{ return {_L}(x, 0u); }}",
    "l_from_f": f"""fn l_from_f(x: f32) -> {_L} {{
  let a = abs(x);
  // What does not fit becomes the smallest number, as processors do it.
  if (!(a < 9.2e18)) {{ if (x == -9223372036854775808.0 || !(a < 9.2233720e18)) {{ return {_L}(0u, 0x80000000u); }} }}
  if (a < 1.0) {{ return {_L}(0u, 0u); }}
  let bits = bitcast<u32>(a);
  let e = i32(bits >> 23u) - 150;
  let m = {_L}((bits & 0x007fffffu) | 0x00800000u, 0u);
  var y = m;
  if (e < 0) {{ y = {_L}(m.x >> u32(-e), 0u); }} else {{ y = l_bitwise_left_shift(m, {_L}(u32(e), 0u)); }}
  if (x < 0.0) {{ return l_neg(y); }}
  return y;
}}""",
    "f_from_l": f"""fn f_from_l(x: {_L}) -> f32 {{
  // Rounded once: 24 bits are kept, what lies below them only says which way.
  let negative = l_signbit(x);
  let a = l_abs(x);
  var y = 0.0;
  if (a.y == 0u) {{ y = f_from_u(a.x); }}
  else {{
    let shift = 32u - countLeadingZeros(a.y);
    var top = a.x >> shift | a.y << (32u - shift);
    if (shift == 32u) {{ top = a.y; }}
    let lost = select(a.x & ((1u << (shift & 31u)) - 1u), a.x, shift == 32u);
    top = top | select(0u, 1u, lost != 0u);
    y = f_from_u(top) * bitcast<f32>((shift + 127u) << 23u);
  }}
  return select(y, -y, negative);
}}""",
    "f_from_u": """fn f_from_u(x: u32) -> f32 {
  // Devices may round what has more than 24 bits either way.
  if (x < 0x1000000u) { return f32(x); }
  let shift = 8u - countLeadingZeros(x);
  let kept = x >> shift;
  let rest = x & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  let up = rest > half || (rest == half && (kept & 1u) != 0u);
  return f32(kept + select(0u, 1u, up)) * bitcast<f32>((shift + 127u) << 23u);
}""",
    "f_from_i": """fn f_from_i(x: i32) -> f32 {
  if (x < 0) { return -f_from_u(bitcast<u32>(-x)); }
  return f_from_u(bitcast<u32>(x));
}""",
    "i_from_f": """fn i_from_f(x: f32) -> i32 {
  if (!(abs(x) < 2147483648.0)) { return i32(-2147483647 - 1); }
  return i32(x);
}""",
    "i_place": """fn i_place(v: vec2<u32>) -> i32 {
  // An index of 64 bits; what does not fit is out of range, whatever it is.
  let low = bitcast<i32>(v.x);
  return select(-2147483647 - 1, low, v.y == select(0u, 0xffffffffu, low < 0));
}""",
    "i_wrap8": "fn i_wrap8(x: i32) -> i32 { return (x << 24u) >> 24u; }",
    "i_wrap16": "fn i_wrap16(x: i32) -> i32 { return (x << 16u) >> 16u; }",
    "u_wrap8": "fn u_wrap8(x: u32) -> u32 { return x & 0xffu; }",
    "u_wrap16": "fn u_wrap16(x: u32) -> u32 { return x & 0xffffu; }",
}

FUNCTIONS = {
    **_SIGNED,
    **_UNSIGNED,
    **_LONG,
    **{k: v for bits in (8, 16, 32) for k, v in _shifts("i", "i32", bits).items()},
    **{k: v for bits in (8, 16, 32) for k, v in _shifts("u", "u32", bits).items()},
}
