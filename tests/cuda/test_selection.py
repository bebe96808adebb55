"""Short lines, sorted in registers, and the first few of long ones, selected: the order of every
dtype, of equals and of NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.ops.registry import OPS

from .device import EMULATED, cpu_fallbacks, placed
from .test_radix import DTYPES, FLOATS, numbers, same

ORDERED = [d for d in DTYPES if d != "bool"]


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulated GPU lines are cut into short parts, so that several rounds are needed."""
    from votive.backends.cuda.kernels.sort import select

    if EMULATED:
        for name, size in {"WHOLE": 32, "PART": 16, "WIDE_PART": 64, "FEW": 4}.items():
            monkeypatch.setattr(select, name, size)
    for name in ("_topk", "_kthvalue"):
        OPS[name].forget()


def first(x: Any, k: int, largest: bool) -> tuple[Any, Any]:
    """The first k by a stable sort: among equals those that come first."""
    values, places = x.sort(-1, descending=largest, stable=True)
    return values[..., :k], places[..., :k]


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_lines_are_sorted(dtype: str) -> None:
    for shape in ((3, 1), (5, 7), (2, 40)) if EMULATED else ((3, 1), (1000, 7), (9, 500)):
        x = numbers(shape, dtype, seed=shape[1]) if shape[1] > 1 else votive.ones(shape).to(getattr(votive, dtype))
        for descending in (False, True) if EMULATED else (dtype in FLOATS,):  # a real GPU compiles each
            with cpu_fallbacks() as left:
                ours = x.to("cuda").sort(-1, descending=descending, stable=True)
            theirs = x.sort(-1, descending=descending, stable=True)
            same(ours.indices, theirs.indices)
            same(ours.values, theirs.values)
            assert not left


@pytest.mark.parametrize("dtype", ORDERED)
def test_the_first_few_are_selected(short_parts: None, dtype: str) -> None:
    cases = [((2, 30), 3), ((1, 100), 4)] if EMULATED else [((16, 904), 5), ((3, 100_003), 50)]
    for shape, k in cases:
        x = numbers(shape, dtype, seed=k)
        for largest in (True, False) if EMULATED else (dtype in FLOATS,):
            with cpu_fallbacks() as left:
                ours = x.to("cuda").topk(k, -1, largest=largest)
            values, places = first(x, k, largest)
            same(ours.indices, places)
            same(ours.values, values)
            assert not left


@pytest.mark.parametrize("dtype", ORDERED)
def test_a_rank_is_found_by_counting(dtype: str) -> None:
    for shape in ((3, 30),) if EMULATED else ((16, 904), (50, 30)):
        x = numbers(shape, dtype, seed=1)
        y, order = x.to("cuda"), x.sort(-1, stable=True)
        for k in (1, shape[1] // 3, shape[1]):
            ours = y.kthvalue(k, -1)
            same(ours.indices, order.indices[:, k - 1])
            same(ours.values, order.values[:, k - 1])
        for name in ("median", "nanmedian") if dtype in FLOATS else ("median",):
            ours, theirs = getattr(y, name)(-1), getattr(x, name)(-1)
            same(ours.indices, theirs.indices)
            same(getattr(y, name)(), getattr(x, name)())


@pytest.mark.parametrize("how", ["permuted", "sliced", "shifted", "expanded"])
@pytest.mark.parametrize("dim", [0, 1])
def test_lines_of_any_layout(short_parts: None, how: str, dim: int) -> None:
    shape = (3, 36)[:: 2 * dim - 1] if EMULATED else (40, 370)
    a = np.random.default_rng(dim).standard_normal(shape).astype(np.float32)
    x, y = placed(a, how, "cpu"), placed(a, how, "cuda")
    same(y.sort(dim, stable=True).indices, x.sort(dim, stable=True).indices)
    same(y.topk(3, dim).values, x.topk(3, dim).values)
    same(y.topk(3, dim).indices, x.topk(3, dim).indices)
    same(y.median(dim).values, x.median(dim).values)


def test_all_equal_lines_keep_their_order(short_parts: None) -> None:
    x = votive.full((2, 70), 3.0, device="cuda")
    assert x.topk(4).indices.tolist() == [[0, 1, 2, 3]] * 2
    assert x.kthvalue(6, -1).indices.tolist() == [5, 5]


def test_gradients_reach_what_was_selected(short_parts: None) -> None:
    x = votive.from_numpy(np.random.default_rng(0).standard_normal((2, 60)))
    grads = []
    for device in ("cpu", "cuda"):
        y = x.to(device).detach().requires_grad_()
        (y.topk(4).values.sum() + y.sort(-1).values[:, 3].sum()).backward()
        grads.append(y.grad)
    same(grads[1], grads[0])
