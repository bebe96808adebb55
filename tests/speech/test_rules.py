"""Points in time, the init_tokens of texts, cuts between segments, and files of subtitles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.generation import GenerationConfig
from votive.speech import (
    LANGUAGES,
    Segment,
    Transcript,
    Vocabulary,
    WhisperTimeStampLogitsProcessor,
    Word,
    language_code,
)
from votive.speech.init_tokens import init_tokens
from votive.speech.segments import split_segments

# Words 0..4, the end 5, no times 6, times 7..11.
SETTINGS = {"no_timestamps_token_id": 6, "eos_token_id": 5}


def allowed(ids: list[int], scores: list[float] | None = None, **more: Any) -> list[int]:
    """Tokens that may follow a beginning of two tokens and `ids`."""
    rules = WhisperTimeStampLogitsProcessor(GenerationConfig.from_dict({**SETTINGS, **more}), 2)
    # Words are likelier than all times together, so that only the rules forbid them.
    given = [9.0] * 7 + [0.0] * 5 if scores is None else scores
    found = rules(votive.tensor([[0, 1, *ids]]), votive.tensor([given]))[0]
    return [i for i, v in enumerate(found.tolist()) if v > -1e30]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], [7, 8, 9, 10, 11]),  # a text begins with a time
        ([8], [0, 1, 2, 3, 4, 5]),  # then something is said
        ([8, 1], [0, 1, 2, 3, 4, 5, 9, 10, 11]),  # which takes time
        ([8, 1, 10], [5, 10, 11]),  # one that ends a part begins the next, or it ends
        ([8, 1, 10, 10], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_times_come_in_pairs_and_never_fall(ids: list[int], expected: list[int]) -> None:
    assert allowed(ids) == expected


def test_the_first_time_may_be_bounded() -> None:
    assert allowed([], max_initial_timestamp_index=1) == [7, 8]


def test_times_that_are_likelier_together_than_any_word_come() -> None:
    scores = [1.0] * 7 + [0.0] * 5  # log(4) > 1
    assert allowed([7, 1], scores) == [8, 9, 10, 11]


@pytest.mark.parity
def test_rules_are_those_of_transformers() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor as Theirs

    config = transformers.GenerationConfig(**SETTINGS)
    config.no_timestamps_token_id = 6
    config.max_initial_timestamp_index = 2
    told = GenerationConfig.from_dict({**SETTINGS, "max_initial_timestamp_index": 2})
    for seed in range(60):
        torch.manual_seed(seed)
        length = int(torch.randint(2, 9, ()))
        ids, scores = torch.randint(0, 12, (4, length)), 3 * torch.randn(4, 12)
        expected = Theirs(config, 2)(ids, scores).tolist()
        ours = WhisperTimeStampLogitsProcessor(told, 2)
        got = ours(votive.tensor(ids.numpy()), votive.tensor(scores.numpy()))
        assert votive.allclose(got, votive.tensor(expected)), seed


def test_a_text_parts_at_pairs_of_times() -> None:
    found = split_segments([100, 7, 150, 150, 8, 9, 170, 170, 3], 100, 3000)
    assert found.parts == [(0, 3, 0, 50), (3, 7, 50, 70)]
    assert (found.advance, found.whole, found.paired) == (140, False, True)


def test_a_single_time_at_the_end_says_that_nothing_follows() -> None:
    found = split_segments([100, 7, 150, 150, 8, 199], 100, 3000)
    assert (found.parts[-1], found.advance, found.whole) == ((3, 6, 50, 99), 3000, True)
    one = split_segments([100, 7, 160], 100, 3000)
    assert (one.parts, one.advance) == ([(0, 3, 0, 60)], 3000)


def test_a_text_without_times_lasts_for_the_window() -> None:
    assert split_segments([5, 6], 100, 1101).parts == [(0, 2, 0, 550.5)]
    assert split_segments([], 100, 200).parts == [(0, 0, 0, 100.0)]


def test_vocabularies_of_published_models() -> None:
    multi, third, english = (Vocabulary.of_size(n) for n in (51865, 51866, 51864))
    assert (multi.start, multi.no_speech, multi.first_time) == (50258, 50362, 50364)
    assert (third.languages["yue"], third.first_time) == (50358, 50365)
    assert (english.end, english.start, english.multilingual) == (50256, 50257, False)
    assert len(LANGUAGES) == 100
    with pytest.raises(ValueError, match="no known Whisper"):
        Vocabulary.of_size(1000)


def test_what_a_model_tells_of_its_tokens_goes_before_what_its_size_tells() -> None:
    class Model:
        config = votive.models.WhisperConfig.of_size("base")
        generation_config = GenerationConfig.from_dict({"lang_to_id": {"<|en|>": 50259}})

    found = Vocabulary.of(Model)
    assert (found.languages, found.previous, found.no_timestamps) == ({"en": 50259}, 50361, 50363)
    assert found.tasks == {"translate": 50358, "transcribe": 50359}
    own = votive.models.WhisperConfig(vocab_size=90, decoder_start_token_id=51, eos_token_id=50)
    Model.config = own
    alone = Vocabulary.of(Model)
    assert (alone.start, alone.end, alone.previous) == (51, 50, None)
    with pytest.raises(ValueError, match="no_timestamps_token_id"):
        _ = alone.first_time


def test_languages_are_known_by_code_name_and_token() -> None:
    assert [language_code(x) for x in ("de", "German", "<|de|>", "flemish")] == ["de"] * 3 + ["nl"]
    with pytest.raises(ValueError, match="Did you mean 'german'"):
        language_code("germn")
    with pytest.raises(ValueError, match="not one of this model's"):
        Vocabulary.of_size(51865).language("yue")


def test_texts_begin_with_language_and_task() -> None:
    tokens = Vocabulary.of_size(51865)
    told = init_tokens(tokens, 2, language=["en", "de"], task="translate", timestamps=False)
    assert told == [[50258, 50259, 50358, 50363], [50258, 50261, 50358, 50363]]
    forced = init_tokens(
        tokens, 1, language=None, task=None, timestamps=True, forced=[[1, None], [2, 50359]], detected=lambda: [50260]
    )
    assert forced == [[50258, 50260, 50359]]
    english = Vocabulary.of_size(51864)
    assert init_tokens(english, 1, language=None, task=None, timestamps=True) == [[50257]]
    with pytest.raises(ValueError, match="English-only"):
        init_tokens(english, 1, language="de", task=None, timestamps=True)
    with pytest.raises(ValueError, match="one for each"):
        init_tokens(tokens, 3, language=["en"], task=None, timestamps=True)
    with pytest.raises(ValueError, match="'translate'"):
        init_tokens(tokens, 1, language="en", task="sing", timestamps=True)


def transcript() -> Transcript:
    first = Segment(0, 0, 0.0, 1.25, " Hello, --> you.", [1], words=[Word(" Hello", 0, 1, 0.9)])
    empty = Segment(1, 0, 1.25, 1.25, "")
    last = Segment(2, 300, 3600.0, 3661.5, " Bye.\n", [2])
    return Transcript(" Hello, --> you. Bye.", [first, empty, last], "en", 3661.5, 0.5)


def test_formats_of_files() -> None:
    found = transcript()
    assert found.format("txt") == "Hello, --> you.\nBye.\n"
    assert found.format("srt") == (
        "1\n00:00:00,000 --> 00:00:01,250\nHello, -> you.\n\n2\n01:00:00,000 --> 01:01:01,500\nBye.\n\n"
    )
    assert found.format("vtt") == (
        "WEBVTT\n\n00:00.000 --> 00:01.250\nHello, -> you.\n\n01:00:00.000 --> 01:01:01.500\nBye.\n"
    )
    assert found.format("tsv") == "start\tend\ttext\n0\t1250\tHello, -> you.\n3600000\t3661500\tBye.\n"
    told = json.loads(found.format("json"))
    assert told["segments"][0]["words"][0]["probability"] == 0.9
    assert "words" not in told["segments"][2]
    with pytest.raises(ValueError, match="none of"):
        found.format("doc")


def test_the_name_of_a_file_tells_its_format(tmp_path: Path) -> None:
    transcript().save(tmp_path / "a.srt")
    transcript().save(tmp_path / "b.out", "txt")
    assert (tmp_path / "a.srt").read_text().startswith("1\n00:00:00,000")
    assert (tmp_path / "b.out").read_text() == "Hello, --> you.\nBye.\n"
