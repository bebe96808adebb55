"""Rows of a few elements, and dimensions of size one, on native kernels agree with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt

from .compare import agree, layouts, needs_native, same

pytestmark = needs_native
FLOATS = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
SHAPES = [(2320, 3), (37, 6), (50, 1), (16, 17), (33, 33), (5, 40, 2), (3, 7, 1, 5), (1, 4), (70, 64)]


def values(shape: tuple[int, ...], dtype: Any, special: bool = False) -> Any:
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = rng.standard_normal(shape)
    if special:
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
        x = np.where(rng.random(shape) < 0.3, odd[rng.integers(0, 6, shape)], x)
    return votive.tensor(x).to(dtype)


RUNNING = {
    "cumsum": lambda x, d: x.cumsum(d),
    "cumprod": lambda x, d: x.cumprod(d),
    "cummax": lambda x, d: tuple(x.cummax(d)),
    "cummin": lambda x, d: tuple(x.cummin(d)),
    "logcumsumexp": lambda x, d: x.logcumsumexp(d),
    "softmax": lambda x, d: x.softmax(d),
    "log_softmax": lambda x, d: x.log_softmax(d),
    "logsumexp": lambda x, d: x.logsumexp(d),
    "norm3": lambda x, d: x.norm(p=3, dim=d),
}
# Chosen, not computed: the same to the bit.
CHOSEN = {
    "argmax": lambda x, d: x.argmax(d),
    "argmin": lambda x, d: x.argmin(d, keepdim=True),
    "max": lambda x, d: tuple(x.max(d)),
    "min": lambda x, d: tuple(x.min(d, keepdim=True)),
    "sort": lambda x, d: tuple(x.sort(d, stable=True)),
    "descending": lambda x, d: tuple(x.sort(d, descending=True, stable=True)),
    "topk": lambda x, d: tuple(x.topk((x.shape[d] + 1) // 2, d)),
    "bottomk": lambda x, d: tuple(x.topk(1, d, largest=False)),
    "kthvalue": lambda x, d: tuple(x.kthvalue(x.shape[d], d)),
    "median": lambda x, d: tuple(x.median(d)),
    "nanmedian": lambda x, d: tuple(x.nanmedian(d)),
}


# Where equals stand is not said.
ANY_PLACE = ("topk", "bottomk", "kthvalue", "median", "nanmedian")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", RUNNING)
def test_running_and_normalized(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    fn = RUNNING[name]
    for x in layouts(values(shape, dtype)):
        for d in range(x.ndim):
            agree(lambda x=x, d=d: fn(x, d))


@pytest.mark.parametrize("dtype", [*FLOATS, dt.int64, dt.int32, dt.uint8], ids=str)
@pytest.mark.parametrize("special", [False, True], ids=["usual", "special"])
@pytest.mark.parametrize("name", CHOSEN)
def test_choices(name: str, special: bool, dtype: Any) -> None:
    if special and not dtype.is_floating_point:
        pytest.skip("no such values")
    fn = CHOSEN[name]
    for shape in SHAPES:
        x = values(shape, dt.float64 if dtype.is_floating_point else dt.float32, special)
        for y in layouts((x if dtype.is_floating_point else x.abs() * 3).to(dtype)):
            for d in (-1, 0):
                if name in ANY_PLACE:
                    found, places = fn(y, d)
                    agree(lambda y=y, d=d: fn(y, d)[0], rtol=0.0, atol=0.0)
                    if places.ndim < y.ndim:
                        found, places = found.unsqueeze(d), places.unsqueeze(d)
                    same(y.gather(d, places), found, 0.0, 0.0)
                else:
                    agree(lambda y=y, d=d: fn(y, d), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_without_a_finite_sum_are_nan(name: str) -> None:
    x = votive.tensor(
        [[float("inf"), 1.0, 2.0], [float("nan"), 0.0, 0.0], [-float("inf")] * 3, [0.0, -float("inf"), 0.0]]
    )
    for y in (x, x[:, :1].contiguous(), x.repeat(9, 1)):
        agree(lambda y=y: RUNNING[name](y, -1))
    assert x.softmax(1)[:3].isnan().any(1).all()
    assert x.softmax(1)[3].tolist() == [0.5, 0.0, 0.5]


def test_zeros_keep_their_signs_in_order() -> None:
    x = votive.tensor([[0.0, -0.0, -1.0, 0.0]] * 20)
    found, places = x.sort(1, stable=True)
    assert places[7].tolist() == [2, 0, 1, 3]
    assert votive.signbit(found)[7].tolist() == [True, False, True, False]
