"""Records for the window functions of signal.windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import op

W = "signal.windows."
LENGTHS: list[Any] = [(n, {"sym": sym, "dtype": vt.float64}) for n in (0, 1, 2, 5, 8) for sym in (True, False)]
ERRORS: list[Any] = [
    ((-1,), ValueError),
    ((4.0,), TypeError),
    ((4, {"dtype": vt.float16}), ValueError),
    ((4, {"dtype": vt.int64}), ValueError),
    ((4, {"layout": "sparse_coo"}), ValueError),
]


def each(point: Callable[..., float], one: bool = True) -> Callable[..., Any]:
    """A window from a function of (k, steps to the end of a period, M, sym)."""

    def run(M: int, sym: bool = True, dtype: Any = None, **options: Any) -> Any:
        if M == 1 and one:
            return np.ones(1)
        n = M - 1 if sym else M
        return np.array([point(k, n, M, sym, **options) for k in range(M)], dtype=np.float64)

    return run


def cosines(k: int, n: int, M: int, sym: bool, a: Any) -> float:
    return sum((-1) ** i * c * math.cos(2 * math.pi * i * k / n) for i, c in enumerate(a))


def distance(k: int, M: int, sym: bool) -> float:
    return k - (M - 1 if sym or M == 1 else M) / 2


def exponential(k: int, n: int, M: int, sym: bool, center: Any = None, tau: float = 1.0) -> float:
    return math.exp(-abs(distance(k, M, sym) if center is None else k - center) / tau)


def gaussian(k: int, n: int, M: int, sym: bool, std: float = 1.0) -> float:
    return math.exp(-((distance(k, M, sym) / std) ** 2) / 2)


def bessel(x: float) -> float:
    """I0 by its power series."""
    return sum((x / 2) ** (2 * m) / math.factorial(m) ** 2 for m in range(60))


def kaiser(k: int, n: int, M: int, sym: bool, beta: float = 12.0) -> float:
    return bessel(beta * math.sqrt(max(0.0, 1 - (2 * k / n - 1) ** 2))) / bessel(beta)


def fixed(*a: float) -> Callable[..., Any]:
    return each(lambda *given: cosines(*given, a=a))


def record(name: str, reference: Any, more: Any = (), errors: Any = ()) -> Any:
    return op(
        W + name, samples=[*LENGTHS, *more], reference=reference, dtypes="i", grad=False, errors=[*ERRORS, *errors]
    )


def with_option(**options: Any) -> list[Any]:
    return [(5, options), (6, {"sym": False, "dtype": vt.float64, **options})]


RECORDS = [
    record("bartlett", each(lambda k, n, M, sym: 1 - abs(2 * k / n - 1))),
    record("blackman", fixed(0.42, 0.5, 0.08)),
    record("hamming", fixed(0.54, 0.46)),
    record("hann", fixed(0.5, 0.5)),
    record("nuttall", fixed(0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    record("cosine", each(lambda k, n, M, sym: math.sin(math.pi * (k + 0.5) / (M + (not sym and M > 1))), False)),
    record(
        "exponential",
        each(exponential, False),
        [*with_option(tau=2.5), (5, {"center": 1, "sym": False})],
        [((4, {"tau": 0.0}), ValueError), ((4, {"center": 1.0}), ValueError)],
    ),
    record("gaussian", each(gaussian, False), with_option(std=0.7), [((4, {"std": -1.0}), ValueError)]),
    record(
        "kaiser", each(kaiser), [*with_option(beta=0.0), *with_option(beta=5.0)], [((4, {"beta": -1.0}), ValueError)]
    ),
    op(
        W + "general_cosine",
        samples=[(n, {"a": a}) for n in (0, 1, 5) for a in ((1.0,), (0.2, 0.3, 0.5))],
        reference=each(cosines),
        dtypes="i",
        grad=False,
        errors=[((5, {"a": ()}), ValueError), ((5, {"a": 0.5}), TypeError)],
    ),
    record(
        "general_hamming",
        each(lambda *given, alpha=0.54: cosines(*given, a=(alpha, 1 - alpha))),
        with_option(alpha=0.3),
    ),
]
