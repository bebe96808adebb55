"""All scalar functions that kernels use, by the names of the formula primitives: `f_` on floats,
`i_` on integers and truth values. Each stands in the file of its idea.

Special functions are loaded when they are first asked for: their tables take a while to compute.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .elementary import *  # noqa: F403
from .floats import *  # noqa: F403
from .integers import *  # noqa: F403
from .order import *  # noqa: F403

_SPECIAL = {
    "gamma": ("digamma", "polygamma", "zeta"),
    "gammainc": ("gammainc", "gammaincc"),
    "bessel": (
        "i0e",
        "i1e",
        "bessel_j0",
        "bessel_j1",
        "bessel_y0",
        "bessel_y1",
        "modified_bessel_k0",
        "modified_bessel_k1",
        "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1",
        "spherical_bessel_j0",
        "airy_ai",
    ),
    "polynomial": (
        *(f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"),
        "hermite_polynomial_h",
        "hermite_polynomial_he",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
    ),
}
_WHERE = {f"f_{name}": file for file, names in _SPECIAL.items() for name in names}


def is_special(primitive: str) -> bool:
    """Whether a primitive of formulas takes many steps."""
    return f"f_{primitive}" in _WHERE


def __getattr__(name: str) -> Any:
    file = _WHERE.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__package__}.{file}"), name)
