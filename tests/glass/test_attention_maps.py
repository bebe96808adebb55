"""Attention maps: weights rebuilt from fused attention are those that the model used."""

from __future__ import annotations

import math
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import glass, nn
from votive.glass import attention_maps as maps_file  # the function, which hides its file
from votive.nn import functional as F

from .decoders import ALL, CAUSAL, decoder


def worst(found: Any, wanted: Any) -> float:
    assert len(found) == len(wanted)
    return max(float((m.weights() - w).abs().max()) for m, w in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", CAUSAL)
def test_weights_are_those_that_the_model_gives_on_request(name: str) -> None:
    model, ids = decoder(name)
    with votive.no_grad():
        wanted = model(ids, output_attentions=True).attentions
    assert worst(glass.attention_maps(model, ids), wanted) <= 1e-6


@pytest.mark.parametrize("name", CAUSAL)
def test_padding_is_not_looked_at(name: str) -> None:
    model, ids = decoder(name)
    mask = votive.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    with votive.no_grad():
        wanted = model(ids, attention_mask=mask, output_attentions=True).attentions
    found = glass.attention_maps(model, ids, attention_mask=mask)
    assert worst(found, wanted) <= 1e-6
    assert float(found[0].weights(samples=0)[..., :2].abs().max()) == 0.0


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("new", [1, 2])
def test_a_cache_holds_keys_that_have_no_queries(name: str, new: int) -> None:
    model, ids = decoder(name)
    old = ids.shape[1] - new
    results = []
    for ask in (True, False):
        cache = nn.DynamicCache()
        with votive.no_grad():
            model(ids[:, :old], past_key_values=cache)
            if ask:
                out = model(ids[:, old:], past_key_values=cache, output_attentions=True)
                results.append(out.attentions)
            else:
                found = glass.attention_maps(model, ids[:, old:], past_key_values=cache, tokens=ids)
    assert worst(found, results[0]) <= 1e-6
    assert found[0].shape[2:] == (new, 5)
    assert (found[0].first_query, found[0].first_key) == (old, 0)
    whole = glass.attention_maps(model, ids)
    queries = list(range(old, 5))
    assert votive.allclose(found[1].weights(), whole[1].weights(queries=queries), atol=1e-5)


def test_a_window_forgets_keys() -> None:
    config = votive.models.MistralConfig(
        **tiny_sizes.transformer(16, 24, layers=2, heads=2, vocab=61, kv_heads=1),
        sliding_window=3,
        initializer_range=0.3,
    )
    votive.manual_seed(0)
    model = votive.models.MistralForCausalLM(config).eval()
    ids = votive.tensor([[5, 6, 7, 8, 9, 5, 6]])
    with votive.no_grad():
        wanted = model(ids, output_attentions=True).attentions
    assert worst(glass.attention_maps(model, ids), wanted) <= 1e-6
    cache = nn.SlidingWindowCache(3)
    with votive.no_grad():
        model(ids[:, :6], past_key_values=cache)
    found = glass.attention_maps(model, ids[:, 6:], past_key_values=cache, tokens=ids)
    assert found[0].first_key == 7 - found[0].shape[3]
    assert votive.allclose(found[0].weights(), wanted[0][:, :, 6:, found[0].first_key :], atol=1e-6)
    assert found.score("duplicate").isnan().all()  # the other 6 is out of sight


def test_parts_of_a_map_are_rebuilt_alone() -> None:
    model, ids = decoder("qwen3")
    found = glass.attention_maps(model, ids)[1]
    whole = found.weights()
    part = found.weights(heads=[1], queries=[-1, 0], samples=1)
    assert part.shape == (1, 1, 2, 5)
    assert votive.allclose(part[0, 0], whole[1, 1, [4, 0]], atol=1e-7)
    assert votive.allclose(whole.sum(-1), votive.ones(2, 2, 5))
    with pytest.raises(IndexError, match="heads"):
        found.weights(heads=2)


def test_patterns_choose_calls() -> None:
    model, ids = decoder("llama")
    one = glass.attention_maps(model, ids, at="layers.1.self_attn")
    assert [m.address for m in one] == ["model.layers.1.self_attn/attention#0"]
    same = glass.attention_maps(model, ids, at="layers.1.**/attention")
    assert votive.equal(one[0].weights(), same[0].weights())
    both = glass.attention_maps(model, ids, at="**/attention")
    assert both["layers.1.self_attn"].address == one[0].address
    assert len(both) == 2
    with pytest.raises(KeyError, match="2 of the maps"):
        both["**.self_attn"]
    with pytest.raises(glass.NoMatch):
        glass.attention_maps(model, ids, at="layers.1.self_atn")
    with pytest.raises(LookupError, match="no attention"):
        glass.attention_maps(nn.Linear(2, 2), votive.ones(1, 2))


def test_masks_that_are_added_and_keys_that_are_shared() -> None:
    class Net(nn.Module):
        def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
            return F.scaled_dot_product_attention(q, k, v, mask, scale=0.7, enable_gqa=True)

    g = votive.Generator().manual_seed(0)
    q = votive.randn(2, 4, 3, 5, generator=g)
    k, v = votive.randn(2, 2, 2, 6, 5, generator=g).unbind(0)
    mask = votive.randn(2, 1, 3, 6, generator=g)
    mask[0, 0, 1] = -math.inf  # this query sees nothing
    found = glass.attention_maps(Net(), q, k, v, mask)[0]
    scores = 0.7 * q @ k.repeat_interleave(2, 1).transpose(-2, -1) + mask
    wanted = F.softmax(scores, -1).nan_to_num(0.0)
    assert votive.allclose(found.weights(), wanted, atol=1e-6)
    assert float(found.weights(samples=0, queries=1).abs().max()) == 0.0
    out = Net()(q, k, v, mask)
    assert votive.allclose(found.weights() @ v.repeat_interleave(2, 1), out, atol=1e-6)


def test_the_attention_module_of_torchs_kind_is_seen() -> None:
    votive.manual_seed(0)
    net, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), votive.randn(2, 5, 8)
    hidden = votive.ones(5, 5, dtype=votive.bool).triu(1)
    found = glass.attention_maps(net, x, x, x, need_weights=False, attn_mask=hidden)
    with votive.no_grad():
        wanted = net(x, x, x, attn_mask=hidden, average_attn_weights=False)[1]
    assert votive.allclose(found[0].weights(), wanted, atol=1e-6)


