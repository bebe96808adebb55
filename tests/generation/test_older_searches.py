"""Searches that transformers had up to its fourth version, against what version 4.46.3 wrote with the same weights."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.generation import generate, stream

from .tiny import PROMPT, model

IDS = [[60, 60, 5, 17, 3, 42], [8, 29, 11, 2, 7, 7]]
MASK = [[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]
# Settings, and what was written: for both prompts, or with layers for the second alone.
WRITTEN: dict[str, tuple[dict[str, Any], list[list[int]]]] = {
    "contrastive": (
        {"penalty_alpha": 0.6, "top_k": 4},
        [[35, 29, 35, 27, 10, 16, 28, 43, 25], [60, 1, 8, 31, 29, 45, 47, 52, 17]],
    ),
    "contrastive with a penalty": (
        {"penalty_alpha": 0.4, "top_k": 6, "repetition_penalty": 1.3},
        [[35, 29, 35, 27, 33, 16, 28, 43, 47], [32, 29, 58, 10, 21, 25, 47, 22, 29]],
    ),
    "contrastive that ends": (
        {"penalty_alpha": 0.6, "top_k": 4, "eos_token_id": [8, 9, 10, 40, 41, 42, 43, 44, 45, 46, 47]},
        [[35, 29, 35, 27, 10], [60, 1, 8, 60, 60]],
    ),
    "low layers": ({"dola_layers": "low"}, [[32, 29, 53, 40, 1, 2, 29, 1, 58]]),
    "high layers": ({"dola_layers": "high", "repetition_penalty": 1.2}, [[3, 44, 29, 17, 26, 36, 3, 3, 22]]),
    "one layer": ({"dola_layers": [2]}, [[5, 32, 41, 33, 35, 37, 57, 44, 39], [24, 59, 2, 29, 16, 29, 58, 58, 55]]),
    "groups": (
        {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.8, "num_return_sequences": 4},
        [
            [35, 29, 35, 27, 45, 2, 29, 35, 34],
            [35, 29, 35, 27, 45, 2, 29, 35, 29],
            [35, 29, 35, 49, 43, 51, 35, 39, 38],
            [35, 29, 35, 49, 43, 51, 35, 39, 27],
            [32, 29, 58, 10, 21, 25, 47, 22, 29],
            [32, 29, 58, 10, 58, 47, 29, 58, 58],
            [32, 40, 29, 39, 16, 29, 58, 6, 21],
            [32, 40, 29, 39, 16, 29, 58, 32, 2],
        ],
    ),
    "groups of one": (
        {"num_beams": 3, "num_beam_groups": 3, "diversity_penalty": 2.0, "num_return_sequences": 3},
        [
            [35, 29, 35, 27, 33, 16, 28, 43, 47],
            [55, 35, 49, 29, 19, 28, 29, 6, 39],
            [33, 15, 44, 2, 35, 51, 47, 56, 17],
            [32, 29, 58, 10, 21, 25, 47, 22, 29],
            [60, 1, 8, 43, 41, 22, 29, 38, 10],
            [24, 34, 29, 22, 29, 11, 59, 3, 40],
        ],
    ),
    "groups that end": (
        {
            "num_beams": 6,
            "num_beam_groups": 2,
            "diversity_penalty": 0.5,
            "num_return_sequences": 3,
            "eos_token_id": 9,
            "length_penalty": 2.0,
        },
        [
            [35, 29, 35, 27, 45, 2, 29, 35, 34],
            [35, 29, 35, 27, 45, 2, 29, 35, 29],
            [35, 29, 35, 27, 33, 16, 28, 49, 29],
            [32, 29, 58, 10, 21, 25, 47, 22, 29],
            [60, 46, 29, 16, 40, 58, 45, 59, 31],
            [32, 29, 58, 10, 58, 47, 29, 58, 58],
        ],
    ),
    "groups that end early": (
        {
            "num_beams": 4,
            "num_beam_groups": 2,
            "diversity_penalty": 1.5,
            "num_return_sequences": 2,
            "eos_token_id": 9,
            "early_stopping": True,
            "length_penalty": 0.5,
        },
        [
            [35, 29, 35, 27, 45, 2, 29, 35, 34],
            [35, 29, 35, 27, 45, 2, 29, 35, 29],
            [32, 29, 58, 10, 21, 25, 47, 22, 29],
            [32, 29, 58, 10, 58, 47, 29, 58, 58],
        ],
    ),
}


def net() -> Any:
    return model("grouped", num_hidden_layers=5, initializer_range=0.3)


@pytest.mark.parametrize("case", WRITTEN)
def test_searches_write_what_they_wrote_there(case: str) -> None:
    settings, expected = WRITTEN[case]
    ids, mask = (IDS[1:], MASK[1:]) if "layers" in case else (IDS, MASK)
    ways: list[dict[str, Any]] = [{}, {"cache_implementation": "static"}, {"prefill_chunk_size": 2}]
    if "penalty_alpha" in settings:
        ways.append({"low_memory": True})
    for way in ways:
        found = generate(
            net(),
            votive.tensor(ids),
            attention_mask=votive.tensor(mask),
            max_new_tokens=9,
            pad_token_id=60,
            **settings,
            **way,
        )
        assert found[:, 6:].tolist() == expected


def test_contrastive_search_streams_and_gives_what_it_saw() -> None:
    ask: dict[str, Any] = {"penalty_alpha": 0.6, "top_k": 4, "max_new_tokens": 6}
    whole = generate(
        net(), [PROMPT], **ask, return_dict_in_generate=True, output_logits=True, output_hidden_states=True
    )
    again = generate(net(), whole.sequences[:, :-1], max_new_tokens=1, return_dict_in_generate=True, output_logits=True)
    assert votive.allclose(whole.logits[-1], again.logits[0], atol=1e-4)
    assert [h[-1].shape[1] for h in whole.hidden_states] == [len(PROMPT), 1, 1, 1, 1, 1]
    tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
    events = list(stream(net(), tok, [PROMPT], **ask))
    assert [e.token for e in events] == whole.sequences[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty_alpha": 0.5, "do_sample": True}, "leave out do_sample"),
        ({"penalty_alpha": 0.5, "top_k": 1}, "top_k of at least 2"),
        ({"penalty_alpha": 0.5, "use_cache": False}, "and a cache"),
        ({"low_memory": True}, "set penalty_alpha too"),
        ({"dola_layers": "low", "num_beams": 2}, "leave out num_beams"),
        ({"dola_layers": [7]}, "none of the layers 0..4"),
        ({"dola_layers": "middle"}, "'low', 'high' or a list"),
        ({"num_beams": 4, "num_beam_groups": 2}, "needs a diversity_penalty above 0"),
        ({"num_beams": 4, "num_beam_groups": 3, "diversity_penalty": 1.0}, "cannot be divided"),
        ({"num_beam_groups": 2, "diversity_penalty": 1.0}, "groups of num_beams"),
        ({"diversity_penalty": 1.0, "num_beams": 2}, "set num_beam_groups too"),
        ({"num_beams": 2, "num_beam_groups": 2, "diversity_penalty": 1.0, "do_sample": True}, "not drawn"),
        ({"compile": True, "dola_layers": "low"}, "which look inside"),
        ({"force_words_ids": [[1]]}, "use regex="),
        ({"use_mtp": True}, "give an assistant_model"),
        ({"max_cache_len": 50}, "room of a static cache"),
        ({"guidance_scale": 1.5, "num_beams": 2}, "decoders without beams"),
        (
            {"guidance_scale": 1.5, "input_ids": None, "inputs_embeds": votive.ones(1, 2, 32)},
            "give negative_prompt_ids",
        ),
        ({"token_healing": True}, "pass tokenizer="),
        ({"regex": "a"}, "regex needs the tokenizer"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(net(), **{"input_ids": [PROMPT], "max_new_tokens": 3, **settings})
