"""Records for error functions, gamma functions and the logistic function.

Their numerics are tested in tests/numerics; here stand signatures, dtypes and gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ONE: list[Any] = [(S(3, 4),), (S(),), (S(0, 3),)]
REAL: list[Any] = [((S(3, dtype="complex128"),), NotImplementedError)]
# Whole orders: neither torch nor votive differentiates by the order. torch's gradient would take
# lgamma of an integer tensor in float32, so its twin gets them as floats.
ORDER: dict[str, Any] = {"dtype": "int64", "low": 1, "high": 5}
PAIR: list[Any] = [(S(3, 4, **ORDER), S(3, 4)), (S(3, 1, **ORDER), S(4)), (S(**ORDER), S(2)), (S(0, 3, **ORDER), S(1))]
UNIT = (0.1, 0.9)
# torch's trigamma has nine digits; ours is compared with exact values in tests/numerics.
TRIGAMMA = {"float64": (1e-9, 1e-9)}


def real(fn: Any) -> Any:
    """A function of floats as torch has it: of bools and integers too."""
    return lambda x: fn(x + 0.0)


erf = np.vectorize(math.erf, otypes=[float])
erfc = np.vectorize(math.erfc, otypes=[float])
lgamma = np.vectorize(math.lgamma, otypes=[float])


def logit(x: Any, eps: float | None = None) -> Any:
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x) - np.log(1 - x)


def mvlgamma(x: Any, p: int) -> Any:
    return p * (p - 1) / 4 * math.log(math.pi) + sum(lgamma(x - j / 2) for j in range(p))


def tail(a: Any, x: Any) -> Any:
    """Q of a whole order: a finite sum (DLMF 8.4.10)."""
    return np.exp(-x) * sum(np.where(k < a, x**k / math.factorial(k), 0) for k in range(5))


RECORDS = [
    op("erf", samples=ONE, reference=erf, dtypes="bif", errors=REAL),
    op("erfc", samples=ONE, reference=erfc, dtypes="bif", errors=REAL),
    op("erfinv", samples=ONE, dtypes="f", domain=(-0.9, 0.9), errors=REAL),
    op("special.erf", samples=ONE, reference=erf),
    op("special.erfc", samples=ONE, reference=erfc),
    op("special.erfinv", samples=ONE, domain=(-0.9, 0.9)),
    op("special.erfcx", samples=ONE, dtypes="bif", reference=real(lambda x: np.exp(x * x) * erfc(x))),
    op("special.ndtr", samples=ONE, dtypes="bif", reference=real(lambda x: erfc(-x / math.sqrt(2)) / 2)),
    op("special.log_ndtr", samples=ONE, dtypes="bif", reference=real(lambda x: np.log(erfc(-x / math.sqrt(2)) / 2))),
    op("special.ndtri", samples=ONE, domain=UNIT),
    op(
        "special.entr",
        samples=[*ONE, (S(values=[0.0, -1.0, 2.0], grad=False),)],
        dtypes="bif",
        domain=(0.2, 2.0),
        reference=real(lambda x: np.where(x > 0, -x * np.log(x), np.where(x < 0, -np.inf, 0))),
    ),
    op("sigmoid", samples=ONE, reference=real(lambda x: 1 / (1 + np.exp(-x))), dtypes="bifc"),
    op("special.expit", samples=ONE, reference=real(lambda x: 1 / (1 + np.exp(-x))), dtypes="bifc"),
    op("nn.functional.sigmoid", samples=ONE, reference=real(lambda x: 1 / (1 + np.exp(-x)))),
    op(
        "logit",
        samples=[*ONE, (S(3, 4), 0.2), (S(3, 4), {"eps": None})],
        reference=logit,
        domain=UNIT,
        kinks=(0.2, 0.8),
        errors=REAL,
    ),
    op("special.logit", samples=[*ONE, (S(3, 4), 0.2)], reference=logit, domain=UNIT, kinks=(0.2, 0.8)),
    op("lgamma", samples=ONE, reference=lgamma, dtypes="if", domain=(0.5, 6.0), errors=REAL),
    op("special.gammaln", samples=ONE, reference=lgamma, domain=(0.5, 6.0)),
    op("digamma", samples=ONE, domain=(0.5, 6.0), dtypes="if", errors=REAL, tol=TRIGAMMA),
    op("special.digamma", samples=ONE, domain=(0.5, 6.0), tol=TRIGAMMA),
    op("special.psi", samples=ONE, domain=(0.5, 6.0), tol=TRIGAMMA),
    op(
        "polygamma",
        samples=[(0, S(3, 4)), (1, S(3, 4)), (3, S()), (2, S(0, 3))],
        inplace=False,
        domain=(0.5, 4.0),
        errors=[((-1, S(3)), RuntimeError), ((1.5, S(3)), TypeError)],
        # Values near 200: half types are compared with torch, which computes in float32.
        tol={"float16": (2e-3, 1e-1), **TRIGAMMA},
    ),
    op("special.polygamma", samples=[(1, S(3, 4))], inplace=False, domain=(0.5, 4.0), tol=TRIGAMMA),
    op(
        "mvlgamma",
        samples=[(S(3, 4), 1), (S(3, 4), 3), (S(), 2), (S(0), 2)],
        reference=mvlgamma,
        domain=(2.0, 6.0),
        dtypes="if",
        errors=[((S(3), 0), RuntimeError)],
    ),
    op("special.multigammaln", samples=[(S(3, 4), 3)], reference=mvlgamma, domain=(2.0, 6.0)),
    op(
        "igamma",
        samples=PAIR,
        reference=lambda a, x: 1 - tail(a, x),
        domain=(0.3, 5.0),
        torch=lambda a, x: a.to(x.dtype).igamma(x),
        errors=[((S(3), S(2)), RuntimeError), ((S(3, dtype="int64"), S(3, dtype="int64")), NotImplementedError)],
    ),
    op("igammac", samples=PAIR, reference=tail, domain=(0.3, 5.0), torch=lambda a, x: a.to(x.dtype).igammac(x)),
    op(
        "special.gammainc",
        samples=PAIR[:1],
        reference=lambda a, x: 1 - tail(a, x),
        domain=(0.3, 5.0),
        torch=lambda a, x: a.to(x.dtype).igamma(x),
    ),
    op(
        "special.gammaincc",
        samples=PAIR[:1],
        reference=tail,
        domain=(0.3, 5.0),
        torch=lambda a, x: a.to(x.dtype).igammac(x),
    ),
    op(
        "special.zeta",
        samples=[(S(3, 4), S(3, 4)), (S(3), 2.0), (3, S(3)), (S(0), S(1))],
        domain=(1.5, 5.0),
        grad=False,
        errors=[((2.0, 3.0), TypeError)],
    ),
]
