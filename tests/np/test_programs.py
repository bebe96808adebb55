"""Small programs of the kind people write with NumPy give the same with votive.np."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import votive


def data(np: Any) -> Any:
    """The same numbers for both."""
    rng = numpy.random.default_rng(11)
    return np.asarray(rng.standard_normal((40, 3)) + numpy.repeat([[0, 0, 0], [4, 4, 0]], 20, axis=0))


def k_means(np: Any) -> Any:
    x = data(np)
    centers = x[[0, -1]].copy()
    for _ in range(8):
        distances = ((x[:, None, :] - centers[None]) ** 2).sum(-1)
        labels = np.argmin(distances, axis=1)
        for k in range(2):
            centers[k] = x[labels == k].mean(axis=0)
    return centers, np.bincount(labels)


def life(np: Any) -> Any:
    grid = np.zeros((8, 8), dtype=int)
    grid[1:4, 2] = 1
    grid[3, 1] = grid[2, 0] = 1
    for _ in range(5):
        neighbours = sum(np.roll(np.roll(grid, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        grid = ((neighbours == 3) | ((grid == 1) & (neighbours == 2))).astype(int)
    return grid


def mandelbrot(np: Any) -> Any:
    c = np.linspace(-2, 1, 24)[None, :] + 1j * np.linspace(-1.2, 1.2, 16)[:, None]
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=np.uint8)
    for _ in range(12):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        counts[inside] += 1
    return counts


def logistic_regression(np: Any) -> Any:
    x = np.hstack([data(np), np.ones((40, 1))])
    y = np.r_[np.zeros(20), np.ones(20)]
    w = np.zeros(4)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        w -= 0.1 * x.T @ (p - y) / len(y)
    return w, float(np.mean((x @ w > 0) == y))


def power_iteration(np: Any) -> Any:
    a = data(np)
    m = a.T @ a
    v = np.ones(3)
    for _ in range(60):
        v = m @ v
        v /= np.linalg.norm(v)
    return v @ m @ v, np.max(np.linalg.eigvalsh(m))


def sieve(np: Any) -> Any:
    prime = np.ones(100, dtype=bool)
    prime[:2] = False
    for i in range(2, 10):
        if prime[i]:
            prime[i * i :: i] = False
    return np.flatnonzero(prime), prime.sum()


def moving_average(np: Any) -> Any:
    x = data(np)[:, 0]
    total = np.cumsum(np.insert(x, 0, 0.0))
    average = (total[5:] - total[:-5]) / 5
    peaks = np.where((average[1:-1] > average[:-2]) & (average[1:-1] > average[2:]))[0] + 1
    spectrum = np.abs(np.fft.rfft(x - x.mean())) ** 2
    return average, peaks, np.argsort(spectrum)[::-1][:3], np.convolve(x, np.ones(5) / 5, "valid")


def gauss_elimination(np: Any) -> Any:
    a = data(np)[:3] + 3 * np.eye(3)
    inverse = np.eye(3)
    a = a.copy()
    for i in range(3):
        pivot = i + int(np.argmax(np.abs(a[i:, i])))
        a[[i, pivot]] = a[[pivot, i]]
        inverse[[i, pivot]] = inverse[[pivot, i]]
        scale = a[i, i]
        a[i] /= scale
        inverse[i] /= scale
        for j in range(3):
            if j != i:
                factor = a[j, i]
                a[j] -= factor * a[i]
                inverse[j] -= factor * inverse[i]
    return inverse


def bubble_sort(np: Any) -> Any:
    x = np.array([5, 2, 9, 1, 7])
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    seen: dict[Any, int] = {}
    for value in x:
        seen[value] = seen.get(value, 0) + 1
    return x, sorted(int(k) for k in seen)


def statistics(np: Any) -> Any:
    x = data(np)
    z = (x - x.mean(0)) / x.std(0, ddof=1)
    edges = np.histogram_bin_edges(z[:, 0], 6)
    counts, _ = np.histogram(z[:, 0], edges)
    low, middle, high = np.percentile(x, [5, 50, 95], axis=0)
    outliers = np.any((x < low) | (x > high), axis=1)
    fit = np.polyfit(x[:, 0], x[:, 1], 1)
    return counts, low, middle, high, outliers.sum(), fit, np.corrcoef(z.T), f"{x.mean():.4f}"


PROGRAMS: list[Callable[[Any], Any]] = [
    k_means, life, mandelbrot, logistic_regression, power_iteration, sieve, moving_average, gauss_elimination,
    bubble_sort, statistics,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_gives_what_it_gives_with_numpy(program: Callable[[Any], Any]) -> None:
    want, got = program(numpy), program(votive.np)
    want, got = (v if isinstance(v, tuple) else (v,) for v in (want, got))
    for w, g in zip(want, got, strict=True):
        if isinstance(w, str):
            assert w == g
            continue
        assert numpy.asarray(w).dtype == numpy.asarray(g).dtype
        numpy.testing.assert_allclose(numpy.asarray(g), numpy.asarray(w), rtol=1e-9, atol=1e-12)
