"""Records for the orthogonal polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import polynomial

from tests.ops.catalog import S, op

SAMPLES: list[Any] = [
    (S(3, 4), 3),
    (S(3, 4), S(3, 4, dtype="int64", low=0, high=7)),
    (S(3, 1), S(4, dtype="int64", low=-2, high=3)),
    (1.5, S(4, dtype="int64", low=0, high=5)),
    (S(), 2),
    (S(0, 3), 2),
]
# Past degree 8 the Chebyshev families take closed forms: inside -1..1, outside, and at the ends.
HIGH: list[Any] = [
    (S(8, low=-0.95, high=0.95, dtype="float64"), S(8, dtype="int64", low=9, high=40)),
    (S(8, low=1.05, high=1.5, dtype="float64"), S(8, dtype="int64", low=9, high=15)),
    (S(8, low=-1.5, high=-1.05, dtype="float64"), S(8, dtype="int64", low=9, high=15)),
]
ENDS: list[Any] = [(S(values=[-1.0, 1.0, -1.0, 1.0], dtype="float64"), S(values=[9, 9, 20, 20], dtype="int64"))]


# 2 x - 1 lies in the range that float16 holds at degree 6.
INNER = (-0.5, 1.5)


def each(fn: Any) -> Any:
    """One polynomial per element, 0 where the degree is negative."""

    def reference(x: Any, n: Any) -> Any:
        x, n = np.broadcast_arrays(np.asarray(x, float), np.asarray(n, float))
        values = [fn(a, int(k)) if k >= 0 else 0.0 for a, k in zip(x.flat, n.flat, strict=True)]
        return np.array(values, float).reshape(x.shape)

    return reference


def basis(value: Any) -> Any:
    return lambda x, n: value(x, [0.0] * n + [1.0])


def closed(top: Any, bottom: Any) -> Any:
    """A ratio in the angle t with cos(t) = x, complex outside of -1..1 (DLMF 18.5.1-18.5.4)."""

    def value(x: float, n: int) -> float:
        # At the ends the ratio is 0 / 0: step aside by what float64 cannot see in the result.
        t = np.arccos(complex(x - np.sign(x) * 1e-13 if abs(x) == 1 else x))
        return float((top(t, n) / bottom(t)).real)

    return value


T = closed(lambda t, n: np.cos(n * t), lambda t: 1.0)
U = closed(lambda t, n: np.sin((n + 1) * t), np.sin)
V = closed(lambda t, n: np.cos((n + 0.5) * t), lambda t: np.cos(t / 2))
W = closed(lambda t, n: np.sin((n + 0.5) * t), lambda t: np.sin(t / 2))


def record(name: str, value: Any, *more: Any, domain: Any = (-2.0, 2.0)) -> Any:
    return op(
        f"special.{name}",
        samples=[*SAMPLES, *more],
        reference=each(value),
        dtypes="bif",
        grad=False,
        domain=domain,
        # The reference itself loses digits where it divides small numbers.
        tol={"float64": (1e-8, 1e-8), "float16": (2e-3, 1e-2)},
        errors=[((1.0, 2), TypeError)],
    )


def shifted(value: Any) -> Any:
    return lambda x, n: value(2 * x - 1, n)


RECORDS = [
    record("chebyshev_polynomial_t", basis(polynomial.chebyshev.chebval), *HIGH, *ENDS),
    record("chebyshev_polynomial_u", U, *HIGH, *ENDS),
    record("chebyshev_polynomial_v", V, *HIGH, *ENDS),
    record("chebyshev_polynomial_w", W, *HIGH, *ENDS),
    record("shifted_chebyshev_polynomial_t", shifted(T), domain=INNER),
    record("shifted_chebyshev_polynomial_u", shifted(U), domain=INNER),
    record("shifted_chebyshev_polynomial_v", shifted(V), domain=INNER),
    record("shifted_chebyshev_polynomial_w", shifted(W), domain=INNER),
    record("hermite_polynomial_h", basis(polynomial.hermite.hermval)),
    record("hermite_polynomial_he", basis(polynomial.hermite_e.hermeval)),
    record("laguerre_polynomial_l", basis(polynomial.laguerre.lagval)),
    record("legendre_polynomial_p", basis(polynomial.legendre.legval)),
]
