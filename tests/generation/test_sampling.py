"""Sampling: tokens come as often as they should, and come again from the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.generation import generate
from votive.generation.drawing import drawn, picked, streams

from .tiny import PROMPT, VOCABULARY, model

ASK: dict[str, Any] = {"do_sample": True, "max_new_tokens": 12, "temperature": 3.0, "top_k": 0}


def flat(**changes: Any) -> Any:
    """A model that is unsure, so that what is drawn matters."""
    return model(initializer_range=0.15, **changes)


def test_a_seed_gives_the_same_text_again_and_another_seed_another() -> None:
    net = flat()
    texts = [generate(net, [PROMPT], seed=s, **ASK)[0].tolist() for s in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len({tuple(t) for t in texts}) == 3


def test_without_a_seed_the_default_generator_decides() -> None:
    net = flat()
    votive.manual_seed(7)
    first = [generate(net, [PROMPT], **ASK)[0].tolist() for _ in range(2)]
    votive.manual_seed(7)
    again = [generate(net, [PROMPT], **ASK)[0].tolist() for _ in range(2)]
    assert first == again
    assert first[0] != first[1]


def test_a_generator_can_be_given() -> None:
    net = flat()
    made = [generate(net, [PROMPT], generator=votive.Generator().manual_seed(3), **ASK)[0].tolist() for _ in range(2)]
    assert made[0] == made[1]
    state = votive.get_rng_state().tolist()
    generate(net, [PROMPT], generator=votive.Generator(), **ASK)
    generate(net, [PROMPT], seed=5, **ASK)
    generate(net, [PROMPT], max_new_tokens=2)
    assert votive.get_rng_state().tolist() == state, "nothing else may be drawn from"


def test_a_row_is_drawn_alike_alone_and_in_any_batch() -> None:
    net = flat()
    prompts = [[3], PROMPT, [9, 9, 2], [30] * 10]
    batch = generate(net, prompts, seed=11, **ASK)
    for row, prompt in zip(batch.tolist(), prompts, strict=True):
        alone = generate(net, [prompt], seed=11, **ASK)[0].tolist()
        assert row[10 - len(prompt) :] == alone
    other = generate(net, [[1, 2, 3], PROMPT], seed=11, **ASK)
    assert other[1, -12:].tolist() == batch[1, -12:].tolist()


def test_every_cache_draws_the_same() -> None:
    net = flat()
    expected = generate(net, [PROMPT, [4]], seed=11, **ASK).tolist()
    for way in ({"use_cache": False}, {"cache_implementation": "static"}, {"prefill_chunk_size": 2}):
        assert generate(net, [PROMPT, [4]], seed=11, **ASK, **way).tolist() == expected


def test_copies_of_a_prompt_get_different_texts() -> None:
    net = flat()
    several = generate(net, [PROMPT, [1]], seed=2, num_return_sequences=3, **ASK)
    assert several.shape[0] == 6
    texts = {tuple(t) for t in several.tolist()}
    assert len(texts) == 6
    # The first is the one that a single sequence would be; a repeated prompt is the same thing.
    assert several[0].tolist() == generate(net, [PROMPT], seed=2, **ASK)[0].tolist()
    repeated = generate(net, [PROMPT, PROMPT, PROMPT], seed=2, **ASK)
    assert several[:3].tolist() == repeated.tolist()


def test_a_top_k_of_one_is_greedy() -> None:
    net = flat()
    expected = generate(net, [PROMPT], max_new_tokens=12)
    found = generate(net, [PROMPT], do_sample=True, top_k=1, seed=9, max_new_tokens=12)
    assert found.tolist() == expected.tolist()


def test_settings_reach_the_scores() -> None:
    net = flat()
    out = generate(
        net,
        [PROMPT],
        do_sample=True,
        seed=0,
        max_new_tokens=3,
        temperature=0.5,
        top_k=7,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    for scores, logits in zip(out.scores, out.logits, strict=True):
        assert scores.isfinite().sum().item() == 7
        kept = scores.isfinite()
        assert bool((scores == logits / 0.5)[kept].all())


def test_tokens_come_as_often_as_their_probability() -> None:
    odds = votive.tensor([[0.5, 0.0, 0.3, 0.15, 0.05]])
    numbers = [s.next() for s in streams(0, [[i] for i in range(20000)])]
    tokens = drawn(odds.log().expand(20000, 5), numbers).numpy()
    counts = np.bincount(tokens, minlength=5)
    expected = 20000 * odds[0].numpy()
    assert counts[1] == 0
    # Chi-squared with 3 degrees of freedom: above 16.3 once in a thousand seeds.
    chosen = expected > 0
    assert (((counts - expected) ** 2)[chosen] / expected[chosen]).sum() < 16.3


def test_the_first_token_of_sampled_texts_follows_the_model() -> None:
    net = flat(vocab_size=8)
    with votive.no_grad():
        p = (net(votive.tensor([PROMPT[:1] + [2, 3]])).logits[0, -1] / 2.0).softmax(-1).numpy()
    found = generate(
        net,
        [PROMPT[:1] + [2, 3]],
        do_sample=True,
        top_k=0,
        temperature=2.0,
        seed=5,
        max_new_tokens=1,
        num_return_sequences=4000,
    )[:, -1]
    counts = np.bincount(found.numpy(), minlength=8)
    assert ((counts - 4000 * p) ** 2 / (4000 * p)).sum() < 24.3  # 7 degrees, once in a thousand


def test_what_has_no_weight_is_never_picked_even_at_the_edges() -> None:
    weights = votive.tensor([[0.0, 1.0, 0.0, 1.0, 0.0]])
    assert picked(weights, [0.0]).item() == 1
    assert picked(weights, [1 - 2**-53]).item() == 3
    assert picked(weights, [0.5]).item() == 3


def test_no_token_left_is_an_error() -> None:
    def forbid(ids: Any, scores: Any) -> Any:
        return votive.full_like(scores, -votive.inf)

    with pytest.raises(ValueError, match="every one is forbidden"):
        generate(flat(), [PROMPT], logits_processor=[forbid], **ASK)


@pytest.mark.parametrize("how", [{}, {"num_beams": 3}, {"num_beams": 2, "do_sample": True}])
def test_no_token_left_is_an_error_however_they_are_chosen(how: dict[str, Any]) -> None:
    net = model()
    asked = {"max_new_tokens": 3, **how}
    with pytest.raises(ValueError, match="every one is forbidden"):
        generate(net, [PROMPT], suppress_tokens=list(range(VOCABULARY)), **asked)
    left = generate(net, [PROMPT], suppress_tokens=list(range(1, VOCABULARY)), **asked)
    assert left[0, len(PROMPT) :].tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["suppress_tokens", "begin_suppress_tokens", "eos_token_id", "forced_eos_token_id"])
def test_a_token_that_the_vocabulary_lacks_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} has \[{VOCABULARY}\].*{VOCABULARY} tokens"):
        generate(model(), [PROMPT], max_new_tokens=2, **{name: [3, VOCABULARY]})
