"""Copies, casts, fills and rearrangements on native kernels agree with the reference."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt

from .compare import DTYPES, agree, layouts, needs_native, served_by_native

pytestmark = needs_native

SIZES = [1, 2, 4, 8, 16]
BY_SIZE = {1: dt.uint8, 2: dt.int16, 4: dt.float32, 8: dt.float64, 16: dt.complex128}


def values(*shape: int, dtype: Any = dt.float32) -> Any:
    made = np.random.default_rng(0).integers(0, 100, shape)
    return votive.from_numpy(np.asarray(made)).to(dtype)


@pytest.mark.parametrize("have", DTYPES, ids=str)
@pytest.mark.parametrize("want", DTYPES, ids=str)
def test_every_type_becomes_every_other(have: Any, want: Any) -> None:
    for x in layouts(values(5, 37, dtype=have)):
        agree(lambda x: x.to(want), x)
        agree(lambda x: votive.zeros(37, 5, dtype=want).copy_(x.t()), x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1),
        (3, 5),
        (2, 100),
        (100, 2),
        (3, 1000),
        (1000, 3),
        (4, 64),
        (16, 16),
        (17, 15),
        (33, 65),
        (7, 500),
        (500, 7),
        (200, 300),
        (257, 255),
    ],
    ids=str,
)
def test_transposed_copies(size: int, shape: tuple[int, int]) -> None:
    for x in layouts(values(*shape, dtype=BY_SIZE[size])):
        agree(lambda x: x.t().contiguous(), x)
        agree(lambda x: votive.zeros_like(x).t().copy_(x.t()), x)


@pytest.mark.parametrize("size", SIZES)
def test_every_order_of_dimensions(size: int) -> None:
    x = values(6, 5, 4, 7, dtype=BY_SIZE[size])
    for order in itertools.permutations(range(4)):
        agree(lambda x, order=order: x.permute(order).contiguous(), x)
        agree(lambda x, order=order: x[:, ::2].permute(order).clone(), x)
    agree(lambda x: x.to(memory_format=votive.channels_last), x)
    agree(lambda x: x[:, :3].contiguous(memory_format=votive.channels_last), x)
    agree(lambda x: x.contiguous(memory_format=votive.channels_last).contiguous(), x)


@pytest.mark.parametrize("size", SIZES)
def test_broadcast_and_large_copies(size: int) -> None:
    x = values(300, 1, dtype=BY_SIZE[size])
    agree(lambda x: x.expand(300, 200).contiguous(), x)
    agree(lambda x: x.t().expand(200, 300).contiguous(), x)
    agree(lambda x: x.expand(2, 300, 3).contiguous(), x)
    agree(lambda x: x.repeat(3, 4), x)
    for times in (1, 2, 3, 4, 5):
        agree(lambda x, times=times: x.repeat_interleave(times), x)
        agree(lambda x, times=times: x.repeat_interleave(times, 0), x)
    agree(lambda x: x.unfold(0, 7, 2).contiguous(), x)
    big = values(70000, dtype=BY_SIZE[size])
    agree(lambda x: x.clone(), big)
    agree(lambda x: x[1:].clone(), big)
    agree(lambda x: x[::3].clone(), big)


def test_copies_beyond_the_cache() -> None:
    x = votive.arange(7_000_001)
    assert bool((x.clone() == x).all())
    assert bool((x[3:].clone() == x[3:]).all())
    assert bool((votive.full((7_000_001,), 5)[1:] == 5).all())
    assert bool((votive.zeros(13_000_003) == 0).all())
    y = votive.ones(13_000_003, dtype=dt.int16)[5:]
    assert bool((y.fill_(3) == 3).all())


def test_empty_and_zero_dimensional() -> None:
    agree(lambda x: x.clone(), values(0, 3))
    agree(lambda x: x.t().contiguous(), values(0, 3))
    agree(lambda x: x.clone(), votive.tensor(2.5))
    agree(lambda x: x.to(dt.int64), votive.tensor(2.5))
    agree(lambda x: votive.zeros(3, 4).copy_(x), votive.tensor(2.5))


def test_a_source_that_overlaps_the_target_is_read_first() -> None:
    def shift(x: Any) -> Any:
        x = x.clone()
        x[1:].copy_(x[:-1])
        x[:, :-1].copy_(x[:, 1:])
        square = x[:8, :8]
        square.copy_(square.t())
        return x

    agree(shift, values(40, 30))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fills(dtype: Any) -> None:
    for x in layouts(values(9, 70, dtype=dtype)):
        agree(lambda x: x.clone().fill_(3), x)
        agree(lambda x: x.fill_(2).clone(), x)
        agree(lambda x: x.fill_(votive.tensor(1)).clone(), x)
        agree(lambda x: x.zero_().clone(), x)
    agree(lambda: votive.full((3, 50), 1, dtype=dtype))
    agree(lambda: votive.ones(100, dtype=dtype))
    agree(lambda: votive.eye(13, 21, dtype=dtype))
    agree(lambda: votive.full((3,), 2.5))
    agree(lambda: votive.full((), True))


@pytest.mark.parametrize("dtype", [t for t in DTYPES if not t.is_complex and t is not dt.bool_], ids=str)
def test_ranges(dtype: Any) -> None:
    agree(lambda: votive.arange(100, dtype=dtype))
    agree(lambda: votive.arange(3, 90, 7, dtype=dtype))
    agree(lambda: votive.arange(1.5, 90, 2.5, dtype=dtype))
    agree(lambda: votive.arange(9, 1, -2, dtype=dt.int32))
    agree(lambda: votive.arange(70000).to(dtype))
    if dtype.is_floating_point:
        for n in (0, 1, 2, 3, 1000):
            agree(lambda n=n: votive.linspace(-1, 2.5, n, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (9, 5), (2, 3, 17, 33), (300, 250), (0, 3)], ids=str)
def test_triangles(dtype: Any, shape: Any) -> None:
    for x in layouts(values(*shape, dtype=dtype)):
        for k in (-20, -2, 0, 3, 50):
            agree(lambda x, k=k: (x.tril(k), x.triu(k)), x)
            agree(lambda x, k=k: (x.clone().tril_(k), x.clone().triu_(k)), x)


def test_index_triangles() -> None:
    for rows, cols, offset in [(3, 4, 0), (4, 3, -2), (4, 3, 2), (0, 3, 0), (5, 5, -9), (5, 5, 9)]:
        agree(lambda r=rows, c=cols, k=offset: votive.tril_indices(r, c, k))
        agree(lambda r=rows, c=cols, k=offset: votive.triu_indices(r, c, k, dtype=dt.int32))


@pytest.mark.parametrize("size", SIZES)
def test_rearrangements(size: int) -> None:
    for x in layouts(values(7, 40, dtype=BY_SIZE[size])):
        for dims in [(0,), (1,), (0, 1), ()]:
            agree(lambda x, dims=dims: x.flip(dims), x)
        for k in range(4):
            agree(lambda x, k=k: votive.rot90(x, k), x)
        for shifts, dims in [(3, 0), (-2, 1), ((2, 45), (0, 1)), ((1, 2), (1, 1)), (0, 0), (11, ())]:
            agree(lambda x, s=shifts, d=dims: votive.roll(x, s, d), x)
        agree(lambda x: votive.diag_embed(x), x)
        agree(lambda x: votive.diag_embed(x, -2, 0, 1), x)
        agree(lambda x: x.select_scatter(x[:, 0].clone(), 1, 3), x)
        agree(lambda x: x.slice_scatter(x[:, :4].clone(), 1, 2, 10, 2), x)
        agree(lambda x: x.diagonal_scatter(x[0, :6].clone(), 3), x[:, :9])


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int64, dt.bool_], ids=str)
def test_joining(dtype: Any) -> None:
    a, b = values(6, 50, dtype=dtype), values(9, 50, dtype=dtype)
    for x, y in zip(layouts(a), layouts(b), strict=True):
        agree(lambda x, y: votive.cat([x, y, x]), x, y)
        agree(lambda x, y: votive.cat([x.t(), y.t()], 1), x, y)
        agree(lambda x, y: votive.cat([x, votive.zeros(0), y.float()]), x, y)
        agree(lambda x, y: votive.stack([x, x]), x, y)
        agree(lambda x, y: votive.stack([x, x, x], 1), x, y)
        agree(lambda x, y: votive.stack([x, x], -1), x, y)
    wide = values(3000, 20, dtype=dtype)
    agree(lambda x: votive.cat([x] * 9), wide)
    agree(lambda x: votive.cat([x, x[:, :1], x[:, :3]], 1), wide)
    agree(lambda x: votive.stack([x] * 5, -1), wide)
    agree(lambda x: votive.cat([x[:0], x[:0]]), wide)
    images = values(2, 3, 8, 8, dtype=dtype).contiguous(memory_format=votive.channels_last)
    agree(lambda x: votive.cat([x, x], 1), images)


def test_gradients_of_views_go_through_windows() -> None:
    def grads(x: Any) -> Any:
        out = []
        for view in (
            lambda x: x[3:9],
            lambda x: x[:, 2],
            lambda x: x[4],
            lambda x: x[1::3, ::2],
            lambda x: x.diagonal(1),
            lambda x: x.unfold(0, 4, 2),
            lambda x: x[2:2],
            lambda x: x.split([3, 17], 0)[1],
            lambda x: x.unbind(1)[3],
            lambda x: x.t()[None, 5],
        ):
            leaf = x.detach().clone().requires_grad_()
            y = view(leaf)
            (y * votive.arange(y.numel()).reshape(y.shape)).sum().backward()
            out.append(leaf.grad)
        return out

    agree(grads, values(20, 30))


def test_native_rows_serve() -> None:
    x = values(4, 4)
    assert served_by_native("_copy_as", lambda: x.to(dt.int64))
    assert served_by_native("copy", lambda: x.copy_(x.t()))
    assert served_by_native("_full", lambda: votive.zeros(3))
    assert served_by_native("cat", lambda: votive.cat([x, x]))
    assert served_by_native("tril", lambda: x.tril())


def test_remembered_calls_follow_what_they_depend_on() -> None:
    for n in (2, 3):
        assert votive.zeros(votive.tensor(n)).shape == (n,)
        assert votive.arange(votive.tensor(n)).tolist() == list(range(n))
    assert votive.zeros(2).dtype is dt.float32
    votive.set_default_dtype(dt.float64)
    try:
        assert votive.zeros(2).dtype is dt.float64
    finally:
        votive.set_default_dtype(dt.float32)
    assert votive.zeros(2).dtype is dt.float32
    x = values(2, 3)
    assert x.to(dt.float32) is x
    assert x.float() is x
    assert x.clone() is not x
    assert votive.zeros(2, requires_grad=True).requires_grad
    for _ in range(2):
        with pytest.raises(RuntimeError, match="negative"):
            votive.zeros(-1)
        with pytest.raises(TypeError):
            votive.zeros(2.0)
        with pytest.raises(TypeError):
            votive.zeros(True)


def test_indexes_give_views_that_gradients_pass_through_after_writes() -> None:
    """Views made without a plan are made again from their base when it was written in place."""
    w = votive.ones(3, requires_grad=True)
    base = votive.zeros(4, 3)
    row, part, column, corner = base[1], base[1:3], base[:, 1], base[None, 1:, ..., 2]
    pieces, slices = base.split(2), base.unbind(1)
    base.add_(w)
    for view in (row, part, column, corner, *pieces, *slices):
        assert view.requires_grad
        w.grad = None
        view.sum().backward(retain_graph=True)
        assert w.grad.sum().item() == view.numel()
    y = votive.zeros(4, 3)
    y[1:3] = w
    y[0, 1] = 5.0
    y[3] = w * 2
    w.grad = None
    y.sum().backward()
    assert w.grad.tolist() == [4.0, 4.0, 4.0]
