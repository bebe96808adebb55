"""Fused attention and its gradients on native kernels, held against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.nn.functional import scaled_dot_product_attention
from votive.ops.registry import F

from .compare import agree, layouts, needs_native, reference_only, same, served_by_native

pytestmark = needs_native

FLOATS = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
# (batch, query heads, key heads, queries, keys, features, features of values)
SHAPES = [
    (2, 4, 2, 37, 53, 16, 16),  # shared heads, odd lengths
    (1, 2, 2, 64, 64, 64, 64),
    (1, 1, 1, 130, 300, 65, 33),  # several blocks, odd features
    (1, 3, 3, 9, 129, 7, 1),
    (2, 2, 1, 33, 128, 256, 16),
    (1, 2, 2, 1, 5, 64, 64),  # few queries
    (1, 8, 2, 1, 700, 64, 64),
    (2, 4, 2, 1, 1000, 37, 20),
    (1, 4, 4, 3, 513, 128, 128),
    (1, 32, 1, 1, 900, 16, 16),  # one head for all, split among threads
    (1, 2, 1, 5, 2000, 33, 33),
    (1, 2, 2, 3, 0, 5, 5),  # nothing to see
    (1, 2, 2, 0, 3, 5, 5),
    (0, 2, 2, 3, 3, 5, 5),
    (2, 2, 2, 20, 20, 0, 4),
    (2, 2, 2, 20, 20, 4, 0),
]
# Sums of products in half types: the reference rounds its weights, the kernel only results.
ROOM: dict[Any, dict[str, float]] = {
    dt.float32: {"rtol": 1e-4, "atol": 2e-5},
    dt.float64: {"rtol": 1e-9, "atol": 1e-11},
    dt.float16: {"rtol": 6e-3, "atol": 6e-3},
    dt.bfloat16: {"rtol": 4e-2, "atol": 4e-2},
}


def _normal(seed: int, *shape: int, dtype: dt.dtype) -> Any:
    return votive.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def _inputs(shape: tuple[int, ...], dtype: dt.dtype) -> tuple[Any, Any, Any]:
    b, h, shared, queries, keys, d, dv = shape
    return (
        _normal(0, b, h, queries, d, dtype=dtype),
        _normal(1, b, shared, keys, d, dtype=dtype),
        _normal(2, b, shared, keys, dv, dtype=dtype),
    )


def _masks(shape: tuple[int, ...], dtype: dt.dtype) -> list[Any]:
    b, h, _, rows, columns, _, _ = shape
    full = _normal(3, b, h, rows, columns, dtype=dt.float64)
    return [
        full > -0.5,
        (full > -0.5)[:, :1],
        (full > 0.3)[:, :1, :1],
        full[:1].to(dtype),
        full[:, :, :1].float() if dtype is not dt.float64 else full[:, :, :1],
        full[0, 0, 0].to(dtype) if b and rows else full.to(dtype),
        full.transpose(2, 3).contiguous().transpose(2, 3).to(dtype),
        full > 100,  # hides everything
    ]


def _check(q: Any, k: Any, v: Any, mask: Any, causal: bool, offset: int = 0) -> None:
    room = ROOM[q.dtype]
    how = {"is_causal": causal, "offset": offset}
    out, lse = agree(lambda: F._attention(q, k, v, mask, **how), **room)
    g, g_lse = _normal(5, *out.shape, dtype=q.dtype), _normal(6, *lse.shape, dtype=lse.dtype)
    scale = 1 / q.shape[-1] ** 0.5 if q.shape[-1] else 1.0
    with reference_only():
        out, lse = F._attention(q, k, v, mask, **how)
    agree(
        lambda: F._attention_backward(g, g_lse, q, k, v, mask, out, lse, 0, 0, offset, 0.0, causal, scale, False),
        **room,
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_agrees(shape: tuple[int, ...], dtype: dt.dtype) -> None:
    q, k, v = _inputs(shape, dtype)
    for causal in (False, True):
        _check(q, k, v, None, causal)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.bfloat16])
@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s])
def test_every_mask_agrees(shape: tuple[int, ...], dtype: dt.dtype) -> None:
    q, k, v = _inputs(shape, dtype)
    for mask in _masks(shape, dtype):
        _check(q, k, v, mask, False)
    _check(q, k, v, _masks(shape, dtype)[1], True)


@pytest.mark.parametrize("offset", [-70, -1, 5, 40, 1000])
def test_causal_offsets_agree(offset: int) -> None:
    for shape in (SHAPES[0], SHAPES[2], SHAPES[8]):
        _check(*_inputs(shape, dt.float64), None, True, offset)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float16])
def test_every_layout_agrees(dtype: dt.dtype) -> None:
    for shape in (SHAPES[0], SHAPES[6]):
        q, k, v = _inputs(shape, dtype)
        for x in layouts(q):
            _check(x, k, v, None, False)
        for x in layouts(k):
            _check(q, x, v, None, True)
        for x in layouts(v):
            _check(q, k, x, None, False)
        heads = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
        _check(*heads, None, True)
        wide = k[:1].expand(*k.shape)
        _check(q, wide, v, None, False)


def test_kernels_are_native() -> None:
    q, k, v = _inputs(SHAPES[0], dt.float32)
    q.requires_grad_()

    def run() -> None:
        scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).sum().backward()

    assert served_by_native("_attention", run)
    assert served_by_native("_attention_backward", run)


def test_a_wide_range_of_scores_neither_overflows_nor_vanishes() -> None:
    for shape in (SHAPES[2], SHAPES[8]):
        q, k, v = _inputs(shape, dt.float64)
        _check(q * 40, k, v, None, False)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_key_spoils_the_queries_that_see_it(bad: float) -> None:
    for shape in (SHAPES[0], SHAPES[8]):
        q, k, v = _inputs(shape, dt.float32)
        q = q.abs()
        k[0, 0, 2, 0] = bad
        ours = F._attention(q, k, v, is_causal=True)
        with reference_only():
            theirs = F._attention(q, k, v, is_causal=True)
        same(ours, theirs, **ROOM[dt.float32])


def test_threads_do_not_change_gradients_of_few_heads() -> None:
    q, k, v = _inputs((1, 1, 1, 200, 700, 24, 24), dt.float64)
    _check(q, k, v, None, True)
    _check(q, k, v, None, False)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.bfloat16])
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout_draws_what_the_reference_draws(p: float, dtype: dt.dtype) -> None:
    for shape in (SHAPES[0], SHAPES[2], SHAPES[8]):
        q, k, v = _inputs(shape, dtype)
        how = {"seed": 2**64 - 3, "counter": 2**64 - 40, "dropout_p": p, "is_causal": True}
        out, lse = agree(lambda q=q, k=k, v=v, how=how: F._attention(q, k, v, **how), **ROOM[dtype])
        g, g_lse = _normal(5, *out.shape, dtype=dtype), _normal(6, *lse.shape, dtype=lse.dtype)
        given = (g, g_lse, q, k, v, None, out, lse, how["seed"], how["counter"], 0, p, True)
        scale = shape[-2] ** -0.5
        agree(lambda given=given, scale=scale: F._attention_backward(*given, scale, False), **ROOM[dtype])


def test_gradients_of_masks_agree() -> None:
    shape = SHAPES[0]
    q, k, v = _inputs(shape, dt.float64)
    for mask in (m for m in _masks(shape, dt.float64) if m.dtype is not dt.bool_):
        for p in (0.0, 0.25):
            given = (mask, 7, 5, 0, p, False, 0.25)
            out, lse = F._attention(q, k, v, mask, seed=7, counter=5, dropout_p=p)
            g, g_lse = _normal(5, *out.shape, dtype=q.dtype), _normal(6, *lse.shape, dtype=q.dtype)
            agree(
                lambda g=g, g_lse=g_lse, out=out, lse=lse, given=given: F._attention_backward(
                    g, g_lse, q, k, v, given[0], out, lse, *given[1:], True
                )
            )
