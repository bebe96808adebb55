"""Joins, draws, pools and resizing give the CPU's numbers on the GPU, however their tensors lie in memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.nn import functional as F

Tensor = Any
DTYPES = [vt.float32, vt.float64, vt.bfloat16]
ROUNDING = {vt.float32: 3e-5, vt.float64: 1e-11, vt.bfloat16: 2e-2}


def _permuted(x: Tensor, order: list[int]) -> Tensor:
    return x.permute(*order).contiguous().permute(*np.argsort(order).tolist())


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda x: x,
    "every second": lambda x: vt.stack([x, x], -1).flatten(-2)[..., ::2],
    "a window": lambda x: vt.cat([x, x], -1)[..., 1 : 1 + x.shape[-1]],
    "channels last": lambda x: _permuted(x, [0, *range(2, x.ndim), 1]),
    "transposed": lambda x: _permuted(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]),
}


def both(make: Callable[[str], Any], tolerance: float = 0.0) -> None:
    """The same on the CPU and on the GPU, strides included."""
    theirs, ours = make("cpu"), make("cuda")
    for a, b in zip(theirs, ours, strict=True):
        assert a.stride() == b.stride()
        np.testing.assert_allclose(
            b.detach().to("cpu").double().numpy(), a.detach().double().numpy(), rtol=tolerance, atol=tolerance
        )


def test_tensors_of_any_layouts_are_joined() -> None:
    rng = random.Random(7)
    kinds = list(LAYOUTS)
    for _ in range(40):
        shape = [rng.choice((1, 2, 3, 5)) for _ in range(rng.choice((2, 3, 4)))]
        dim, dtype = rng.randrange(len(shape)), rng.choice((vt.float32, vt.int8, vt.float64, vt.uint8))
        count, one, alike = rng.choice((2, 3, 5)), rng.choice(kinds), rng.random() < 0.6
        given = [(k, one if alike else rng.choice(kinds)) for k in range(count)]

        def make(
            device: str, shape: Any = shape, given: Any = given, dim: int = dim, dtype: Any = dtype
        ) -> list[Tensor]:
            rows = vt.arange(int(np.prod(shape))).reshape(*shape)
            parts = [LAYOUTS[kind](((rows * 7 + k * 3) % 5).to(dtype).to(device)) for k, kind in given]
            return [vt.cat(parts, dim).to(vt.int64), vt.stack(parts, dim).to(vt.int64)]

        both(make)


def test_a_gap_in_one_of_several_rows_stays_its_own() -> None:
    plain, wide = vt.tensor([[1], [2]]), vt.tensor([[3, 9], [4, 9]])[:, :1]
    parts = [plain, wide, plain]
    assert vt.cat([p.to("cuda") for p in parts], 1).tolist() == vt.cat(parts, 1).tolist()
    kept = [plain.to("cuda"), wide.to("cuda").new_tensor([[3, 9], [4, 9]])[:, :1], plain.to("cuda")]
    assert vt.cat(kept, 1).tolist() == [[1, 3, 1], [2, 4, 2]]


DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "dropout1d": lambda x: F.dropout1d(x, 0.3),
    "uniform_": lambda x: x.uniform_(-2, 3),
    "normal_": lambda x: x.normal_(1, 2),
    "log_normal_": lambda x: x.log_normal_(),
    "exponential_": lambda x: x.exponential_(2.0),
    "cauchy_": lambda x: x.cauchy_(),
    "geometric_": lambda x: x.geometric_(0.3),
    "random_": lambda x: x.random_(0, 50),
    "bernoulli_": lambda x: x.bernoulli_(0.4),
    "bernoulli": vt.bernoulli,
    "bernoulli_ by itself": lambda x: x.bernoulli_(x),
    "bernoulli_ by its neighbour": lambda x: x[1:].bernoulli_(x[:-1]),
    "bernoulli_ by a row": lambda x: x.bernoulli_(x[0].clone()),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["dense", "every second", "a window", "transposed", "channels last"])
def test_draws_are_the_same_in_every_layout(layout: str, dtype: Any) -> None:
    # Rows of 8 elements share counters, in whole.
    for draw, width in [(draw, width) for draw in DRAWS.values() for width in (7, 8)]:
        start = (vt.arange(15 * width).reshape(3, 5, width) % 11 / 11.0).to(dtype)

        def make(device: str, draw: Callable[[Tensor], Tensor] = draw, start: Tensor = start) -> list[Tensor]:
            vt.manual_seed(5)
            x = LAYOUTS[layout](start.clone().to(device))
            return [draw(x), x]

        both(make, ROUNDING[dtype])


def test_chances_outside_of_0_to_1_are_refused() -> None:
    vt.bernoulli(vt.full((3,), 1.5, device="cuda"))
    with pytest.raises(RuntimeError, match="Expected p_in"):
        vt.cuda.synchronize()


def gradient(fn: Callable[[Tensor], Any], start: Tensor, layout: str, device: str) -> list[Tensor]:
    x = LAYOUTS[layout](start.to(device)).detach().requires_grad_()
    found = fn(x)
    y, *places = found if isinstance(found, tuple) else (found,)
    (g,) = vt.autograd.grad([y], [x], [LAYOUTS["dense"](vt.ones_like(y) * 2)])
    return [y, *places, g]


POOLS: list[tuple[tuple[int, ...], Callable[[Tensor], Any]]] = [
    ((2, 3, 21, 17), lambda x: F.adaptive_avg_pool2d(x, 2)),
    ((2, 3, 21, 17), lambda x: F.adaptive_avg_pool2d(x, 1)),
    ((2, 3, 18, 12), lambda x: F.adaptive_avg_pool2d(x, (3, 2))),
    ((2, 3, 97), lambda x: F.adaptive_avg_pool1d(x, 2)),
    ((1, 2, 6, 8, 10), lambda x: F.adaptive_avg_pool3d(x, (2, None, 1))),
    ((2, 3, 21, 17), lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True)),
    ((1, 4, 31, 27), lambda x: F.adaptive_max_pool2d(x, 1, return_indices=True)),
    ((2, 3, 7, 9, 11), lambda x: F.adaptive_max_pool3d(x, 2, return_indices=True)),
    ((2, 3, 5, 6), lambda x: F.adaptive_max_pool2d(x, 4)),
    ((2, 3, 21, 17), lambda x: F.avg_pool2d(x, 7, 3, 2, True, False)),
    ((2, 3, 14, 21), lambda x: F.avg_pool2d(x, 7)),
    ((2, 3, 14, 21), lambda x: F.avg_pool2d(x, 7, divisor_override=5)),
    ((2, 3, 7, 9, 11), lambda x: F.avg_pool3d(x, 4, 2, 1)),
    ((2, 3, 31, 27), lambda x: F.max_pool2d(x, 6, 3, 2, 3, return_indices=True)),
    ((2, 3, 197), lambda x: F.max_pool1d(x, 61, 40, 30, return_indices=True)),
]


@pytest.mark.parametrize("layout", ["dense", "channels last", "every second"])
@pytest.mark.parametrize("which", range(len(POOLS)))
def test_pools_of_large_windows(which: int, layout: str) -> None:
    shape, fn = POOLS[which]
    dtype = DTYPES[which % 3]
    start = (vt.arange(int(np.prod(shape))).reshape(*shape) * 37 % 101).to(dtype) / 16
    both(lambda device: gradient(fn, start, layout, device), ROUNDING[dtype])


@pytest.mark.filterwarnings("ignore:(invalid value|overflow)")
def test_the_last_nan_of_a_large_window_is_its_maximum() -> None:
    start = vt.arange(570.0).reshape(1, 1, 19, 30) % 13
    start[0, 0, 3, 4] = start[0, 0, 7, 2] = float("nan")
    both(lambda device: F.max_pool2d(start.to(device), 9, 5, return_indices=True))
    both(lambda device: F.adaptive_max_pool2d(start.to(device), 2, True))


SIZES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9, 7), (5, 11), {"mode": "nearest"}),
    ((1, 2, 4, 5, 6), (3, 7, 12), {"mode": "nearest"}),
    ((2, 3, 9, 7), (5, 7), {"mode": "nearest-exact"}),
    ((2, 3, 9), (15,), {"mode": "linear"}),
    ((2, 3, 9, 7), (18, 1), {"mode": "bilinear"}),
    ((2, 3, 9, 7), (9, 14), {"mode": "bilinear", "align_corners": True}),
    ((2, 3, 9, 7), (9, 7), {"mode": "bilinear"}),
    ((1, 2, 4, 5, 6), (3, 7, 12), {"mode": "trilinear"}),
    ((2, 3, 9, 7), (5, 11), {"mode": "bicubic"}),
    ((2, 3, 19, 17), (5, 3), {"mode": "bicubic", "antialias": True}),
    ((2, 3, 9, 7), (4, 5), {"mode": "area"}),
]


@pytest.mark.parametrize("layout", ["dense", "channels last", "every second"])
@pytest.mark.parametrize("which", range(len(SIZES)))
def test_resizing(which: int, layout: str) -> None:
    shape, size, options = SIZES[which]
    dtype = DTYPES[which % 3]
    start = (vt.arange(int(np.prod(shape))).reshape(*shape) * 37 % 101).to(dtype) / 64
    fn = lambda x: F.interpolate(x, size=size, **options)
    both(lambda device: gradient(fn, start, layout, device), ROUNDING[dtype])
