"""Membership, distinct rows, modes, products, distances and alignments beyond a block, at edges and
in mixed types: the same on both devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive

from .device import EMULATED, cpu_fallbacks

N = 200 if EMULATED else 50_000
F = votive.nn.functional


def hold(fn: Callable[..., Any], *arrays: Any, rtol: float = 0.0) -> None:
    given = [votive.from_numpy(np.asarray(a)) for a in arrays]
    theirs = fn(*given)
    with cpu_fallbacks() as left:
        ours = fn(*(t.to("cuda") for t in given))
    assert not left
    results = zip(*(r if isinstance(r, tuple) else (r,) for r in (ours, theirs)), strict=True)
    for a, b in results:
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        p, q = a.detach().cpu().numpy(), b.detach().numpy()
        np.testing.assert_allclose(p, q, rtol=rtol, atol=rtol, equal_nan=True)


def numbers(*shape: int, high: int = 40) -> Any:
    return np.random.default_rng(1).integers(0, high, shape)


def test_membership_of_many_and_of_other_types() -> None:
    x, tests = numbers(N, high=3 * N), numbers(N // 3, high=3 * N)
    hold(votive.isin, x, tests)
    hold(lambda a, b: votive.isin(a, b, invert=True), x.astype(np.float32), tests[:5])
    hold(votive.isin, x.astype(np.int16), tests.astype(np.int32))
    hold(votive.isin, np.array([np.nan, 1.0, 0.0]), np.array([np.nan, -0.0]))
    hold(votive.isin, x, tests[:0])


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("consecutive", [False, True])
def test_distinct_rows(dim: int, consecutive: bool) -> None:
    x = numbers(9, 5, 7, high=2).astype(np.float32)
    x[2], x[:, 3], x[..., 4] = x[7], x[:, 2], x[..., 3]
    fn = votive.unique_consecutive if consecutive else votive.unique
    hold(lambda t: fn(t, return_inverse=True, return_counts=True, dim=dim), x)


def test_nothing_has_nothing_distinct() -> None:
    for dim in (None, 0):
        hold(lambda t, dim=dim: votive.unique(t, return_inverse=True, return_counts=True, dim=dim), np.zeros((0, 3)))


def test_distinct_rows_of_many() -> None:
    hold(lambda t: votive.unique(t, return_inverse=True, return_counts=True, dim=0), numbers(N, 2, high=20))


@pytest.mark.parametrize("shape", [(3, N), (N, 3), (5,), (1,)])
def test_modes_of_long_lines(shape: tuple[int, ...]) -> None:
    x = numbers(*shape, high=9)
    for dim in range(len(shape)):
        hold(lambda t, dim=dim: tuple(votive.mode(t, dim)), x)
    y = x.astype(np.float64)
    y[x == 3] = np.nan
    hold(lambda t: tuple(votive.mode(t, 0)), y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("own", [True, False])
def test_products_of_what_falls_on_one_place(dtype: str, own: bool) -> None:
    rng, kind = np.random.default_rng(2), getattr(votive, dtype)
    signs = 1.0 + (rng.integers(0, 2, (4, 60 if EMULATED else 300)) * (2.0**-7 if dtype == "float64" else 0))
    signs *= rng.choice([-1.0, 1.0], signs.shape) if kind.is_floating_point else 1
    index = rng.integers(0, 3, (4, 60 if EMULATED else 300))

    def product(x: Any, i: Any, src: Any) -> Any:
        x, src = x.to(kind), src.to(kind)
        return votive.scatter_reduce(x, 1, i, src, "prod", include_self=own).to(votive.float64)

    hold(product, np.full((4, 5), 3.0), index, signs, rtol=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances_of_more_points_than_a_tile(p: float) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 1, 37, 5)), rng.standard_normal((3, 70, 5))
    hold(lambda a, b: votive.cdist(a, b, p), x, y, rtol=1e-7)
    hold(lambda a, b: votive.cdist(a, b, p), x[..., :0], y[..., :0])
    hold(lambda a, b: votive.cdist(a, b, p), x[..., :0, :], y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_neighbours_and_parts_of_floats(dtype: str) -> None:
    kind = getattr(votive, dtype)
    tiny = float(votive.finfo(kind).tiny)
    a = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, tiny, -tiny, tiny / 4, 65504.0])
    b = a[:, None]
    exact = lambda t: t.to(votive.float64)
    hold(lambda u, v: exact(votive.nextafter(u.to(kind), v.to(kind))), a, b)
    hold(lambda u: exact(votive.frexp(u.to(kind)).mantissa), a)
    hold(lambda u: votive.frexp(u.to(kind)).exponent, a)


@pytest.mark.parametrize(("n", "r", "again"), [(7, 3, False), (5, 4, True), (4, 1, False)])
def test_combinations_come_in_order(n: int, r: int, again: bool) -> None:
    hold(lambda t: votive.combinations(t, r, with_replacement=again), np.arange(float(n)))


def test_histograms_of_points_with_weights() -> None:
    rng = np.random.default_rng(4)
    x, w = rng.uniform(-1, 2, (N, 2)), rng.uniform(0, 1, N)
    edges = [np.array([0.0, 0.3, 1.0]), np.linspace(-0.5, 1.5, 8)]
    hold(lambda t, w, *e: votive.histogramdd(t, list(e), weight=w).hist, x, w, *edges, rtol=1e-9)
    hold(lambda t, e: votive.histogram(t, e).hist, x[:, 0], edges[1])


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("longest", [1, 9, 20 if EMULATED else 600])
def test_alignments_of_all_lengths(padded: bool, longest: int) -> None:
    rng = np.random.default_rng(5)
    time, classes = 2 * longest + 5, 6
    lengths = np.array([longest, 0, longest // 2, longest])
    frames = np.array([time, 3, time - 2, longest])
    targets = rng.integers(1, classes, (4, longest))
    if not padded:
        targets = np.concatenate([t[:n] for t, n in zip(targets, lengths, strict=True)])

    def loss(x: Any, targets: Any, frames: Any, lengths: Any) -> Any:
        x = x.detach().requires_grad_()
        y = F.ctc_loss(x.log_softmax(2), targets, frames, lengths, reduction="none", zero_infinity=True)
        (g,) = votive.autograd.grad([y.sum()], [x])
        return y, g

    hold(loss, rng.standard_normal((time, 4, classes)), targets, frames, lengths, rtol=1e-9)


def test_a_target_out_of_range_is_told_when_the_host_waits() -> None:
    x = votive.zeros(5, 1, 3, device="cuda").log_softmax(2)
    with pytest.raises(IndexError, match="ctc_loss"):
        F.ctc_loss(x, votive.tensor([[7]], device="cuda"), (5,), (1,)).cpu()
