"""Scans of lines of any strides, distinct values of all sizes and types, and choices by masks agree with the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .device import EMULATED, LAYOUTS, cpu_fallbacks, placed

SHAPES = [(300,), (3, 2), (67, 5), (2, 9, 4), (2, 3, 2, 5), ()]
KINDS = ["float32", "float64", "float16", "bfloat16", "int64", "int16", "int8", "uint8", "bool"]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulated GPU short lines take several steps, and few values are many."""
    if EMULATED:
        from votive.backends.cuda.kernels import masked
        from votive.backends.cuda.kernels.scan import scans, tiles
        from votive.backends.cuda.kernels.sort import distinct

        monkeypatch.setattr(scans, "BLOCK", 32)
        for name, value in {"TILE": 32, "ACROSS": 4}.items():
            monkeypatch.setattr(tiles, name, value)
        monkeypatch.setattr(distinct, "most", lambda kind: 40)
        monkeypatch.setattr(masked, "AT_ONCE", 2)


def equal(ours: Any, theirs: Any, near: float = 0.0) -> None:
    if isinstance(theirs, tuple):
        for a, b in zip(ours, theirs, strict=True):
            equal(a, b, near)
        return
    assert ours.shape == theirs.shape
    a, b = ours.cpu().double().numpy(), theirs.double().numpy()
    np.testing.assert_allclose(a, b, rtol=near, atol=near)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_running_totals_and_extremes_of_lines_of_any_strides(shape: tuple[int, ...], how: str) -> None:
    a = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    a.reshape(-1)[3:4] = -np.inf
    x, y = (placed(a, how, device) for device in ("cpu", "cuda"))
    with cpu_fallbacks() as left:
        for dim in range(max(1, len(shape))):
            equal(y.cumsum(dim), x.cumsum(dim), 1e-4)
            equal((y * 0 + 1.01).nan_to_num(1.0).cumprod(dim), (x * 0 + 1.01).nan_to_num(1.0).cumprod(dim), 1e-4)
            equal(y.logcumsumexp(dim), x.logcumsumexp(dim), 1e-5)
            equal(y.cummax(dim), x.cummax(dim))
            equal(y.cummin(dim), x.cummin(dim))
    assert not left


def test_logcumsumexp_of_infinities_and_nan() -> None:
    inf, nan = float("inf"), float("nan")
    for values in ([-inf, -inf, 1.0, inf, 2.0, inf], [0.0, nan, 1.0, -inf], [-inf, -inf], [1e4, -1e4, 1e4]):
        x = np.array(values * 20, np.float32)
        with np.errstate(invalid="ignore"):
            want = np.logaddexp.accumulate(x.astype(np.float64))
        equal(votive.from_numpy(x).to("cuda").logcumsumexp(0), votive.from_numpy(want), 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 30, 500])
def test_distinct_values_of_every_type(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.integers(0, 40, n) - (0 if kind in ("uint8", "bool") else 20)
    x = votive.from_numpy(np.asarray(values, np.float64)).to(getattr(votive, kind))
    if x.is_floating_point():
        x = votive.cat([x / 7, votive.tensor([0.0, -0.0]).to(x.dtype)])
    with cpu_fallbacks() as left:
        for options in ({}, {"return_inverse": True}, {"return_counts": True, "return_inverse": True}):
            for fn in (votive.unique, votive.unique_consecutive):
                equal(fn(x.to("cuda"), **options), fn(x, **options))
    assert not left


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [3, 300])
def test_each_nan_is_a_distinct_value(kind: str, n: int) -> None:
    x = votive.tensor([float("nan"), 1.0, -0.0] * n).to(getattr(votive, kind)).to("cuda")
    found = votive.unique(x).cpu().double().numpy()
    np.testing.assert_array_equal(found, [0.0, 1.0, *[np.nan] * n])
    assert np.signbit(found[0])


def test_chosen_values_and_their_places() -> None:
    for shape in [(9,), (0,), (), (70, 90), (2, 3, 2, 3, 2)]:
        a = np.asarray(np.random.default_rng(2).integers(-2, 3, shape))
        x = votive.from_numpy(a)
        equal(votive.masked_select(x.to("cuda"), x.to("cuda") > 0), votive.masked_select(x, x > 0))
        equal(votive.nonzero(x.to("cuda")), votive.nonzero(x))
