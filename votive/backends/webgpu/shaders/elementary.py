"""Exponentials, logarithms, powers, angles and hyperbolic functions of f32 in WGSL, written out: WGSL lets a device's
own `exp`, `log`, `sin` be off by many units.
"""

from __future__ import annotations

import math


def series(terms: list[float], x: str) -> str:
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

GLOBALS = {"two_over_pi": f"var<private> two_over_pi: array<u32, 6> = array<u32, 6>({_digits()});"}

FUNCTIONS = {
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
  return f_scaled({series(_EXP, "r")}, i32(n));
}}""",
    "f_exp2": f"""fn f_exp2(x: f32) -> f32 {{
  if (!(x < 128.0)) {{ if (f_isnan(x)) {{ return x; }} return f_inf(); }}
  if (x < -151.0) {{ return 0.0; }}
  let n = floor(x + 0.5);
  let r = (x - n) * 0.69314718056;
  return f_scaled({series(_EXP, "r")}, i32(n));
}}""",
    "f_expm1": f"""fn f_expm1(x: f32) -> f32 {{
  if (abs(x) < 0.5) {{ return x * {series(_EXPM1, "x")}; }}
  return f_exp(x) - 1.0;
}}""",
    # 2 atanh(s) = log((1 + s) / (1 - s)).
    "f_atanh2": f"fn f_atanh2(s: f32) -> f32 {{ let z = s * s; return s * {series(_ATANH, 'z')}; }}",
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
    "f_sine_of": f"fn f_sine_of(r: f32) -> f32 {{ let z = r * r; return r * {series(_SIN, 'z')}; }}",
    "f_cosine_of": f"fn f_cosine_of(r: f32) -> f32 {{ let z = r * r; return {series(_COS, 'z')}; }}",
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
}
