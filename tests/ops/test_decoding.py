"""The joined operators of decoding give what the plain operators give one after the other."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.nn.functional as F
from votive.core.errors import ShapeError
from votive.ops.registry import F as ops

TYPES = [votive.float32, votive.float64, votive.bfloat16]
BATCH, SHARED, LENGTH, WIDTH, EPS = 2, 2, 7, 8, 1e-5


@pytest.fixture(autouse=True)
def _seeded() -> None:
    votive.manual_seed(0)


def close(got: Any, want: Any) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    # In half precision the plain operators round between the steps that are joined.
    tol = {votive.float32: 1e-5, votive.float64: 1e-12, votive.bfloat16: 4e-2}[got.dtype]
    assert votive.allclose(got, want, rtol=tol, atol=tol), (got - want).abs().max()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 16), (2, 1, 16), (3, 16), (16,)], ids=str)
def test_norm_linear_is_a_norm_and_products_side_by_side(dtype: Any, shape: Any) -> None:
    x, norm = votive.randn(*shape, dtype=dtype), votive.randn(16, dtype=dtype)
    weights = [votive.randn(n, 16, dtype=dtype) / 4 for n in (6, 4, 4)]
    y = F.rms_norm(x, (16,), norm, EPS)
    want = votive.cat([F.linear(y, w) for w in weights], -1)
    close(ops._norm_linear(x, norm, EPS, weights, False), want)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_gated_norm_linear_is_silu_of_the_first_times_the_second(dtype: Any) -> None:
    x, norm = votive.randn(2, 1, 16, dtype=dtype), votive.randn(16, dtype=dtype)
    gate, up = (votive.randn(12, 16, dtype=dtype) / 4 for _ in range(2))
    y = F.rms_norm(x, (16,), norm, EPS)
    want = F.silu(F.linear(y, gate)) * F.linear(y, up)
    close(ops._norm_linear(x, norm, EPS, [gate, up], True), want)


def test_norm_linear_refuses_what_does_not_fit() -> None:
    x, norm, w = votive.randn(1, 16), votive.randn(16), votive.randn(4, 16)
    with pytest.raises(ShapeError, match="a weight of"):
        ops._norm_linear(x, norm, EPS, [votive.randn(4, 8)], False)
    with pytest.raises(ShapeError, match="a norm of"):
        ops._norm_linear(x, votive.randn(8), EPS, [w], False)
    with pytest.raises(ShapeError, match="two weights of one shape"):
        ops._norm_linear(x, norm, EPS, [w, votive.randn(6, 16)], True)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_linear_add_is_a_product_added_to_the_stream(dtype: Any) -> None:
    x, w = votive.randn(2, 1, 12, dtype=dtype), votive.randn(16, 12, dtype=dtype) / 4
    residual = votive.randn(2, 1, 16, dtype=dtype)
    before = residual.clone()
    close(ops._linear_add(x, w, residual), before + F.linear(x, w))
    assert votive.equal(residual, before)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("normed", [False, True], ids=["plain", "normed"])
@pytest.mark.parametrize("heads", [2, 6])
@pytest.mark.parametrize("at", [0, 3, LENGTH - 1])
def test_a_token_is_turned_kept_and_sees_all_up_to_itself(dtype: Any, normed: bool, heads: int, at: int) -> None:
    rope = votive.nn.RotaryEmbedding(WIDTH)
    if dtype == votive.float64:
        rope = rope.double()
    qkv = votive.randn(BATCH, 1, (heads + 2 * SHARED) * WIDTH, dtype=dtype)
    norms = [votive.randn(WIDTH, dtype=dtype) if normed else None for _ in range(2)]
    keys, values = (votive.randn(BATCH, SHARED, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    kept = keys.clone(), values.clone()
    counts = votive.zeros(BATCH * SHARED, dtype=votive.int32)

    parts = qkv.view(BATCH, 1, -1, WIDTH).transpose(1, 2)
    q, k, v = parts.split([heads, SHARED, SHARED], 1)
    if normed:
        q, k = (F.rms_norm(p, (WIDTH,), w, EPS) for p, w in zip((q, k), norms, strict=True))
    got = ops._rotate_and_attend(
        qkv, *norms, EPS, rope.cos, rope.sin, keys, values, votive.tensor([at]), counts, heads, 0.3
    )
    close(keys[:, :, at : at + 1], rope(k, offset=at))
    assert votive.equal(values[:, :, at : at + 1], v)
    rest = [i for i in range(LENGTH) if i != at]
    assert votive.equal(keys[:, :, rest], kept[0][:, :, rest])
    assert votive.equal(values[:, :, rest], kept[1][:, :, rest])
    seen = keys[:, :, : at + 1], values[:, :, : at + 1]
    want = F.scaled_dot_product_attention(rope(q, offset=at), *seen, scale=0.3, enable_gqa=True)
    close(got, want.transpose(1, 2).reshape(BATCH, 1, heads * WIDTH))
    assert not counts.any()


def test_heads_that_do_not_make_up_the_row_are_refused() -> None:
    table, kept = votive.ones(LENGTH, WIDTH // 2), votive.ones(1, SHARED, LENGTH, WIDTH)
    counts = votive.zeros(SHARED, dtype=votive.int32)
    with pytest.raises(ShapeError, match="3 query and 2 key heads of 8"):
        ops._rotate_and_attend(
            votive.ones(1, 1, 8 * WIDTH), None, None, EPS, table, table, kept, kept, votive.tensor([0]), counts, 3, 1.0
        )
