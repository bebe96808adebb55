"""Arithmetic: sums, products, quotients, remainders. Knows formulas, not how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Spec
from ..formula import Expr, apply, where
from .inquiry import require_tensors
from .registry import F, composite, pointwise

if TYPE_CHECKING:
    from .types import Callable, Number, Operand, Tensor


def is_bool(operand: Spec | Number) -> bool:
    """Whether a spec or a number is of bool type."""
    return operand.dtype is dt.bool_ if isinstance(operand, Spec) else isinstance(operand, bool)


def _alpha_types(op: str) -> Callable[..., Any]:
    def rule(promoted: dt.dtype, a: Spec | Number, b: Spec | Number, alpha: float) -> tuple[dt.dtype, dt.dtype]:
        if op == "sub" and (is_bool(a) or is_bool(b)):
            fail(DtypeError, op, "bool operands are not supported; use ^ or logical_not().")
        if isinstance(alpha, bool) and promoted.category != dt.BOOL:
            fail(DtypeError, op, "alpha may be a bool only for bool results.")
        if promoted.category < dt.FLOAT and isinstance(alpha, (float, complex)):
            fail(DtypeError, op, f"for integer inputs alpha must be an integer, got {alpha}.")
        if promoted.category < dt.COMPLEX and isinstance(alpha, complex):
            fail(DtypeError, op, f"for real inputs alpha must be real, got {alpha}.")
        return promoted, promoted

    return rule


def _add(a: Expr, b: Expr, alpha: int) -> Expr:
    if alpha == 1:
        return a + b
    # Not the simplifying product: 0 * inf is nan, also for an alpha known to be 0. A negative alpha
    # is turned into a difference, because unsigned types cannot hold it.
    if not isinstance(alpha, complex) and alpha < 0:
        return a - apply("mul", -alpha, b)
    return a + apply("mul", alpha, b)


pointwise(
    "add(Operand input, Operand other, *, number alpha=1)",
    _add,
    placement="added",
    dtypes=_alpha_types("add"),
    doc="""`input + alpha * other`, elementwise.

    >>> votive.add(votive.tensor([1, 2]), votive.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """,
    operator="add",
)

pointwise(
    "sub(Operand input, Operand other, *, number alpha=1)",
    lambda a, b, alpha: a - b if alpha == 1 else _add(a, b, -alpha),
    placement="added",
    dtypes=_alpha_types("sub"),
    aliases=("subtract",),
    doc="""`input - alpha * other`, elementwise.

    >>> votive.sub(votive.tensor([10, 20]), votive.tensor([1, 2]))
    tensor([ 9, 18])
    """,
    operator="sub",
)


@composite(name="rsub")
def rsub(input: Operand, other: Operand, *, alpha: Number = 1) -> Tensor:
    """`other - alpha * input`: subtraction with the operands exchanged.

    >>> votive.rsub(votive.tensor([1, 2]), 10)
    tensor([9, 8])
    """
    require_tensors("rsub", input=input)
    return F.sub(other, input, alpha=alpha)


pointwise(
    "mul(Operand input, Operand other)",
    lambda a, b: a * b,
    placement="scaled",
    dtypes="any",
    aliases=("multiply",),
    doc="""`input * other`, elementwise.

    >>> votive.mul(votive.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """,
    operator="mul",
)


def _div_types(promoted: dt.dtype, a: Spec | Number, b: Spec | Number, mode: str | None) -> tuple[dt.dtype, dt.dtype]:
    if mode is None:
        kind = promoted if promoted.is_inexact else dt.get_default_dtype()
        return kind, kind
    if mode not in ("trunc", "floor"):
        fail(RuntimeError, "div", f"rounding_mode must be None, 'trunc' or 'floor', got {mode!r}.")
    if promoted.category in (dt.BOOL, dt.COMPLEX):
        fail(UnsupportedError, "div", f"rounding_mode={mode!r} is not implemented for {promoted}.")
    return promoted, promoted


def _div(a: Expr, b: Expr, mode: str | None) -> Expr:
    if mode is None:
        return a / b
    return apply("trunc_divide" if mode == "trunc" else "floor_divide", a, b)


pointwise(
    "div(Operand input, Operand other, *, str? rounding_mode=None)",
    _div,
    placement="scaled",
    dtypes=_div_types,
    # Divide once: g * (1 / b) would round twice.
    grad={
        "input": lambda g, a, b, mode, y: g / b if mode is None else 0 * g,
        "other": lambda g, a, b, mode, y: -g * (y / b) if mode is None else 0 * g,
    },
    aliases=("divide", "true_divide"),
    doc="""`input / other`, elementwise; `rounding_mode` "trunc" or "floor" rounds to an integer.

    >>> votive.div(votive.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> votive.div(votive.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """,
    operator="truediv",
)

pointwise(
    "floor_divide(Operand input, Operand other)",
    allow="if",
    doc="""`input / other`, rounded down.

    >>> votive.floor_divide(votive.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """,
    operator="floordiv",
)

pointwise(
    "remainder(Operand input, Operand other)",
    lambda a, b: a % b,
    allow="if",
    doc="""Python's modulus, `input - other * floor(input / other)`: it has the sign of `other`.

    >>> votive.remainder(votive.tensor([7, -7]), 3)
    tensor([1, 2])
    """,
    rounds_numbers=True,
    operator="mod",
)

pointwise(
    "fmod(Tensor input, Operand other)",
    allow="if",
    doc="""C's remainder, `input - other * trunc(input / other)`: it has the sign of `input`.

    >>> votive.fmod(votive.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """,
    rounds_numbers=True,
)


def _neg_types(promoted: dt.dtype, x: Spec) -> tuple[dt.dtype, dt.dtype]:
    if promoted is dt.bool_:
        fail(DtypeError, "neg", "a bool tensor has no negative; use ~ or logical_not().")
    return promoted, promoted


pointwise(
    "neg(Tensor input)",
    lambda x: -x,
    placement="linear map",
    dtypes=_neg_types,
    aliases=("negative",),
    doc="""`-input`, elementwise.

    >>> votive.neg(votive.tensor([1, -2]))
    tensor([-1,  2])
    """,
    inplace_function=True,
    operator="neg",
)


@composite(operator="pos", looks=True)
def positive(input: Tensor) -> Tensor:
    """`+input`: the tensor itself.

    >>> votive.positive(votive.tensor([1, -2]))
    tensor([ 1, -2])
    """
    if input.dtype is dt.bool_:
        fail(DtypeError, "positive", "the + operator is not supported on a bool tensor.")
    return input


def _addc_types(op: str) -> Callable[..., Any]:
    def rule(promoted: dt.dtype, x: Spec, a: Spec, b: Spec, value: Number) -> tuple[dt.dtype, dt.dtype]:
        if op == "addcdiv" and not (a.dtype.is_inexact or b.dtype.is_inexact):
            fail(DtypeError, op, f"does not divide integers, got {a.dtype} and {b.dtype}; cast one with .to().")
        if isinstance(value, complex) and not promoted.is_complex:
            fail(DtypeError, op, f"for real inputs value must be real, got {value}.")
        return promoted, promoted

    return rule


pointwise(
    "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
    lambda x, a, b, value: x + value * a * b,
    dtypes=_addc_types("addcmul"),
    allow="ifc",
    doc="""`input + value * tensor1 * tensor2`, elementwise.

    >>> one = votive.ones(2)
    >>> votive.addcmul(one, votive.tensor([2.0, 3.0]), one, value=10)
    tensor([21., 31.])
    """,
    autocast={"cuda": "widest"},
)

pointwise(
    "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
    lambda x, a, b, value: x + value * a / b,
    dtypes=_addc_types("addcdiv"),
    allow="ifc",
    doc="""`input + value * tensor1 / tensor2`, elementwise.

    >>> one = votive.ones(2)
    >>> votive.addcdiv(one, one, votive.tensor([2.0, 4.0]))
    tensor([1.5000, 1.2500])
    """,
    autocast={"cuda": "widest"},
)


def _lerp_types(promoted: dt.dtype, a: Spec, b: Spec, w: Spec | Number) -> tuple[dt.dtype, dt.dtype]:
    if a.dtype is not b.dtype:
        fail(DtypeError, "lerp", f"end must have the dtype of input, {a.dtype}, got {b.dtype}.")
    if isinstance(w, Spec) and w.ndim and w.dtype is not a.dtype:
        fail(DtypeError, "lerp", f"weight must have the dtype of input, {a.dtype}, got {w.dtype}.")
    if promoted.is_complex and not a.dtype.is_complex:
        fail(DtypeError, "lerp", "the weight of real tensors must be real.")
    return a.dtype, a.dtype


pointwise(
    "lerp(Tensor input, Tensor end, Operand weight)",
    # From the nearer end, so that weight 0 gives exactly input and weight 1 exactly end.
    lambda a, b, w: where(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)),
    dtypes=_lerp_types,
    allow="fc",
    grad={
        "input": lambda g, a, b, w, y: g * (1 - w),
        "end": lambda g, a, b, w, y: g * w,
        "weight": lambda g, a, b, w, y: g * (b - a),
    },
    doc="""Linear interpolation, `input + weight * (end - input)`.

    >>> votive.lerp(votive.tensor([0.0, 10.0]), votive.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """,
)

pointwise(
    "hypot(Tensor input, Tensor other)",
    allow="f",
    doc="""Length of the hypotenuse, `sqrt(input^2 + other^2)`, without overflow on the way.

    >>> votive.hypot(votive.tensor([3.0]), votive.tensor([4.0]))
    tensor([5.])
    """,
)

pointwise(
    "gcd(Tensor input, Tensor other)",
    allow="i",
    differentiable=False,
    doc="""Greatest common divisor.

    >>> votive.gcd(votive.tensor([12, 7]), votive.tensor([18, 0]))
    tensor([6, 7])
    """,
    inplace_function=True,
)

pointwise(
    "lcm(Tensor input, Tensor other)",
    allow="i",
    differentiable=False,
    doc="""Least common multiple.

    >>> votive.lcm(votive.tensor([4, 7]), votive.tensor([6, 0]))
    tensor([12,  0])
    """,
    inplace_function=True,
)
