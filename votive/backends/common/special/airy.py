"""Airy's Ai, by way of the Bessel function K of order 1/3. Knows arrays only."""

from __future__ import annotations

import math

import numpy as np

from .approx import F64, elementwise, fill, horner
from .bessel import in_reciprocal, real_fit, wave_fit

# Ai(0) and -Ai'(0), DLMF 9.2.3 and 9.2.4.
_AI_0 = 0.35502805388781723926
_MINUS_AI_PRIME_0 = 0.25881940379280679841

# Outside [-LEFT, RIGHT) the power series cancels.
_LEFT, _RIGHT = 2.5, 1.0
_LEFT_ZETA, _RIGHT_ZETA = (2 / 3 * x**1.5 for x in (_LEFT, _RIGHT))


def _series(first: int, terms: int = 17) -> list[float]:
    """The solution of y'' = xy that starts as x^first, as coefficients in x³ (DLMF 9.4.1)."""
    out = [1.0]
    for n in range(first + 3, first + 3 * terms, 3):
        out.append(out[-1] / (n * (n - 1)))
    return out


_EVEN, _ODD = _series(0), _series(1)


@elementwise
def airy_ai(x: F64) -> F64:
    """The solution of y'' = xy that decays to the right; nan at infinity, as in torch."""
    out = np.full_like(x, np.nan)

    def centre(x: F64) -> F64:
        cube = x * x * x
        return _AI_0 * horner(_EVEN, cube) - _MINUS_AI_PRIME_0 * x * horner(_ODD, cube)

    def right(x: F64) -> F64:  # DLMF 9.6.2
        root = np.sqrt(x)
        zeta = 2 / 3 * x * root
        value = in_reciprocal(real_fit(1 / 3, _RIGHT_ZETA), _RIGHT_ZETA, zeta)
        return value * np.exp(-zeta) / (2 * math.sqrt(math.pi) * np.sqrt(root))

    def left(x: F64) -> F64:  # DLMF 9.6.6
        root = np.sqrt(-x)
        zeta = 2 / 3 * -x * root
        p, q = (in_reciprocal(c, _LEFT_ZETA, zeta) for c in wave_fit(1 / 3, _LEFT_ZETA))
        sine, cosine = np.sin(zeta), np.cos(zeta)
        mixed = p * (cosine + sine) - q * (sine - cosine)
        return mixed / np.sqrt(2 * np.pi * root)

    fill(out, (x >= -_LEFT) & (x < _RIGHT), centre, x)
    fill(out, (x >= _RIGHT) & (x < np.inf), right, x)
    fill(out, x < -_LEFT, left, x)
    return out
