"""Points and weights of the quadrature that gradients of gamma samples use."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

# Gauss-Legendre points for each piece; the steepest integrand, exp(-40 y), needs 30.
POINTS = 32


@functools.cache
def nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    return (points + 1) / 2, weights / 2
