"""Recordings become texts: windows, checks, languages, words; with random weights."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.speech import Segment, Token, Transcriber, load_audio, transcribe
from votive.speech.decoding import Decoder, DecodingOptions
from votive.speech.window import Window

from . import small

# Nothing that random weights say is likely, so what is unlikely counts only where it is tested.
PLAIN: dict[str, Any] = {
    "temperature": 0.0,
    "logprob_threshold": None,
    "no_speech_threshold": None,
    "compression_ratio_threshold": None,
    "sample_len": 8,
}


@pytest.fixture(scope="module")
def transcriber(tmp_path_factory: pytest.TempPathFactory) -> Transcriber:
    return Transcriber.from_pretrained(small.written(tmp_path_factory.mktemp("whisper")))


def test_a_recording_is_heard_from_its_beginning_to_its_end(transcriber: Transcriber) -> None:
    told: list[tuple[float, float]] = []
    seen: list[Segment] = []
    found = transcriber(
        small.sound(2.3), language="en", progress=lambda *a: told.append(a), on_segment=seen.append, **PLAIN
    )
    assert found.duration == pytest.approx(2.3)
    assert (told[0][0], told[-1]) == (0.0, (2.3, 2.3))
    assert len(told) >= 6
    assert all(b[0] >= a[0] for a, b in pairwise(told))
    assert seen == [s for s in found.segments if s.text]
    assert [s.id for s in found.segments] == list(range(len(found.segments)))
    assert all(a.seek <= b.seek for a, b in pairwise(found.segments))
    assert found.text == "".join(s.text for s in found.segments)
    assert found.language == "en"
    assert found.language_probability is None


def test_windows_are_told_what_was_said_before(transcriber: Transcriber, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts: list[list[int]] = []
    search = Window.search

    def watched(self: Any, ids: list[list[int]], *args: Any, **kwargs: Any) -> Any:
        prompts.append(ids[0])
        return search(self, ids, *args, **kwargs)

    monkeypatch.setattr(Window, "search", watched)
    prefix = [small.START, small.ENGLISH, small.TRANSCRIBE]
    found = transcriber(small.sound(1.5), language="en", initial_prompt="the cat", **PLAIN)
    first = transcriber.tokenizer.encode(" the cat", add_special_tokens=False)
    assert prompts[0] == [small.PREVIOUS, *first, *prefix]
    assert prompts[1][-3:] == prefix
    said = [t for s in found.segments if s.seek == 0 for t in s.tokens]
    assert prompts[1][:-3] == [small.PREVIOUS, *[*first, *said][-23:]]
    prompts.clear()
    transcriber(small.sound(1.5), language="en", condition_on_previous_text=False, **PLAIN)
    assert {tuple(p) for p in prompts} == {tuple(prefix)}
    prompts.clear()
    transcriber(small.sound(1.5), language="en", initial_prompt="the cat", carry_initial_prompt=True, **PLAIN)
    assert all(p[: 1 + len(first)] == [small.PREVIOUS, *first] for p in prompts)
    # No prompt leaves less than half of the positions for what is written.
    assert max(map(len, prompts)) <= 24 + 3


def test_bad_texts_are_tried_again_warmer(transcriber: Transcriber) -> None:
    told = {**PLAIN, "temperature": (0.0, 0.5, 1.0), "seed": 3}
    calm = transcriber(small.sound(0.4), language="en", **told)
    assert {s.temperature for s in calm.segments} == {0.0}
    warm = transcriber(small.sound(0.4), language="en", **{**told, "logprob_threshold": 0.0})
    assert {s.temperature for s in warm.segments} == {1.0}
    again = transcriber(small.sound(0.4), language="en", **{**told, "logprob_threshold": 0.0})
    assert again.text == warm.text
    dense = transcriber(small.sound(0.4), language="en", **{**told, "compression_ratio_threshold": 0.0})
    assert {s.temperature for s in dense.segments} == {1.0}


def test_the_best_of_several_draws_counts(transcriber: Transcriber) -> None:
    told = {**PLAIN, "temperature": 1.0, "language": "en", "without_timestamps": True}
    one = [transcriber(small.sound(0.4), seed=i, **told).segments[0].avg_logprob for i in range(4)]
    best = transcriber(small.sound(0.4), seed=0, best_of=8, **told).segments[0].avg_logprob
    assert best > np.mean(one)


def test_windows_in_which_nothing_is_said_are_skipped(transcriber: Transcriber) -> None:
    told = {**PLAIN, "no_speech_threshold": 0.0, "logprob_threshold": 0.0}
    found = transcriber(small.sound(1.0), language="en", **told)
    assert (found.text, found.segments) == ("", [])
    # A text that is likely is kept, however likely silence is.
    kept = transcriber(small.sound(1.0), language="en", **{**told, "logprob_threshold": -99.0})
    assert kept.segments


def test_odds_of_silence_are_those_after_the_start(transcriber: Transcriber) -> None:
    x = small.sound(0.4)
    found = transcriber(x, language="en", **PLAIN).segments[0]
    model = transcriber.model
    mels = transcriber.mels(x)[:, :, :50]
    with votive.no_grad():
        logits = model(mels, decoder_input_ids=votive.tensor([[small.START]])).logits[0, -1]
    assert found.no_speech_prob == pytest.approx(logits.softmax(-1)[small.NO_SPEECH].item(), 1e-4)


def test_mean_log_probabilities_are_those_of_the_tokens(transcriber: Transcriber) -> None:
    found = transcriber(small.sound(0.4), language="en", **{**PLAIN, "without_timestamps": True})
    segment = found.segments[0]
    prefix = [small.START, small.ENGLISH, small.TRANSCRIBE, small.NO_TIMES]
    ids = [*prefix, *segment.tokens]
    with votive.no_grad():
        mels = transcriber.mels(small.sound(0.4))[:, :, :50]
        logits = transcriber.model(mels, decoder_input_ids=votive.tensor([ids])).logits[0]
    decoder = Decoder(transcriber.model, transcriber.tokenizer, transcriber.vocabulary, DecodingOptions(**PLAIN))
    logits[:, decoder.never] = -np.inf
    logits[len(prefix) - 1, decoder.first_never] = -np.inf
    logs = logits.log_softmax(-1)[len(prefix) - 1 : -1]
    total = sum(logs[i, t].item() for i, t in enumerate(segment.tokens))
    assert len(segment.tokens) == 8  # the limit, so no end is counted
    assert segment.avg_logprob == pytest.approx(total / 9, rel=1e-4)


def test_beams_find_what_is_at_least_as_likely(transcriber: Transcriber) -> None:
    told = {**PLAIN, "language": "en", "without_timestamps": True}
    greedy = transcriber(small.sound(0.4), **told).segments[0]
    beams = transcriber(small.sound(0.4), beam_size=4, **told).segments[0]
    assert beams.avg_logprob >= greedy.avg_logprob - 1e-6


def test_the_language_is_detected_in_the_first_window(transcriber: Transcriber) -> None:
    odds = transcriber.detect_language(small.sound(0.7))
    assert set(odds) == {"en", "de"}
    assert sum(odds.values()) == pytest.approx(1.0)
    assert list(odds.values()) == sorted(odds.values(), reverse=True)
    found = transcriber(small.sound(0.7), **PLAIN)
    assert found.language == next(iter(odds))
    assert found.language_probability == pytest.approx(odds[found.language])


def test_only_clips_are_heard(transcriber: Transcriber) -> None:
    found = transcriber(small.sound(3.0), language="en", clip_timestamps=[0.5, 0.9, 2.0], **PLAIN)
    seeks = {s.seek for s in found.segments}
    assert min(seeks) == 50
    assert all(50 <= s < 90 or s >= 200 for s in seeks)
    with pytest.raises(ValueError, match="rise"):
        transcriber(small.sound(1.0), clip_timestamps=[0.5, 0.2], **PLAIN)


def test_words_have_times_within_their_recording(transcriber: Transcriber) -> None:
    found = transcriber(small.sound(1.2), language="en", word_timestamps=True, **PLAIN)
    words = found.words
    assert len(words) >= 3
    assert all(0 <= w.start <= w.end <= 1.7 for w in words)
    assert all(0 < w.probability <= 1 for w in words)
    for segment in found.segments:
        if segment.words:
            assert (segment.start, segment.end) == (segment.words[0].start, segment.words[-1].end)
    with pytest.warns(UserWarning, match="translate"):
        transcriber(small.sound(0.4), language="en", task="translate", word_timestamps=True, **PLAIN)


def test_an_empty_recording_has_an_empty_text(transcriber: Transcriber) -> None:
    found = transcriber(votive.zeros(0), **PLAIN)
    assert (found.text, found.segments, found.duration) == ("", [], 0.0)
    assert transcriber(votive.zeros(3), language="en", **PLAIN).duration == pytest.approx(3 / 16000)


def test_wrong_arguments_are_told(transcriber: Transcriber, tmp_path: Path) -> None:
    x = small.sound(0.4)
    with pytest.raises(TypeError, match="no option 'beams'"):
        transcriber(x, beams=3)
    with pytest.raises(ValueError, match="beam_size must be"):
        transcriber(x, beam_size=0)
    with pytest.raises(ValueError, match="best_of needs"):
        transcriber(x, best_of=2, temperature=0.0)
    with pytest.raises(ValueError, match="temperature must be"):
        transcriber(x, temperature=-1.0)
    with pytest.raises(ValueError, match="not one of this model's"):
        transcriber(x, language="fr")
    with pytest.raises(TypeError, match="WhisperForConditionalGeneration"):
        transcribe(votive.nn.Linear(1, 1), x, tokenizer=None)
    with pytest.raises(ValueError, match="is a qwen3"):
        Transcriber.from_pretrained("tales")
    transcriber.model.save_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match="no tokenizer with it"):
        Transcriber.from_pretrained(tmp_path)


def test_sounds_of_any_kind_become_one_channel_at_16_khz(tmp_path: Path) -> None:
    x = small.sound(0.5)
    assert votive.equal(load_audio(x), x)
    assert votive.equal(load_audio(x.numpy().tolist()), x)
    both = votive.stack([x, votive.zeros_like(x)])
    assert votive.allclose(load_audio(both), x / 2)
    whole = (x * 32768).round().to(votive.int16)
    assert votive.allclose(load_audio(whole), x, atol=1e-4)
    assert load_audio(x, 8000).shape == (16000,)
    with pytest.raises(ValueError, match="channels"):
        load_audio(votive.zeros(1, 2, 3))
    with pytest.raises(TypeError, match="int64"):
        load_audio(votive.ones(3, dtype=votive.int64))
    pytest.importorskip("soundfile")
    path = tmp_path / "a.flac"
    votive.audio.save(path, both, 16000)
    assert votive.allclose(load_audio(path), x / 2, atol=1e-4)
    with pytest.raises(ValueError, match="16000 samples a second"):
        load_audio(path, 8000)


def test_tokens_are_told_as_they_are_chosen(transcriber: Transcriber) -> None:
    told: list[Token] = []
    found = transcriber(small.sound(1.2), language="en", on_token=told.append, **PLAIN)
    windows: dict[float, list[Token]] = {}
    for token in told:
        windows.setdefault(token.start, []).append(token)
    assert len(windows) > 1
    for start, tokens in windows.items():
        assert [t.index for t in tokens] == list(range(len(tokens)))
        heard = [t for s in found.segments if s.seek == round(start * 100) for t in s.tokens]
        assert [t.id for t in tokens][: len(heard)] == heard
        logs = [np.log(t.probability) for t in tokens]
        mean = sum(logs) / len(tokens)
        # The end counts where it was chosen, and a mean is over one more token than the text has.
        first = next(s for s in found.segments if s.seek == round(start * 100))
        ended = tokens[-1].id == small.END
        assert mean * len(tokens) / (len(tokens) + (not ended)) == pytest.approx(first.avg_logprob, abs=1e-4)


def test_a_text_that_is_tried_again_is_told_again(transcriber: Transcriber) -> None:
    told: list[Token] = []
    # No text is this likely, so that all temperatures are tried.
    options = {**PLAIN, "temperature": (0.0, 0.7), "logprob_threshold": -1e-6, "seed": 0}
    transcriber(small.sound(0.4), language="en", on_token=told.append, **options)
    assert [t.temperature for t in told if t.index == 0] == [0.0, 0.7]


def test_who_chooses_at_the_end_tells_no_tokens(transcriber: Transcriber) -> None:
    for options in ({"beam_size": 2}, {"best_of": 2, "temperature": 0.5}):
        with pytest.raises(ValueError, match="on_token"):
            transcriber(small.sound(0.4), language="en", on_token=print, **options)


def test_without_heads_that_are_told_words_come_from_the_later_half(
    transcriber: Transcriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"language": "en", "word_timestamps": True, **PLAIN}
    told = transcriber.model.generation_config.extra
    monkeypatch.setitem(told, "alignment_heads", [[1, 0], [1, 1]])
    expected = transcriber(small.sound(0.4), **options).words
    monkeypatch.delitem(told, "alignment_heads")
    assert transcriber(small.sound(0.4), **options).words == expected


def test_a_text_is_put_together_as_words_are_timed(transcriber: Transcriber) -> None:
    spoken = [small.FIRST_TIME, 5, 7, small.FIRST_TIME + 3]
    assert transcriber.text_ids(spoken, "de", "translate") == [
        small.START,
        small.GERMAN,
        small.TRANSLATE,
        small.NO_TIMES,
        5,
        7,
        small.END,
    ]
    with pytest.raises(ValueError, match="name the language"):
        transcriber.text_ids(spoken)
    sound = small.sound(0.4)
    found = transcriber(sound, language="en", word_timestamps=True, **PLAIN)
    ids = transcriber.text_ids(found.segments[0].tokens, found.language)
    aligned = votive.glass.alignment(
        transcriber.model, transcriber.mels(sound)[:, :, : transcriber.frames], ids, duration=0.4
    )
    assert aligned.start == 4  # it is known which of them are spoken
    assert len(aligned.times()) == len(ids) - 4
