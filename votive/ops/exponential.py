"""Exponentials and logarithms. Formulas only; knows nothing of how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formula import Expr, apply, where
from .registry import pointwise

if TYPE_CHECKING:
    from .types import Callable

pointwise(
    "exp(Tensor input)",
    dtypes="float",
    doc="""`e^input`, elementwise.

    >>> votive.exp(votive.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "exp2(Tensor input)",
    dtypes="float",
    also=("special.exp2",),
    doc="""`2^input`, elementwise.

    >>> votive.exp2(votive.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """,
    inplace_function=True,
)

pointwise(
    "expm1(Tensor input)",
    dtypes="float",
    also=("special.expm1",),
    doc="""`e^input - 1`, exact near zero too.

    >>> votive.expm1(votive.tensor([0.0, 1e-10]))
    tensor([0.0000e+00, 1.0000e-10])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "log(Tensor input)",
    dtypes="float",
    doc="""Natural logarithm.

    >>> votive.log(votive.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "log2(Tensor input)",
    dtypes="float",
    doc="""Logarithm to base 2.

    >>> votive.log2(votive.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "log10(Tensor input)",
    dtypes="float",
    doc="""Logarithm to base 10.

    >>> votive.log10(votive.tensor([1.0, 1000.0]))
    tensor([0., 3.])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "log1p(Tensor input)",
    dtypes="float",
    also=("special.log1p",),
    doc="""`log(1 + input)`, exact near zero too.

    >>> votive.log1p(votive.tensor([0.0, 1e-10]))
    tensor([0.0000e+00, 1.0000e-10])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "logaddexp(Tensor input, Tensor other)",
    allow="fc",
    inplace=False,
    doc="""`log(e^input + e^other)` without overflow.

    >>> votive.logaddexp(votive.tensor([1000.0]), votive.tensor([1000.0]))
    tensor([1000.6932])
    """,
)

pointwise(
    "logaddexp2(Tensor input, Tensor other)",
    allow="f",
    inplace=False,
    doc="""`log2(2^input + 2^other)` without overflow.

    >>> votive.logaddexp2(votive.tensor([1000.0]), votive.tensor([1000.0]))
    tensor([1001.])
    """,
)


def _by_factor(log: str, pole: int) -> Callable[..., Any]:
    """The gradient of `a * log(b)` by a: zero where the product is pinned to zero."""

    def grad(g: Expr, a: Expr, b: Expr, y: Expr) -> Expr:
        # The factor g also pins it: a zero gradient stays zero where the logarithm is infinite.
        return where(a.eq(0) & (b <= pole), 0, apply(log, g, b))

    return grad


pointwise(
    "xlogy(Operand input, Operand other)",
    dtypes="float",
    allow="bif",
    grad={"input": _by_factor("xlogy", 0)},
    also=("special.xlogy",),
    doc="""`input * log(other)`, which is 0 where input is 0 (NaN where other is NaN).

    >>> votive.xlogy(votive.tensor([0.0, 2.0]), votive.tensor([0.0, 10.0]))
    tensor([0.0000, 4.6052])
    """,
    inplace_function=True,
)

pointwise(
    "xlog1py(Operand input, Operand other)",
    dtypes="float",
    allow="bif",
    grad={"input": _by_factor("xlog1py", -1)},
    namespaces=("special",),
    method=False,
    inplace=False,
    doc="""`input * log(1 + other)`, which is 0 where input is 0 (NaN where other is NaN).

    >>> votive.special.xlog1py(votive.tensor([0.0, 2.0]), votive.tensor([-1.0, 9.0]))
    tensor([0.0000, 4.6052])
    """,
)
