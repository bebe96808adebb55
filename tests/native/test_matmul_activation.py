"""Products that end in an activation are, bit by bit, the product and then the activation."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.ops.matmul_activation import ACTIVATIONS
from votive.ops.registry import F

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native

FLOATS = [votive.float32, votive.float64, votive.float16, votive.bfloat16]
# One row, few rows, tiles that are not whole, results written across, several blocks of k, no sum.
SIZES = [
    (1, 40, 64),
    (3, 500, 70),
    (12, 32, 16),
    (13, 33, 17),
    (64, 300, 40),
    (100, 130, 700),
    (33, 70, 1500),
    (13, 33, 5000),
    (200, 257, 300),
    (5, 4, 0),
    (0, 4, 3),
]


def draw(*shape: int, dtype: Any) -> Any:
    return votive.randn(shape, dtype=votive.float64).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("m, n, k", SIZES)
def test_linear_is_the_same_to_the_bit(m: int, n: int, k: int, dtype: Any) -> None:
    x, w, b = draw(m, k, dtype=dtype), draw(n, k, dtype=dtype), draw(n, dtype=dtype)
    for f in ACTIVATIONS:
        for bias in (b, None):
            fused = F._linear_activated(x, w, bias, f)
            assert votive.equal(fused, F._linear_activated_composite(x, w, bias, f)), (f, bias)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_layout_is_read_and_agrees_with_the_reference(dtype: Any) -> None:
    x, w, b = draw(9, 40, dtype=dtype), draw(35, 40, dtype=dtype), draw(35, dtype=dtype)
    for xs in layouts(x):
        for ws in layouts(w):
            agree(lambda *t: F._linear_activated(*t, "gelu"), xs, ws, b)
            agree(lambda a, c: votive._addmm_activation(b, a, c.T, use_gelu=True), xs, ws)
    agree(lambda *t: F._linear_activated(*t, "silu"), x.expand(2, 3, 9, 40), w, b)
    agree(lambda *t: F._linear_activated(*t, "relu"), x[0], w, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("k", [20, 1300])
def test_what_is_added_may_be_written_over(k: int, dtype: Any) -> None:
    x, a, b = draw(37, 41, dtype=dtype), draw(37, k, dtype=dtype), draw(k, 41, dtype=dtype)
    for beta, alpha in ((1, 1), (0.5, 2.0), (0, 1)):
        expected = votive.addmm(x, a, b, beta=beta, alpha=alpha).relu()
        out = x.clone()
        votive._addmm_activation(out, a, b, beta=beta, alpha=alpha, out=out)
        assert votive.equal(out, expected)
        plain = x.clone().addmm_(a, b, beta=beta, alpha=alpha)
        assert votive.equal(plain.relu(), expected)


def test_floats_are_served_by_native_rows_and_others_by_the_reference() -> None:
    for dtype in FLOATS:
        a = draw(4, 4, dtype=dtype)
        assert served_by_native("_addmm_activated", lambda a=a: votive._addmm_activation(a, a, a))
        assert served_by_native("_linear_activated", lambda a=a: F._linear_activated(a, a, None, "silu"))
    i = votive.tensor([[1, -2], [3, 4]])
    assert votive._addmm_activation(i, i, i).tolist() == [[0, 0], [18, 14]]


def test_not_a_number_stays_one() -> None:
    x = votive.tensor([[float("nan"), 1.0]])
    for f in ACTIVATIONS:
        assert F._linear_activated(x, votive.eye(2), None, f).isnan().all()
