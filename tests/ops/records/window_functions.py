"""Records for hann_window and kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive as vt
from tests.ops.catalog import op

from . import signal_windows as same

LENGTHS: list[Any] = [(n, p, {"dtype": vt.float64}) for n in (0, 1, 2, 5, 8) for p in (True, False)]
SINGLE: list[Any] = [(6,), (7, False), (6, {"periodic": False})]
ERRORS: list[Any] = [
    ((-1,), RuntimeError),
    ((4.0,), TypeError),
    ((4, {"dtype": vt.int64}), RuntimeError),
    ((4, {"dtype": vt.complex64}), NotImplementedError),
    ((4, {"layout": "sparse_coo"}), RuntimeError),
]


def record(name: str, window: Any, *more: Any) -> Any:
    def reference(n: int, periodic: bool = True, dtype: Any = None, **options: Any) -> Any:
        return window(n, sym=not periodic, **options)

    return op(name, samples=[*LENGTHS, *SINGLE, *more], reference=reference, dtypes="i", grad=False, errors=ERRORS)


def hamming(n: int, sym: bool, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return same.fixed(alpha, beta)(n, sym=sym)


kaiser: Callable[..., Any] = same.each(same.kaiser)

RECORDS = [
    record("hann_window", same.fixed(0.5, 0.5)),
    record("hamming_window", hamming),
    record("blackman_window", same.fixed(0.42, 0.5, 0.08)),
    record("bartlett_window", same.each(lambda k, n, M, sym: 1 - abs(2 * k / n - 1))),
    record("kaiser_window", kaiser),
]
