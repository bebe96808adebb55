"""Fourier transforms on native kernels agree with NumPy's: any length, layout and dimensions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import F

from .compare import layouts, needs_native, reference_only, same, served_by_native

pytestmark = needs_native
# Every radix, primes with passes of their own and beyond, lengths that are tables and those that are convolutions.
SIZES = [1, 2, 3, 4, 6, 7, 10, 11, 12, 13, 16, 17, 30, 64, 77, 90, 97, 169, 211, 256, 394, 400, 512, 750, 1009, 4096]
# Lanes of a vector full, one row too many, and not enough for one vector.
ROWS = [(1,), (16,), (3, 11)]


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return votive.tensor(x if dtype.is_complex else x.real).to(dtype)


def agree(fn: Any, size: int) -> None:
    ours = fn()
    with reference_only():
        theirs = fn()
    # Errors grow with the logarithm of the length and are relative to the largest value.
    eps = np.finfo(ours.real.dtype.np).eps * np.log2(2 * size)
    same(ours, theirs, 0.0, float(theirs.abs().max()) * eps)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_transforms_agree_in_every_layout(n: int, rows: tuple[int, ...], wide: bool) -> None:
    real, kind = (dt.float64, dt.complex128) if wide else (dt.float32, dt.complex64)
    dim = (len(rows),)
    for x in layouts(values((*rows, n), real)):
        agree(lambda x=x: F._fft_r2c(x, dim, 0.5), n)
    for x in layouts(values((*rows, n // 2 + 1), kind)):
        agree(lambda x=x: F._fft_c2r(x, dim, 1.0, n), n)
    for x in layouts(values((*rows, n), kind)):
        agree(lambda x=x: F._fft_c2c(x, dim, 0.0, True), n)
        agree(lambda x=x: F._fft_c2c(x, dim, 1.0, False), n)


@pytest.mark.parametrize("n", [5000, 10007, 16384, 19683, 30030, 44100, 65536, 100003])
def test_long_rows(n: int) -> None:
    for real, kind in ((dt.float32, dt.complex64), (dt.float64, dt.complex128)):
        x, z = values((2, n), real), values((2, n), kind)
        agree(lambda x=x: F._fft_r2c(x, (1,), 0.0), n)
        agree(lambda z=z: F._fft_c2c(z, (1,), 1.0, False), n)
        agree(lambda x=x: F._fft_c2c(x, (1,), 0.0, False), n)
        agree(lambda z=z: F._fft_c2r(z[:, : n // 2 + 1], (1,), 0.5, n), n)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_random_shapes_over_several_dimensions(seed: int, forward: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(2 ** rng.uniform(0, 6)) for _ in range(rng.integers(1, 5)))
    dim = tuple(int(d) for d in rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)])
    real, kind = (dt.float64, dt.complex128) if rng.random() < 0.5 else (dt.float32, dt.complex64)
    size = shape[dim[-1]]
    half = tuple(size // 2 + 1 if d == dim[-1] else s for d, s in enumerate(shape))
    count = int(np.prod(shape))
    for x in layouts(values(shape, real, seed)):
        agree(lambda x=x: F._fft_r2c(x, dim, 0.5, forward), count)
        agree(lambda x=x: F._fft_c2c(x, dim, 0.0, forward), count)
    for x in layouts(values(shape, kind, seed)):
        agree(lambda x=x: F._fft_c2c(x, dim, 1.0, forward), count)
    for x in layouts(values(half, kind, seed)):
        agree(lambda x=x: F._fft_c2r(x, dim, 1.0, size, forward), count)


@pytest.mark.parametrize("n", [3, 100, 243, 1000, 1009, 2048, 65536, 99991])
def test_single_precision_keeps_its_digits(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((3, n)) + 1j
    y = votive.fft.fft(votive.tensor(x.astype(np.complex64))).numpy()
    exact = np.fft.fft(x.astype(np.complex64).astype(np.complex128))
    assert np.linalg.norm(y - exact) <= 1e-7 * np.log2(2 * n) * np.linalg.norm(exact)


def test_all_transforms_are_native() -> None:
    def native(op: str, *shape: int, dim: int = -1) -> bool:
        x = votive.zeros(*shape)
        return served_by_native(op, lambda: F._fft_r2c(x, (dim % x.ndim,), 0.0))

    for shape in [(40, 400), (40, 399), (2, 14), (8, 8192), (10007,), (1,)]:
        assert native("_fft_r2c", *shape)
    assert native("_fft_r2c", 30, 20, dim=0)


def test_infinities_and_nans_stay_in_their_rows() -> None:
    x = values((20, 24), dt.complex64)
    x[3, 5] = float("nan")
    y = votive.fft.fft(x)
    assert y.isnan().any(1).nonzero().tolist() == [[3]]
    assert bool(y[3].isnan().all())


def test_threads_share_plans() -> None:
    sizes = [60, 97, 211, 1009, 4096, 9973]
    xs = [values((3, n), dt.complex64, n) for n in sizes]
    with reference_only():
        exact = [votive.fft.fft(x).numpy() for x in xs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for y, e in zip(pool.map(votive.fft.fft, xs), exact, strict=True):
                np.testing.assert_allclose(y.numpy(), e, atol=2e-6 * float(np.abs(e).max()))


def test_a_zero_imaginary_part_is_assumed_at_the_ends() -> None:
    half = values((8, 9), dt.complex128)
    plain = half.clone()
    plain[:, 0], plain[:, 8] = half[:, 0].real.to(dt.complex128), half[:, 8].real.to(dt.complex128)
    assert votive.allclose(votive.fft.irfft(half), votive.fft.irfft(plain))
