"""Identities that tie the special functions to each other, on dense grids that cross every branch.

They need no second library: each side takes another path through the code.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from votive.backends.common import special

Array = np.ndarray[Any, Any]
Sides = tuple[Array, Array, float]

IDENTITIES: dict[str, Callable[[], Sides]] = {}


def identity(check: Callable[[], Sides]) -> None:
    """Register a check that gives two sides and the relative tolerance between them."""
    IDENTITIES[check.__name__] = check


@identity
def erf_and_erfc_sum_to_one() -> Sides:
    x = np.linspace(-8, 8, 5001)
    return special.erf(x) + special.erfc(x), np.ones_like(x), 4.5e-16


@identity
def erfinv_undoes_erf() -> Sides:
    x = np.concatenate([np.linspace(-0.99, 0.99, 5001), np.geomspace(1e-300, 0.1, 500)])
    return special.erf(special.erfinv(x)), x, 1.5e-15


@identity
def ndtri_undoes_ndtr_in_the_tail() -> Sides:
    x = np.linspace(-37.5, -0.5, 5001)
    return special.ndtri(special.ndtr(x)), x, 2e-15


@identity
def log_ndtr_is_the_logarithm_of_ndtr() -> Sides:
    x = np.linspace(-37.5, 0.0, 5001)
    return special.log_ndtr(x), np.log(special.ndtr(x)), 1.5e-15


@identity
def lgamma_steps_by_a_logarithm() -> Sides:
    x = np.linspace(3.0, 60.0, 5001)
    return special.lgamma(x + 1), special.lgamma(x) + np.log(x), 1e-15


@identity
def digamma_steps_by_a_reciprocal() -> Sides:
    x = np.linspace(2.0, 60.0, 5001)
    return special.digamma(x + 1), special.digamma(x) + 1 / x, 1e-15


@identity
def digamma_doubles() -> Sides:
    x = np.linspace(1.6, 30.0, 5001)
    halves = (special.digamma(x) + special.digamma(x + 0.5)) / 2
    return special.digamma(2 * x), halves + math.log(2), 1.5e-15


@identity
def trigamma_is_zeta_of_two() -> Sides:
    x = np.concatenate([np.linspace(-9.9, 40.0, 5000), np.geomspace(1e-100, 1e100, 500)])
    return special.trigamma(x), special.zeta(np.asarray(2.0), x), 3e-14


@identity
def zeta_steps_by_a_power() -> Sides:
    s, q = np.meshgrid(np.linspace(1.01, 30, 60), np.linspace(0.01, 30, 80))
    return special.zeta(s, q), special.zeta(s, q + 1) + q**-s, 4e-15


@identity
def incomplete_gammas_sum_to_one() -> Sides:
    a, x = np.meshgrid(np.geomspace(1e-5, 1e5, 101), np.geomspace(1e-5, 1e5, 103))
    return special.gammainc(a, x) + special.gammaincc(a, x), np.ones_like(a), 4.5e-16


@identity
def incomplete_gamma_at_one_half_is_erf() -> Sides:
    x = np.linspace(0.001, 5, 2001)
    half = np.asarray(0.5)
    both = np.concatenate([special.gammainc(half, x * x), special.gammaincc(half, x * x)])
    return both, np.concatenate([special.erf(x), special.erfc(x)]), 1.5e-14


@identity
def incomplete_gamma_is_a_poisson_sum() -> Sides:
    a, x = np.meshgrid(np.arange(1.0, 60.0), np.linspace(0.5, 80, 160))
    k = np.arange(60.0)
    terms = np.exp(k * np.log(x[..., None]) - x[..., None] - special.lgamma(k + 1))
    return special.gammaincc(a, x), np.where(k < a[..., None], terms, 0).sum(-1), 6e-14


@identity
def modified_bessel_wronskian() -> Sides:
    x = np.concatenate([np.geomspace(1e-100, 1, 500), np.linspace(1, 200, 5000)])
    k0, k1 = special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x)
    return special.i0e(x) * k1 + special.i1e(x) * k0, 1 / x, 1.5e-15


@identity
def bessel_wronskian() -> Sides:
    x = np.concatenate([np.geomspace(1e-100, 1, 500), np.linspace(1, 200, 5000)])
    j0, j1, y0, y1 = (getattr(special, f"bessel_{n}")(x) for n in ("j0", "j1", "y0", "y1"))
    return j1 * y0 - j0 * y1, 2 / (np.pi * x), 2e-15


@identity
def airy_solves_its_equation() -> Sides:
    # y'' - xy over y's own size, by central differences of order 6; they leave out 1e-10.
    x, h = np.linspace(-12, 12, 2001), 0.01
    second = sum(
        w * (special.airy_ai(x + k * h) + special.airy_ai(x - k * h))
        for k, w in enumerate((-49 / 36, 1.5, -0.15, 1 / 90))
    )
    size = np.exp(-2 / 3 * np.maximum(x, 0) ** 1.5) * np.maximum(np.abs(x), 1) ** -0.25
    return 100 + second / h**2 / size, 100 + x * special.airy_ai(x) / size, 1e-11


@pytest.mark.parametrize("name", IDENTITIES)
def test_identity_holds(name: str) -> None:
    left, right, rtol = IDENTITIES[name]()
    np.testing.assert_allclose(left, right, rtol=rtol, atol=0)
