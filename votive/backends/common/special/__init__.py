"""The special functions that NumPy lacks, elementwise on float arrays. Knows arrays only.

Names, argument order and special values are those of `torch.special`. Every function takes arrays
of any shape and strides and returns the same dtype; arithmetic is float64 inside, and no floating
point warning escapes.
"""

from .airy import airy_ai
from .bessel import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from .error_function import entr, erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .gamma import digamma, lgamma, polygamma, trigamma, zeta
from .incomplete_gamma import gammainc, gammaincc

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "entr", "erf",
    "erfc", "erfcx", "erfinv", "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "lgamma",
    "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtr", "ndtri", "polygamma",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "trigamma",
    "zeta",
]  # fmt: skip
