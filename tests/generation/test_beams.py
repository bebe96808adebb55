"""Beam search: what it is on its own, and that transformers finds the same."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import votive
from votive.generation import generate

from .tiny import PROMPT, model


def total(net: Any, prompt: list[int], text: list[int]) -> float:
    """The log probability of a text after a prompt."""
    ids = prompt + text
    with votive.no_grad():
        logs = net(votive.tensor([ids])).logits[0].float().log_softmax(-1)
    return sum(logs[len(prompt) + i - 1, t].item() for i, t in enumerate(text))


def test_enough_beams_find_the_likeliest_text_of_all() -> None:
    net = model(vocab_size=5, initializer_range=0.2)
    texts = [list(t) for t in itertools.product(range(5), repeat=3)]
    best = sorted(texts, key=lambda t: -total(net, [1, 2], t))
    out = generate(
        net,
        [[1, 2]],
        max_new_tokens=3,
        num_beams=25,
        num_return_sequences=5,
        return_dict_in_generate=True,
        output_scores=True,
    )
    assert out.sequences[:, 2:].tolist() == best[:5]
    for text, score in zip(best, out.sequences_scores.tolist(), strict=False):
        assert score == pytest.approx(total(net, [1, 2], text) / 3, abs=1e-4)


def test_beams_find_what_greedy_search_misses() -> None:
    net = model(initializer_range=0.1)
    greedy = generate(net, [PROMPT], max_new_tokens=6)[0, len(PROMPT) :].tolist()
    beams = generate(net, [PROMPT], max_new_tokens=6, num_beams=8)[0, len(PROMPT) :].tolist()
    assert greedy != beams
    assert total(net, PROMPT, beams) > total(net, PROMPT, greedy)


@pytest.mark.parametrize(
    "way", [{"use_cache": False}, {"cache_implementation": "static"}, {"prefill_chunk_size": 3}], ids=str
)
@pytest.mark.parametrize("kind", ["grouped", "mistral"])
def test_every_cache_gives_the_same_beams(kind: str, way: dict[str, Any]) -> None:
    net = model(kind, initializer_range=0.3)
    ask: dict[str, Any] = {"max_new_tokens": 12, "num_beams": 4, "num_return_sequences": 2}
    prompts = [PROMPT, [3, 9]]
    expected = generate(net, prompts, **ask)
    assert generate(net, prompts, **ask, **way).tolist() == expected.tolist()
    for i, prompt in enumerate(prompts):
        alone = generate(net, [prompt], **ask)
        rows = expected[2 * i : 2 * i + 2, len(PROMPT) - len(prompt) :]
        assert rows.tolist() == alone.tolist()


def test_a_sliding_cache_gives_the_same_beams() -> None:
    net = model("mistral", initializer_range=0.3)
    ask: dict[str, Any] = {"max_new_tokens": 12, "num_beams": 4}
    expected = generate(net, [PROMPT], **ask)
    found = generate(net, [PROMPT], cache_implementation="sliding", **ask)
    assert found.tolist() == expected.tolist()


def test_scores_add_up_along_the_beams() -> None:
    net = model(initializer_range=0.2)
    out = generate(
        net,
        [PROMPT],
        max_new_tokens=7,
        num_beams=5,
        num_return_sequences=5,
        length_penalty=0.0,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    assert len(out.scores) == len(out.logits) == 7
    for text, rows, score in zip(out.sequences.tolist(), out.beam_indices.tolist(), out.sequences_scores, strict=True):
        steps = zip(out.scores, rows, text[len(PROMPT) :], strict=True)
        assert sum(s[r, t].item() for s, r, t in steps) == pytest.approx(score.item(), abs=1e-4)
    assert out.finish_reasons == ["length"] * 5


def test_beams_can_be_sampled_and_repeat_with_a_seed() -> None:
    net = model(initializer_range=0.2)
    ask: dict[str, Any] = {"max_new_tokens": 8, "num_beams": 4, "do_sample": True}
    one = generate(net, [PROMPT], seed=1, **ask)
    assert generate(net, [PROMPT], seed=1, **ask).tolist() == one.tolist()
    assert any(generate(net, [PROMPT], seed=s, **ask).tolist() != one.tolist() for s in (2, 3, 4))
    batch = generate(net, [[4, 4], PROMPT], seed=1, **ask)
    assert batch[1].tolist() == one[0].tolist()


@pytest.mark.parametrize("settings", [{"top_k": 1}, {"top_p": 0.05}, {"min_p": 0.9}])
def test_sampled_beams_get_along_with_fewer_tokens_than_they_want(settings: Any) -> None:
    ask: dict[str, Any] = {"max_new_tokens": 5, "num_beams": 4, "do_sample": True, "seed": 0}
    out = generate(
        model(), [PROMPT], num_return_sequences=2, return_dict_in_generate=True, output_scores=True, **ask, **settings
    )
    # Beams keep two tokens at least: no text may hold one that the settings forbid.
    for text, rows in zip(out.sequences.tolist(), out.beam_indices.tolist(), strict=True):
        steps = zip(out.scores, rows, text[len(PROMPT) :], strict=True)
        assert all(scores[r, token].isfinite() for scores, r, token in steps)
    assert (out.sequences_scores > -1e3).all()


def test_what_does_not_go_with_beams_is_refused() -> None:
    net = model()
    with pytest.raises(ValueError, match=r"more than num_beams=2|at least as many num_beams"):
        generate(net, [PROMPT], num_beams=2, num_return_sequences=3)
    with pytest.raises(ValueError, match="neither with a streamer nor an assistant_model"):
        generate(net, [PROMPT], num_beams=2, assistant_model=net)


EARLY = [False, True, "never"]


@pytest.mark.parity
@pytest.mark.parametrize("early", EARLY)
@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.0, -0.5])
@pytest.mark.parametrize("ends", [0, 1, 3])
def test_transformers_finds_the_same_beams(early: Any, penalty: float, ends: int) -> None:
    pytest.importorskip("transformers", reason="compares with transformers")
    from .compare import llamas, torch

    ended = 0
    for seed, beams in ((1, 3), (2, 5)):
        reference, ours = llamas(seed, initializer_range=0.1)
        ids = [[30, 30, 5, 9, 2], [1, 2, 3, 4, 6]]
        mask = [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]
        # Tokens that do come, so that texts end at different lengths.
        free = generate(ours, ids, max_new_tokens=14)[:, 5:].tolist()
        eos = [free[1][4], free[0][7], free[0][2]][:ends] or None
        ask: dict[str, Any] = {
            "max_new_tokens": 14,
            "num_beams": beams,
            "num_return_sequences": 2,
            "length_penalty": penalty,
            "early_stopping": early,
            "eos_token_id": eos,
            "pad_token_id": 30,
            "return_dict_in_generate": True,
            "output_scores": True,
        }
        theirs = reference.generate(torch.tensor(ids), attention_mask=torch.tensor(mask), use_cache=True, **ask)
        found = generate(ours, votive.tensor(ids), attention_mask=votive.tensor(mask), **ask)
        assert found.sequences.tolist() == theirs.sequences.tolist()
        for a, b in zip(found.sequences_scores.tolist(), theirs.sequences_scores.tolist(), strict=True):
            assert math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4)
        assert found.beam_indices.tolist() == theirs.beam_indices.tolist()
        for a, b in zip(found.scores, theirs.scores, strict=True):
            assert abs(a.numpy() - b.numpy()).max() < 2e-3
        ended += found.finish_reasons.count("eos")
    if ends and penalty < 2.0:  # a penalty of 2 prefers the longest
        assert ended, "no text ended early: the rules for ending were not compared"
