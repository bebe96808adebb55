"""Functions of f32 in WGSL, by the names of the formula primitives with `f_` before them.

WGSL lets a device's own `exp`, `log`, `sin` be off by many units and knows neither NaN nor infinity; tests are made on
bits, and what needs digits is computed here.
"""

from __future__ import annotations

import math

_INF = "bitcast<f32>(v_inf_bits)"


def _series(terms: list[float], x: str) -> str:
    """A polynomial by Horner's rule, lowest term first."""
    text = f"{terms[-1]:.9e}"
    for t in terms[-2::-1]:
        text = f"({text} * {x} + {t:.9e})"
    return text


def _digits() -> str:
    """The first words of 2/pi = 0.1010001..., for arguments that are large."""
    # 2/pi to 320 bits by Machin's formula in integers.
    bits = 352
    one = 1 << bits

    def arctan_inverse(n: int) -> int:
        total = term = one // n
        k, sign = 3, -1
        while term:
            term //= n * n
            total += sign * (term // k)
            k, sign = k + 2, -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    value = (2 * one * one) // pi
    words = [(value >> (bits - 32 * (k + 1))) & 0xFFFFFFFF for k in range(6)]
    return ", ".join(f"{w}u" for w in words)


_EXP = [1 / math.factorial(k) for k in range(8)]
_EXPM1 = [1 / math.factorial(k + 1) for k in range(10)]
_ATANH = [2 / (2 * k + 1) for k in range(6)]
_SIN = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)]
_COS = [(-1) ** k / math.factorial(2 * k) for k in range(7)]
_ERF = [2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(12)]
# Chebyshev fit of log(erfc(x) exp(x^2) / t) by t = 1/(1 + x/2), to 1.2e-7 (Press et al., Numerical Recipes, 6.2).
_ERFC = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
    0.17087277,
]  # fmt: skip
# Giles, Approximating the erfinv function (2010), single precision.
_INV_NEAR = [
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
    3.43273939e-07, 2.81022636e-08,
]  # fmt: skip
_INV_FAR = [
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322, 0.000100950558,
    -0.000200214257,
]  # fmt: skip
# Stirling's series: B_2k / (2k (2k-1) x^(2k-1)), and its derivative.
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680]
_DIGAMMA = [1 / 12, -1 / 120, 1 / 252, -1 / 240]

GLOBALS = {
    "v_inf_bits": "var<private> v_inf_bits: u32 = 0x7f800000u;",
    "v_nan_bits": "var<private> v_nan_bits: u32 = 0x7fc00000u;",
    "two_over_pi": f"var<private> two_over_pi: array<u32, 6> = array<u32, 6>({_digits()});",
}

