"""Grouped attention, and the caches it reads earlier positions from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.arrays import close, normal
from votive import nn


def attention(**options: Any) -> nn.GroupedQueryAttention:
    votive.manual_seed(1)
    made = {"num_kv_heads": 2, "rope": nn.RotaryEmbedding(4, 32), "qk_norm": True, **options}
    return nn.GroupedQueryAttention(16, 4, **made).double()


def by_hand(layer: Any, x: Any, hidden: np.ndarray) -> np.ndarray:
    """The same in NumPy, head by head."""
    n, t, _ = x.shape
    heads = lambda p: p(x).view(n, t, -1, layer.head_dim).transpose(1, 2)
    q, k, v = (heads(p) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    if layer.q_norm is not None:
        q, k = layer.q_norm(q.contiguous()), layer.k_norm(k.contiguous())
    if layer.rope is not None:
        q, k = layer.rope(q.contiguous()), layer.rope(k.contiguous())
    q, k, v = (y.detach().numpy() for y in (q, k, v))
    shared = layer.num_heads // layer.num_kv_heads
    out = np.empty((n, t, layer.num_heads, layer.head_dim))
    for h in range(layer.num_heads):
        scores = q[:, h] @ k[:, h // shared].swapaxes(1, 2) / math.sqrt(layer.head_dim)
        scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        out[:, :, h] = weights @ v[:, h // shared]
    merged = votive.from_numpy(out.reshape(n, t, -1))
    return layer.o_proj(merged).detach().numpy()


FUTURE = np.triu(np.ones((6, 6), bool), 1)
OLD = np.tril(np.ones((6, 6), bool), -3)


@pytest.mark.parametrize(
    "options, hidden",
    [
        ({}, FUTURE),
        ({"is_causal": False}, FUTURE & False),
        ({"window": 3}, FUTURE | OLD),
        ({"num_kv_heads": 4, "rope": None}, FUTURE),
        ({"num_kv_heads": 1, "qk_norm": False}, FUTURE),
        ({"head_dim": 6, "bias": True, "out_bias": False}, FUTURE),
    ],
)
def test_grouped_attention_is_what_it_says(options: dict[str, Any], hidden: np.ndarray) -> None:
    layer = attention(**options)
    x = normal(2, 6, 16)
    close(layer(x), by_hand(layer, x, hidden))


def test_a_given_mask_hides_besides_the_future() -> None:
    layer = attention()
    x = normal(2, 6, 16)
    keep = np.ones((6, 6), bool)
    keep[3:, 1] = False
    want = by_hand(layer, x, FUTURE | ~keep)
    close(layer(x, votive.from_numpy(keep)), want)
    additive = np.where(keep, 0.0, -np.inf)
    close(layer(x, votive.from_numpy(additive)), want)
    padding = np.zeros((2, 1, 1, 6))
    padding[1, ..., 0] = -3.0
    close(layer(x, votive.from_numpy(padding))[0], layer(x)[0])
    full = np.broadcast_to(padding, (2, 1, 6, 6)).copy()
    close(layer(x, votive.from_numpy(padding)), layer(x, votive.from_numpy(full)))
    assert not np.allclose(layer(x, votive.from_numpy(padding))[1].detach().numpy(), layer(x)[1].detach().numpy())


CACHES = {"dynamic": nn.DynamicCache, "static": lambda: nn.StaticCache(6), "sliding": lambda: nn.SlidingWindowCache(3)}


@pytest.mark.parametrize("pieces", [[1] * 6, [3, 1, 2], [4, 2], [6]], ids=str)
@pytest.mark.parametrize("kind", CACHES)
def test_a_cache_in_pieces_gives_what_the_whole_gives(kind: str, pieces: list[int]) -> None:
    layer = attention(window=3 if kind == "sliding" else None)
    x = normal(2, 6, 16)
    cache = CACHES[kind]()
    with votive.no_grad():
        parts = [layer(part, cache=cache, layer_idx=1) for part in x.split(pieces, 1)]
    close(votive.cat(parts, 1), layer(x))
    assert cache.get_seq_length(1) == 6
    assert cache.get_seq_length(0) == 0
    assert len(cache) == 2


def test_gradients_flow_through_a_growing_cache() -> None:
    layer = attention()
    x, y = normal(2, 6, 16).requires_grad_(), normal(2, 6, 16).requires_grad_()
    cache = nn.DynamicCache()
    votive.cat([layer(part, cache=cache) for part in x.split([2, 4], 1)], 1).square().sum().backward()
    first = {k: p.grad.clone() for k, p in layer.named_parameters()}
    layer.zero_grad()
    layer(y).square().sum().backward()
    close(x.grad, y.grad)
    for key, p in layer.named_parameters():
        close(first[key], p.grad, rtol=1e-8)


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="give head_dim"):
        nn.GroupedQueryAttention(10, 4)
    with pytest.raises(ValueError, match="3 key heads do not divide 4"):
        nn.GroupedQueryAttention(16, 4, 3)


# --- caches -----------------------------------------------------------------------------------


def filled(cache: Any, n: int = 5, batch: int = 2) -> Any:
    x = normal(batch, 1, n, 2)
    cache.update(x, -x)
    return x


@pytest.mark.parametrize("make", [nn.DynamicCache, lambda: nn.StaticCache(9)])
@pytest.mark.parametrize("length, left", [(3, 3), (-1, 4), (9, 5), (0, 0), (-9, 0)])
def test_cropping_forgets_the_end(make: Any, length: int, left: int) -> None:
    cache = make()
    x = filled(cache)
    cache.crop(length)
    assert cache.get_seq_length() == left
    new = normal(2, 1, 1, 2, seed=5)
    key, value = cache.update(new, -new)
    close(key, votive.cat([x[:, :, :left], new], 2))
    close(value, -key)


@pytest.mark.parametrize("make", CACHES.values(), ids=list(CACHES))
def test_reset_forgets_everything(make: Any) -> None:
    cache = make()
    filled(cache)
    cache.reset()
    assert cache.get_seq_length() == 0
    new = normal(2, 1, 2, 2, seed=5)
    close(cache.update(new, new)[0], new)


@pytest.mark.parametrize("make", CACHES.values(), ids=list(CACHES))
def test_reorder_chooses_samples(make: Any) -> None:
    cache = make()
    x = filled(cache, 2)
    cache.reorder(votive.tensor([1, 1, 0]))
    new = normal(3, 1, 1, 2, seed=5)
    key, value = cache.update(new, -new)
    close(key, votive.cat([x[[1, 1, 0]], new], 2))
    close(value, -key)


def test_a_static_cache_takes_memory_once_and_says_when_it_is_full() -> None:
    cache = nn.StaticCache(6)
    filled(cache, 3)
    before = cache.update(votive.zeros(2, 1, 1, 2).double(), votive.zeros(2, 1, 1, 2).double())[0]
    cache.reset()
    after = cache.update(votive.ones(2, 1, 6, 2).double(), votive.ones(2, 1, 6, 2).double())[0]
    assert before.data_ptr() == after.data_ptr()
    with pytest.raises(IndexError, match="6 \\+ 1 positions do not fit into max_length=6"):
        filled(cache, 1)
    assert cache.get_max_length() == 6


def test_a_static_cache_refuses_to_lose_gradients() -> None:
    x = votive.ones(1, 1, 1, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no_grad"):
        nn.StaticCache(6).update(x, x)
    with votive.no_grad():
        nn.StaticCache(6).update(x, x)


def test_a_sliding_cache_keeps_what_the_next_position_sees() -> None:
    cache = nn.SlidingWindowCache(3)
    x = filled(cache, 5)
    new = normal(2, 1, 1, 2, seed=5)
    close(cache.update(new, new)[0], votive.cat([x[:, :, 3:], new], 2))
    assert cache.get_seq_length() == 6
    with pytest.raises(ValueError, match="are gone"):
        cache.crop(4)
    cache.crop(6)
    short = nn.SlidingWindowCache(9)
    filled(short, 5)
    short.crop(2)
    assert short.get_seq_length() == 2
    alone = nn.SlidingWindowCache(1)
    filled(alone, 5)
    close(alone.update(new, new)[0], new)


@pytest.mark.parametrize("make", [nn.DynamicCache, lambda: nn.SlidingWindowCache(7)])
def test_what_a_growing_cache_gave_stays_as_it_was(make: Any) -> None:
    cache = make()
    whole: Any = None
    given = []
    with votive.no_grad():
        for i in range(90):
            new = normal(2, 1, 1 + i % 3, 2, seed=i)
            if i == 40 and isinstance(cache, nn.DynamicCache):
                cache.crop(-5)
                whole = whole[:, :, :-5]
            whole = new if whole is None else votive.cat([whole, new], 2)
            limit = cache.get_max_length()
            size = whole.shape[2] if limit is None else limit - 1 + new.shape[2]
            given.append((*cache.update(new, -new), whole[:, :, -size:]))
            if i == 60:
                whole = votive.cat([whole, whole], 0)[1:3]
                cache.reorder(votive.tensor([1, 0]))
    for key, value, want in given:
        close(key, want)
        close(value, -want)


def test_a_cache_of_inference_tensors_grows_outside() -> None:
    cache = nn.DynamicCache()
    with votive.inference_mode():
        a = [filled(cache, 2) for _ in range(3)]
    with votive.no_grad():
        x = normal(2, 1, 1, 2)
        close(cache.update(x, -x)[0], votive.cat([*a, x], 2))


def test_wrong_shapes_and_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="positions, features"):
        nn.DynamicCache().update(votive.ones(1, 2, 3), votive.ones(1, 2, 3))
    for make in (nn.StaticCache, nn.SlidingWindowCache):
        with pytest.raises(ValueError, match="positive"):
            make(0)
    assert nn.DynamicCache()  # an empty cache is still one
    assert nn.DynamicCache().get_max_length() is None
