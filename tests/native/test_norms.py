"""layer_norm, rms_norm, group_norm and batch_norm on native kernels agree with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import OPS

from .compare import TOLERANCE, agree, layouts, needs_native, served_by_native

pytestmark = needs_native

DTYPES = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
SHAPES = [(5,), (1, 1), (3, 16), (4, 17), (2, 3, 33), (2, 4, 3, 5), (200, 384), (7, 1000)]


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * 2 + 1
    return votive.tensor(drawn).to(dtype)


def near(dtype: Any) -> dict[str, float]:
    return {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}


def forms(x: Any) -> list[Any]:
    return [*layouts(x), x[:1].expand(x.shape)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm_agrees_in_every_layout(dtype: Any, shape: tuple[int, ...], affine: bool) -> None:
    x, g = values(shape, dtype), values(shape, dtype, 1)
    forward, backward = OPS["_layer_norm"], OPS["_layer_norm_backward"]
    for dims in range(1, len(shape) + 1):
        kind = dt.float32 if dtype is dt.bfloat16 else dtype
        w, b = (values(shape[len(shape) - dims :], kind, s) if affine else None for s in (2, 3))
        for form in layouts(x):
            _, mean, rstd = agree(lambda t, w=w, b=b, d=dims: forward(t, w, b, d, 1e-5), form)
            for by in forms(g):
                for wants in ((True, True), (True, False), (False, True)):
                    agree(
                        lambda h, t, w=w, d=dims, m=mean, r=rstd, k=wants: backward(h, t, m, r, w, d, *k),
                        by,
                        form,
                        **near(dtype),
                    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm_agrees_in_every_layout(dtype: Any, shape: tuple[int, ...], affine: bool) -> None:
    x, g = values(shape, dtype), values(shape, dtype, 1)
    forward, backward = OPS["_rms_norm"], OPS["_rms_norm_backward"]
    for dims in range(1, len(shape) + 1):
        w = values(shape[len(shape) - dims :], dtype, 2) if affine else None
        for form in layouts(x):
            _, rstd = agree(lambda t, w=w, d=dims: forward(t, w, d, 1e-5), form)
            for by in forms(g):
                for wants in ((True, True), (True, False), (False, True)):
                    agree(
                        lambda h, t, w=w, d=dims, r=rstd, k=wants: backward(h, t, r, w, d, *k), by, form, **near(dtype)
                    )


GROUPED = [(2, 6), (3, 4, 5), (1, 6, 17), (2, 4, 3, 16), (4, 8, 20, 30), (2, 3, 2, 2, 2)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", GROUPED, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_agrees_in_every_layout(dtype: Any, shape: tuple[int, ...], affine: bool) -> None:
    x, g = values(shape, dtype), values(shape, dtype, 1)
    w, b = (values(shape[1:2], dtype, s) if affine else None for s in (2, 3))
    forward, backward = OPS["_group_norm"], OPS["_group_norm_backward"]
    for groups in {1, shape[1] // 2, shape[1]}:
        if shape[1] % groups:
            continue
        for form in layouts(x):
            _, mean, rstd = agree(lambda t, n=groups: forward(t, w, b, n, 1e-5), form)
            for by in forms(g):
                for wants in ((True, True), (True, False), (False, True)):
                    agree(
                        lambda h, t, n=groups, m=mean, r=rstd, k=wants: backward(h, t, m, r, w, n, *k),
                        by,
                        form,
                        **near(dtype),
                    )


BATCHES = [(5, 3), (33, 17), (1, 4, 9), (3, 5, 16), (4, 16, 3, 7), (8, 32, 14, 14), (2, 3, 2, 5, 4)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", BATCHES, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_agrees_in_every_layout(dtype: Any, shape: tuple[int, ...], affine: bool) -> None:
    x, g = values(shape, dtype), values(shape, dtype, 1)
    kind = dt.float32 if dtype is dt.float16 else dtype
    w, b = (values(shape[1:2], kind, s) if affine else None for s in (2, 3))
    forward, backward = OPS["_batch_norm"], OPS["_batch_norm_backward"]
    last = [x.to(memory_format=votive.channels_last)] if len(shape) == 4 else []
    for form in [*layouts(x), *last]:
        _, mean, var = agree(lambda t: forward(t, w, b, 1e-5), form)
        given = values(shape[1:2], kind, 4), values(shape[1:2], kind, 5).abs()
        agree(lambda t, s=given: OPS["_batch_norm_by"](t, *s, w, b, 1e-5), form, **near(dtype))
        for by in [*forms(g), form]:
            for wants in ((True, True), (True, False), (False, True)):
                for fn in (backward, OPS["_batch_norm_by_backward"]):
                    agree(
                        lambda h, t, f=fn, m=mean, v=var, k=wants: f(h, t, m, v, w, 1e-5, *k), by, form, **near(dtype)
                    )


@pytest.mark.parametrize("shape", [(4, 3, 50), (30, 20)], ids=str)
def test_a_first_value_far_off_costs_no_digits(shape: tuple[int, ...]) -> None:
    x = values(shape, dt.float32)
    x[(0,) * len(shape)] = 1e5
    x[1] += 3e4
    agree(lambda t: OPS["_batch_norm"](t, None, None, 1e-5), x + 1e4, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("count", [1, 12])
def test_statistics_move_as_in_the_reference(dtype: Any, rows: int, count: int) -> None:
    def moved(mean: Any, var: Any) -> Any:
        mean, var = mean.clone(), var.clone()
        wide = dt.compute_type(dtype)
        new = values((rows, 19), wide, 1), values((rows, 19), wide, 2).abs()
        OPS["_move_statistics"](mean, var, *new, count, 0.1)
        return mean, var

    agree(moved, values((19,), dtype), values((19,), dtype, 3))


def test_empty_rows_and_no_rows() -> None:
    for shape in ((0, 3), (3, 0)):
        x = votive.zeros(*shape)
        agree(lambda t: OPS["_layer_norm"](t, None, None, 1, 1e-5), x)
        agree(lambda t: OPS["_rms_norm"](t, None, 1, 1e-5), x)


def test_a_large_mean_costs_no_digits() -> None:
    x = votive.tensor(np.random.default_rng(0).standard_normal((4, 300)) + 1e5).float()
    agree(lambda t: OPS["_layer_norm"](t, None, None, 1, 1e-5)[0], x, rtol=1e-4, atol=1e-4)
    wide = x.reshape(2, 2, 300)
    agree(lambda t: OPS["_group_norm"](t, None, None, 2, 1e-5)[0], wide, rtol=1e-4, atol=1e-4)


def test_rows_are_native() -> None:
    x = votive.rand(4, 6)
    assert served_by_native("_layer_norm", lambda: votive.layer_norm(x, (6,)))
    assert served_by_native("_rms_norm", lambda: votive.nn.functional.rms_norm(x, (6,)))
    assert served_by_native("_group_norm", lambda: votive.group_norm(x, 2))
