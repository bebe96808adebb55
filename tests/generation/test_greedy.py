"""Greedy search gives the same tokens however the work is cut up."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.generation import PrefixCache, generate

from .tiny import KINDS, PROMPT, model

WAYS: dict[str, dict[str, Any]] = {
    "no cache": {"use_cache": False},
    "dynamic": {"cache_implementation": "dynamic"},
    "static": {"cache_implementation": "static"},
    "chunks of 1": {"prefill_chunk_size": 1},
    "chunks of 3": {"prefill_chunk_size": 3},
    "static in chunks": {"cache_implementation": "static", "prefill_chunk_size": 4},
    "chunks longer than the prompt": {"prefill_chunk_size": 100},
}


def by_hand(net: Any, prompt: list[int], count: int) -> list[int]:
    """The plainest search there is: the whole text again for each token."""
    ids = list(prompt)
    with votive.no_grad():
        for _ in range(count):
            ids.append(int(net(votive.tensor([ids])).logits[0, -1].argmax()))
    return ids


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_search_takes_the_best_token_each_time(kind: str) -> None:
    net = model(kind)
    found = generate(net, [PROMPT], max_new_tokens=24)
    assert found.tolist() == [by_hand(net, PROMPT, 24)]
    assert len(set(found[0, len(PROMPT) :].tolist())) > 5, "a text that repeats proves little"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_every_cache_and_chunking_gives_the_same_tokens(kind: str, way: str) -> None:
    net = model(kind)
    expected = generate(net, [PROMPT], max_new_tokens=24)
    assert generate(net, [PROMPT], max_new_tokens=24, **WAYS[way]).tolist() == expected.tolist()


@pytest.mark.parametrize("chunk", [None, 1, 4, 9])
@pytest.mark.parametrize("prompt", [2, 7, 20])
def test_a_sliding_cache_gives_the_same_tokens(chunk: int | None, prompt: int) -> None:
    net = model("mistral")
    ids = [(7 * i + 3) % 61 for i in range(prompt)]
    expected = generate(net, [ids], max_new_tokens=20, use_cache=False)
    found = generate(net, [ids], max_new_tokens=20, cache_implementation="sliding", prefill_chunk_size=chunk)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("prompts", [[PROMPT], [PROMPT, [3], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]])
def test_layers_with_and_without_a_window_share_a_sliding_cache(prompts: list[list[int]], chunk: int | None) -> None:
    net = model(
        "qwen3",
        num_hidden_layers=3,
        use_sliding_window=True,
        sliding_window=4,
        max_window_layers=0,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
    )
    expected = generate(net, prompts, max_new_tokens=20, use_cache=False)
    out = generate(
        net,
        prompts,
        max_new_tokens=20,
        cache_implementation="sliding",
        prefill_chunk_size=chunk,
        return_dict_in_generate=True,
    )
    assert out.sequences.tolist() == expected.tolist()
    length = expected.shape[1] - 1
    assert [k[0].shape[2] for k in out.past_key_values._kept] == [length, 3, length]


def test_a_sliding_cache_keeps_only_the_window() -> None:
    out = generate(
        model("mistral"), [PROMPT], max_new_tokens=20, cache_implementation="sliding", return_dict_in_generate=True
    )
    kept = out.past_key_values._kept
    assert [k[0].shape[2] for k in kept] == [5, 5]
    assert out.past_key_values.get_seq_length() == len(PROMPT) + 19


def test_a_sliding_cache_needs_a_model_with_windows() -> None:
    with pytest.raises(ValueError, match="needs layers that see a window"):
        generate(model(), [PROMPT], cache_implementation="sliding")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["no cache", "dynamic", "static", "chunks of 3"])
def test_a_batch_gives_each_row_the_tokens_it_gets_alone(kind: str, way: str) -> None:
    net = model(kind)
    prompts = [PROMPT, [9], [33, 2, 14], [7] * 12]
    batch = generate(net, prompts, max_new_tokens=16, **WAYS[way])
    assert batch.shape == (4, 28)
    for row, prompt in zip(batch.tolist(), prompts, strict=True):
        alone = generate(net, [prompt], max_new_tokens=16)[0].tolist()
        assert row[12 - len(prompt) :] == alone


def test_padding_may_come_as_a_mask_or_as_a_pad_token() -> None:
    net = model()
    ids = votive.tensor([[0, 0, 9, 4], [3, 8, 2, 6]])
    mask = votive.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    expected = generate(net, [[9, 4], [3, 8, 2, 6]], max_new_tokens=8)
    assert generate(net, ids, attention_mask=mask, max_new_tokens=8).tolist() == expected.tolist()
    assert generate(net, ids, pad_token_id=0, max_new_tokens=8).tolist() == expected.tolist()
    # A pad token that also ends texts stands for itself, as in transformers.
    unpadded = generate(net, ids, pad_token_id=0, eos_token_id=0, max_new_tokens=1)
    assert unpadded[0].tolist() == generate(net, ids[:1], max_new_tokens=1)[0].tolist()


def test_rows_that_end_are_filled_with_padding() -> None:
    net = model()
    free = generate(net, [PROMPT, [9, 1, 2, 3, 4, 5, 5]], max_new_tokens=12)
    eos = free[0, len(PROMPT) + 2].item()
    assert eos not in free[0, len(PROMPT) : len(PROMPT) + 2].tolist()
    assert eos not in free[1, len(PROMPT) :].tolist()
    out = generate(
        net,
        [PROMPT, [9, 1, 2, 3, 4, 5, 5]],
        max_new_tokens=12,
        eos_token_id=[60, eos],
        pad_token_id=59,
        return_dict_in_generate=True,
    )
    assert out.sequences[0, len(PROMPT) + 2 :].tolist() == [eos] + [59] * 9
    assert out.sequences[1].tolist() == free[1].tolist()
    assert out.finish_reasons == ["eos", "length"]


def test_a_search_stops_when_all_rows_have_ended() -> None:
    net = model()
    free = generate(net, [PROMPT], max_new_tokens=12)[0].tolist()
    eos = free[len(PROMPT) + 3]
    assert generate(net, [PROMPT], max_new_tokens=12, eos_token_id=eos)[0].tolist() == free[:11]


def test_what_is_given_as_past_is_not_run_again() -> None:
    net = model("grouped")
    expected = generate(net, [PROMPT], max_new_tokens=12)
    cache = nn.DynamicCache()
    with votive.no_grad():
        net(votive.tensor([PROMPT[:4]]), past_key_values=cache, use_cache=True)
    rows: list[int] = []
    handle = net.model.embed_tokens.register_forward_hook(lambda module, given, out: rows.append(given[0].shape[1]))
    found = generate(net, [PROMPT], max_new_tokens=12, past_key_values=cache)
    handle.remove()
    assert found.tolist() == expected.tolist()
    assert rows == [3] + [1] * 11
    with pytest.raises(ValueError, match="at least one token that is new"):
        generate(net, [PROMPT], max_new_tokens=12, past_key_values=cache)


def test_prompts_that_begin_alike_share_the_work() -> None:
    net = model("qwen3")
    prefix = PrefixCache()
    rows: list[int] = []
    net.model.embed_tokens.register_forward_hook(lambda module, given, out: rows.append(given[0].shape[1]))
    first = generate(net, [PROMPT], max_new_tokens=6, past_key_values=prefix)
    assert rows == [7, 1, 1, 1, 1, 1]
    assert len(prefix) == 12
    turns = [
        first[0].tolist() + [4, 9],  # the conversation goes on
        PROMPT[:5] + [1, 1, 1],  # it takes another way
        PROMPT[:5] + [1, 1, 1],  # the same again
        [2, 2],  # nothing in common
    ]
    for turn, new in zip(turns, [3, 3, 1, 2], strict=True):
        rows.clear()
        found = generate(net, [turn], max_new_tokens=6, past_key_values=prefix)
        assert rows[0] == new
        assert found.tolist() == generate(net, [turn], max_new_tokens=6).tolist()


def test_a_prefix_cache_with_a_window_starts_again_when_it_must() -> None:
    net = model("mistral")
    prefix = PrefixCache(nn.SlidingWindowCache(6))
    for prompt in (PROMPT, PROMPT[:3] + [1], PROMPT[:3] + [1, 2]):
        found = generate(net, [prompt], max_new_tokens=10, past_key_values=prefix)
        assert found.tolist() == generate(net, [prompt], max_new_tokens=10).tolist()


def test_weights_and_states_on_request_leave_tokens_and_logits_as_they_are() -> None:
    net = model("grouped")
    ask = {"max_new_tokens": 6, "return_dict_in_generate": True, "output_logits": True}
    for way in ({}, {"prefill_chunk_size": 3}, {"use_cache": False}):
        plain = generate(net, [PROMPT, [1, 2]], **ask, **way)
        full = generate(
            net, [PROMPT, [1, 2]], output_attentions=True, output_hidden_states=True, output_scores=True, **ask, **way
        )
        assert full.sequences.tolist() == plain.sequences.tolist()
        for a, b in zip(full.logits, plain.logits, strict=True):
            assert bool((a == b).all())
        assert len(full.attentions) == len(full.hidden_states) == len(full.scores) == 6
        assert len(full.attentions[0]) == 2
        assert len(full.hidden_states[0]) == 3
        assert full.attentions[0][0].shape == (2, 4, 7, 7)
        assert full.hidden_states[0][0].shape == (2, 7, 32)
        rows = 1 if way != {"use_cache": False} else 8
        assert full.attentions[1][1].shape == (2, 4, rows, 8)
        assert full.hidden_states[1][2].shape == (2, rows, 32)
        assert plain.attentions is None
        assert plain.hidden_states is None
        assert plain.scores is None


def test_chunks_give_the_weights_and_states_of_one_run() -> None:
    net = model("grouped")
    ask: dict[str, Any] = {
        "max_new_tokens": 1,
        "return_dict_in_generate": True,
        "output_attentions": True,
        "output_hidden_states": True,
    }
    whole = generate(net, [PROMPT], **ask)
    parts = generate(net, [PROMPT], prefill_chunk_size=3, **ask)
    for a, b in zip(whole.attentions[0], parts.attentions[0], strict=True):
        votive_close(a, b)
    for a, b in zip(whole.hidden_states[0], parts.hidden_states[0], strict=True):
        votive_close(a, b)


def votive_close(a: Any, b: Any) -> None:
    assert a.shape == b.shape
    assert (a - b).abs().max().item() < 1e-4


def test_no_graph_is_kept() -> None:
    out = generate(model(), [PROMPT], max_new_tokens=2, return_dict_in_generate=True, output_logits=True)
    assert not out.logits[0].requires_grad
    assert votive.is_grad_enabled()