FUNCTIONS = {
    "f_inf": f"fn f_inf() -> f32 {{ return {_INF}; }}",
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
    "f_scaled": """fn f_scaled(x: f32, n: i32) -> f32 {
  // x 2^n in three steps, so that no power of two overflows alone.
  let a = clamp(n / 2, -126, 127);
  let b = clamp(n - a, -126, 127);
  let c = clamp(n - a - b, -126, 127);
  return x * bitcast<f32>(u32(a + 127) << 23u) * bitcast<f32>(u32(b + 127) << 23u)
    * bitcast<f32>(u32(c + 127) << 23u);
}""",
    "f_exp": f"""fn f_exp(x: f32) -> f32 {{
  if (!(x < 88.8)) {{ if (f_isnan(x)) {{ return x; }} return f_inf(); }}
  if (x < -104.0) {{ return 0.0; }}
  let n = floor(x * 1.44269504 + 0.5);
  let r = (x - n * 0.693145752) - n * 1.42860677e-6;
  return f_scaled({_series(_EXP, "r")}, i32(n));
}}""",
    "f_exp2": f"""fn f_exp2(x: f32) -> f32 {{
  if (!(x < 128.0)) {{ if (f_isnan(x)) {{ return x; }} return f_inf(); }}
  if (x < -151.0) {{ return 0.0; }}
  let n = floor(x + 0.5);
  let r = (x - n) * 0.69314718056;
  return f_scaled({_series(_EXP, "r")}, i32(n));
}}""",
    "f_expm1": f"""fn f_expm1(x: f32) -> f32 {{
  if (abs(x) < 0.5) {{ return x * {_series(_EXPM1, "x")}; }}
  return f_exp(x) - 1.0;
}}""",
    # 2 atanh(s) = log((1 + s) / (1 - s)).
    "f_atanh2": f"fn f_atanh2(s: f32) -> f32 {{ let z = s * s; return s * {_series(_ATANH, 'z')}; }}",
    "f_split": """fn f_split(x: f32) -> vec2<f32> {
  // The mantissa in sqrt(1/2) to sqrt(2), and the exponent.
  var bits = bitcast<u32>(x);
  var e = 0;
  if (bits < 0x00800000u) { bits = bitcast<u32>(x * 16777216.0); e = -24; }
  e += i32(bits >> 23u) - 127;
  var m = bitcast<f32>((bits & 0x007fffffu) | 0x3f800000u);
  if (m > 1.41421356) { m = m * 0.5; e += 1; }
  return vec2<f32>(m, f32(e));
}""",
    "f_log": """fn f_log(x: f32) -> f32 {
  if (!(x > 0.0)) { if (x == 0.0) { return -f_inf(); } return f_nan(); }
  if (f_isinf(x)) { return x; }
  let p = f_split(x);
  let y = f_atanh2((p.x - 1.0) / (p.x + 1.0));
  return p.y * 0.693145752 + (p.y * 1.42860677e-6 + y);
}""",
    "f_log2": """fn f_log2(x: f32) -> f32 {
  if (!(x > 0.0)) { if (x == 0.0) { return -f_inf(); } return f_nan(); }
  if (f_isinf(x)) { return x; }
  let p = f_split(x);
  return p.y + f_atanh2((p.x - 1.0) / (p.x + 1.0)) * 1.44269504;
}""",
    "f_log10": """fn f_log10(x: f32) -> f32 {
  if (!(x > 0.0)) { if (x == 0.0) { return -f_inf(); } return f_nan(); }
  if (f_isinf(x)) { return x; }
  let p = f_split(x);
  let y = f_atanh2((p.x - 1.0) / (p.x + 1.0));
  return p.y * 0.301025391 + (p.y * 4.60503906e-6 + y * 0.434294482);
}""",
    "f_log1p": """fn f_log1p(x: f32) -> f32 {
  if (abs(x) < 0.4) { return f_atanh2(x / (2.0 + x)); }
  return f_log(1.0 + x);
}""",
    "f_turn": """fn f_turn(x: f32) -> vec2<f32> {
  // x = quarter * pi/2 + rest, with the quarter modulo 4.
  let a = abs(x);
  if (a < 8000.0) {
    let n = floor(x * 0.636619772 + 0.5);
    let r = ((x - n * 1.5703125) - n * 4.83751297e-4) - n * 7.54953362e-8;
    return vec2<f32>(f32(i32(n) & 3), r - n * 5.60e-12);
  }
  // Payne and Hanek: only the bits of 2/pi count that do not make whole turns.
  let bits = bitcast<u32>(a);
  let e = i32(bits >> 23u) - 150;
  let m = (bits & 0x007fffffu) | 0x00800000u;
  let word = u32(e) / 32u;
  let shift = u32(e) % 32u;
  var w: array<u32, 4>;
  for (var k = 0u; k < 4u; k++) {
    let at = i32(word + k) ;
    let lo = select(0u, two_over_pi[min(at, 5)], at >= 0 && at < 6);
    let hi = select(0u, two_over_pi[min(at + 1, 5)], at + 1 < 6);
    w[k] = select((lo << shift) | (hi >> ((32u - shift) & 31u)), lo, shift == 0u);
  }
  // The product of m and 0.w0 w1 w2: its top is the quarter and what follows the rest.
  let p2 = l_wide(m, w[2]);
  let p1 = l_wide(m, w[1]);
  let p0 = m * w[0];
  var low = p1.x + p2.y;
  var carry = select(0u, 1u, low < p1.x);
  var high = p0 + p1.y + carry;
  var quarter = high >> 30u;
  var frac_hi = (high << 2u) | (low >> 30u);
  var frac_lo = (low << 2u) | (p2.x >> 30u);
  var negative = false;
  if ((frac_hi & 0x80000000u) != 0u) {
    quarter += 1u;
    negative = true;
    frac_lo = ~frac_lo + 1u;
    frac_hi = ~frac_hi + select(0u, 1u, frac_lo == 0u);
  }
  var r = (f32(frac_hi) * 2.3283064365386963e-10 + f32(frac_lo) * 5.421010862427522e-20) * 1.5707963268;
  if (negative) { r = -r; }
  if (x < 0.0) { r = -r; quarter = (4u - (quarter & 3u)); }
  return vec2<f32>(f32(quarter & 3u), r);
}""",
    "f_sine_of": f"fn f_sine_of(r: f32) -> f32 {{ let z = r * r; return r * {_series(_SIN, 'z')}; }}",
    "f_cosine_of": f"fn f_cosine_of(r: f32) -> f32 {{ let z = r * r; return {_series(_COS, 'z')}; }}",
    "f_sin": """fn f_sin(x: f32) -> f32 {
  if (!f_isfinite(x)) { return f_nan(); }
  let t = f_turn(x);
  let q = u32(t.x);
  let y = select(f_sine_of(t.y), f_cosine_of(t.y), (q & 1u) != 0u);
  return select(y, -y, q >= 2u);
}""",
    "f_cos": """fn f_cos(x: f32) -> f32 {
  if (!f_isfinite(x)) { return f_nan(); }
  let t = f_turn(x);
  let q = u32(t.x);
  let y = select(f_cosine_of(t.y), f_sine_of(t.y), (q & 1u) != 0u);
  return select(y, -y, q == 1u || q == 2u);
}""",
    "f_tan": "fn f_tan(x: f32) -> f32 { return f_sin(x) / f_cos(x); }",
    "f_atan": """fn f_atan(x: f32) -> f32 {
  if (f_isnan(x)) { return x; }
  let a = abs(x);
  var base = 0.0;
  var z = a;
  if (a > 2.41421356) { base = 1.5707963268; z = -1.0 / a; }
  else if (a > 0.414213562) { base = 0.7853981634; z = (a - 1.0) / (a + 1.0); }
  let s = z * z;
  // Minimax on tan(pi/8), as in single-precision libraries since Cephes.
  let p = ((8.05374449538e-2 * s - 1.38776856032e-1) * s + 1.99777106478e-1) * s - 3.33329491539e-1;
  let y = base + p * s * z + z;
  return f_copysign(select(y, base, f_isinf(x)), x);
}""",
    "f_atan2": """fn f_atan2(y: f32, x: f32) -> f32 {
  if (f_isnan(x) || f_isnan(y)) { return f_nan(); }
  let a = abs(x);
  let b = abs(y);
  var t = 0.0;
  if (f_isinf(x) && f_isinf(y)) { t = 0.7853981634; }
  else if (b > a) { t = 1.5707963268 - f_atan(a / b); }
  else if (a > 0.0) { t = f_atan(b / a); }
  if (f_signbit(x)) { t = 3.1415926536 - t; }
  return f_copysign(t, y);
}""",
    "f_asin": """fn f_asin(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return f_nan(); }
  if (a < 1.0e-3) { return x + x * x * x * 0.1666666667; }
  return f_atan2(x, sqrt((1.0 - a) * (1.0 + a)));
}""",
    "f_acos": """fn f_acos(x: f32) -> f32 {
  if (!(abs(x) <= 1.0)) { return f_nan(); }
  return f_atan2(sqrt((1.0 - x) * (1.0 + x)), x);
}""",
    "f_sinh": """fn f_sinh(x: f32) -> f32 {
  let a = abs(x);
  if (a < 1.0) { let e = f_expm1(a); return f_copysign(0.5 * (e + e / (e + 1.0)), x); }
  let h = f_exp(0.5 * a);
  return f_copysign((0.5 * h - 0.5 / (h * h * h)) * h, x);
}""",
    "f_cosh": """fn f_cosh(x: f32) -> f32 {
  let h = f_exp(0.5 * abs(x));
  return (0.5 * h) * h + (0.5 / h) / h;
}""",
    "f_tanh": """fn f_tanh(x: f32) -> f32 {
  let a = abs(x);
  if (f_isnan(x)) { return x; }
  if (a < 0.5) { let e = f_expm1(2.0 * a); return f_copysign(e / (e + 2.0), x); }
  if (a > 10.0) { return f_copysign(1.0, x); }
  return f_copysign(1.0 - 2.0 / (f_exp(2.0 * a) + 1.0), x);
}""",
    "f_asinh": """fn f_asinh(x: f32) -> f32 {
  let a = abs(x);
  if (f_isinf(x)) { return x; }
  if (a > 1.0e9) { return f_copysign(f_log(a) + 0.69314718056, x); }
  return f_copysign(f_log1p(a + a * a / (1.0 + sqrt(1.0 + a * a))), x);
}""",
    "f_acosh": """fn f_acosh(x: f32) -> f32 {
  if (!(x >= 1.0)) { return f_nan(); }
  if (f_isinf(x)) { return x; }
  if (x > 1.0e9) { return f_log(x) + 0.69314718056; }
  let t = x - 1.0;
  return f_log1p(t + sqrt(t * (x + 1.0)));
}""",
    "f_atanh": """fn f_atanh(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return f_nan(); }
  if (a == 1.0) { return f_copysign(f_inf(), x); }
  return f_copysign(0.5 * f_log1p(2.0 * a / (1.0 - a)), x);
}""",
    "f_sigmoid": """fn f_sigmoid(x: f32) -> f32 {
  if (f_isnan(x)) { return x; }
  let e = f_exp(-abs(x));
  return select(e / (1.0 + e), 1.0 / (1.0 + e), x >= 0.0);
}""",
    "f_pow": """fn f_pow(a: f32, b: f32) -> f32 {
  if (b == 0.0 || a == 1.0) { return 1.0; }
  if (f_isnan(a) || f_isnan(b)) { return f_nan(); }
  let whole = f_trunc(b) == b;
  let odd = whole && abs(b) < 16777216.0 && (i32(b) & 1) != 0;
  let x = abs(a);
  if (f_isinf(b)) {
    if (x == 1.0) { return 1.0; }
    return select(0.0, f_inf(), (x > 1.0) == (b > 0.0));
  }
  if (a < 0.0 && !whole && !f_isinf(a)) { return f_nan(); }
  var y = 0.0;
  if (x == 0.0) { y = select(f_inf(), 0.0, b > 0.0); }
  else if (f_isinf(x)) { y = select(0.0, f_inf(), b > 0.0); }
  else if (whole && abs(b) <= 32.0) {
    var n = u32(abs(b));
    var p = x;
    y = 1.0;
    while (n != 0u) { if ((n & 1u) != 0u) { y *= p; } p *= p; n = n >> 1u; }
    if (b < 0.0) { y = 1.0 / y; }
    if (!f_isfinite(y) || y == 0.0) { y = f_power_of(x, b); }
  } else { y = f_power_of(x, b); }
  return select(y, -y, odd && f_signbit(a));
}""",
    "f_power_of": """fn f_power_of(x: f32, b: f32) -> f32 {
  // x^b = 2^(b e) 2^(b log2 m); b in two parts, so that the first product with e is exact.
  let p = f_split(x);
  let s = (p.x - 1.0) / (p.x + 1.0);
  let l = f_atanh2(s) * 1.44269504;
  let top = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let low = b - top;
  let l_top = bitcast<f32>(bitcast<u32>(l) & 0xfffff000u);
  let l_low = l - l_top;
  let first = top * p.y;
  if (abs(first) > 400.0 && abs(first + b * l) > 300.0) { return select(0.0, f_inf(), first + b * l > 0.0); }
  let n1 = floor(first + 0.5);
  let second = top * l_top;
  let n2 = floor(second + 0.5);
  let rest = (first - n1) + (second - n2) + (low * p.y + (low * l_top + b * l_low));
  let n3 = floor(rest + 0.5);
  let n = clamp(n1 + n2 + n3, -400.0, 400.0);
  return f_scaled(f_exp2(rest - n3), i32(n));
}""",
    "f_erf": f"""fn f_erf(x: f32) -> f32 {{
  let a = abs(x);
  if (a < 1.0) {{ let z = x * x; return x * {_series(_ERF, "z")}; }}
  return f_copysign(1.0 - f_erfc_of(a), x);
}}""",
    "f_erfc_of": f"""fn f_erfc_of(a: f32) -> f32 {{
  if (a > 10.1) {{ return 0.0; }}
  let t = 1.0 / (1.0 + 0.5 * a);
  let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let square = -high * high;
  return t * f_exp(square) * f_exp((high - a) * (high + a) + {_series(_ERFC, "t")});
}}""",
    "f_erfc": """fn f_erfc(x: f32) -> f32 {
  if (f_isnan(x)) { return x; }
  if (abs(x) < 0.5) { return 1.0 - f_erf(x); }
  let y = f_erfc_of(abs(x));
  return select(y, 2.0 - y, x < 0.0);
}""",
    "f_erfcx": f"""fn f_erfcx(x: f32) -> f32 {{
  if (f_isnan(x)) {{ return x; }}
  let a = abs(x);
  let t = 1.0 / (1.0 + 0.5 * a);
  var y = t * f_exp({_series(_ERFC, "t")});
  if (a > 10.0) {{ let z = 1.0 / (a * a); y = 0.5641895835 / a * (1.0 + z * (-0.5 + z * (0.75 - z * 1.875))); }}
  if (x >= 0.0) {{ return y; }}
  let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  return 2.0 * f_exp(high * high) * f_exp((a - high) * (a + high)) - y;
}}""",
    "f_erfinv": f"""fn f_erfinv(x: f32) -> f32 {{
  if (!(abs(x) <= 1.0)) {{ return f_nan(); }}
  if (abs(x) == 1.0) {{ return f_copysign(f_inf(), x); }}
  let w = -(f_log1p(-abs(x)) + f_log1p(abs(x)));
  var y = 0.0;
  if (w < 5.0) {{ let v = w - 2.5; y = {_series(_INV_NEAR, "v")}; }}
  else {{ let v = sqrt(w) - 3.0; y = {_series(_INV_FAR, "v")}; }}
  return y * x;
}}""",
    "f_lgamma": """fn f_lgamma(x: f32) -> f32 {
  if (f_isnan(x)) { return x; }
  if (f_isinf(x)) { return f_inf(); }
  if (x <= 0.0 && floor(x) == x) { return f_inf(); }
  if (x < 0.0) {
    let a = -x;
    let part = a - floor(a);
    return 1.1447298858 - f_log(abs(f_sin(3.1415926536 * min(part, 1.0 - part)))) - f_lgamma_of(1.0 + a);
  }
  return f_lgamma_of(x);
}""",
    "f_lgamma_of": f"""fn f_lgamma_of(x: f32) -> f32 {{
  var z = x;
  var p = 1.0;
  while (z < 7.0) {{ p *= z; z += 1.0; }}
  let r = 1.0 / z;
  let s = r * r;
  return (z - 0.5) * f_log(z) - z + 0.9189385332 + r * {_series(_STIRLING, "s")} - f_log(p);
}}""",
    "f_digamma": """fn f_digamma(x: f32) -> f32 {
  if (f_isnan(x)) { return x; }
  if (x == 0.0) { return f_copysign(f_inf(), -x); }
  if (f_isinf(x)) { return select(f_nan(), x, x > 0.0); }
  if (x < 0.0) {
    if (floor(x) == x) { return f_nan(); }
    let part = x - floor(x);
    return f_digamma_of(1.0 - x) - 3.1415926536 * f_cos(3.1415926536 * part) / f_sin(3.1415926536 * part);
  }
  return f_digamma_of(x);
}""",
    "f_digamma_of": f"""fn f_digamma_of(x: f32) -> f32 {{
  var z = x;
  var y = 0.0;
  while (z < 8.0) {{ y -= 1.0 / z; z += 1.0; }}
  let s = 1.0 / (z * z);
  return y + f_log(z) - 0.5 / z - s * {_series(_DIGAMMA, "s")};
}}""",
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
    "f_hypot": """fn f_hypot(a: f32, b: f32) -> f32 {
  if (f_isinf(a) || f_isinf(b)) { return f_inf(); }
  if (f_isnan(a) || f_isnan(b)) { return f_nan(); }
  let x = max(abs(a), abs(b));
  let y = min(abs(a), abs(b));
  if (x == 0.0) { return 0.0; }
  let r = y / x;
  return x * sqrt(1.0 + r * r);
}""",
    "f_ldexp": """fn f_ldexp(a: f32, b: f32) -> f32 {
  let half = clamp(f_trunc(b * 0.5), -127.0, 127.0);
  return (a * f_exp2(half)) * f_exp2(b - half);
}""",
    "f_logaddexp": """fn f_logaddexp(a: f32, b: f32) -> f32 {
  if (f_isnan(a) || f_isnan(b)) { return f_nan(); }
  if (a == b) { return a + 0.69314718056; }
  return max(a, b) + f_log1p(f_exp(-abs(a - b)));
}""",
    "f_logaddexp2": """fn f_logaddexp2(a: f32, b: f32) -> f32 {
  if (f_isnan(a) || f_isnan(b)) { return f_nan(); }
  if (a == b) { return a + 1.0; }
  return max(a, b) + f_log1p(f_exp2(-abs(a - b))) * 1.44269504;
}""",
    "f_xlogy": """fn f_xlogy(a: f32, b: f32) -> f32 {
  if (f_isnan(b)) { return b; }
  if (a == 0.0) { return 0.0; }
  return a * f_log(b);
}""",
    "f_xlog1py": """fn f_xlog1py(a: f32, b: f32) -> f32 {
  if (f_isnan(b)) { return b; }
  if (a == 0.0) { return 0.0; }
  return a * f_log1p(b);
}""",
    "f_sinc": """fn f_sinc(x: f32) -> f32 {
  if (x == 0.0) { return 1.0; }
  let z = 3.1415926536 * x;
  return f_sin(z) / z;
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
