"""Attention of the GPU, forward and gradients, held against the CPU: shapes, masks, dropout,
layouts. The emulated GPU runs small tiles; a real one also lengths of several tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import F

from .device import EMULATED, cpu_fallbacks

# Sums of products in half types: each side rounds its weights in its own way.
ROOM: dict[Any, float] = {dt.float64: 1e-9, dt.float32: 1e-4, dt.float16: 1e-2, dt.bfloat16: 6e-2}
# (batch, query heads, key heads, queries, keys, features, features of values)
SMALL = (2, 2, 1, 17, 21, 16, 16)
SHAPES = [
    SMALL,
    (1, 1, 1, 70, 90, 65, 33),  # several tiles, odd features
    (1, 2, 1, 5, 20, 24, 7),
    (1, 2, 2, 1, 37, 16, 16),  # few queries
    (1, 4, 2, 2, 150, 16, 7),  # and keys in parts
    (1, 2, 1, 20, 530, 8, 16),  # more queries, and more keys
    (1, 2, 2, 6, 5, 258, 260),  # heads wider than a tile
    (1, 2, 2, 3, 0, 5, 5),  # nothing to see
    (1, 2, 2, 0, 3, 5, 5),
    (0, 2, 2, 3, 3, 5, 5),
    (1, 2, 2, 9, 9, 0, 4),
    (1, 2, 2, 9, 9, 4, 0),
]
LONG = [(2, 6, 2, 300, 333, 64, 64), (1, 2, 1, 257, 513, 128, 128), (1, 2, 2, 200, 200, 256, 256)]
if not EMULATED:
    SHAPES += [*LONG, (1, 2, 2, 300, 300, 96, 192), (1, 1, 1, 130, 300, 640, 512)]
KINDS = [dt.float32, dt.float64, dt.bfloat16, dt.float16]


def _normal(seed: int, *shape: int, dtype: dt.dtype = dt.float32) -> Any:
    return votive.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def _run(device: str, given: list[Any], how: dict[str, Any], by_mask: bool, place: Any) -> Any:
    q, k, v, mask, g, g_lse = (None if x is None else x.to(device) for x in given)
    if place is not None:
        q, k, v, g = (place(x) for x in (q, k, v, g))
    out, lse = F._attention(q, k, v, mask, **how)
    order = ("seed", "counter", "offset", "dropout_p", "is_causal", "scale")
    rest = [how[n] for n in order]
    return [out, lse, *F._attention_backward(g, g_lse, q, k, v, mask, out, lse, *rest, by_mask)]


def check(
    shape: tuple[int, ...],
    dtype: dt.dtype = dt.float32,
    mask: Any = None,
    causal: bool = False,
    offset: int = 0,
    p: float = 0.0,
    by_mask: bool = False,
    place: Any = None,
    scale: float = 0.3,
) -> None:
    """Values, log-sum-exp and all gradients are the CPU's, and nothing is computed there."""
    b, h, shared, rows, columns, d, e = shape
    given = [
        _normal(0, b, h, rows, d, dtype=dtype),
        _normal(1, b, shared, columns, d, dtype=dtype),
        _normal(2, b, shared, columns, e, dtype=dtype),
        mask,
        _normal(3, b, h, rows, e, dtype=dtype),
        _normal(4, b, h, rows, dtype=dt.compute_type(dtype)),
    ]
    how = {
        "seed": 2**40 + 3,
        "counter": 2**33 + 5,
        "offset": offset,
        "dropout_p": p,
        "is_causal": causal,
        "scale": scale,
    }
    with cpu_fallbacks() as left:
        ours = _run("cuda", given, how, by_mask, place)
    theirs = _run("cpu", given, how, by_mask, place)
    assert not left
    names = ("output", "lse", "by query", "by key", "by value", "by mask")
    for name, x, y in zip(names, ours, theirs, strict=True):
        what = f"{name} of {shape} {dtype}"
        assert (x.dtype, x.shape) == (y.dtype, y.shape), what
        assert not x.numel() or x.stride() == y.stride(), what
        a, c = (t.cpu().to(dt.float64).numpy() for t in (x, y))
        most = float(np.abs(c[np.isfinite(c)]).max(initial=0.0))
        room = ROOM[dtype]
        np.testing.assert_allclose(a, c, rtol=room, atol=room * max(1.0, most), err_msg=what)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_agrees(shape: tuple[int, ...]) -> None:
    wide = EMULATED and max(shape) > 256  # slow there
    for k, dtype in enumerate(KINDS[2:3] if wide else KINDS):
        for causal in (False, True) if not EMULATED or shape == SMALL else (k % 2 == 0,):
            check(shape, dtype, causal=causal)


def _masks(shape: tuple[int, ...], dtype: dt.dtype) -> list[Any]:
    b, h, _, rows, columns, _, _ = shape
    full = _normal(5, b, h, rows, columns)
    return [
        full > -0.5,
        (full > 0)[:, :1, :1],
        full > 100,  # hides everything
        full.to(dtype),
        full[0, 0, :, :1].to(dtype),
        full.transpose(2, 3).contiguous().transpose(2, 3),
    ]


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.float64])
def test_every_mask_agrees(dtype: dt.dtype) -> None:
    for mask in _masks(SMALL, dtype):
        if mask.dtype is dt.float32 and dtype is dt.float64:
            continue
        check(SMALL, dtype, mask)
    check(SMALL, dtype, _masks(SMALL, dtype)[0], causal=True)
    if not EMULATED:
        for shape in LONG:
            for mask in _masks(shape, dtype)[:5]:
                check(shape, dtype, mask)


