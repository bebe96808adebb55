"""Fourier transforms of many rows on native kernels agree with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import F

from .compare import layouts, needs_native, reference_only, same, served_by_native

pytestmark = needs_native
SIZES = [4, 6, 10, 12, 30, 64, 90, 400, 512, 750, 4096]
# Lanes of a vector full, one row too many, and not enough for one vector.
ROWS = [(6,), (16,), (3, 11)]


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


def test_which_rows_are_transformed_natively() -> None:
    def native(op: str, *shape: int, **how: Any) -> bool:
        x = votive.zeros(*shape, dtype=how.get("dtype"))
        return served_by_native(op, lambda: F._fft_r2c(x, (how.get("dim", x.ndim - 1),), 0.0))

    assert native("_fft_r2c", 40, 400)
    assert not native("_fft_r2c", 40, 399), "odd"
    assert not native("_fft_r2c", 40, 14), "a factor of 7"
    assert not native("_fft_r2c", 2, 400), "too few rows"
    assert not native("_fft_r2c", 400, 400, dim=0), "along another dimension"
    assert not native("_fft_r2c", 8, 8192), "too long"


def test_a_zero_imaginary_part_is_assumed_at_the_ends() -> None:
    half = values((8, 9), dt.complex128)
    plain = half.clone()
    plain[:, 0], plain[:, 8] = half[:, 0].real.to(dt.complex128), half[:, 8].real.to(dt.complex128)
    assert votive.allclose(votive.fft.irfft(half), votive.fft.irfft(plain))
