"""Caches in blocks of few bits: rows are rounded once, and attention sees the numbers that the bytes stand for."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from votive import nn
from votive.backends.cpu.reference.row_blocks import block_encode
from votive.core.errors import UnsupportedError
from votive.nn import functional as F
from votive.nn.layers.kv_storage import row_format
from votive.ops.registry import F as ops
from votive.surface.block_tensor import BlockTensor, from_blocks

from .rounding import FORMATS, Rounding, rounded

EVERY = pytest.mark.parametrize("name", FORMATS)
MAKE: dict[str, Callable[[Any], Any]] = {
    "dynamic": lambda dtype: nn.DynamicCache(dtype=dtype),
    "in place": lambda dtype: nn.DynamicCache(overwrite=True, dtype=dtype),
    "static": lambda dtype: nn.StaticCache(64, dtype=dtype),
    "sliding": lambda dtype: nn.SlidingWindowCache(5, dtype=dtype),
}


def some(batch: int, positions: int, seed: int = 0, features: int = 32, heads: int = 2) -> Any:
    votive.manual_seed(seed)
    return votive.randn(batch, heads, positions, features)


def numbers(x: Any) -> Any:
    return x.dequantize() if isinstance(x, BlockTensor) else x


# --- writing rows ---------------------------------------------------------------------------------


def hard(features: int) -> np.ndarray[Any, Any]:
    """Rows of zeros, of tiny and of large numbers, of one outlier, of equal numbers, of halves between two codes."""
    x = np.random.default_rng(features).normal(size=(12, 2, features)).astype(np.float32)
    x[0] = 0
    x[1] *= 1e-30
    x[2] *= 1e4
    x[3, :, 1:] = 0
    x[4] = -3
    x[5] = np.arange(features) - features / 2
    x[6] = 1e-42
    x[7, :, 0] = 1e-38
    x[8] = (np.arange(features) % 16 - 8) / 2
    x[9] = np.where(np.arange(features) % 32 == 0, 127, np.arange(features) % 32 - 15.5)
    x[10] = np.where(np.arange(features) % 32 == 0, -8, (np.arange(features) % 16 - 7.5) / 2)
    return x


@EVERY
@pytest.mark.parametrize("features", [32, 64, 96, 128, 256])
def test_every_way_of_writing_rows_gives_the_bytes_of_the_reference(name: str, features: int) -> None:
    kind, x = row_format(name, features), hard(features)
    want = block_encode(x, kind)
    given = votive.from_numpy(x)
    assert np.array_equal(ops._block_encode(given, kind).numpy(), want)
    assert np.array_equal(ops._block_encode_composite(given, kind).numpy(), want)
    flipped = votive.from_numpy(np.ascontiguousarray(x.transpose(1, 2, 0))).permute(2, 0, 1)
    assert np.array_equal(ops._block_encode(flipped, kind).numpy(), want)
    half = given.clamp(-60000, 60000).to(votive.bfloat16)
    want = block_encode(half.float().numpy(), kind)
    assert np.array_equal(ops._block_encode(half, kind).numpy(), want)
    assert np.array_equal(ops._block_encode(half.double(), kind).numpy(), want)
    assert ops._block_encode(given[:0], kind).shape == (0, *want.shape[1:])


@EVERY
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_none(name: str, bad: float) -> None:
    x = hard(64)
    x[9, 1, 40] = bad
    kind = row_format(name, 64)
    ways = [
        ops._block_encode,
        ops._block_encode_composite,
        lambda given, kind: votive.from_numpy(block_encode(given.numpy(), kind)),
    ]
    for way in ways:
        got = from_blocks(way(votive.from_numpy(x), kind), kind).dequantize()
        assert bool(got[9, 1, 40].isnan())
        assert not bool(got[:9].isnan().any())


def test_the_error_is_that_of_the_format() -> None:
    x = some(1, 200, features=128)
    error = {name: float(((rounded(x, name) - x) ** 2).mean().sqrt()) for name in FORMATS}
    assert error["q8_0"] < 0.006
    assert error["int8"] < 0.008
    assert error["float8_e4m3fn"] < 0.03
    assert max(error["q5_0"], error["q5_1"]) < 0.05
    assert max(error["q4_0"], error["q4_1"], error["iq4_nl"]) < 0.1
    assert error["iq4_nl"] < error["q4_0"]


# --- attention ------------------------------------------------------------------------------------

MASKS: dict[str, Callable[[int, int], Any]] = {
    "none": lambda rows, keys: None,
    "bool": lambda rows, keys: votive.rand(2, 1, rows, keys) > 0.3,
    "float": lambda rows, keys: votive.randn(1, 4, rows, keys),
    "nothing": lambda rows, keys: votive.zeros(rows, keys, dtype=votive.bool),
}


@EVERY
@pytest.mark.parametrize("rows", [1, 3, 70])
@pytest.mark.parametrize("mask", MASKS)
def test_attention_to_blocks_is_attention_to_their_numbers(name: str, rows: int, mask: str) -> None:
    keys = 150
    q, k, v = some(2, rows, 1, 64, 4), some(2, keys, 2, 64), some(2, keys, 3, 64)
    seen = MASKS[mask](rows, keys)
    cache = nn.DynamicCache(dtype=(name, "q8_0"))
    kb, vb = cache.update(k, v)
    got = F.scaled_dot_product_attention(q, kb, vb, seen, enable_gqa=True, scale=0.2)
    kr, vr = rounded(k, name), rounded(v, "q8_0")
    want = F.scaled_dot_product_attention(q, kr, vr, seen, enable_gqa=True, scale=0.2)
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64, votive.float16, votive.bfloat16], ids=str)
@pytest.mark.parametrize("kept", ["q8_0", ("q8_0", None), (None, "fp8"), ("int8", "q4_1")], ids=str)
def test_every_type_of_numbers_meets_blocks(dtype: Any, kept: Any) -> None:
    q, k, v = (some(1, n, n, 64).to(dtype) for n in (3, 40, 41))
    k = k[:, :, :40]
    v = v[:, :, :40]
    kb, vb = nn.DynamicCache(dtype=kept).update(k, v)
    got = F.scaled_dot_product_attention(q, kb, vb, is_causal=True)
    assert got.dtype is dtype
    want = F.scaled_dot_product_attention(q.double(), numbers(kb).double(), numbers(vb).double(), is_causal=True)
    tolerance = {votive.float64: 1e-12, votive.float32: 2e-6}.get(dtype, 2e-2)
    np.testing.assert_allclose(got.double().numpy(), want.numpy(), rtol=tolerance, atol=tolerance)


def test_attention_takes_windows_of_a_cache_and_no_keys_at_all() -> None:
    q, k = some(1, 1, 1), some(1, 20, 2)
    kb, vb = nn.DynamicCache(dtype="q8_0").update(k, k)
    part = F.scaled_dot_product_attention(q, kb[:, :, -7:], vb[:, :, -7:])
    near = rounded(k, "q8_0")[:, :, -7:]
    assert part.tolist() == F.scaled_dot_product_attention(q, near, near).tolist()
    empty = F.scaled_dot_product_attention(q, kb[:, :, :0], vb[:, :, :0])
    assert empty.tolist() == votive.zeros_like(q).tolist()


def test_queries_get_gradients_and_dropout_works() -> None:
    q, k = some(1, 3, 1).requires_grad_(), some(1, 9, 2)
    kb, vb = nn.DynamicCache(dtype="q8_0").update(k, k)
    F.scaled_dot_product_attention(q, kb, vb).sum().backward()
    other = q.detach().clone().requires_grad_()
    F.scaled_dot_product_attention(other, numbers(kb), numbers(vb)).sum().backward()
    assert q.grad.tolist() == other.grad.tolist()
    votive.manual_seed(3)
    got = F.scaled_dot_product_attention(q.detach(), kb, vb, dropout_p=0.5)
    votive.manual_seed(3)
    assert got.tolist() == F.scaled_dot_product_attention(q.detach(), numbers(kb), numbers(vb), dropout_p=0.5).tolist()
    with pytest.raises(UnsupportedError, match="query is in q8_0 blocks"):
        F.scaled_dot_product_attention(kb, kb, vb)


@pytest.mark.parametrize("kept", ["q8_0", ("q4_0", None)], ids=str)
def test_autocast_lowers_the_queries(kept: Any) -> None:
    q, k = some(1, 1, 1), some(1, 9, 2)
    kb, vb = nn.DynamicCache(dtype=kept).update(k, k)
    want = F.scaled_dot_product_attention(q.bfloat16(), kb, vb if isinstance(vb, BlockTensor) else vb.bfloat16())
    with votive.no_grad(), votive.autocast("cpu", dtype=votive.bfloat16):
        got = F.scaled_dot_product_attention(q, kb, vb)
    assert got.dtype is votive.bfloat16
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [votive.float32, votive.float16, votive.bfloat16], ids=str)
@pytest.mark.parametrize("rows", [1, 20])
def test_whoever_looks_sees_numbers_and_changes_nothing(dtype: Any, rows: int) -> None:
    class Model(nn.Module):
        def forward(self, q: Any, k: Any, mask: Any) -> Any:
            return F.scaled_dot_product_attention(
                q, *nn.DynamicCache(dtype=("q8_0", "q5_1")).update(k, k), mask, enable_gqa=True
            )

    q, k, mask = some(2, rows, 1, heads=4).to(dtype), some(2, 30, 2).to(dtype), votive.randn(rows, 30).to(dtype)
    with votive.no_grad():
        want = Model()(q, k, mask)
        with votive.glass.capture(model := Model(), "/attention") as seen:
            got = model(q, k, mask)
    assert got.tolist() == want.tolist()
    assert len(seen) == 1


# --- caches ---------------------------------------------------------------------------------------


def explicit(name: str) -> Any:
    """What the cache of a name must hold, by numbers that were rounded before."""
    made = Rounding(("q8_0", "q4_0"))
    if name == "sliding":
        plain = nn.SlidingWindowCache(5)
        inner = plain.update
        plain.update = lambda k, v, layer=0: inner(*made.of(k, v), layer)  # type: ignore[method-assign]
        return plain
    return made


@pytest.mark.parametrize("name", MAKE)
def test_a_cache_of_blocks_does_what_one_of_rounded_numbers_does(name: str) -> None:
    cache, want = MAKE[name](("q8_0", "q4_0")), explicit(name)
    with votive.no_grad():
        for i in range(14):
            if i % 5 == 3 and name != "sliding":
                for c in (cache, want):
                    c.crop(c.get_seq_length() - 2)
            if i % 5 == 4:
                for c in (cache, want):
                    c.reorder(votive.tensor([1, 1, 0]))
            key, value = some(3, 1 + i % 3, i), some(3, 1 + i % 3, 100 + i)
            got, expected = cache.update(key, value, i % 2), want.update(key, value, i % 2)
            for a, b in zip(got, expected, strict=True):
                assert a.shape == b.shape
                assert numbers(a).tolist() == b.tolist()
            assert cache.get_seq_length(i % 2) == want.get_seq_length(i % 2)


@EVERY
def test_pieces_are_the_whole_bit_for_bit(name: str) -> None:
    x = some(2, 9)
    with votive.no_grad():
        whole = nn.DynamicCache(dtype=name)
        whole.update(x, -x)
        pieces = nn.DynamicCache(dtype=name)
        for start, stop in ((0, 4), (4, 5), (5, 9)):
            pieces.update(x[:, :, start:stop], -x[:, :, start:stop])
    for a, b in zip(whole._kept[0], pieces._kept[0], strict=True):  # type: ignore[arg-type]
        assert a.dtype is votive.uint8
        assert a.tolist() == b.tolist()


def test_a_batch_may_grow_and_a_mark_leads_back() -> None:
    cache, x = nn.DynamicCache(overwrite=True, dtype="q5_1"), some(2, 4)
    with votive.no_grad():
        cache.update(x, x)
        cache.reorder(votive.tensor([0, 0, 1, 1]))
        here = cache.mark()
        new = some(4, 1, 1)
        first = numbers(cache.update(new, new)[0]).tolist()
        cache.rewind(here)
        assert cache.get_seq_length() == 4
        assert numbers(cache.update(new, new)[0]).tolist() == first


def test_a_static_cache_writes_where_it_is_told() -> None:
    cache, x = nn.StaticCache(4, dtype="q8_0"), some(1, 1)
    with votive.no_grad(), cache.at(votive.tensor([2])):
        got = numbers(cache.update(x, x)[0])
    assert got[:, :, 2].tolist() == rounded(x, "q8_0")[:, :, 0].tolist()
    assert not bool(got[:, :, 3].any())


@pytest.mark.parametrize("name", MAKE)
def test_copies_and_files_hold_the_same_bytes(name: str) -> None:
    cache, x = MAKE[name]("q4_1"), some(2, 4)
    with votive.no_grad():
        cache.update(x, x)
        others = [copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))]
        new = some(2, 1, 1)
        want = numbers(cache.update(new, new)[0]).tolist()
        for other in others:
            assert other.dtype == "q4_1"
            assert numbers(other.update(new, new)[0]).tolist() == want
    cache.reset()
    assert cache.get_seq_length() == 0


def test_memory_is_that_of_the_format() -> None:
    x = some(1, 10, features=64)
    sizes = {"q8_0": 68, "q4_0": 36, "q4_1": 40, "q5_0": 44, "q5_1": 48, "iq4_nl": 36, "int8": 68, "fp8": 68}
    for name, size in sizes.items():
        cache = nn.DynamicCache(dtype=name)
        cache.update(x, x)
        assert cache.nbytes() == 2 * 10 * 2 * size
    cache = nn.DynamicCache(dtype=("q8_0", None))
    cache.update(x, x)
    assert cache.nbytes() == 10 * 2 * (68 + 256)
    assert repr(cache) == "DynamicCache(layers=1, positions=10, dtype=('q8_0', None))"


def test_types_have_one_name_each() -> None:
    same = [votive.q8_0, "q8_0", "Q8_0", ("q8_0", votive.q8_0)]
    assert {nn.DynamicCache(dtype=d).dtype for d in same} == {"q8_0"}
    assert {nn.DynamicCache(dtype=d).dtype for d in ("fp8", votive.float8_e4m3fn)} == {"float8_e4m3fn"}
    assert nn.DynamicCache(dtype=votive.int8).dtype == "int8"
    assert nn.QuantizedCache(nbits=5).dtype == "q5_0"
    assert nn.DynamicCache()._storage is nn.DynamicCache(dtype=(None, None))._storage is None


def test_what_no_cache_keeps_is_told() -> None:
    with pytest.raises(ValueError, match="a cache keeps q8_0"):
        nn.DynamicCache(dtype="q4_k")
    with pytest.raises(ValueError, match="got 3 types"):
        nn.DynamicCache(dtype=("q8_0",) * 3)  # type: ignore[arg-type]
    x = some(1, 2, features=40)
    with pytest.raises(ValueError, match="heads here have 40 features"):
        nn.DynamicCache(dtype="q8_0").update(x, x)
    with pytest.raises(ValueError, match=r"model\.to\(votive\.float16\)"):
        nn.DynamicCache(dtype="f16").update(x, x)
    assert nn.DynamicCache(dtype="f32").update(x, x)[0] is x
    with pytest.raises(RuntimeError, match="does not keep gradients"):
        nn.DynamicCache(dtype="q8_0").update(some(1, 2).requires_grad_(), some(1, 2))
    with pytest.raises(ValueError, match="another library"):
        nn.QuantizedCache("quanto")
    with pytest.raises(ValueError, match="must be 4, 5 or 8"):
        nn.QuantizedCache(nbits=3)
    with pytest.raises(ValueError, match="residual_length must be 0"):
        nn.QuantizedCache(residual_length=128)


def test_a_layer_of_attention_takes_such_a_cache() -> None:
    votive.manual_seed(0)
    layer = nn.GroupedQueryAttention(64, 2, 1, rope=nn.RotaryEmbedding(32), window=3).eval()
    x, cache, want = votive.randn(2, 6, 64), nn.DynamicCache(dtype="q8_0"), Rounding("q8_0")
    with votive.no_grad():
        for i in range(6):
            a, b = (layer(x[:, i : i + 1], cache=c) for c in (cache, want))
            assert a.tolist() == b.tolist()
