"""Native distances of points hold against the reference in every layout and size."""

from __future__ import annotations

import math
from typing import Any

import pytest

import votive

from .compare import agree, needs_native, served_by_native

pytestmark = needs_native

FLOATS = [votive.float32, votive.float64, votive.bfloat16, votive.float16]
# (points, other points, numbers of a point), around the widths of tiles.
SIZES = [(1, 1, 1), (3, 5, 2), (65, 3, 7), (2, 130, 4), (20, 70, 33), (64, 64, 1), (17, 16, 0), (0, 4, 3), (90, 33, 65)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_distances_agree_with_the_reference(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    a, b = votive.randn(m, k, dtype=votive.float64).to(dtype), votive.randn(n, k, dtype=votive.float64).to(dtype)
    for p in (0.0, 1.0, 2.0, 3.0, math.inf):
        for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
            for x, y in ((a, b), (a.mT.contiguous().mT, b), (a[::2], b.flip(0)), (a[:, ::2], b[:, ::2])):
                agree(lambda x, y, p=p, mode=mode: votive.cdist(x, y, p, mode), x, y)


def test_batches_are_broadcast() -> None:
    a, b = votive.randn(4, 1, 5, 3), votive.randn(3, 40, 3)
    for p in (1.0, 2.0, math.inf):
        agree(lambda a, b, p=p: votive.cdist(a, b, p), a, b)
        agree(lambda a, b, p=p: votive.cdist(b, a, p), a, b[1])


def test_what_is_not_a_number_stays_one() -> None:
    a, b = votive.randn(5, 3), votive.randn(30, 3)
    a[1, 2] = math.nan
    b[7, 0] = math.inf
    for p in (0.0, 1.0, 2.0, math.inf):
        agree(lambda a, b, p=p: votive.cdist(a, b, p), a, b)


def test_they_are_native() -> None:
    x = votive.randn(30, 4)
    assert served_by_native("_cdist", lambda: votive.cdist(x, x))
