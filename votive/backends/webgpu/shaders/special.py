"""Error functions, the logarithm of the gamma function and its derivative on f32: WGSL has none of them."""

from __future__ import annotations

import math

from .elementary import series

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

FUNCTIONS = {
    "f_erf": f"""fn f_erf(x: f32) -> f32 {{
  let a = abs(x);
  if (a < 1.0) {{ let z = x * x; return x * {series(_ERF, "z")}; }}
  return f_copysign(1.0 - f_erfc_of(a), x);
}}""",
    "f_erfc_of": f"""fn f_erfc_of(a: f32) -> f32 {{
  if (a > 10.1) {{ return 0.0; }}
  let t = 1.0 / (1.0 + 0.5 * a);
  let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let square = -high * high;
  return t * f_exp(square) * f_exp((high - a) * (high + a) + {series(_ERFC, "t")});
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
  var y = t * f_exp({series(_ERFC, "t")});
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
  if (w < 5.0) {{ let v = w - 2.5; y = {series(_INV_NEAR, "v")}; }}
  else {{ let v = sqrt(w) - 3.0; y = {series(_INV_FAR, "v")}; }}
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
  return (z - 0.5) * f_log(z) - z + 0.9189385332 + r * {series(_STIRLING, "s")} - f_log(p);
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
  return y + f_log(z) - 0.5 / z - s * {series(_DIGAMMA, "s")};
}}""",
}
