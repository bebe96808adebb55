"""Choosing between values by a condition: where, masked_fill. Knows nothing of how they run."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from ..formula import where as choose
from .bounds import refuse_overflow
from .inquiry import require_tensors
from .registry import COMPOSITES, OPS, Composite, F, Op, composite, pointwise
from .schema import is_tensor

if TYPE_CHECKING:
    from .types import Number, Operand, Tensor

pointwise(
    "_where(Mask condition, Operand input, Operand other)",
    choose,
    placement="elementwise",
    dtypes="any",
    doc="Elements of input where the condition holds, of other elsewhere.",
    moves=(1, 2),
)


def _mask(condition: Tensor) -> Tensor:
    require_tensors("where", condition=condition)
    if condition.dtype is dt.uint8:
        warnings.warn("where: a uint8 condition is deprecated; use a bool tensor.", UserWarning, stacklevel=3)
        return F._to_dtype(condition, dt.bool_)
    if condition.dtype is not dt.bool_:
        fail(DtypeError, "where", f"condition must be a bool tensor, got {condition.dtype}.")
    return condition


@composite(method=False, out=True)
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """Elements of `input` where `condition` holds, of `other` elsewhere; alone: where it holds.

    >>> x = votive.tensor([-1.0, 2.0])
    >>> votive.where(x > 0, x, 0.0)
    tensor([0., 2.])
    >>> votive.where(x > 0)
    (tensor([1]),)
    """
    if input is None and other is None:
        return F.nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where: give both input and other, or neither.")
    return F._where(_mask(condition), input, other)


def _where_method(input: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """This tensor where `condition` holds, `other` elsewhere.

    >>> x = votive.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0.0)
    tensor([0., 2.])
    """
    return where(condition, input, other)


# The method takes its arguments in another order than the function of the same name.
COMPOSITES["Tensor.where"] = Composite(_where_method, "where", namespaces=())


def _fill_types(promoted: dt.dtype, x: Spec, mask: Spec, value: Spec | Number) -> tuple[dt.dtype, dt.dtype]:
    return x.dtype, x.dtype


pointwise(
    "_masked_fill(Tensor input, Mask mask, Operand value)",
    lambda x, mask, value: choose(mask, value, x),
    placement="elementwise",
    dtypes=_fill_types,
    doc="Elements replaced where a mask is set.",
    moves=(0, 2),
)


def _filling(op: str, input: Tensor, mask: Tensor, value: Operand) -> Any:
    """The value as a number or a 0-d tensor that fits into `input`."""
    require_tensors(op, input=input, mask=mask)
    if mask.dtype is not dt.bool_:
        fail(DtypeError, op, f"only bool masks are supported, got {mask.dtype}; use .bool().")
    if not is_tensor(value):
        refuse_overflow(op, value, input.dtype)
        return value
    if value.ndim:
        fail(ShapeError, op, f"value must be a number or a 0-d tensor, got shape {tuple(value.shape)}.")
    if not value.is_meta:
        refuse_overflow(op, value.item(), input.dtype)
    return F._to_dtype(value, input.dtype)


@composite
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`input` with `value` wherever `mask` is true.

    >>> votive.masked_fill(votive.zeros(3), votive.tensor([True, False, True]), 9)
    tensor([9., 0., 9.])
    """
    return F._masked_fill(input, mask, _filling("masked_fill", input, mask, value))


@composite(name="masked_fill_", namespaces=())
def masked_fill_inplace(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """In-place form of `masked_fill`.

    >>> votive.zeros(3).masked_fill_(votive.tensor([True, False, True]), 9)
    tensor([9., 0., 9.])
    """
    value = _filling("masked_fill_", input, mask, value)
    return Op.write(OPS["_masked_fill"], (input, mask, value))
