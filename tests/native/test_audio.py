"""Filters, resampling and echoes on native kernels agree with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import F

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native
FLOATS = pytest.mark.parametrize("dtype", [dt.float64, dt.float32, dt.float16, dt.bfloat16], ids=str)


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0, scale: float = 1.0) -> Any:
    return votive.tensor(np.random.default_rng(seed).standard_normal(shape) * scale).to(dtype)


@FLOATS
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((1, 1, 7), 1),
        ((2, 3, 50), 2),
        ((5, 2, 700), 3),
        ((1, 2, 1300), 4),
        ((2, 1, 600), 600),
        ((2, 2, 3), 9),
        ((0, 2, 5), 3),
        ((2, 2, 1), 4),
        ((1, 1, 512), 3),
        ((1, 1, 513), 3),
    ],
    ids=str,
)
def test_filters_agree_in_every_layout(shape: Any, order: int, reverse: bool, dtype: Any) -> None:
    x = values(shape, dtype)
    a, b = (values((shape[1], order), dtype, seed, 0.4 / order) for seed in (1, 2))
    for form in layouts(x):
        y = agree(F._lfilter, form, a, b, reverse)
        agree(F._lag_products, form, y, order, reverse)
    expanded = values((1, shape[1], 1), dtype).expand(shape)
    agree(F._lfilter, expanded, a, b, reverse)


@FLOATS
@pytest.mark.parametrize(
    ("rows", "size", "orig", "new", "taps", "offset", "length"),
    [
        (2, 100, 3, 5, 8, 3, 160),
        (1, 9000, 441, 160, 40, 17, 3266),
        (3, 50, 5, 2, 20, 9, 20),
        (2, 3000, 1, 2, 16, 6, 6000),
        (1, 3, 2, 3, 30, 10, 5),
        (0, 5, 3, 2, 4, 2, 4),
        (2, 0, 3, 2, 4, 2, 4),
    ],
)
def test_resampling_agrees_in_every_layout(
    rows: int, size: int, orig: int, new: int, taps: int, offset: int, length: int, dtype: Any
) -> None:
    x, g = values((rows, size), dtype), values((rows, length), dtype, 1)
    kernel = values((new, taps), dtype, 2)
    for form, back in zip(layouts(x), layouts(g)):
        for weight in layouts(kernel):
            agree(F._polyphase, form, weight, orig, offset, length)
            agree(F._polyphase_transposed, back, weight, orig, offset, size)
        agree(F._polyphase_products, back, form, orig, offset, new, taps)


@FLOATS
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 40), (1, 1, 1), (0, 2, 5), (3, 1, 300)])
def test_echoes_agree_in_every_layout(shape: Any, transposed: bool, dtype: Any) -> None:
    x = values(shape, dtype)
    gain = values((2, *shape[1:]), dtype, 1, 0.3)
    lag = votive.from_numpy(np.random.default_rng(2).integers(1, 12, gain.shape))
    for form in layouts(x):
        for weight, by in zip(layouts(gain), layouts(lag)):
            agree(F._delay_feedback, form, weight, by, transposed)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.complex64, dt.complex128], ids=str)
@pytest.mark.parametrize(
    ("shape", "size", "step"),
    [
        ((30,), 8, 3),
        ((2, 3, 30), 8, 8),
        ((2, 30), 8, 1),
        ((3, 9000), 400, 160),
        ((2, 30), 4, 7),
        ((1, 40), 40, 1),
        ((2, 5), 1, 1),
    ],
)
def test_frames_are_added_up_where_they_overlap(shape: Any, size: int, step: int, dtype: Any) -> None:
    frames = values(shape, dt.float64).unfold(-1, size, step)
    g = values(tuple(frames.shape), dt.float64, 1).to(dtype)
    stride = frames.stride()
    for form in layouts(g):
        agree(F._into_window, form, shape, stride, 0)
    signal = votive.zeros(shape, dtype=dtype)[..., 1:]
    part = signal.unfold(-1, 1, 1) if shape[-1] < 6 else signal.unfold(-1, 5, 2)
    agree(F._into_window, g.new_ones(part.shape), shape, part.stride(), 1)


def test_a_lag_of_less_than_one_is_an_error() -> None:
    x, gain = votive.zeros(1, 1, 4), votive.zeros(1, 1, 4)
    with pytest.raises(ValueError, match="at least 1"):
        F._delay_feedback(x, gain, votive.zeros(1, 1, 4, dtype=votive.int64), False)


def test_the_kernels_are_used() -> None:
    x, k = votive.zeros(2, 30), votive.zeros(2, 8)
    assert served_by_native("_lfilter", lambda: F._lfilter(x[None], k, k, False))
    assert served_by_native("_lag_products", lambda: F._lag_products(x[None], x[None], 3, False))
    assert served_by_native("_polyphase", lambda: F._polyphase(x, k, 3, 2, 20))
    frames = votive.zeros(2, 14, 4)
    assert served_by_native("_into_window", lambda: F._into_window(frames, (2, 30), (30, 2, 1), 0))
    lag = votive.ones(1, 2, 30, dtype=votive.int64)
    assert served_by_native("_delay_feedback", lambda: F._delay_feedback(x[None], x[None], lag, False))