def test_memory_that_was_taken_at_once_holds_the_keys_of_this_run() -> None:
    model, ids = decoder("llama")
    cache = nn.StaticCache(9)
    with votive.no_grad():
        model(ids[:, :3], past_key_values=cache)
    found = glass.attention_maps(model, ids[:, 3:], past_key_values=cache, tokens=ids)
    whole = glass.attention_maps(model, ids)
    assert found[1].shape == (2, 2, 2, 5)
    assert votive.allclose(found[1].weights(), whole[1].weights(queries=[3, 4]), atol=1e-5)


def test_attention_written_out_by_hand_is_taken_as_it_is() -> None:
    model, ids = decoder("mine")
    with votive.no_grad(), glass.capture(model, "/softmax") as seen:
        model(ids)
    found = glass.attention_maps(model, ids)
    assert [m.address for m in found] == list(seen)
    for m in found:
        assert votive.equal(m.weights(), seen[m.address])


class Fixed(nn.Module):
    """Attention whose weights are given: the scores are their logarithms."""

    def __init__(self, *weights: Any) -> None:
        super().__init__()
        self.masks = [w.log().reshape(1, 1, *w.shape) for w in weights]

    def forward(self, ids: Any) -> Any:
        zero = votive.zeros(ids.shape[0], 1, ids.shape[1], 2)
        for mask in self.masks:
            F.scaled_dot_product_attention(zero, zero, zero, mask)
        return zero


def previous(n: int) -> Any:
    w = votive.eye(n).roll(1, 0).tril()
    w[0, 0] = 1.0
    return w


def test_known_patterns_have_known_scores() -> None:
    even = votive.ones(4, 4).tril() / votive.arange(1, 5).unsqueeze(1)
    found = glass.attention_maps(Fixed(previous(4), even), votive.tensor([[5, 6, 5, 6]]))
    assert votive.allclose(found.score("previous")[:, 0], votive.tensor([1.0, 13 / 36]))
    # Tokens 2 and 3 have been seen: behind their first place stand 1 and 2.
    assert votive.allclose(found.score("induction")[:, 0], votive.tensor([1.0, 7 / 24]))
    assert votive.allclose(found.score("duplicate")[:, 0], votive.tensor([0.0, 7 / 24]))
    assert votive.allclose(found.score("first")[:, 0], votive.tensor([1 / 3, 13 / 36]))
    entropy = sum(math.log(i) for i in range(1, 5)) / 4
    assert votive.allclose(found.entropy()[:, 0], votive.tensor([0.0, entropy]), atol=1e-6)
    assert votive.allclose(found.distance()[:, 0], votive.tensor([0.75, 0.75]))
    new = glass.attention_maps(Fixed(even), votive.tensor([[1, 2, 3, 4]]))
    assert new.score("induction").isnan().all()
    with pytest.raises(ValueError, match="pattern"):
        new.score("other")


def test_rollout_multiplies_what_layers_look_at() -> None:
    a, b = previous(3), votive.ones(3, 3).tril() / votive.arange(1, 4).unsqueeze(1)
    found = glass.attention_maps(Fixed(a, b), votive.tensor([[1, 2, 3]])).rollout()
    half = votive.eye(3) / 2
    assert votive.allclose(found[0], (b / 2 + half) @ (a / 2 + half), atol=1e-6)
    assert votive.allclose(found.sum(-1), votive.ones(1, 3), atol=1e-6)
    model, ids = decoder("llama")
    cache = nn.DynamicCache()
    with votive.no_grad():
        model(ids[:, :3], past_key_values=cache)
    with pytest.raises(ValueError, match="without a cache"):
        glass.attention_maps(model, ids[:, 3:], past_key_values=cache).rollout()
    cache.crop(3)
    with pytest.raises(ValueError, match="give tokens="):
        glass.attention_maps(model, ids[:, 3:], past_key_values=cache).score("duplicate")


@pytest.mark.parametrize("name", ALL)
def test_every_decoder_has_scores_and_rollout(name: str) -> None:
    model, ids = decoder(name)
    found = glass.attention_maps(model, ids)
    assert found.entropy().isfinite().all()
    assert found.score("induction").shape == found.score("previous").shape
    assert votive.allclose(found.rollout().sum(-1), votive.ones(2, 5), atol=1e-5)


def test_only_a_few_rows_are_held_when_all_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    model, ids = decoder("llama")
    whole = glass.attention_maps(model, ids).entropy()
    monkeypatch.setattr(sys.modules["votive.glass.attention_maps"], "CHUNK", 10)
    found = glass.attention_maps(model, ids)
    assert max(w.numel() for *_, w in found[0].pieces()) <= 10
    assert votive.allclose(found.entropy(), whole, atol=1e-6)
    assert callable(maps_file)
