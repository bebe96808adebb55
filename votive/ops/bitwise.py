"""Operators on the bits of integers and on bools. Formulas only; knows nothing of how they run."""

from __future__ import annotations

from .registry import pointwise


def _bitwise(operator: str, text: str, example: str) -> None:
    name = f"bitwise_{operator}"
    pointwise(
        f"{name}(Operand input, Operand other)",
        allow="bi",
        differentiable=False,
        operator=operator,
        doc=f"""{text}

        >>> votive.{name}(votive.tensor([3, 5]), 6)
        tensor({example})
        """,
    )


_bitwise("and", "The bits set in both.", "[2, 4]")
_bitwise("or", "The bits set in at least one.", "[7, 7]")
_bitwise("xor", "The bits set in exactly one.", "[5, 3]")

pointwise(
    "bitwise_not(Tensor input)",
    allow="bi",
    differentiable=False,
    doc="""Every bit inverted; for bools, not.

    >>> votive.bitwise_not(votive.tensor([0, 5]))
    tensor([-1, -6])
    """,
)

pointwise(
    "bitwise_left_shift(Operand input, Operand other)",
    allow="i",
    differentiable=False,
    doc="""`input * 2^other` on the bits; 0 when all bits leave.

    >>> votive.bitwise_left_shift(votive.tensor([1, -3]), 2)
    tensor([  4, -12])
    """,
    operator="lshift",
)

pointwise(
    "bitwise_right_shift(Operand input, Operand other)",
    allow="i",
    differentiable=False,
    doc="""`floor(input / 2^other)` on the bits; the sign is kept.

    >>> votive.bitwise_right_shift(votive.tensor([16, -16]), 2)
    tensor([ 4, -4])
    """,
    operator="rshift",
)
