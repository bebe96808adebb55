"""Functions of f32 in WGSL, by the names of the formula primitives with `f_` before them: bits, order, rounding and
division. `elementary.py` and `special.py` have the rest.

WGSL knows neither NaN nor infinity, so tests are made on bits.
"""

from __future__ import annotations

GLOBALS = {
    "v_inf_bits": "var<private> v_inf_bits: u32 = 0x7f800000u;",
    "v_nan_bits": "var<private> v_nan_bits: u32 = 0x7fc00000u;",
}

FUNCTIONS = {
    "f_inf": "fn f_inf() -> f32 { return bitcast<f32>(v_inf_bits); }",
    "f_nan": "fn f_nan() -> f32 { return bitcast<f32>(v_nan_bits); }",
    "f_isnan": "fn f_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    "f_isinf": "fn f_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }",
    "f_isposinf": "fn f_isposinf(x: f32) -> bool { return bitcast<u32>(x) == 0x7f800000u; }",
    "f_isneginf": "fn f_isneginf(x: f32) -> bool { return bitcast<u32>(x) == 0xff800000u; }",
    "f_isfinite": "fn f_isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }",
    "f_signbit": "fn f_signbit(x: f32) -> bool { return (bitcast<u32>(x) >> 31u) != 0u; }",
    "f_abs": "fn f_abs(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }",
    "f_copysign": """fn f_copysign(a: f32, b: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(a) & 0x7fffffffu) | (bitcast<u32>(b) & 0x80000000u));
}""",
    "f_div": "fn f_div(a: f32, b: f32) -> f32 { return a / b; }",
    "f_reciprocal": "fn f_reciprocal(x: f32) -> f32 { return 1.0 / x; }",
    "f_sqrt": "fn f_sqrt(x: f32) -> f32 { if (x < 0.0) { return f_nan(); } return sqrt(x); }",
    "f_rsqrt": """fn f_rsqrt(x: f32) -> f32 {
  if (x < 0.0 || f_isnan(x)) { return f_nan(); }
  if (x == 0.0) { return f_copysign(f_inf(), x); }
  return 1.0 / sqrt(x);
}""",
    "f_floor": "fn f_floor(x: f32) -> f32 { if (abs(x) >= 8388608.0 || f_isnan(x)) { return x; } return floor(x); }",
    "f_ceil": """fn f_ceil(x: f32) -> f32 {
  if (abs(x) >= 8388608.0 || f_isnan(x)) { return x; }
  return f_copysign(ceil(x), x);
}""",
    "f_trunc": """fn f_trunc(x: f32) -> f32 {
  if (abs(x) >= 8388608.0 || f_isnan(x)) { return x; }
  return f_copysign(trunc(x), x);
}""",
    "f_round": """fn f_round(x: f32) -> f32 {
  if (abs(x) >= 8388608.0 || f_isnan(x)) { return x; }
  let down = floor(x);
  let rest = x - down;
  let up = rest > 0.5 || (rest == 0.5 && (i32(down) & 1) != 0);
  return f_copysign(select(down, down + 1.0, up), x);
}""",
    "f_sgn": "fn f_sgn(x: f32) -> f32 { return select(0.0, 1.0, x > 0.0) - select(0.0, 1.0, x < 0.0); }",
    "f_sign": "fn f_sign(x: f32) -> f32 { return select(0.0, 1.0, x > 0.0) - select(0.0, 1.0, x < 0.0); }",
    "f_maximum": """fn f_maximum(a: f32, b: f32) -> f32 {
  if (f_isnan(a)) { return a; }
  if (f_isnan(b)) { return b; }
  return select(b, a, a > b);
}""",
    "f_minimum": """fn f_minimum(a: f32, b: f32) -> f32 {
  if (f_isnan(a)) { return a; }
  if (f_isnan(b)) { return b; }
  return select(b, a, a < b);
}""",
    "f_fmax": """fn f_fmax(a: f32, b: f32) -> f32 {
  if (f_isnan(a)) { return b; }
  if (f_isnan(b)) { return a; }
  return select(b, a, a > b);
}""",
    "f_fmin": """fn f_fmin(a: f32, b: f32) -> f32 {
  if (f_isnan(a)) { return b; }
  if (f_isnan(b)) { return a; }
  return select(b, a, a < b);
}""",
    "f_fmod": """fn f_fmod(a: f32, b: f32) -> f32 {
  if (!f_isfinite(a) || f_isnan(b) || b == 0.0) { return f_nan(); }
  if (f_isinf(b)) { return a; }
  // Long division in binary: exact for every pair.
  let y = abs(b);
  var x = abs(a);
  if (x < y) { return a; }
  var bits = i32(bitcast<u32>(x) >> 23u) - i32(bitcast<u32>(y) >> 23u) + 1;
  while (bits >= 0) {
    let part = f_scaled(y, bits);
    if (f_isfinite(part) && x >= part) { x -= part; }
    bits -= 1;
  }
  return f_copysign(x, a);
}""",
    "f_remainder": """fn f_remainder(a: f32, b: f32) -> f32 {
  let r = f_fmod(a, b);
  return select(r, r + b, r != 0.0 && ((r < 0.0) != (b < 0.0)));
}""",
    "f_trunc_divide": "fn f_trunc_divide(a: f32, b: f32) -> f32 { return f_trunc(a / b); }",
    "f_floor_divide": """fn f_floor_divide(a: f32, b: f32) -> f32 {
  if (b == 0.0 || !f_isfinite(a) || f_isnan(b)) { return a / b; }
  let m = f_fmod(a, b);
  var d = (a - m) / b;
  if (m != 0.0 && ((b < 0.0) != (m < 0.0))) { d -= 1.0; }
  if (d == 0.0) { return f_copysign(0.0, a / b); }
  let down = f_floor(d);
  return select(down, down + 1.0, d - down > 0.5);
}""",
    "f_square": "fn f_square(x: f32) -> f32 { return x * x; }",
    "f_angle": """fn f_angle(x: f32) -> f32 {
  if (f_isnan(x)) { return x; }
  return select(0.0, 3.1415926536, x < 0.0);
}""",
    "f_real": "fn f_real(x: f32) -> f32 { return x; }",
    "f_conj": "fn f_conj(x: f32) -> f32 { return x; }",
    "f_imag": "fn f_imag(x: f32) -> f32 { return 0.0; }",
}
