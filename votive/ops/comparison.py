"""Comparisons and tests: what is equal, greater, finite. Knows formulas, not how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, devices_differ, fail
from ..core.layout import Spec
from ..core.promotion import is_number
from .inquiry import require_tensors, result_type
from .registry import F, composite, pointwise, structured

if TYPE_CHECKING:
    from .types import Operand, Tensor


def _compare(name: str, sign: str, allow: str, aliases: tuple[str, ...], example: str) -> None:
    pointwise(
        f"{name}(Tensor input, Operand other)",
        dtypes="bool",
        allow=allow,
        aliases=aliases,
        operator=name,
        doc=f"""`input {sign} other`, elementwise.

        >>> votive.{name}(votive.tensor([1, 2, 3]), 2)
        tensor({example})
        """,
    )


_compare("eq", "==", "bifc", (), "[False,  True, False]")
_compare("ne", "!=", "bifc", ("not_equal",), "[ True, False,  True]")
_compare("lt", "<", "bif", ("less",), "[ True, False, False]")
_compare("le", "<=", "bif", ("less_equal",), "[ True,  True, False]")
_compare("gt", ">", "bif", ("greater",), "[False, False,  True]")
_compare("ge", ">=", "bif", ("greater_equal",), "[False,  True,  True]")


def _test(name: str, allow: str, text: str, values: str, example: str) -> None:
    pointwise(
        f"{name}(Tensor input)",
        dtypes="bool",
        allow=allow,
        inplace=False,
        out=name in ("isposinf", "isneginf"),
        doc=f"""{text}

        >>> votive.{name}(votive.tensor({values}))
        tensor({example})
        """,
    )


_INFS = '[1.0, float("inf"), float("-inf")]'
_test("isnan", "bifc", "Whether each element is NaN.", '[1.0, float("nan")]', "[False,  True]")
_test("isinf", "bifc", "Whether each element is infinite.", _INFS, "[False,  True,  True]")
_test("isfinite", "bifc", "Whether each element is neither infinite nor NaN.", _INFS, "[ True, False, False]")
_test("isposinf", "bif", "Whether each element is +inf.", _INFS, "[False,  True, False]")
_test("isneginf", "bif", "Whether each element is -inf.", _INFS, "[False, False,  True]")


@composite
def isreal(input: Tensor) -> Tensor:
    """Whether each element has no imaginary part.

    >>> votive.isreal(votive.tensor([1 + 1j, 2 + 0j]))
    tensor([False,  True])
    """
    if not input.dtype.is_complex:
        return F.ones_like(input, dtype=dt.bool_)
    return F.eq(F.imag(input), 0)


def _logical(name: str, text: str, example: str) -> None:
    pointwise(
        f"{name}(Tensor input, Tensor other)",
        dtypes="bool",
        doc=f"""{text}; what is not zero counts as true.

        >>> votive.{name}(votive.tensor([0, 1, 2]), votive.tensor([0, 0, 3]))
        tensor({example})
        """,
    )


_logical("logical_and", "Whether both are true", "[False, False,  True]")
_logical("logical_or", "Whether at least one is true", "[False,  True,  True]")
_logical("logical_xor", "Whether exactly one is true", "[False,  True, False]")

pointwise(
    "logical_not(Tensor input)",
    dtypes="bool",
    doc="""Whether each element is zero.

    >>> votive.logical_not(votive.tensor([0.0, 1.5]))
    tensor([ True, False])
    """,
)


@composite
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether `|input - other| <= atol + rtol * |other|`, elementwise.

    >>> votive.isclose(votive.tensor([1.0, 2.0]), votive.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    require_tensors("isclose", input=input, other=other)
    if input.dtype is not other.dtype:
        fail(DtypeError, "isclose", f"dtypes must be equal, got {input.dtype} and {other.dtype}.")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            fail(RuntimeError, "isclose", f"{name} must not be negative, got {value}.")
    close = F.eq(input, other)
    if equal_nan and input.dtype.is_inexact:
        close = F.logical_or(close, F.logical_and(F.isnan(input), F.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    # Differences of integers could wrap around.
    if not input.dtype.is_inexact:
        input, other = (F._to_dtype(x, dt.get_default_dtype()) for x in (input, other))
    allowed = F.add(F.abs(F.mul(other, rtol)), atol)
    actual = F.abs(F.sub(input, other))
    # Equal infinities are close already; their difference, and any other infinite one, is not.
    near = F.logical_and(F.isfinite(actual), F.le(actual, allowed))
    return F.logical_or(close, near)


@composite
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close in the sense of `isclose`.

    >>> votive.allclose(votive.tensor([1.0, 2.0]), votive.tensor([1.0, 2.0 + 1e-7]))
    True
    """
    return bool(F.all(isclose(input, other, rtol, atol, equal_nan)))


@composite
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    >>> votive.equal(votive.tensor([1, 2]), votive.tensor([1, 2]))
    True
    """
    require_tensors("equal", input=input, other=other)
    if input.device != other.device:
        devices_differ("equal", input.device, other.device)
    return input._spec.shape == other._spec.shape and bool(F.all(F.eq(input, other)))


def _infer_isin(elements: Spec, tests: Spec, assume_unique: bool, invert: bool) -> Spec:
    for s in (elements, tests):
        if s.dtype.category in (dt.BOOL, dt.COMPLEX):
            fail(DtypeError, "isin", f"not supported for {s.dtype}; cast with .to().")
    return elements.like(elements.shape, dtype=dt.bool_)


structured(
    "_isin(Tensor elements, Tensor test_elements, bool assume_unique, bool invert)",
    infer=_infer_isin,
    differentiable=False,
    doc="Membership of each element.",
)


@composite(method=False, out=True)
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of `elements` is among `test_elements`; either may be a number.

    >>> votive.isin(votive.tensor([1, 2, 3]), votive.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if is_number(elements) and is_number(test_elements):
        raise TypeError("isin: at least one argument must be a Tensor, got two numbers.")
    kind = result_type(elements, test_elements)
    given = (F.tensor(v, dtype=kind) if is_number(v) else v for v in (elements, test_elements))
    return F._isin(*given, assume_unique, invert)
