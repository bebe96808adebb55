"""Bessel functions and Airy's. Formulas only; knows nothing of how they run."""

from __future__ import annotations

from ..formula import Expr, apply
from .registry import pointwise
from .special import SPECIAL

pointwise(
    "i0(Tensor input)",
    dtypes="float",
    allow="bif",
    also=("special.i0",),
    doc="""Modified Bessel function of the first kind, order 0.

    >>> votive.i0(votive.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
    inplace_function=True,
)


# torch calls the argument of these `x`.
_X = ("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "airy_ai")


def _declare(name: str, what: str, shown: str, primitive: str | None = None) -> None:
    """A function of one tensor; `shown` is its value at 1 and 2, as printed."""

    def formula(x: Expr) -> Expr:
        return apply(primitive or name, x)

    argument = "x" if name in _X else "input"

    doc = f"{what}.\n\n>>> votive.special.{name}(votive.tensor([1.0, 2.0]))\n{shown}"
    pointwise(f"{name}(Tensor {argument})", formula, doc=doc, **SPECIAL)


_declare("i0e", "`e^-|x| i0(x)`", "tensor([0.4658, 0.3085])")
_declare("i1", "Modified Bessel function of the first kind, order 1", "tensor([0.5652, 1.5906])")
_declare("i1e", "`e^-|x| i1(x)`", "tensor([0.2079, 0.2153])")
_declare("bessel_j0", "Bessel function of the first kind, order 0", "tensor([0.7652, 0.2239])")
_declare("bessel_j1", "Bessel function of the first kind, order 1", "tensor([0.4401, 0.5767])")
_declare("bessel_y0", "Bessel function of the second kind, order 0", "tensor([0.0883, 0.5104])")
_declare("bessel_y1", "Bessel function of the second kind, order 1", "tensor([-0.7812, -0.1070])")
_declare("modified_bessel_i0", "Modified Bessel function of the first kind, order 0", "tensor([1.2661, 2.2796])", "i0")
_declare("modified_bessel_i1", "Modified Bessel function of the first kind, order 1", "tensor([0.5652, 1.5906])", "i1")
_declare("modified_bessel_k0", "Modified Bessel function of the second kind, order 0", "tensor([0.4210, 0.1139])")
_declare("modified_bessel_k1", "Modified Bessel function of the second kind, order 1", "tensor([0.6019, 0.1399])")
_declare("scaled_modified_bessel_k0", "`e^x modified_bessel_k0(x)`", "tensor([1.1445, 0.8416])")
_declare("scaled_modified_bessel_k1", "`e^x modified_bessel_k1(x)`", "tensor([1.6362, 1.0335])")
_declare("spherical_bessel_j0", "Spherical Bessel function of order 0, `sin(x) / x`", "tensor([0.8415, 0.4546])")
_declare("airy_ai", "Airy function of the first kind", "tensor([0.1353, 0.0349])")
