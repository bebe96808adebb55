"""Softmax on native kernels agrees with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import OPS

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native

DTYPES = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
CANCELLED = {dt.float32: 2e-4, dt.float64: 1e-13, dt.float16: 2e-3, dt.bfloat16: 2e-2}
SHAPES = [
    (),
    (1,),
    (5,),
    (16,),
    (17,),
    (64,),
    (3, 31),
    (7, 65),
    (2, 3, 33),
    (40, 9),
    (1, 4),
    (4, 1),
    (3, 20, 17),
    (2, 3, 4, 5),
    (33, 1000),
    (300, 400),
    (0, 3),
    (3, 0),
    (2, 5, 8, 8),
]


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * 4
    return votive.tensor(drawn).to(dtype)


def forms(x: Any) -> list[Any]:
    return [*layouts(x), x[:1].expand(x.shape)] if x.ndim and x.shape[0] else layouts(x)


@pytest.mark.parametrize("op", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward_agrees_in_every_layout(op: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x = values(shape, dtype)
    for form in forms(x):
        for dim in range(max(x.ndim, 1)):
            agree(lambda t, d=dim: OPS[op](t, d), form)


@pytest.mark.parametrize("op", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_backward_agrees_in_every_layout(op: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x, g = values(shape, dtype), values(shape, dtype, 1)
    for dim in range(max(x.ndim, 1)):
        for form in layouts(OPS[op](x, dim)):
            for by in forms(g):
                fn = OPS[op + "_backward"]
                # Differences cancel, to nothing where g is constant.
                agree(lambda a, b, f=fn, d=dim: f(a, b, d), by, form, atol=CANCELLED[dtype])


@pytest.mark.parametrize("op", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_not_finite_comes_out_as_in_the_reference(op: str, dim: int) -> None:
    inf, nan = float("inf"), float("nan")
    rows = [
        [-inf] * 20,
        [inf] + [0.0] * 19,
        [nan] + [1.0] * 19,
        [-inf] * 19 + [3.0],
        [0.0] * 19 + [nan],
        [1e38, -1e38] * 10,
        [-90.0, -104.0, 0.0, -87.5] * 5,
    ]
    x = votive.tensor(rows)
    agree(lambda t: OPS[op](t, dim), x if dim else x.t())
    agree(lambda t: OPS[op](t, dim), x.t().contiguous().t() if dim else x.t().contiguous())


def test_rows_are_native() -> None:
    x = votive.rand(4, 5)
    assert served_by_native("_softmax", lambda: votive.softmax(x, 1))
    assert served_by_native("_log_softmax", lambda: votive.log_softmax(x.t(), 1))
    y = votive.softmax(x, 1)
    assert served_by_native("_softmax_backward", lambda: OPS["_softmax_backward"](x, y, 1))
    assert served_by_native("_log_softmax_backward", lambda: OPS["_log_softmax_backward"](x, y, 1))
