"""A seed gives the same random numbers on the GPU as on the CPU, for every distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from votive.ops.registry import F

from .device import EMULATED, cpu_fallbacks

N = 700 if EMULATED else 100_000
MANY = 1300 if EMULATED else 1_000_003


def drawn(draw: Callable[[str], Any]) -> tuple[Any, Any]:
    """What both devices draw, on the CPU; nothing may be drawn on the CPU for the GPU."""
    votive.manual_seed(11)
    theirs = draw("cpu")
    votive.manual_seed(11)
    with cpu_fallbacks() as left:
        ours = draw("cuda")
    assert not left
    assert ours.device.type == "cuda"
    assert (ours.dtype, ours.shape, ours.stride()) == (theirs.dtype, theirs.shape, theirs.stride())
    return ours.cpu(), theirs


def same(draw: Callable[[str], Any]) -> None:
    ours, theirs = drawn(draw)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def near(draw: Callable[[str], Any], rtol: float) -> None:
    ours, theirs = (t.to(votive.float64).numpy() for t in drawn(draw))
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


def nearly_all(draw: Callable[[str], Any], rtol: float = 0.0) -> None:
    """Where a comparison of computed numbers decides, one in many may fall the other way."""
    ours, theirs = (t.to(votive.float64).numpy() for t in drawn(draw))
    close = np.isclose(ours, theirs, rtol=rtol, atol=0.0, equal_nan=True)
    assert (~close).sum() <= 2 + close.size // 10_000


def table(device: str, shape: tuple[int, ...], low: float, high: float, dtype: str) -> Any:
    a = np.random.default_rng(5).uniform(low, high, shape)
    return votive.from_numpy(a).to(getattr(votive, dtype)).to(device)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
def test_integers_are_the_same(dtype: str) -> None:
    kind = getattr(votive, dtype)
    same(lambda d: votive.empty(N, dtype=kind, device=d).random_(3, 99))
    same(lambda d: votive.empty(N, dtype=kind, device=d).random_())
    same(lambda d: votive.randint(5, 100, (N, 2), dtype=kind, device=d))


def test_integers_of_the_whole_range_are_the_same() -> None:
    same(lambda d: votive.empty(N, dtype=votive.int64, device=d).random_(-(2**63), None))
    same(lambda d: votive.empty(N, dtype=votive.float32, device=d).random_(-(2**63), None))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_chances_and_means_may_be_tensors(dtype: str) -> None:
    chances = lambda d: table(d, (N, 3), 0, 1, dtype)
    same(lambda d: votive.bernoulli(chances(d)))
    same(lambda d: votive.empty(4, 3, dtype=votive.int32, device=d).bernoulli_(chances(d)[0]))
    mean, std = (lambda d: table(d, (N, 3), -5, 5, dtype)), (lambda d: table(d, (3,), 0, 9, dtype))
    rtol = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3}[dtype]
    near(lambda d: votive.normal(mean(d), std(d)), rtol)
    near(lambda d: votive.normal(mean(d).t(), 0.5), rtol)
    near(lambda d: votive.normal(2.0, std(d)), rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
def test_trials_and_cauchy_numbers_are_the_same(dtype: str) -> None:
    kind = getattr(votive, dtype)
    nearly_all(lambda d: votive.empty(N, dtype=kind, device=d).geometric_(0.01))
    if kind.is_floating_point:
        rtol = {"float32": 1e-4, "float64": 1e-11, "float16": 2e-3}[dtype]
        near(lambda d: votive.empty(N, dtype=kind, device=d).cauchy_(1.0, 2.0).clamp(-99, 99), rtol)


@pytest.mark.parametrize("n", [0, 1, 2, 65, MANY])
def test_permutations_are_the_same(n: int) -> None:
    same(lambda d: votive.randperm(n, device=d))
    same(lambda d: votive.randperm(n, device=d, dtype=votive.float64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(5,), (3, 40), (2, MANY // 2)])
def test_choices_are_the_same(dtype: str, shape: tuple[int, ...]) -> None:
    def weights(d: str) -> Any:
        w = table(d, shape, 0, 1, dtype)
        return votive.where(w < 0.3, votive.zeros_like(w), w)

    nearly_all(lambda d: votive.multinomial(weights(d), 1))
    nearly_all(lambda d: votive.multinomial(weights(d), 50, replacement=True))
    nearly_all(lambda d: votive.multinomial(weights(d), 2))


def test_weights_near_the_largest_number_are_not_added_to_infinity() -> None:
    same(lambda d: votive.multinomial(votive.full((2, 9), 1e308, device=d, dtype=votive.float64), 4, replacement=True))


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_wrong_weights_are_told_when_the_host_waits(weights: list[float]) -> None:
    with pytest.raises(RuntimeError, match="probabilit"):
        votive.multinomial(votive.tensor(weights, device="cuda"), 1).cpu()


def test_too_few_weights_are_told_when_the_host_waits() -> None:
    with pytest.raises(RuntimeError, match="not enough"):
        votive.multinomial(votive.tensor([1.0, 0.0, 0.0], device="cuda"), 2).cpu()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_counts_are_the_same(dtype: str) -> None:
    """Rates and trials on both sides of where the method changes, and at the edges."""
    small = lambda d: table(d, (N,), 0, 9, dtype)
    large = lambda d: table(d, (N,), 11, 1e4, dtype)
    chance = lambda d: table(d, (N,), 0, 1, dtype)
    nearly_all(lambda d: votive.poisson(small(d)))
    nearly_all(lambda d: votive.poisson(large(d)))
    nearly_all(lambda d: votive.binomial(small(d), chance(d)))
    nearly_all(lambda d: votive.binomial(large(d), chance(d)))
    edges = [0.0, float("inf"), float("nan"), 5.0, 3.7]
    chances = [0.5, 0.25, 0.5, 2.0, -1.0]
    kind = getattr(votive, dtype)
    nearly_all(
        lambda d: votive.binomial(
            votive.tensor(edges, dtype=kind, device=d), votive.tensor(chances, dtype=kind, device=d)
        )
    )
    with pytest.raises(RuntimeError, match="Poisson"):
        votive.poisson(votive.tensor([1.0, -1.0], device="cuda")).cpu()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_gamma_numbers_and_shares_are_the_same(dtype: str) -> None:
    rtol = {"float32": 1e-5, "float64": 1e-11, "float16": 2e-3}[dtype]
    kind = getattr(votive, dtype)
    edges = lambda d: votive.tensor([0.0, float("inf"), -1.0, 1e-3, 1.0], dtype=kind, device=d)
    for low, high in ((0.01, 1), (1, 50)):
        shapes = lambda d, low=low, high=high: table(d, (N // 7, 7), low, high, dtype)
        nearly_all(lambda d, shapes=shapes: F._standard_gamma(shapes(d)), rtol)
        nearly_all(lambda d, shapes=shapes: F._sample_dirichlet(shapes(d)), rtol)
    nearly_all(lambda d: F._standard_gamma(edges(d)), rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_numbers_and_shares_move_with_their_shapes(dtype: str) -> None:
    rtol = {"float32": 1e-5, "float64": 1e-11}[dtype]
    rng = np.random.default_rng(2)
    n = 40 if EMULATED else 2000
    alpha = np.exp(rng.uniform(-6, 7, n))
    x = alpha * np.exp(rng.uniform(-3, 3, n))
    share, total = rng.uniform(1e-6, 1 - 1e-6, n), alpha + np.exp(rng.uniform(-5, 5, n))
    x[0], share[0], alpha[1] = 0.0, 0.0, -1.0
    total[2] = alpha[2]
    there = lambda d, *arrays: [votive.from_numpy(a).to(getattr(votive, dtype)).to(d) for a in arrays]
    nearly_all(lambda d: F._standard_gamma_grad(*there(d, alpha, x)), rtol)
    nearly_all(lambda d: F._dirichlet_grad(*there(d, share, alpha, total)), rtol)
