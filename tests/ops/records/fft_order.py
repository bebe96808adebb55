"""Records for the order of a spectrum: frequencies and shifts."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

SHIFTS: list[Any] = [
    (S(5),),
    (S(6),),
    (S(3, 4),),
    (S(3, 4), 1),
    (S(3, 4), (0,)),
    (S(3, 5), (1, 0)),
    (S(0, 3),),
    (S(2, 3, 4), {"dim": (-1, 0)}),
]
SHIFT_ERRORS: list[Any] = [((S(3), 1), IndexError), ((S(),), RuntimeError), ((S(3), {"dim": ()}), RuntimeError)]
COUNTS: list[Any] = [(5,), (6,), (1,), (4, 2.0), (7, 0.1), (5, {"dtype": vt.float32})]
COUNT_ERRORS: list[Any] = [
    ((-1,), RuntimeError),
    ((5.0,), TypeError),
    ((5, 1j), TypeError),
    ((5, {"dtype": vt.int64}), RuntimeError),
]


def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Any:
    return np.array([k if 2 * k < n else k - n for k in range(n)]) / (n * d)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Any:
    return np.arange(n // 2 + 1) / (n * d)


def fftshift(x: Any, dim: Any = None) -> Any:
    for d in range(x.ndim) if dim is None else np.atleast_1d(dim):
        x = np.concatenate(np.split(x, [(x.shape[d] + 1) // 2], d)[::-1], d)
    return x


def ifftshift(x: Any, dim: Any = None) -> Any:
    for d in range(x.ndim) if dim is None else np.atleast_1d(dim):
        x = np.concatenate(np.split(x, [x.shape[d] // 2], d)[::-1], d)
    return x


RECORDS = [
    op("fft.fftshift", samples=SHIFTS, reference=fftshift, dtypes="bifc", errors=SHIFT_ERRORS),
    op("fft.ifftshift", samples=SHIFTS, reference=ifftshift, dtypes="bifc", errors=SHIFT_ERRORS),
    op("fft.fftfreq", samples=COUNTS, reference=fftfreq, dtypes="i", grad=False, errors=COUNT_ERRORS),
    op("fft.rfftfreq", samples=COUNTS, reference=rfftfreq, dtypes="i", grad=False, errors=COUNT_ERRORS),
]
