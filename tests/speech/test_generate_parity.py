"""`generate` of Whisper gives the tokens that transformers gives, from the same random weights."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from tests import tiny_sizes

from ..models.compare import arrays, both, pair, torch, transformers

pytestmark = pytest.mark.parity
# Words 0..49, the end, the start, two languages, tasks, signs, and 22 points in time.
CONFIG = {
    "vocab_size": 82,
    **tiny_sizes.whisper(32, layers=(2, 2), heads=4),
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_source_positions": 20,
    "max_target_positions": 40,
    "decoder_start_token_id": 51,
    "pad_token_id": 50,
    "eos_token_id": 50,
    "bos_token_id": 50,
    "median_filter_width": 3,
    "tie_word_embeddings": False,
}
TOLD = {
    "lang_to_id": {"<|en|>": 52, "<|de|>": 53},
    "task_to_id": {"translate": 54, "transcribe": 55},
    "is_multilingual": True,
    "no_timestamps_token_id": 60,
    "prev_sot_token_id": 57,
    "alignment_heads": [[0, 1], [1, 0], [1, 3]],
    "suppress_tokens": [3, 51, 57, 58],
    "begin_suppress_tokens": [4, 50],
}


@cache
def pair_of(seed: int = 0) -> tuple[Any, Any]:
    theirs = (transformers.WhisperForConditionalGeneration, transformers.WhisperConfig(**CONFIG))
    ours: Any = models.WhisperForConditionalGeneration
    reference, model = pair(theirs, ours, seed=seed, gain=4.0)
    with torch.no_grad():
        # So that texts differ by what is heard, and go on: what is near its start says nothing.
        reference.proj_out.weight.normal_(0.0, 0.5)
        for layer in reference.model.decoder.layers:
            layer.encoder_attn.out_proj.weight.mul_(10.0)
            layer.encoder_attn.q_proj.weight.mul_(8.0)
        reference.model.decoder.embed_tokens.weight.normal_()
        reference.model.decoder.embed_positions.weight.normal_()
    model.load_weights(arrays(reference.state_dict()))
    for name, value in TOLD.items():
        setattr(reference.generation_config, name, value)
    settings = model.generation_config
    settings.suppress_tokens = TOLD["suppress_tokens"]
    settings.begin_suppress_tokens = TOLD["begin_suppress_tokens"]
    settings.extra.update({k: v for k, v in TOLD.items() if "suppress" not in k})
    return reference, model


def mels(rows: int = 3, frames: int = 40, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return both((2 * rng.standard_normal((rows, 80, frames))).astype(np.float32))


def same(seed: int = 0, rows: int = 3, frames: int = 40, **settings: Any) -> tuple[Any, Any]:
    """What both give; settings that are arrays are given to each in its own kind."""
    reference, model = pair_of(seed)
    t, v = mels(rows, frames)
    if not settings.get("return_timestamps"):
        # Without rules they may come in pairs at 0.0, and transformers begins there again, forever.
        settings["suppress_tokens"] = [*TOLD["suppress_tokens"], *range(61, 82)]  # type: ignore[misc]
    told = {k: torch.tensor(x) if isinstance(x, np.ndarray) else x for k, x in settings.items()}
    ours = {k: votive.tensor(x) if isinstance(x, np.ndarray) else x for k, x in settings.items()}
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference.generate(t, **told)
    return expected, model.generate(v, **ours)


def equal(got: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        got, expected = got["sequences"], expected["sequences"]
    assert got.tolist() == expected.tolist()
    assert len(set(map(tuple, got.tolist()))) > 1 or len(got) == 1, "all rows are alike"


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("timestamps", [False, True])
def test_one_window_is_written_alike(seed: int, beams: int, timestamps: bool) -> None:
    expected, got = same(
        seed, language="de", task="translate", return_timestamps=timestamps, num_beams=beams, max_new_tokens=20
    )
    equal(got, expected)


def test_languages_are_detected_alike() -> None:
    for seed in range(3):
        reference, model = pair_of(seed)
        t, v = mels(6)
        expected = reference.detect_language(t).tolist()
        assert model.detect_language(v).tolist() == expected
        equal(*same(seed, rows=6, task="transcribe", max_new_tokens=12)[::-1])


def test_a_language_for_each_recording() -> None:
    equal(*same(language=["en", "german", "<|de|>"], max_new_tokens=10)[::-1])


@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("carry", [False, True])
def test_a_long_recording_is_written_alike(beams: int, carry: bool) -> None:
    for seed in range(3):
        expected, got = same(
            seed,
            rows=1,
            frames=150,
            language="en",
            return_timestamps=True,
            num_beams=beams,
            condition_on_prev_tokens=carry,
            return_segments=True,
            max_new_tokens=12,
        )
        equal(got, expected)
        theirs, ours = expected["segments"][0], got["segments"][0]
        assert len(ours) == len(theirs) > 3
        for a, b in zip(ours, theirs, strict=True):
            assert a["tokens"] == b["tokens"].tolist()
            assert a["start"] == pytest.approx(float(b["start"]))
            # It rounds the 15 positions of a last window to 14.
            assert a["end"] == pytest.approx(float(b["end"]), abs=0.0201)


def test_long_recordings_of_several_lengths_are_written_alike() -> None:
    mask = np.arange(130) < np.array([[130], [60], [95]])
    for carry in (False, True):
        expected, got = same(
            frames=130,
            language="en",
            return_timestamps=True,
            attention_mask=mask.astype(int),
            condition_on_prev_tokens=carry,
            max_new_tokens=10,
        )
        equal(got, expected)


@pytest.mark.parametrize("logprob", [-0.5, -3.0])
def test_windows_in_which_nothing_is_said_are_skipped_alike(logprob: float) -> None:
    for seed in range(3):
        expected, got = same(
            seed,
            rows=1,
            frames=120,
            language="en",
            return_timestamps=True,
            logprob_threshold=logprob,
            no_speech_threshold=1e-3,
            temperature=(0.0,),
            compression_ratio_threshold=1.1,
            max_new_tokens=10,
        )
        equal(got, expected)


def test_a_prompt_is_told_alike() -> None:
    for always in (False, True):
        expected, got = same(
            rows=1,
            frames=100,
            language="en",
            return_timestamps=True,
            prompt_ids=np.array([57, 9, 8, 7]),
            condition_on_prev_tokens=always,
            prompt_condition_type="all-segments" if always else "first-segment",
            max_new_tokens=8,
        )
        equal(got, expected)


def test_times_of_tokens_agree() -> None:
    mask = (np.arange(90) < np.array([[90], [50], [75]])).astype(int)
    long = {"attention_mask": mask, "frames": 90}
    different = set()
    for seed, told in ((1, {}), (1, long), (2, long)):
        expected, got = same(
            seed,
            language="en",
            return_timestamps=True,
            return_token_timestamps=True,
            return_segments=True,
            max_new_tokens=12,
            **told,
        )
        equal(got, expected)
        for ours, theirs in zip(got["segments"], expected["segments"], strict=True):
            # Its tensor of all times counts from the window; ours is that of its segments.
            a = [t for s in ours for t in s["token_timestamps"]]
            b = [t for s in theirs for t in s["token_timestamps"].tolist()]
            assert a == pytest.approx(b, abs=1e-5)
            different |= set(a)
    assert len(different) > 10


def test_the_whole_record_of_one_window_agrees() -> None:
    expected, got = same(language="en", max_new_tokens=6, return_dict_in_generate=True, num_beams=2)
    equal(got, expected)


def test_tokens_that_never_come_may_be_told_by_the_configuration() -> None:
    _, model = pair_of(1)
    _, v = mels()
    told = {"language": "en", "max_new_tokens": 6}
    plain = model.generate(v, **told)
    first = plain[0, 0].item()
    settings, config = model.generation_config, model.config
    before = settings.begin_suppress_tokens, config.begin_suppress_tokens
    try:
        settings.begin_suppress_tokens, config.begin_suppress_tokens = None, [first, 50]
        assert model.generate(v, **told)[0, 0].item() != first
    finally:
        settings.begin_suppress_tokens, config.begin_suppress_tokens = before


def test_sampling_is_repeated_by_its_seed() -> None:
    _, model = pair_of()
    _, v = mels()
    told = {"language": "en", "temperature": 1.0, "max_new_tokens": 12}
    a, b, c = (model.generate(v, seed=seed, **told).tolist() for seed in (1, 1, 2))
    assert a == b != c
