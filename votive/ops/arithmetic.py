"""Arithmetic: sums, products, powers, roots, rounding. Formulas only; knows nothing of how they run."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.errors import fail
from ..formula import apply
from .registry import F, composite, pointwise


def prim(op: str) -> Any:
    """A primitive as a function of expressions."""
    return lambda *args: apply(op, *args)


def _alpha_types(op: str) -> Any:
    def rule(promoted: dt.dtype, a: Any, b: Any, alpha: Any) -> tuple[dt.dtype, dt.dtype]:
        if isinstance(alpha, bool) and promoted.category != dt.BOOL:
            fail(RuntimeError, op, "alpha may be a bool only for bool results.")
        if promoted.category < dt.FLOAT and isinstance(alpha, (float, complex)):
            fail(RuntimeError, op, "for integral inputs alpha must not be a floating-point number.")
        if promoted.category < dt.COMPLEX and isinstance(alpha, complex):
            fail(RuntimeError, op, "for non-complex inputs alpha must not be a complex number.")
        if op == "sub" and promoted.category == dt.BOOL:
            fail(RuntimeError, op, "subtraction of bool tensors is not supported; use ^ or logical_not().")
        return promoted, promoted

    return rule


pointwise(
    "add(Operand input, Operand other, *, number alpha=1)",
    lambda a, b, alpha: a + alpha * b,
    dtypes=_alpha_types("add"),
    doc="""`input + alpha * other`, elementwise.

    >>> votive.add(votive.tensor([1, 2]), votive.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """,
)

pointwise(
    "mul(Operand input, Operand other)",
    lambda a, b: a * b,
    aliases=("multiply",),
    doc="""`input * other`, elementwise.

    >>> votive.mul(votive.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """,
)

pointwise(
    "tanh(Tensor input)",
    prim("tanh"),
    dtypes="float",
    doc="""Hyperbolic tangent.

    >>> votive.tanh(votive.tensor([0.0]))
    tensor([0.])
    """,
)


@composite(name="rsub")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`other - alpha * input`.

    >>> votive.rsub(votive.tensor([1, 2]), 10)
    tensor([9, 8])
    """
    return F.sub(other, input, alpha=alpha)
