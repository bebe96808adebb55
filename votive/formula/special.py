"""Derivatives of the special functions, by series where closed forms cancel. No tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .expr import Expr, Operand, apply, where

SQRT_PI = math.sqrt(math.pi)
SQRT_2PI = math.sqrt(2 * math.pi)
# Below this argument closed forms lose digits to cancellation; eight terms of a series lose none.
SMALL = 0.75
TERMS = 8


def _of(name: str) -> Callable[..., Expr]:
    return lambda *args: apply(name, *args)


exp, log, sin, cos, sgn = (_of(n) for n in ("exp", "log", "sin", "cos", "sgn"))
i0, i0e, i1, i1e = (_of(n) for n in ("i0", "i0e", "i1", "i1e"))
j0, j1, y0, y1 = (_of(f"bessel_{n}") for n in ("j0", "j1", "y0", "y1"))
k0, k1 = _of("modified_bessel_k0"), _of("modified_bessel_k1")
k0e, k1e = _of("scaled_modified_bessel_k0"), _of("scaled_modified_bessel_k1")


def _polynomial(coefficients: Sequence[float], x: Expr) -> Operand:
    total: Operand = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _sine_ratio(y: Expr, a: Expr, scale: float) -> Expr:
    """The slope of `sin(z) / z`, z = scale a: `(cos(z) - y) / a`, whose parts cancel near 0."""
    series = [(-1) ** k * 2 * k * scale ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, TERMS + 1)]
    near = a * _polynomial(series, a * a)
    return where(abs(a) < SMALL / scale, near, (cos(scale * a) - y) / a)


def _order_one(a: Expr, sign: int) -> Operand:
    """The slope of I1 (sign 1) or J1 (sign -1) near 0: DLMF 10.25.2 and 10.2.2, differentiated."""
    series = [sign**k * (2 * k + 1) / (2 * 4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(TERMS)]
    return _polynomial(series, a * a)


def _i1e_slope(y: Expr, a: Expr) -> Expr:
    near = exp(-abs(a)) * _order_one(a, 1) - sgn(a) * y
    return where(abs(a) < SMALL, near, i0e(a) - y * (sgn(a) + 1 / a))


def _log_ndtr_slope(y: Expr, a: Expr) -> Expr:
    # Density over distribution. On the left both vanish, and erfcx is their ratio already; on the
    # right erfcx overflows, and the exponents do not cancel.
    left = 1 / (math.sqrt(math.pi / 2) * apply("erfcx", a * -math.sqrt(0.5)))
    return where(a < 0, left, exp(-0.5 * (a * a) - y) / SQRT_2PI)


def _gamma_density(a: Expr, x: Expr) -> Expr:
    return exp((a - 1) * log(x) - x - apply("lgamma", a))


# As in derivative.py: from the value y and the arguments; None where no derivative is known.
RULES: dict[str, Callable[..., tuple[Operand | None, ...]]] = {
    "erf": lambda y, a: (2 / SQRT_PI * exp(-(a * a)),),
    "erfc": lambda y, a: (-2 / SQRT_PI * exp(-(a * a)),),
    "erfinv": lambda y, a: (SQRT_PI / 2 * exp(y * y),),
    "erfcx": lambda y, a: (2 * a * y - 2 / SQRT_PI,),
    "ndtri": lambda y, a: (SQRT_2PI * exp(0.5 * (y * y)),),
    "log_ndtr": lambda y, a: (_log_ndtr_slope(y, a),),
    "lgamma": lambda y, a: (apply("digamma", a),),
    "digamma": lambda y, a: (apply("polygamma", 1, a),),
    "polygamma": lambda y, n, a: (0, apply("polygamma", n + 1, a)),
    "gammainc": lambda y, a, x: (None, _gamma_density(a, x)),
    "gammaincc": lambda y, a, x: (None, -_gamma_density(a, x)),
    "zeta": lambda y, s, q: (None, -s * apply("zeta", s + 1, q)),
    "sinc": lambda y, a: (_sine_ratio(y, a, math.pi),),
    "spherical_bessel_j0": lambda y, a: (_sine_ratio(y, a, 1.0),),
    "i0": lambda y, a: (i1(a),),
    "i0e": lambda y, a: (i1e(a) - sgn(a) * y,),
    "i1": lambda y, a: (where(abs(a) < SMALL, _order_one(a, 1), i0(a) - y / a),),
    "i1e": lambda y, a: (_i1e_slope(y, a),),
    "bessel_j0": lambda y, a: (-j1(a),),
    "bessel_j1": lambda y, a: (where(abs(a) < SMALL, _order_one(a, -1), j0(a) - y / a),),
    "bessel_y0": lambda y, a: (-y1(a),),
    "bessel_y1": lambda y, a: (y0(a) - y / a,),
    "modified_bessel_k0": lambda y, a: (-k1(a),),
    "modified_bessel_k1": lambda y, a: (-k0(a) - y / a,),
    "scaled_modified_bessel_k0": lambda y, a: (y - k1e(a),),
    "scaled_modified_bessel_k1": lambda y, a: (y - k0e(a) - y / a,),
}
