"""Error functions, gamma functions, the logistic function and its inverse. Formulas only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core.errors import fail
from ..formula import Expr, apply, where
from .registry import F, composite, pointwise

if TYPE_CHECKING:
    from .types import Tensor

# Only under `votive.special`: no method, no in-place form, as in torch.
SPECIAL: dict[str, Any] = {
    "dtypes": "float",
    "allow": "bif",
    "namespaces": ("special",),
    "method": False,
    "inplace": False,
}


# --- error functions and the normal distribution --------------------------------------------------

pointwise(
    "erf(Tensor input)",
    dtypes="float",
    allow="bif",
    also=("special.erf",),
    doc="""Error function, `2/sqrt(pi)` times the integral of `e^(-t^2)` from 0 to input.

    >>> votive.erf(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
    inplace_function=True,
)

pointwise(
    "erfc(Tensor input)",
    dtypes="float",
    allow="bif",
    also=("special.erfc",),
    doc="""`1 - erf(input)`, exact in the tail too.

    >>> votive.erfc(votive.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """,
    inplace_function=True,
)

pointwise(
    "erfinv(Tensor input)",
    dtypes="float",
    allow="bif",
    also=("special.erfinv",),
    doc="""The number whose erf is input.

    >>> votive.erfinv(votive.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """,
    autocast={"cuda": "float32"},
)

pointwise(
    "erfcx(Tensor input)",
    **SPECIAL,
    doc="""`e^(x^2) erfc(x)`, which does not underflow.

    >>> votive.special.erfcx(votive.tensor([0.0, 100.0]))
    tensor([1.0000, 0.0056])
    """,
)

pointwise(
    "ndtr(Tensor input)",
    lambda x: 0.5 * apply("erfc", x * -math.sqrt(0.5)),
    **SPECIAL,
    doc="""The normal distribution function: the chance of a value below input.

    >>> votive.special.ndtr(votive.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """,
)

pointwise(
    "log_ndtr(Tensor input)",
    **SPECIAL,
    doc="""Logarithm of the normal distribution function, exact in the tail too.

    >>> votive.special.log_ndtr(votive.tensor([0.0, -10.0]))
    tensor([ -0.6931, -53.2313])
    """,
)

pointwise(
    "ndtri(Tensor input)",
    **SPECIAL,
    doc="""The number whose ndtr is input.

    >>> votive.special.ndtri(votive.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """,
)

pointwise(
    "entr(Tensor input)",
    lambda x: where(x > 0, -x * apply("log", x), where(x < 0, -math.inf, x)),
    grad={"input": lambda g, x, y: -g * (1 + apply("log", x))},
    **SPECIAL,
    doc="""`-x ln(x)`, 0 at 0 and -inf below: what a probability adds to the entropy.

    >>> votive.special.entr(votive.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """,
)


# --- the logistic function ------------------------------------------------------------------------

pointwise(
    "sigmoid(Tensor input)",
    dtypes="float",
    also=("special.expit", "nn.functional.sigmoid"),
    doc="""`1 / (1 + e^-input)`, elementwise.

    >>> votive.sigmoid(votive.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """,
    inplace_function=True,
)


def _logit(x: Expr, eps: float | None) -> Expr:
    if eps is not None and eps >= 0:
        x = where(x < eps, eps, where(x > 1 - eps, 1 - eps, x))
    return apply("log", x / (1 - x))


def _logit_grad(g: Expr, x: Expr, eps: float | None, y: Expr) -> Expr:
    slope = g / (x * (1 - x))
    if eps is not None and eps >= 0:
        return where((x >= eps) & (x <= 1 - eps), slope, 0)
    return where((x < 0) | (x > 1), math.nan, slope)


pointwise(
    "logit(Tensor input, float? eps=None)",
    _logit,
    dtypes="float",
    allow="bif",
    grad={"input": _logit_grad},
    also=("special.logit",),
    doc="""`log(x / (1 - x))`, the inverse of sigmoid; with `eps`, of x limited to `eps..1-eps`.

    >>> votive.logit(votive.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """,
    inplace_function=True,
)


# --- gamma functions ------------------------------------------------------------------------------

pointwise(
    "lgamma(Tensor input)",
    dtypes="float",
    allow="bif",
    also=("special.gammaln",),
    doc="""Logarithm of the absolute value of the gamma function.

    >>> votive.lgamma(votive.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """,
)

pointwise(
    "digamma(Tensor input)",
    dtypes="float",
    allow="bif",
    also=("special.digamma", "special.psi"),
    doc="""Derivative of lgamma.

    >>> votive.digamma(votive.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """,
)


def _polygamma(n: int, x: Expr) -> Expr:
    if n < 0:
        fail(RuntimeError, "polygamma", f"n must not be negative, got {n}.")
    return apply("polygamma", n, x) if n else apply("digamma", x)


pointwise(
    "polygamma(int n, Tensor input)",
    _polygamma,
    dtypes="float",
    allow="bif",
    method=False,
    inplace=False,
    also=("special.polygamma",),
    doc="""The n-th derivative of digamma.

    >>> votive.polygamma(1, votive.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """,
)


@composite(name="polygamma", key="Tensor.polygamma", namespaces=(), inplace=True)
def polygamma_method(input: Tensor, n: int) -> Any:
    """The n-th derivative of digamma.

    >>> votive.tensor([1.0, 2.0]).polygamma(1)
    tensor([1.6449, 0.6449])
    """
    return F.polygamma(n, input)


def _mvlgamma(x: Expr, p: int) -> Expr:
    if p < 1:
        fail(RuntimeError, "mvlgamma", f"p must be at least 1, got {p}.")
    total = apply("lgamma", x)
    for j in range(1, p):
        total = total + apply("lgamma", x - j / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


pointwise(
    "mvlgamma(Tensor input, int p)",
    _mvlgamma,
    dtypes="float",
    allow="if",
    also=("special.multigammaln",),
    doc="""Logarithm of the multivariate gamma function of dimension p.

    >>> votive.mvlgamma(votive.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """,
    autocast={"cuda": "float32"},
)

pointwise(
    "igamma(Tensor input, Tensor other)",
    lambda a, x: apply("gammainc", a, x),
    allow="f",
    also=("special.gammainc",),
    doc="""Regularized lower incomplete gamma function P(input, other).

    >>> votive.igamma(votive.tensor([1.0]), votive.tensor([1.0]))
    tensor([0.6321])
    """,
)

pointwise(
    "igammac(Tensor input, Tensor other)",
    lambda a, x: apply("gammaincc", a, x),
    allow="f",
    also=("special.gammaincc",),
    doc="""Regularized upper incomplete gamma function Q(input, other) = 1 - P.

    >>> votive.igammac(votive.tensor([1.0]), votive.tensor([1.0]))
    tensor([0.3679])
    """,
)

pointwise(
    "zeta(Operand input, Operand other)",
    **SPECIAL,
    doc="""Hurwitz zeta function: the sum of `(k + other)^-input` over k = 0, 1, 2 …

    >>> votive.special.zeta(votive.tensor([2.0]), 1)
    tensor([1.6449])
    """,
)
