"""Overwriting a tensor with one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import fail
from ..core.layout import Spec
from .options import fitting, number
from .registry import OPS, F, Op, composite, structured

if TYPE_CHECKING:
    from .types import Number, Operand, Tensor

_FLOATS = frozenset([dt.float32, dt.float64, *dt.HALF])


def _infer_fill(x: Spec, value: Spec | Number) -> Spec:
    if isinstance(value, Spec) and value.ndim:
        fail(RuntimeError, "fill_", f"takes a number or a 0-d tensor, got shape {value.shape}.")
    return x.dense_like()


structured(
    "_fill(Tensor input, Operand value)",
    placement="filled",
    infer=_infer_fill,
    grad={"input": None, "value": lambda c, g: g.sum()},
    doc="A tensor like `input` filled with one value.",
    overwrites=True,
    inplace_casts=True,
)


def _fill_value(input: Tensor, value: Operand) -> Any:
    if value.__class__ is float and -60000 < value < 60000 and input._spec.dtype in _FLOATS:
        return value  # fits all of these
    if hasattr(value, "_spec"):
        return value
    return fitting("fill_", number("fill_", "value", value), input._spec.dtype)


@composite(method=False)
def fill(input: Tensor, value: Operand) -> Tensor:
    """A tensor like `input` filled with one value.

    >>> votive.fill(votive.zeros(2), 7)
    tensor([7., 7.])
    """
    return F._fill(input, _fill_value(input, value))


@composite
def fill_(input: Tensor, value: Operand) -> Tensor:
    """Overwrite this tensor with one value.

    >>> votive.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    return Op.write(OPS["_fill"], (input, _fill_value(input, value)))


@composite
def zero_(input: Tensor) -> Tensor:
    """Overwrite this tensor with zeros.

    >>> votive.ones(2).zero_()
    tensor([0., 0.])
    """
    return Op.write(OPS["_fill"], (input, 0))
