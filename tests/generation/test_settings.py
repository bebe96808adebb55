"""Settings: where they come from, and what is said about those that make no sense."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.generation import (
    FrequencyPenaltyLogitsProcessor,
    GenerationConfig,
    LogitsProcessor,
    PresencePenaltyLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    generate,
)

from .tiny import PROMPT, model


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0, "do_sample": True}, r"temperature must be .* set do_sample=False"),
        ({"temperature": -1.0, "do_sample": True}, "temperature must be a number above 0"),
        ({"temperature": math.nan, "do_sample": True}, "temperature must be"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"top_k": -1}, "top_k must be an integer of at least 0"),
        ({"top_k": 2.5}, "top_k must be"),
        ({"min_p": 2.0}, "min_p must be"),
        ({"typical_p": 0.0}, "typical_p must be"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be"),
        ({"frequency_penalty": math.inf}, "frequency_penalty must be a finite number"),
        ({"no_repeat_ngram_size": -2}, "no_repeat_ngram_size must be"),
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer of at least 1"),
        ({"max_new_tokens": -5}, "max_new_tokens must be"),
        ({"num_beams": 0}, "num_beams must be"),
        ({"num_return_sequences": 2}, "greedy search has one result"),
        ({"early_stopping": "soon"}, "True, False or 'never'"),
        ({"eos_token_id": [-1]}, "eos_token_id must be"),
        ({"cache_implementation": "magic"}, "one of auto, dynamic, static, sliding"),
        ({"prefill_chunk_size": 0}, "prefill_chunk_size must be"),
        ({"stop_strings": [""]}, "none empty"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"do_sample": 1}, "do_sample must be True or False"),
        ({"max_length": 3}, r"the prompt has 7 tokens and max_length=3"),
        ({"temprature": 1.0}, r"no setting 'temprature'\. Did you mean 'temperature'"),
        ({"xyz": 1}, "there is no setting 'xyz'"),
        ({"assistant_early_exit": 2}, "'assistant_early_exit' of transformers is not supported; give a small"),
        ({"use_cache": False, "past_key_values": votive.nn.DynamicCache()}, "use_cache is False"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(model(), [PROMPT], **settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the prompt is empty"),
        ([[]], "the prompt is empty"),
        (votive.zeros(1, 0, dtype=votive.int64), "with at least one of each"),
        (votive.tensor([1, 2]), r"one text is input_ids\.unsqueeze\(0\)"),
        (None, "give input_ids, or a bos_token_id"),
    ],
)
def test_a_prompt_that_is_none_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(model(bos_token_id=None), given)


def test_a_prompt_of_numbers_with_a_point_is_refused() -> None:
    with pytest.raises(TypeError, match="must be integers"):
        generate(model(), votive.ones(1, 3))


def test_padding_on_the_right_is_refused() -> None:
    ids = votive.tensor([[1, 2, 0], [1, 2, 3]])
    with pytest.raises(ValueError, match="padded on the right"):
        generate(model(), ids, attention_mask=votive.tensor([[1, 1, 0], [1, 1, 1]]))
    with pytest.raises(ValueError, match="padded on the right"):
        generate(model(), ids, pad_token_id=0)
    with pytest.raises(ValueError, match="all padding"):
        generate(model(), ids, attention_mask=votive.tensor([[0, 0, 0], [1, 1, 1]]))
    with pytest.raises(ValueError, match="the shape of input_ids"):
        generate(model(), ids, attention_mask=votive.tensor([[1, 1]]))


def test_a_text_can_begin_with_nothing_but_a_token() -> None:
    found = generate(model(), bos_token_id=5, max_new_tokens=3)
    assert found.tolist() == generate(model(), [[5]], max_new_tokens=3).tolist()


def test_twenty_tokens_follow_when_nothing_is_said() -> None:
    assert generate(model(), [PROMPT]).shape == (1, len(PROMPT) + 20)
    assert generate(model(max_position_embeddings=16), [PROMPT]).shape == (1, 16)


def test_max_length_counts_the_prompt_and_max_new_tokens_comes_first() -> None:
    net = model()
    assert generate(net, [PROMPT], max_length=10).shape == (1, 10)
    assert generate(net, [PROMPT], max_length=10, max_new_tokens=8).shape == (1, 15)


def test_the_call_comes_before_the_configuration_before_the_model() -> None:
    net = model()
    net.generation_config = {"max_new_tokens": 3, "transformers_version": "5.0", "top_k": 4}
    config = GenerationConfig(max_new_tokens=5)
    assert generate(net, [PROMPT]).shape == (1, 10)
    assert generate(net, [PROMPT], generation_config=config).shape == (1, 12)
    assert generate(net, [PROMPT], generation_config=config, max_new_tokens=6).shape == (1, 13)
    free = generate(net, [PROMPT], max_new_tokens=8)[0].tolist()
    net.config.eos_token_id = free[9]
    assert generate(net, [PROMPT], max_new_tokens=8)[0].tolist() == free[:10]
    net.generation_config = {"eos_token_id": [free[8], 60]}
    assert generate(net, [PROMPT], max_new_tokens=8)[0].tolist() == free[:9]


def test_the_models_settings_are_changed_in_place_and_saved(tmp_path: Path) -> None:
    net = model()
    net.generation_config.max_new_tokens = 3
    assert generate(net, [PROMPT]).shape == (1, 10)
    net.generation_config = {"max_new_tokens": 4, "made_by": "me"}
    assert net.generation_config.max_new_tokens == 4
    net.generation_config.eos_token_id = [60, 61]
    net.save_pretrained(tmp_path)
    again = type(net).from_pretrained(tmp_path).generation_config
    assert again == GenerationConfig(max_new_tokens=4, eos_token_id=[60, 61], extra={"made_by": "me"})
    with pytest.raises(TypeError, match="GenerationConfig or a dict, got int"):
        net.generation_config = 5


def test_a_dict_is_no_configuration() -> None:
    with pytest.raises(TypeError, match=r"GenerationConfig\.from_dict"):
        generate(model(), [PROMPT], generation_config={"top_k": 5})  # type: ignore[arg-type]


def test_a_file_that_asks_for_what_is_not_supported_is_refused() -> None:
    net = model()
    net.generation_config = {"use_mtp": True, "num_beam_groups": 1, "guidance_scale": None, "is_assistant": False}
    with pytest.raises(
        ValueError, match=r"use_mtp=True of the generation configuration is not supported.*extra\['use_mtp'\]"
    ):
        generate(net, [PROMPT], max_new_tokens=2)
    del net.generation_config.extra["use_mtp"]
    assert generate(net, [PROMPT], max_new_tokens=2, use_mtp=False).shape == (1, len(PROMPT) + 2)


def test_what_is_returned_may_be_a_setting_of_the_model() -> None:
    net = model()
    net.generation_config = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}
    found = generate(net, [PROMPT], max_new_tokens=2)
    assert len(found.scores) == len(found.logits) == 2
    assert generate(net, [PROMPT], max_new_tokens=2, return_dict_in_generate=False).shape == (1, len(PROMPT) + 2)


def test_offloaded_caches_are_those_of_the_cpu() -> None:
    for kind in ("offloaded", "offloaded_static"):
        found = generate(model(), [PROMPT], max_new_tokens=4, cache_implementation=kind)
        assert found.tolist() == generate(model(), [PROMPT], max_new_tokens=4).tolist()


def test_settings_of_sampling_without_sampling_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="temperature, top_p has no effect without do_sample"):
        generate(model(), [PROMPT], max_new_tokens=2, temperature=0.5, top_p=0.9)
    net = model()
    net.generation_config = {"temperature": 0.6}  # a file may say so for those who sample
    generate(net, [PROMPT], max_new_tokens=2)


def test_a_configuration_comes_back_from_its_dict() -> None:
    config = GenerationConfig(top_k=3, eos_token_id=[1, 2], stop_strings=["a"])
    again = GenerationConfig.from_dict({**config.to_dict(), "_from_model_config": True})
    assert again.updated() == config.updated().over(again)
    assert again.extra == {"_from_model_config": True}
    with pytest.raises(ValueError, match="no setting"):
        config.updated(tok_k=2)


def test_a_text_longer_than_the_model_was_made_for_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="longer than the 9 positions"):
        generate(model(max_position_embeddings=9), [PROMPT], max_new_tokens=6)
    generate(model(max_position_embeddings=9), [PROMPT], max_new_tokens=2)


def test_own_processors_run_before_those_of_sampling() -> None:
    seen: list[Any] = []

    class Look(LogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            seen.append((input_ids.tolist(), scores.isfinite().sum().item()))
            return scores

    found = generate(
        model(),
        [PROMPT],
        max_new_tokens=2,
        do_sample=True,
        top_k=3,
        seed=0,
        suppress_tokens=[0, 1],
        logits_processor=[Look()],
    )
    assert [ids for ids, _ in seen] == [[PROMPT], [found[0, :-1].tolist()]]
    assert [count for _, count in seen] == [59, 59]


def test_own_criteria_end_a_text() -> None:
    net = model()
    out = generate(
        net,
        [PROMPT],
        max_new_tokens=9,
        stopping_criteria=lambda ids, scores: ids.shape[1] >= 10,
        return_dict_in_generate=True,
    )
    assert out.sequences.shape == (1, 10)
    assert out.finish_reasons == ["criteria"]
    free = generate(net, [PROMPT, [3] * 7], max_new_tokens=9)
    rows = generate(
        net,
        [PROMPT, [3] * 7],
        max_new_tokens=9,
        pad_token_id=60,
        stopping_criteria=[lambda ids, scores: votive.tensor([ids.shape[1] == 9, False])],
    )
    assert rows[0].tolist() == free[0, :9].tolist() + [60] * 7
    assert rows[1].tolist() == free[1].tolist()
    with pytest.raises(ValueError, match="set pad_token_id"):
        generate(net, [PROMPT, [3]], stopping_criteria=lambda ids, scores: False)


def test_time_ends_a_text() -> None:
    out = generate(model(), [PROMPT], max_new_tokens=400, max_time=1e-6, return_dict_in_generate=True)
    assert out.sequences.shape == (1, 8)
    assert out.finish_reasons == ["time"]


def test_penalties_and_bans_change_the_text() -> None:
    net = model()
    free = generate(net, [PROMPT], max_new_tokens=30)[0, 7:].tolist()
    assert len(set(free)) < 30
    once = generate(net, [PROMPT], max_new_tokens=30, no_repeat_ngram_size=1)[0].tolist()
    assert len(set(once)) == 37
    banned = generate(net, [PROMPT], max_new_tokens=30, bad_words_ids=[[free[0]], free[1:3]])
    assert free[0] not in banned[0, 7:].tolist()
    for setting in ("frequency_penalty", "presence_penalty"):
        less = generate(net, [PROMPT], max_new_tokens=30, **{setting: 50.0})[0, 7:].tolist()
        assert len(set(less)) > len(set(free))
    eos = free[2]
    longer = generate(net, [PROMPT], max_new_tokens=30, eos_token_id=eos, min_new_tokens=6)
    assert eos not in longer[0, 7:13].tolist()
    last = generate(net, [PROMPT], max_new_tokens=5, forced_eos_token_id=44)
    assert last[0, -1].item() == 44


def test_penalties_that_follow_the_text_are_those_that_count_it_anew() -> None:
    net = model(initializer_range=0.2)
    prompts = [PROMPT, [4, 4, 9]]
    ask: dict[str, Any] = {"max_new_tokens": 40, "pad_token_id": 0}
    followed = generate(net, prompts, repetition_penalty=1.3, presence_penalty=0.2, frequency_penalty=0.1, **ask)
    mask = votive.tensor([[1] * 7, [0] * 4 + [1] * 3])
    own = [
        RepetitionPenaltyLogitsProcessor(1.3, prompt_mask=mask),
        PresencePenaltyLogitsProcessor(0.2, 7),
        FrequencyPenaltyLogitsProcessor(0.1, 7),
    ]
    anew = generate(net, prompts, logits_processor=own, **ask)
    assert followed.tolist() == anew.tolist()
    assert followed.tolist() != generate(net, prompts, **ask).tolist()
    # The caller's own are as they were.
    assert generate(net, prompts, logits_processor=own, **ask).tolist() == anew.tolist()


def test_penalties_leave_padding_aside() -> None:
    net = model()
    ask: dict[str, Any] = {"max_new_tokens": 10, "repetition_penalty": 3.0, "no_repeat_ngram_size": 2}
    batch = generate(net, [PROMPT, [0, 4]], pad_token_id=0, eos_token_id=0, **ask)
    alone = generate(net, [[0, 4]], pad_token_id=0, eos_token_id=0, **ask)
    assert batch[1, 5 : 5 + alone.shape[1]].tolist() == alone[0].tolist()


def test_the_model_can_be_asked_itself() -> None:
    net = model()
    assert net.generate(votive.tensor([PROMPT]), max_new_tokens=3).shape == (1, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": [1, 2]}, r"list of lists of token ids, one per text, got \[1, 2\]"),
        ({"input_ids": "once"}, "got 'once'; a text goes through a tokenizer"),
        ({"input_ids": [[1.5]]}, "list of lists of token ids"),
        ({"input_ids": votive.tensor([[True]])}, "must be integers, got votive.bool"),
        ({"logits_processor": 5}, "logits_processor must be a function or a list of them, got 5"),
        ({"stopping_criteria": [5]}, "stopping_criteria must be a function or a list of them"),
        ({"past_key_values": ()}, "past_key_values must be a cache .* got tuple"),
        ({"streamer": 5}, "streamer needs put and end, got int"),
        ({"assistant_model": 5}, "assistant_model must be a model, got int"),
    ],
)
def test_an_argument_of_another_kind_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        generate(model(), **{"input_ids": [PROMPT], "max_new_tokens": 2, **arguments})


def test_a_mask_may_be_a_list_and_stop_strings_must_be_strings() -> None:
    mask = [[0, 0, *[1] * (len(PROMPT) - 2)]]
    masked = generate(model(), [PROMPT], attention_mask=mask, max_new_tokens=4)
    alone = generate(model(), [PROMPT[2:]], max_new_tokens=4)
    assert masked[0, -4:].tolist() == alone[0, -4:].tolist()
    with pytest.raises(ValueError, match="a string or a list of strings, none empty, got 5"):
        generate(model(), [PROMPT], stop_strings=5)


def test_a_prompt_longer_than_the_model_was_made_for_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="prompt has 7 tokens and the model was made for 4"):
        generate(model(max_position_embeddings=4), [PROMPT], max_new_tokens=2)
