"""The regularised incomplete gamma functions P(a, x) and Q(a, x), in float64 whatever the type. The
methods and their regions are those of `common/special/incomplete_gamma.py`. Knows no memory.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...common.special.incomplete_gamma import _temme
from .elementary import f_div, libdevice
from .gamma import any_, lgamma1p, stirling_rest
from .source import function, polynomial

_ROWS = {f"row{k}": polynomial(f"temme_{k}", row) for k, row in enumerate(_temme())}
_deficit_series = polynomial("deficit", [1 / (2 * k + 3) for k in range(17)])


def _temme_sum() -> object:
    lines = ["total = tl.zeros_like(eta)"]
    lines += [f"total = total * inverse + {name}(eta)" for name in reversed(_ROWS)]
    body = "".join(f"    {line}\n" for line in [*lines, "return total"])
    return function(f"@triton.jit\ndef temme_sum(eta, inverse):\n{body}", "temme_sum", **_ROWS)


_sum_of_rows: Any = _temme_sum()


@triton.jit
def _one(x):
    return tl.zeros_like(x) + 1


@triton.jit
def _log_deficit(mu):
    """mu - log(1 + mu), never negative, with relative accuracy for |mu| <= 1/2."""
    s = f_div(mu, 2 + mu)
    square = s * s
    return s * (mu - 2 * square * _deficit_series(square))


@triton.jit
def _near_diagonal(a, x):
    """Temme's uniform expansion: P where x < a, Q elsewhere."""
    mu = f_div(x - a, a)
    half = _log_deficit(mu)
    eta = libdevice.copysign(libdevice.sqrt(2 * half), mu)
    exponent = a * half
    total = _sum_of_rows(eta, f_div(_one(a), a))
    total = f_div(total, libdevice.copysign(libdevice.sqrt(a * 6.283185307179586), mu))
    return libdevice.exp(-exponent) * (0.5 * libdevice.erfcx(libdevice.sqrt(exponent)) + total)


@triton.jit
def _front(a, x):
    """x^a exp(-x) / Γ(a + 1). Exponents are halved and the root squared, lest a factor alone
    overflow or vanish; beyond the caps on x the result is zero.
    """
    low = a < 10
    near = tl.minimum(x, 1e3)
    root = libdevice.pow(near, tl.where(low, a, 1.0) * 0.5) * libdevice.exp(-near * 0.5)
    small = f_div(root * root, libdevice.tgamma(tl.where(low, a, 1.0) + 1))
    # Stirling's leading terms are taken into the exponent, where they cancel exactly.
    b = tl.where(low, 10.0, a)
    mu = f_div(x - b, b)
    close = tl.abs(mu) < 0.5
    lead = libdevice.exp(-b * _log_deficit(tl.where(close, mu, 0.0)))
    capped = tl.minimum(x, 5e3)
    moderate = tl.where(b < 200, b, 10.0)
    root = libdevice.pow(f_div(capped, moderate), moderate * 0.5)
    root = root * libdevice.exp((moderate - capped) * 0.5)
    far = libdevice.exp((b - x) + b * libdevice.log(f_div(x, b)))
    lead = tl.where(close, lead, tl.where(b < 200, root * root, far))
    large = lead * libdevice.exp(-stirling_rest(b))
    large = f_div(large, libdevice.sqrt(b * 6.283185307179586))
    return tl.where(low, small, large)


@triton.jit
def _lower_series(a, x, live):
    """P as a power series with positive terms (DLMF 8.11.4); for x < a or small x."""
    total = _one(a)
    term = total
    n = a
    k = tl.full((), 0, tl.int32)
    while any_(live) & (k < 200):
        n = n + 1
        term = term * f_div(x, n)
        total = total + term
        live = live & (term > 5.551115123125783e-17 * total)
        k += 1
    return total


