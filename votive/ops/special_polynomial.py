"""Orthogonal polynomials of a whole degree given per element. Formulas only."""

from __future__ import annotations

from ..formula import Expr, apply
from .registry import pointwise
from .special import SPECIAL


def _declare(name: str, what: str, shown: str) -> None:
    """A polynomial; `shown` is its value of degree 3 at 0.25 and 2, as printed."""

    def formula(x: Expr, n: Expr) -> Expr:
        return apply(name, x, n)

    doc = (
        f"{what} of degree n; 0 where n is negative.\n\n"
        f">>> votive.special.{name}(votive.tensor([0.25, 2.0]), 3)\n{shown}"
    )
    pointwise(f"{name}(Operand x, Operand n)", formula, doc=doc, **SPECIAL)


_FIRST = "Chebyshev polynomial of the first kind"
_SECOND = "Chebyshev polynomial of the second kind"
_THIRD = "Chebyshev polynomial of the third kind"
_FOURTH = "Chebyshev polynomial of the fourth kind"

_declare("chebyshev_polynomial_t", _FIRST, "tensor([-0.6875, 26.0000])")
_declare("chebyshev_polynomial_u", _SECOND, "tensor([-0.8750, 56.0000])")
_declare("chebyshev_polynomial_v", _THIRD, "tensor([-0.1250, 41.0000])")
_declare("chebyshev_polynomial_w", _FOURTH, "tensor([-1.6250, 71.0000])")
_declare("shifted_chebyshev_polynomial_t", f"{_FIRST} at `2 x - 1`,", "tensor([ 1., 99.])")
_declare("shifted_chebyshev_polynomial_u", f"{_SECOND} at `2 x - 1`,", "tensor([  1., 204.])")
_declare("shifted_chebyshev_polynomial_v", f"{_THIRD} at `2 x - 1`,", "tensor([  1., 169.])")
_declare("shifted_chebyshev_polynomial_w", f"{_FOURTH} at `2 x - 1`,", "tensor([  1., 239.])")
_declare("hermite_polynomial_h", "Physicist's Hermite polynomial", "tensor([-2.8750, 40.0000])")
_declare("hermite_polynomial_he", "Probabilist's Hermite polynomial", "tensor([-0.7344,  2.0000])")
_declare("laguerre_polynomial_l", "Laguerre polynomial", "tensor([ 0.3411, -0.3333])")
_declare("legendre_polynomial_p", "Legendre polynomial", "tensor([-0.3359, 17.0000])")