@pytest.mark.parametrize("offset", [-40, -1, 5, 1000])
def test_causal_offsets_agree(offset: int) -> None:
    for dtype in (dt.float32, dt.float64):
        check(SMALL, dtype, causal=True, offset=offset)


def test_keys_that_fill_their_tiles_need_no_bounds() -> None:
    for dtype in (dt.float32, dt.bfloat16):
        check((1, 2, 1, 64, 64, 16, 16), dtype, causal=True)
        check((1, 1, 1, 70, 128, 64, 64), dtype, causal=True, offset=58)


@pytest.mark.parametrize("scale", [-0.5, 0.0, 1e-42])
def test_a_scale_may_be_negative_or_nothing(scale: float) -> None:
    check(SMALL, dt.float32, causal=True, scale=scale)
    check(SMALL, dt.float32, _masks(SMALL, dt.float32)[0], scale=scale)


@pytest.mark.parametrize("dtype", KINDS)
def test_dropout_draws_the_numbers_of_the_cpu(dtype: dt.dtype) -> None:
    check(SMALL, dtype, p=0.3)  # rows that begin anywhere in a counter
    check((1, 2, 1, 9, 36, 16, 8), dtype, causal=True, p=0.5)
    check((1, 2, 1, 3, 8, 16, 8), dtype, p=1.0)
    if not EMULATED:
        for shape in LONG:
            check(shape, dtype, causal=True, p=0.1)


MASKS = [(2, 2, 17, 21), (17, 21), (2, 1, 1, 21), (2, 17, 1), (1,), (1, 2, 1, 1), (2, 1, 17, 21)]


@pytest.mark.parametrize("shape", MASKS)
def test_a_mask_of_any_shape_has_a_gradient(shape: tuple[int, ...]) -> None:
    check(SMALL, dt.float32, _normal(6, *shape), by_mask=True)
    check(SMALL, dt.float64, _normal(6, *shape, dtype=dt.float64), True, 3, 0.25, by_mask=True)
    check(SMALL, dt.bfloat16, _normal(6, *shape, dtype=dt.bfloat16), by_mask=True)


def test_a_mask_over_several_tiles_has_a_gradient() -> None:
    shape = (1, 2, 1, 40, 70, 20, 20) if EMULATED else LONG[0]
    b, h, _, rows, columns, _, _ = shape
    for own in ((rows, columns), (b, 1, 1, columns), (h, rows, 1)):
        check(shape, dt.float32, _normal(7, *own), by_mask=True)


PLACES = {
    "heads of rows": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "reversed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "with gaps": lambda x: votive.cat([x, x], -1)[..., ::2],
    "repeated": lambda x: x[:1].expand(x.shape),
    "shifted": lambda x: votive.cat([x[..., :1], x], -1)[..., 1:],
}


@pytest.mark.parametrize("place", PLACES)
def test_every_layout_agrees(place: str) -> None:
    for dtype in (dt.bfloat16, dt.float64):
        check(SMALL, dtype, causal=True, place=PLACES[place])
    check((2, 2, 2, 1, 30, 8, 8), place=PLACES[place])


def test_many_small_batches_fit_into_one_launch() -> None:
    if EMULATED:
        pytest.skip("70,000 programs are too many for the interpreter")
    check((35_000, 2, 2, 4, 4, 16, 16), dt.bfloat16)


@pytest.fixture
def by_products() -> Iterator[None]:
    """float64 by matrix products, however little work there is."""
    from votive.backends.cuda.kernels.attention import products
    from votive.ops.registry import OPS

    def always(q: Any, k: Any, v: Any, sizes: tuple[int, ...]) -> bool:
        return q.dtype is dt.float64 and 0 not in (*sizes, q.shape[-1], v.shape[-1])

    def forget() -> None:
        for name in ("_attention", "_attention_backward"):
            OPS[name].forget()

    forget()
    with patch.object(products, "pays", always):
        yield
    forget()


def test_matrix_products_agree(by_products: None) -> None:
    check(SMALL, dt.float64)
    check(SMALL, dt.float64, causal=True, offset=-2)
    check((1, 1, 1, 5, 530, 3, 4), dt.float64, causal=True, offset=3)  # keys beyond one tile
    for mask in _masks(SMALL, dt.float64):
        if mask.dtype is not dt.float32:
            check(SMALL, dt.float64, mask, p=0.3)


@pytest.mark.parametrize("place", PLACES)
def test_matrix_products_take_every_layout(place: str, by_products: None) -> None:
    check(SMALL, dt.float64, causal=True, place=PLACES[place])


def test_matrix_products_serve_the_gradient_of_a_mask(by_products: None) -> None:
    check(SMALL, dt.float64, _normal(6, 17, 21, dtype=dt.float64), by_mask=True)
