"""Reading and writing by index on native kernels agree with the reference, errors included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt

from .compare import DTYPES, agree, layouts, needs_native, reference_only, served_by_native

pytestmark = needs_native

MOVED = [dt.bool_, dt.int16, dt.float32, dt.int64, dt.bfloat16, dt.complex128]
SUMMED = [d for d in DTYPES if d is not dt.complex128]
F = votive.nn.functional


def values(*shape: int, dtype: Any = dt.float32, seed: int = 0) -> Any:
    made = np.random.default_rng(seed).integers(0, 9, shape)
    return votive.from_numpy(np.asarray(made)).to(dtype)


def places(high: int, *shape: int, dtype: Any = dt.int64, low: int = 0) -> Any:
    made = np.random.default_rng(1).integers(low, high, shape)
    return votive.from_numpy(np.asarray(made)).to(dtype)


def same_error(fn: Any, *args: Any) -> None:
    """Both ways raise the same type with the same words."""
    with pytest.raises(Exception) as ours:
        fn(*args)
    with reference_only(), pytest.raises(Exception) as theirs:
        fn(*args)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("dtype", MOVED, ids=str)
@pytest.mark.parametrize("kind", [dt.int64, dt.int32], ids=str)
def test_reading_slices(dtype: Any, kind: Any) -> None:
    for x in layouts(values(7, 11, 5, dtype=dtype)):
        for dim in range(3):
            i = places(x.shape[dim], 6, dtype=kind)
            agree(lambda x, i, d=dim: x.index_select(d, i), x, i)
            agree(lambda x, i, d=dim: x.index_select(d, i[:0]), x, i)
        agree(lambda x, i: x[i], x, places(7, 4, 3, dtype=kind, low=-7))
        agree(lambda x, i: x[:, i], x, places(11, 4, 3, dtype=kind, low=-11))
        agree(lambda x, i: x[..., i], x, places(5, 9, dtype=kind))
        agree(lambda x, i: x[i, i], x, places(7, 9, dtype=kind))
        agree(lambda x, i: x[i, :, i], x, places(5, 9, dtype=kind))
        agree(lambda x, i: x[i[:, None], i, 2:], x, places(5, 9, dtype=kind))
        agree(lambda x, i: x[1:, i[:, None], i], x, places(5, 9, dtype=kind))
        agree(lambda x, i: x[None, i], x, places(5, 0, dtype=kind))
        agree(lambda x, i: x.take(i), x, places(385, 50, 2, low=-385))


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_gather_and_scatter(dtype: Any) -> None:
    for x in layouts(values(7, 11, 5, dtype=dtype)):
        for dim in range(3):
            for shape in [(7, 11, 5), (3, 4, 2), (7, 1, 5), (7, 11, 1), (1, 1, 1), (2, 0, 3)]:
                i = places(x.shape[dim], *shape)
                agree(lambda x, i, d=dim: x.gather(d, i), x, i)
                agree(lambda x, i, d=dim: x.gather(d, i.int()), x, i)
                src = values(7, 11, 5, dtype=dtype, seed=3)
                for s in layouts(src):
                    agree(lambda x, i, s, d=dim: x.scatter(d, i, s), x, i, s)
                    agree(lambda x, i, s, d=dim: x.clone().scatter_(d, i, s), x, i, s)
                agree(lambda x, i, d=dim: x.scatter(d, i, 1), x, i)
        wide = places(x.shape[1], 7, 30, 5)
        agree(lambda x, i: x.gather(1, i), x, wide)


@pytest.mark.parametrize("dtype", SUMMED, ids=str)
def test_scatter_reductions(dtype: Any) -> None:
    for x in layouts(values(7, 11, dtype=dtype)):
        src = values(7, 20, dtype=dtype, seed=3)
        i = places(11, 7, 20)
        agree(lambda x, i, s: x.scatter_add(1, i, s), x, i, src)
        agree(lambda x, i, s: x.clone().scatter_add_(0, i.t()[:, :7] % 7, s.t()[:, :7]), x, i, src)
        hows = ["sum", "prod", "amax", "amin"]
        if dtype.is_complex:
            hows = hows[:2]
        for how in hows:
            for own in (True, False):
                agree(lambda x, i, s, h=how, o=own: x.scatter_reduce(1, i, s, h, include_self=o), x, i, src)


def test_long_lists_into_one_line() -> None:
    for dtype in (dt.float64, dt.int64, dt.bfloat16):
        x = values(5000, dtype=dtype)
        i, src = places(5000, 70000), values(70000, dtype=dtype, seed=2)
        agree(lambda x, i, s: x.scatter_add(0, i, s), x, i, src)
        agree(lambda x, i, s: x.scatter(0, i, s), x, i, src)
        agree(lambda x, i, s: x.index_add(0, i, s), x, i, src)
        agree(lambda x, i, s: x.index_put((i,), s, accumulate=True), x, i, src)
        agree(lambda x, i, s: x.index_put((i,), s), x, i, src)
        agree(lambda x, i, s: x.put(i, s, True), x, i, src)
        agree(lambda x, i: x[i], x, i)
    square, at = values(300, 400), places(300, 500, 400)
    agree(lambda x, i, s: x.scatter_add(0, i, s), square, at, values(500, 400, seed=5))
    agree(lambda x, i: x.gather(0, i), square, at)


def test_maxima_keep_nan() -> None:
    nan = float("nan")
    x = votive.tensor([1.0, nan, 3.0])
    src = votive.tensor([nan, 5.0, 1.0, 2.0])
    i = votive.tensor([0, 1, 2, 2])
    for how in ("amax", "amin"):
        agree(lambda x, i, s, h=how: x.scatter_reduce(0, i, s, h), x, i, src)
        agree(lambda x, i, s, h=how: x.scatter_reduce(0, i, s, h, include_self=False), x, i, src)


@pytest.mark.parametrize("dtype", SUMMED, ids=str)
def test_writing_slices(dtype: Any) -> None:
    for x in layouts(values(7, 11, 5, dtype=dtype)):
        for dim in range(3):
            i = places(x.shape[dim], 6)
            shape = [7, 11, 5]
            shape[dim] = 6
            for s in layouts(values(*shape, dtype=dtype, seed=4)):
                agree(lambda x, i, s, d=dim: x.index_add(d, i, s), x, i, s)
                agree(lambda x, i, s, d=dim: x.index_add(d, i, s, alpha=2), x, i, s)
                agree(lambda x, i, s, d=dim: x.clone().index_add_(d, i.int(), s), x, i, s)
                agree(lambda x, i, s, d=dim: x.index_copy(d, i, s), x, i, s)
                agree(lambda x, i, s, d=dim: x.clone().index_copy_(d, i, s), x, i, s)
            agree(lambda x, i, d=dim: x.index_fill(d, i - 2, 1), x, i)
            agree(lambda x, i, d=dim: x.index_fill(d, i, votive.tensor(3)), x, i)


@pytest.mark.parametrize("dtype", SUMMED, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(dtype: Any, accumulate: bool) -> None:
    def put(x: Any, where: Any, v: Any) -> Any:
        if accumulate:
            return votive.ops.registry.F._index_put(x, *where, v, True)
        return votive.ops.registry.F._index_put(x, *where, v, False)

    for x in layouts(values(7, 11, 5, dtype=dtype)):
        i, j = places(7, 4, 3, low=-7), places(5, 3)
        for where, shape in [
            (((i,), (0,)), (4, 3, 11, 5)),
            (((i,), (1,)), (7, 4, 3, 5)),
            (((i, j), (0, 1)), (4, 3, 5)),
            (((i, j), (0, 2)), (4, 3, 11)),
            (((j,), (2,)), (7, 11, 3)),
        ]:
            for v in layouts(values(*shape, dtype=dtype, seed=6)):
                agree(lambda x, v, w=where: put(x, w, v), x, v)
            agree(lambda x, v, w=where: put(x, w, v), x, votive.tensor(2).to(dtype))
            agree(lambda x, v, w=where: put(x, w, v), x, values(*shape[1:], dtype=dtype))
            agree(lambda x, v, w=where: put(x, w, v), x, values(shape[-1], dtype=dtype))

    def assigned(x: Any, i: Any) -> Any:
        x = x.clone()
        x[i] = 1
        x[i, 2:5] = x[i + 1, 1:4]
        x[:, i[:2]] = 0
        return x

    agree(assigned, values(7, 11, 5, dtype=dtype), places(6, 4))


def test_a_source_that_is_the_target() -> None:
    x, i = values(6, 6), places(6, 6)
    agree(lambda x, i: (y := x.clone()).index_add_(0, i, y), x, i)
    agree(lambda x, i: (y := x.clone()).index_copy_(0, i, y), x, i)
    agree(lambda x, i: (y := x.clone()).scatter_(0, places(6, 6, 6), y), x, i)
    agree(lambda x, i: (y := i.clone()).scatter_add_(0, y, y), x, i)
    agree(lambda x, i: (y := i.clone()).index_put_((y,), y, accumulate=True), x, i)


def test_out_of_range() -> None:
    x, bad = values(4, 5), votive.tensor([0, 9, -8])
    src = values(3, 5)
    grid = bad[:, None].expand(3, 5)
    same_error(lambda: x.index_select(0, bad))
    same_error(lambda: x[bad])
    same_error(lambda: x[:, bad])
    same_error(lambda: x.take(votive.tensor([50])))
    same_error(lambda: x.put(votive.tensor([-50]), values(1)))
    same_error(lambda: x.gather(0, grid))
    same_error(lambda: x.scatter(0, grid, src))
    same_error(lambda: x.scatter(0, grid, 1.0))
    same_error(lambda: x.scatter_add(0, grid, src))
    same_error(lambda: x.scatter_reduce(0, grid, src, "amax"))
    same_error(lambda: x.index_add(0, bad, src))
    same_error(lambda: x.index_copy(0, bad, src))
    same_error(lambda: x.index_fill(0, bad, 1.0))
    same_error(lambda: x.index_put((bad,), src))
    same_error(lambda: F.embedding(bad, x))
    same_error(lambda: F.embedding(votive.tensor([-1]), x))
    small = votive.zeros(3, dtype=dt.int8)
    same_error(lambda: small.scatter(0, votive.tensor([0]), 300))
    same_error(lambda: small.index_fill(0, votive.tensor([0]), 300))
    same_error(lambda: votive.zeros(3).scatter(0, votive.tensor([0]), 1e300))
    same_error(lambda: votive.zeros(3).half().index_fill(0, votive.tensor([0]), 70000))
    same_error(lambda: x.masked_scatter(x < 100, values(3)))


@pytest.mark.parametrize("dtype", MOVED, ids=str)
@pytest.mark.parametrize("shape", [(1,), (7, 11), (5, 3, 70), (0, 4), (70001,), (300, 301)], ids=str)
def test_masks(dtype: Any, shape: Any) -> None:
    for x in layouts(values(*shape, dtype=dtype)):
        for m in layouts(values(*shape, seed=8) > 4):
            agree(lambda x, m: x[m], x, m)
            agree(lambda x, m: m.nonzero(), x, m)
            agree(lambda x, m: x.masked_scatter(m, x), x, m)
            agree(lambda x, m: x.clone().masked_scatter_(m, x.clone()), x, m)
        agree(lambda x: x.nonzero(), x)
    agree(lambda x, m: x.masked_select(m), values(4, 1, dtype=dtype), values(1, 6) > 3)


def test_zero_dimensional() -> None:
    for v in (0.0, 2.0):
        x = votive.tensor(v)
        agree(lambda x: x.nonzero(), x)
        agree(lambda x: x[x > 1], x)
        agree(lambda x: x.masked_select(x > 1), x)
        agree(lambda x: x.index_select(0, votive.tensor([0])), x)
        agree(lambda x: x.gather(0, votive.tensor(0)), x)
        agree(lambda x: x.scatter(0, votive.tensor(0), 5.0), x)
        agree(lambda x: x.index_add(0, votive.tensor(0), votive.tensor(1.0)), x)
        agree(lambda x: x.take(votive.tensor(0)), x)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.float16, dt.bfloat16], ids=str)
@pytest.mark.parametrize("rows,width,shape", [(10, 7, (4, 5)), (1000, 33, (3000,)), (5, 3, (0,))])
def test_embedding_and_its_gradient(dtype: Any, rows: int, width: int, shape: Any) -> None:
    for i in (places(rows, *shape), places(rows, *shape, dtype=dt.int32)):
        for weight in layouts(values(rows, width).to(dtype) / 3):
            for options in ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True}):

                def run(w: Any, i: Any, options: Any = options) -> Any:
                    w = w.detach().requires_grad_()
                    y = F.embedding(i, w, **options)
                    g = votive.arange(y.numel()).reshape(y.shape).to(dtype) / 100
                    y.backward(g)
                    return y, w.grad

                agree(run, weight, i)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str) -> None:
    def run(w: Any, i: Any, o: Any) -> Any:
        w = w.detach().requires_grad_()
        y = F.embedding_bag(i, w, o, mode=mode, padding_idx=3)
        y.sum().backward()
        return y, w.grad

    agree(run, values(20, 6), places(20, 50), votive.tensor([0, 5, 5, 17, 40]))


def test_native_rows_serve() -> None:
    x, i = values(4, 4), places(4, 3)
    for op, fn in {
        "gather": lambda: x.gather(0, i[None]),
        "index_select": lambda: x.index_select(0, i),
        "_index": lambda: x[i],
        "_index_put": lambda: x.index_put_((i,), votive.tensor(1.0)),
        "_scatter": lambda: x.scatter_(0, i[None], 1.0),
        "scatter_add": lambda: x.scatter_add_(0, i[None], x),
        "index_add": lambda: x.index_add(0, i, x[:3]),
        "index_fill": lambda: x.index_fill(0, i, 2.0),
        "take": lambda: x.take(i),
        "put": lambda: x.put(i, x[0, :3]),
        "_embedding": lambda: F.embedding(i, x),
        "_masked_select": lambda: x[x > 1],
        "_nonzero": lambda: x.nonzero(),
    }.items():
        assert served_by_native(op, fn), op