@triton.jit
def _upper_series(a, x):
    """Q for small x and a, where P is near 1 (DLMF 8.7.1, its leading term by expm1)."""
    total = tl.zeros_like(a)
    power = total + 1
    for n in tl.static_range(1, 22):
        power = power * (-x * (1 / n))
        total += f_div(power, a + n)
    head = libdevice.expm1(a * libdevice.log(x) - lgamma1p(a))
    return -head - (1 + head) * a * total


@triton.jit
def _upper_fraction(a, x, live):
    """Q by its continued fraction (DLMF 8.9.2), for x > a and x > 1, summed as a series of its
    convergents' differences.
    """
    b = x + 1 - a
    total = _one(a)
    term = total
    rho = total * 0
    lower = b
    k = tl.full((), 1.0, tl.float64)
    while any_(live) & (k < 200):
        upper = lower + 2
        rho = (1 + rho) * f_div(f_div(k * (k - a), lower), upper)
        rho = f_div(rho, 1 - rho)
        # For integer a the series ends, and past its end rho may be anything.
        term = tl.where(term == 0, 0.0, term * rho)
        total = tl.where(live, total + term, total)
        lower = upper
        live = live & (tl.abs(term) > 5.551115123125783e-17 * total)
        k += 1
    return f_div(a * total, b)


@triton.jit
def _regularised(given, other, UPPER: tl.constexpr):
    inf = float("inf")
    given_x = other.to(tl.float64) + tl.zeros_like(given).to(tl.float64)
    given_a = given.to(tl.float64) + tl.zeros_like(given_x)
    inside = (given_a > 0) & (given_x > 0) & (given_a < inf) & (given_x < inf)
    a = tl.where(inside, given_a, 1.0)
    x = tl.where(inside, given_x, 1.0)

    diagonal = (a > 20) & (tl.abs(x - a) < 0.3 * a)
    series = (diagonal == 0) & ((x < 1.1) | (x < a))
    fraction = (diagonal | series) == 0
    # P falls below about 2/3 when x^a does; above that Q is the one to compute.
    bound = tl.where(x <= 0.5, f_div(_one(x) * -0.4, libdevice.log(tl.minimum(x, 0.5))), 1.1 * x)
    upper = series & (x < 1.1) & (a <= bound)
    lower = series & (upper == 0)
    front = _front(a, x)
    value = front * _lower_series(tl.where(lower, a, 1.0), tl.where(lower, x, 0.5), lower)
    value = tl.where(upper, _upper_series(tl.where(upper, a, 1.0), tl.where(upper, x, 0.5)), value)
    tail = _upper_fraction(tl.where(fraction, a, 1.0), tl.where(fraction, x, 2.0), fraction)
    value = tl.where(fraction, front * tail, value)
    if any_(diagonal):
        near = _near_diagonal(tl.where(diagonal, a, 21.0), tl.where(diagonal, x, 21.0))
        value = tl.where(diagonal, near, value)
    is_upper = upper | fraction | (diagonal & (x >= a))
    if UPPER:
        value = tl.where(is_upper, value, 1 - value)
    else:
        value = tl.where(is_upper, 1 - value, value)

    zero: tl.constexpr = 1.0 if UPPER else 0.0
    one: tl.constexpr = 0.0 if UPPER else 1.0
    valid = ((given_a < 0) | (given_x < 0)) == 0
    out = tl.where(inside, value, float("nan"))
    out = tl.where(valid & (given_x == inf), one, out)
    out = tl.where(valid & (given_a == inf), zero, out)
    out = tl.where((given_a == inf) & (given_x == inf), float("nan"), out)
    out = tl.where(valid & (given_x == 0), zero, out)
    out = tl.where(valid & (given_a == 0), one, out)
    out = tl.where((given_a == 0) & ((given_x > 0) == 0), float("nan"), out)
    out = tl.where((given_a != given_a) | (given_x != given_x), float("nan"), out)
    return out.to(given.dtype)


@triton.jit
def f_gammainc(a, x):
    return _regularised(a, x, False)


@triton.jit
def f_gammaincc(a, x):
    return _regularised(a, x, True)
