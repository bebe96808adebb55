"""Drafts of a second model: the same tokens when greedy, the same distribution when sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.generation import generate, stream

from .tiny import PROMPT, model


def near(net: Any, amount: float, **changes: Any) -> Any:
    """A model with a little noise on its weights: right often, but not always."""
    twin = model(**changes)
    votive.manual_seed(1)
    with votive.no_grad():
        for p, q in zip(twin.parameters(), net.parameters(), strict=True):
            p.copy_(q + amount * votive.randn(*q.shape))
    return twin


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "static": {"cache_implementation": "static"},
    "chunks": {"prefill_chunk_size": 3},
    "no cache": {"use_cache": False},
    "one draft at a time": {"num_assistant_tokens": 1},
    "as many as it likes": {"assistant_confidence_threshold": 0.0, "num_assistant_tokens": 7},
    "more when they are good": {"num_assistant_tokens_schedule": "heuristic"},
    "penalties": {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("noise", [0.0, 0.015, 9.0])
def test_greedy_tokens_are_those_of_the_model_alone(way: str, noise: float) -> None:
    net = model()
    draft = near(net, noise)
    plain = {k: v for k, v in WAYS[way].items() if "assistant" not in k}
    expected = generate(net, [PROMPT], max_new_tokens=40, **plain)
    out = generate(net, [PROMPT], max_new_tokens=40, assistant_model=draft, return_dict_in_generate=True, **WAYS[way])
    assert out.sequences.tolist() == expected.tolist()
    assert out.acceptance.drafted > 0
    if noise == 0.0:
        assert out.acceptance.rate == 1.0
        assert out.acceptance.rounds < 40
    elif noise == 0.015 and way == "as it is":
        assert 0.2 < out.acceptance.rate < 1.0, "drafts that are all alike prove little"


def test_a_text_ends_where_it_does_without_drafts() -> None:
    net = model()
    free = generate(net, [PROMPT], max_new_tokens=20)[0].tolist()
    eos = free[len(PROMPT) + 9]
    expected = generate(net, [PROMPT], max_new_tokens=20, eos_token_id=eos)
    out = generate(
        net,
        [PROMPT],
        max_new_tokens=20,
        eos_token_id=eos,
        assistant_model=near(net, 0.02),
        return_dict_in_generate=True,
        output_scores=True,
    )
    assert out.sequences.tolist() == expected.tolist()
    assert out.finish_reasons == ["eos"]
    assert len(out.scores) == expected.shape[1] - len(PROMPT)
    assert out.past_key_values.get_seq_length() == expected.shape[1] - 1


def test_weights_and_states_are_those_of_the_model_alone() -> None:
    net = model("grouped")
    ask: dict[str, Any] = {
        "max_new_tokens": 12,
        "return_dict_in_generate": True,
        "output_logits": True,
        "output_attentions": True,
        "output_hidden_states": True,
    }
    alone = generate(net, [PROMPT], **ask)
    helped = generate(net, [PROMPT], assistant_model=net, assistant_confidence_threshold=0.0, **ask)
    pairs = zip(
        [*alone.logits, *(s for step in alone.attentions + alone.hidden_states for s in step)],
        [*helped.logits, *(s for step in helped.attentions + helped.hidden_states for s in step)],
        strict=True,
    )
    for a, b in pairs:
        assert a.shape == b.shape
        assert (a - b).abs().max().item() <= 1e-4 * a.abs().max().item()


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 1.0},
        {"temperature": 2.0, "assistant_confidence_threshold": 0.0},
        {"temperature": 1.5, "top_p": 0.8, "num_assistant_tokens": 2},
    ],
    ids=str,
)
def test_sampled_texts_keep_the_distribution_of_the_model(settings: dict[str, Any]) -> None:
    """Pairs of tokens against their exact probabilities; the second comes after an acceptance
    or a rejection of the first, so both ways through the rule are seen."""
    size, count = 4, 1000
    net = model(vocab_size=size, initializer_range=0.2)
    draft = model(vocab_size=size, initializer_range=0.2, seed=5, num_hidden_layers=1)
    ask = {"do_sample": True, "top_k": 0, **settings}
    drafts = {k: v for k, v in ask.items() if "assistant" not in k}
    first = (
        generate(net, [[1, 2]], max_new_tokens=1, seed=0, return_dict_in_generate=True, output_scores=True, **drafts)
        .scores[0]
        .softmax(-1)[0]
        .numpy()
    )
    second = (
        generate(
            net,
            [[1, 2, t] for t in range(size)],
            max_new_tokens=1,
            seed=0,
            output_scores=True,
            return_dict_in_generate=True,
            **drafts,
        )
        .scores[0]
        .softmax(-1)
        .numpy()
    )
    expected = (first[:, None] * second).flatten() * count
    counts = np.zeros(size * size)
    accepted = drafted = 0
    for seed in range(count):
        out = generate(
            net, [[1, 2]], max_new_tokens=3, seed=seed, assistant_model=draft, return_dict_in_generate=True, **ask
        )
        a, b = out.sequences[0, 2:4].tolist()
        counts[a * size + b] += 1
        accepted += out.acceptance.accepted
        drafted += out.acceptance.drafted
    assert 0.2 < accepted / drafted < 0.95, "nothing but one way through the rule was seen"
    assert counts[expected == 0].sum() == 0
    usual = expected >= 5
    chi = (((counts - expected) ** 2)[usual] / expected[usual]).sum()
    degrees = usual.sum() - 1
    # Wilson and Hilferty's cube root: exceeded once in a thousand seeds.
    limit = degrees * (1 - 2 / (9 * degrees) + 3.09 * (2 / (9 * degrees)) ** 0.5) ** 3
    assert chi < limit


def test_the_same_seed_gives_the_same_text() -> None:
    net = model(initializer_range=0.2)
    ask: dict[str, Any] = {"do_sample": True, "max_new_tokens": 20, "assistant_model": near(net, 0.05)}
    one, two, other = (generate(net, [PROMPT], seed=s, **ask)[0].tolist() for s in (1, 1, 2))
    assert one == two != other


def test_a_stream_can_be_helped() -> None:
    pytest.importorskip("tokenizers", reason="text needs a tokenizer")
    tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
    net = model(vocab_size=260)
    plain = list(stream(net, tok, "one", max_new_tokens=12))
    helped = list(stream(net, tok, "one", max_new_tokens=12, assistant_model=net))
    assert [(e.token, e.text, e.finish_reason) for e in helped] == [(e.token, e.text, e.finish_reason) for e in plain]


PADDED = [PROMPT, PROMPT[2:5], [9, 3, 9, 3, 9]]


@pytest.mark.parametrize("noise", [0.0, 0.015])
def test_rows_of_a_batch_get_their_own_tokens(noise: float) -> None:
    net = model()
    free = generate(net, PADDED, max_new_tokens=30, pad_token_id=60)
    ends = {"eos_token_id": free[1, -6].item(), "pad_token_id": 60}
    for settings in ({"pad_token_id": 60}, ends, {**ends, "use_cache": False}, {**ends, "repetition_penalty": 1.2}):
        expected = generate(net, PADDED, max_new_tokens=30, **settings)
        for way in ({"assistant_model": near(net, noise)}, {"prompt_lookup_num_tokens": 4}):
            found = generate(net, PADDED, max_new_tokens=30, return_dict_in_generate=True, **settings, **way)
            assert found.sequences.tolist() == expected.tolist()
            assert found.acceptance.drafted > 0


def test_drawn_tokens_of_batches_and_lookups_have_the_models_distribution() -> None:
    net = model(vocab_size=61, num_hidden_layers=1)
    rows, ask = 600, {"do_sample": True, "top_k": 4, "max_new_tokens": 3, "num_return_sequences": 600}
    prompt = [[9, 3, 9, 3, 9]]
    plain = generate(net, prompt, seed=1, **ask)
    for way in ({"assistant_model": near(net, 0.1, num_hidden_layers=1)}, {"prompt_lookup_num_tokens": 2}):
        found = generate(net, prompt, seed=2, **ask, **way)
        for at in range(5, 8):
            counts = [np.bincount(ids[:, at].numpy(), minlength=61) / rows for ids in (plain, found)]
            assert 0.5 * abs(counts[0] - counts[1]).sum() < 0.12


def test_a_text_that_repeats_is_drafted_from_itself() -> None:
    net = model()
    out = generate(net, [PROMPT], max_new_tokens=60, prompt_lookup_num_tokens=5, return_dict_in_generate=True)
    assert out.sequences.tolist() == generate(net, [PROMPT], max_new_tokens=60).tolist()
    assert out.acceptance.rounds < 60
    copied = generate(net, out.sequences, max_new_tokens=20, prompt_lookup_num_tokens=8, max_matching_ngram_size=3)
    assert copied.tolist() == generate(net, out.sequences, max_new_tokens=20).tolist()


def test_a_draft_model_may_have_another_tokenizer() -> None:
    texts = ["one two three four five two one"] * 3
    ours = votive.text.train_bpe(texts, vocab_size=270, progress=False)
    theirs = votive.text.train_bpe(["five four"], vocab_size=262, progress=False)
    net, draft = model(vocab_size=len(ours)), model(vocab_size=len(theirs))
    prompts = [ours.encode("one two one two"), ours.encode("three four")]
    ask: dict[str, Any] = {"max_new_tokens": 16, "pad_token_id": 5}
    expected = generate(net, prompts, **ask).tolist()
    found = generate(net, prompts, assistant_model=draft, tokenizer=ours, assistant_tokenizer=theirs, **ask)
    assert found.tolist() == expected
    twin = votive.text.train_bpe(texts, vocab_size=270, progress=False)
    good = {"assistant_model": net, "assistant_tokenizer": twin, "assistant_confidence_threshold": 0.0}
    out = generate(net, prompts[:1], tokenizer=ours, return_dict_in_generate=True, **ask, **good)
    assert out.sequences.tolist() == generate(net, prompts[:1], **ask).tolist()
    assert out.acceptance.accepted > 0
    with pytest.raises(ValueError, match="pass tokenizer="):
        generate(net, prompts, assistant_model=draft, assistant_tokenizer=theirs)


def test_drafts_that_cannot_serve_are_refused() -> None:
    with pytest.raises(ValueError, match="vocabulary of 61 tokens, got 50"):
        generate(model(), [PROMPT], assistant_model=model(vocab_size=50))
    with pytest.raises(ValueError, match="not from both"):
        generate(model(), [PROMPT], assistant_model=model(), prompt_lookup_num_tokens=2)
    for other in ({"guidance_scale": 2.0}, {"dola_layers": "low"}, {"penalty_alpha": 0.5}):
        with pytest.raises(ValueError, match=f"does not go with {next(iter(other))}"):
            generate(model(), [PROMPT], prompt_lookup_num_tokens=2, **other)
    net = model("mistral")
    with pytest.raises(ValueError, match="a sliding cache cannot"):
        generate(net, [PROMPT], assistant_model=net, cache_implementation="sliding")
