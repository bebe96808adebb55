"""Powers and roots. Formulas only; knows nothing of how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, fail
from ..core.layout import Spec
from ..core.promotion import is_number, number_type, result_type_of
from ..formula import Expr, apply, lift, where
from .registry import F, Op, composite, pointwise

if TYPE_CHECKING:
    from .types import Number, Operand, Tensor

pointwise(
    "sqrt(Tensor input)",
    dtypes="float",
    doc="""Square root.

    >>> votive.sqrt(votive.tensor([4.0, 2.0]))
    tensor([2.0000, 1.4142])
    """,
    inplace_function=True,
)

pointwise(
    "rsqrt(Tensor input)",
    dtypes="float",
    doc="""`1 / sqrt(input)`.

    >>> votive.rsqrt(votive.tensor([4.0, 1.0]))
    tensor([0.5000, 1.0000])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "reciprocal(Tensor input)",
    dtypes="float",
    doc="""`1 / input`.

    >>> votive.reciprocal(votive.tensor([4, 1]))
    tensor([0.2500, 1.0000])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)


def _square_types(promoted: dt.dtype, x: Spec) -> tuple[dt.dtype, dt.dtype]:
    kind = dt.int64 if promoted is dt.bool_ else promoted
    return kind, kind


pointwise(
    "square(Tensor input)",
    dtypes=_square_types,
    doc="""`input * input`.

    >>> votive.square(votive.tensor([3, -4]))
    tensor([ 9, 16])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)


def _power(x: Expr, n: Number) -> Expr:
    """x^n for a known n, by products and roots in the cases that torch singles out."""
    if n == 0:
        return lift(1)
    if n == 2:
        return x * x
    if n == 3:
        return x * x * x
    if n == -2:
        return 1 / (x * x)
    roots: dict[Number, str] = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    root = roots.get(n)
    return apply(root, x) if root else x**n


def _power_types(promoted: dt.dtype, x: Spec, n: Number) -> tuple[dt.dtype, dt.dtype]:
    number = number_type(n.__class__)
    dims, zeros = ([x.dtype], []) if x.ndim else ([], [x.dtype])
    kind = result_type_of(dims, zeros, [number])
    if kind.category <= dt.INT and not isinstance(n, complex) and n < 0:
        fail(DtypeError, "pow", f"integers to negative integer powers are not allowed, got {n}.")
    return kind, kind


_POW_NUMBER = pointwise(
    "_pow_number(Tensor input, number exponent)",
    _power,
    dtypes=_power_types,
    grad={"input": lambda g, x, n, y: 0 * g if n == 0 else g * (n * _power(x, n - 1))},
    doc="A power whose exponent is known beforehand.",
    typical=((2,), (3,), (4,), (-1,), (-2,), (0.5,), (-0.5,), (1.5,)),
)


_POW = pointwise(
    "_pow(Operand input, Operand exponent)",
    lambda a, b: apply("pow", a, b),
    grad={
        "input": lambda g, a, b, y: where(b.eq(0), 0, g * (b * a ** (b - 1))),
        # 0^b has slope 0 for b >= 0, where log(0) would give nan.
        "exponent": lambda g, a, b, y: where(a.eq(0) & (b >= 0), 0, g * (y * apply("log", a))),
    },
    allow="ifc",
    doc="A power whose exponent is a tensor.",
)


def _pick(exponent: Operand) -> Op:
    return _POW_NUMBER if is_number(exponent) else _POW


@composite(name="pow", out=True, operator="pow", autocast={"cuda": "float32"})
def pow_(input: Operand, exponent: Operand) -> Tensor:
    """`input ^ exponent`, elementwise; either may be a number.

    >>> votive.pow(votive.tensor([1, 2, 3]), 2)
    tensor([1, 4, 9])
    >>> votive.pow(2, votive.tensor([1, 2, 3]))
    tensor([2, 4, 8])
    """
    return _pick(exponent)(input, exponent)


@composite(name="pow_", namespaces=())
def pow_inplace(input: Tensor, exponent: Operand) -> Tensor:
    """In-place form of `pow`.

    >>> votive.tensor([1, 2, 3]).pow_(2)
    tensor([1, 4, 9])
    """
    return Op.write(_pick(exponent), (input, exponent))


def _in_double(x: Operand, kind: dt.dtype) -> Operand:
    if is_number(x):
        return complex(x) if kind.is_complex or isinstance(x, complex) else float(x)
    return F._to_dtype(x, kind)


def _double_of(*operands: Operand) -> dt.dtype:
    wide = any(isinstance(v, complex) if is_number(v) else v.dtype.is_complex for v in operands)
    return dt.complex128 if wide else dt.float64


@composite(out=True)
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """`input ^ exponent`, computed and returned in double precision.

    >>> votive.float_power(votive.tensor([1, 2]), 2)
    tensor([1., 4.], dtype=votive.float64)
    """
    kind = _double_of(input, exponent)
    return pow_(_in_double(input, kind), _in_double(exponent, kind))


@composite(name="float_power_", namespaces=())
def float_power_inplace(input: Tensor, exponent: Operand) -> Tensor:
    """In-place form of `float_power`, for tensors that are double already.

    >>> votive.tensor([3.0], dtype=votive.float64).float_power_(2)
    tensor([9.], dtype=votive.float64)
    """
    kind = _double_of(input, exponent)
    if input.dtype is not kind:
        fail(DtypeError, "float_power_", f"the tensor must be {kind}, got {input.dtype}.")
    return pow_inplace(input, _in_double(exponent, kind))
