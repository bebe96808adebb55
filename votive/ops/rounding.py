"""Size, sign and rounding of numbers. Formulas only; knows nothing of how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Spec
from ..formula import Expr, apply
from .registry import Op, composite, pointwise

if TYPE_CHECKING:
    from .types import Tensor


def real_of_complex(promoted: dt.dtype, x: Spec) -> tuple[dt.dtype, dt.dtype]:
    """Dtype rule of a real-valued function of a complex number."""
    return promoted, promoted.to_real()


_ABS = pointwise(
    "abs(Tensor input)",
    abs,
    dtypes=real_of_complex,
    allow="ifc",
    aliases=("absolute",),
    inplace=False,
    doc="""Absolute value; the modulus of a complex number.

    >>> votive.abs(votive.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """,
    operator="abs",
)


@composite(name="abs_", aliases=("absolute_",))
def abs_inplace(input: Tensor) -> Tensor:
    """In-place form of `abs`, for real tensors.

    >>> votive.tensor([-1, 2]).abs_()
    tensor([1, 2])
    """
    if input.dtype.is_complex:
        fail(DtypeError, "abs_", "the modulus is real and cannot overwrite a complex tensor.")
    return Op.write(_ABS, (input,))


pointwise(
    "sign(Tensor input)",
    allow="bif",
    doc="""The sign of each element: -1, 0 or 1.

    >>> votive.sign(votive.tensor([-2.5, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """,
)

pointwise(
    "signbit(Tensor input)",
    dtypes="bool",
    allow="bif",
    inplace=False,
    doc="""Whether the sign bit is set; unlike `input < 0` it tells -0.0 from 0.0.

    >>> votive.signbit(votive.tensor([-1.0, 0.0, -0.0]))
    tensor([ True, False,  True])
    """,
)

pointwise(
    "floor(Tensor input)",
    allow="if",
    doc="""The largest integer not above each element.

    >>> votive.floor(votive.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """,
    inplace_function=True,
)

pointwise(
    "ceil(Tensor input)",
    allow="if",
    doc="""The smallest integer not below each element.

    >>> votive.ceil(votive.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """,
    inplace_function=True,
)

pointwise(
    "trunc(Tensor input)",
    allow="if",
    aliases=("fix",),
    doc="""The integer part of each element: rounding toward zero.

    >>> votive.trunc(votive.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """,
    inplace_function=True,
)

pointwise(
    "frac(Tensor input)",
    lambda x: x - apply("trunc", x),
    allow="f",
    doc="""What `trunc` cuts off, `input - trunc(input)`.

    >>> votive.frac(votive.tensor([-1.5, 1.25]))
    tensor([-0.5000,  0.2500])
    """,
    inplace_function=True,
)


def _round(x: Expr, decimals: int) -> Expr:
    if decimals == 0:
        return apply("round", x)
    # Scale by an exact power of ten: 10 ** -2 is not one, so divide instead.
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return apply("round", x * scale) / scale
    return apply("round", x / scale) * scale


def _round_types(promoted: dt.dtype, x: Spec, decimals: int) -> tuple[dt.dtype, dt.dtype]:
    if decimals and promoted.category == dt.INT:
        fail(UnsupportedError, "round", f"decimals={decimals} is not implemented for {promoted}.")
    return promoted, promoted


pointwise(
    "round(Tensor input, *, int decimals=0)",
    _round,
    dtypes=_round_types,
    allow="if",
    also=("special.round",),
    doc="""The nearest integer, or multiple of `10^-decimals`; halves go to the even neighbour.

    >>> votive.round(votive.tensor([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    >>> votive.round(votive.tensor([3.14159]), decimals=2)
    tensor([3.1400])
    """,
    inplace_function=True,
)
