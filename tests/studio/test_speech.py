"""Models that hear, in the studio: what each action answers."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.speech import small
from votive import glass, speech
from votive.studio.speech_models import EXAMPLES, LARGEST, LONGEST

from .client import Page, Refused, studio
from .sounds import FILE, SOUND, written


def sent(page: Page, data: bytes, name: str = "talk.wav", size: int | None = None) -> Any:
    """Send a file in parts, and let it be heard."""
    page.ask("speech.begin", name=name, size=len(data) if size is None else size)
    for i in range(0, len(data), 20_000):
        page.ask("speech.part", data=base64.b64encode(data[i : i + 20_000]).decode())
    return page.ask("speech.listen")


def transcribed(page: Page, **options: Any) -> Any:
    page.events.clear()
    return page.ask("speech.transcribe", **{"language": "en", **options})


def test_the_picture_is_that_of_the_mels_the_model_gets(speech_studio: Any, whisper: Path) -> None:
    hear = speech.Transcriber.from_pretrained(whisper)
    with Page(speech_studio) as page:
        info = page.ask("model.info")
        assert (info["family"], info["layers"], info["heads"]) == ("whisper", 2, 2)
        assert info["speech"]["alignment"] == [[0, 1], [1, 0]]
        assert sorted(c for c, _ in info["speech"]["languages"]) == ["de", "en"]
        reply = sent(page, FILE)["sound"]
        assert reply["seconds"] == pytest.approx(1.2)
        assert (reply["name"], reply["frames"], reply["rate"]) == ("talk.wav", 120, 16000)
        found = page.ask("speech.window")
        mels = hear.mels(speech.load_audio(io.BytesIO(FILE)))[0, :, :50].numpy()
        scaled = reply["low"] + found["mels"] / 255 * (reply["high"] - reply["low"])
        assert found["mels"].shape == (80, 50)
        assert np.abs(scaled - mels).max() <= (reply["high"] - reply["low"]) / 255
        assert np.abs(found["samples"] / 32767 - SOUND[:8000].numpy()).max() < 1e-4
        later = page.ask("speech.window", start=1.0)
        assert (later["start"], later["mels"].shape, later["samples"].shape) == (1.0, (80, 20), (3200,))
        assert page.ask("speech.window", start=99.0)["mels"].shape == (80, 1)
        # The bands that are named lie where a tone of that height is loudest.
        for at, name in info["speech"]["ticks"]:
            hz = float(name.split()[0]) * (1000 if "kHz" in name else 1)
            tone = votive.sin(2 * np.pi * hz * votive.arange(8000.0) / 16000)
            assert abs(int(hear.mels(tone)[0, :, 20].argmax()) - at) <= 1


def test_tokens_are_told_one_by_one_and_words_have_their_seconds(speech_studio: Any, whisper: Path) -> None:
    hear = speech.Transcriber.from_pretrained(whisper)
    with Page(speech_studio) as page:
        sent(page, FILE)
        found = transcribed(page)
        reply = [d for name, d in page.events if name == "transcript"]
        expected = hear(io.BytesIO(FILE), language="en", word_timestamps=True, seed=0)
        assert found["language"] == "en"
        assert found["done"]
        words = [w for k in found["windows"] for w in k["words"]]
        assert [(w["text"], w["start"], w["end"]) for w in words] == [(w.word, w.start, w.end) for w in expected.words]
        assert words
        last: dict[float, list[Any]] = {}
        for token in reply:
            mine = last.setdefault(token["start"], [])
            del mine[token["index"] :]
            mine.append(token)
        for window in found["windows"]:
            chosen = [t for t in last[window["start"]] if t["text"]]
            ids = [t["id"] for t in window["tokens"]]
            assert ids == [t["id"] for t in chosen][: len(ids)]
            assert [t["p"] for t in window["tokens"]] == [t["p"] for t in chosen][: len(ids)]
            for word in window["words"]:
                own = window["tokens"][word["first"] : word["last"]]
                assert "".join(t["text"] for t in own) == word["text"]
        assert page.ask("speech.state") == found
        lines = [d["line"] for name, d in page.events if name == "console"]
        assert lines == ["found = hear(sound, word_timestamps=True, seed=0, language='en')"]


def test_the_map_is_what_the_glass_says(speech_studio: Any, whisper: Path) -> None:
    hear = speech.Transcriber.from_pretrained(whisper)
    words = hear.vocabulary
    with Page(speech_studio) as page:
        sent(page, FILE)
        windows = transcribed(page)["windows"]
        k = len(windows) - 1
        window = windows[k]
        first = round(100 * window["start"])
        ids = [
            words.start,
            words.language("en"),
            words.task("transcribe"),
            words.no_timestamps,
            *(t["id"] for t in window["tokens"]),
            words.end,
        ]
        mels = hear.mels(speech.load_audio(io.BytesIO(FILE)))[:, :, first : first + 50]
        aligned = glass.alignment(hear.model, mels, ids, duration=window["end"] - window["start"], start=4)
        found = page.ask("speech.alignment", window=k)
        values = found["low"] + found["map"] / 255 * (found["high"] - found["low"])
        step = (found["high"] - found["low"]) / 255
        assert np.abs(values - aligned.matrix()[:-1].numpy()).max() < step + 1e-4
        assert np.allclose(found["times"], [window["start"] + t for t in aligned.times()])
        found = page.ask("speech.alignment", window=k, layer=1, head=0)
        values = found["map"] / 255 * found["high"]
        assert np.abs(values - aligned.weights(1, 0)[3:-2].numpy()).max() < found["high"] / 255
        # All that heads look at lies in the whole window, and some of it in a part.
        span = {"first": 0, "last": len(window["tokens"]), "window": k}
        whole = page.ask("speech.heads", start=window["start"], end=window["end"], **span)
        assert whole["shares"].shape == (2, 2)
        assert np.allclose(whole["shares"], 1, atol=1e-5)
        end = window["start"] + 0.1
        part = page.ask("speech.heads", start=window["start"], end=end, **span)["shares"]
        for layer, head in ((0, 0), (1, 1)):
            weights = aligned.weights(layer, head)[3:-2]
            share = (weights[:, :5].sum(-1) / weights.sum(-1)).mean()
            assert part[layer, head] == pytest.approx(float(share), abs=1e-5)


def test_files_of_many_kinds_are_heard(speech_studio: Any) -> None:
    stereo = votive.stack([SOUND, 0.5 * SOUND])
    with Page(speech_studio) as page:
        for format, rate in (("flac", 44100), ("ogg", 22050), ("wav", 8000)):
            reply = sent(page, written(stereo, rate, format), f"talk.{format}")["sound"]
            assert (reply["rate"], reply["channels"]) == (rate, 2)
            assert reply["seconds"] == pytest.approx(1.2 * 16000 / rate, rel=0.01)
        for name in EXAMPLES:
            assert page.ask("speech.listen", example=name)["sound"]["seconds"] == 4.0


@pytest.mark.parametrize(
    "data,reply",
    [
        (lambda: b"this is no sound at all", "talk.wav is not a sound file that soundfile can read"),
        (lambda: FILE[:30], "not a sound file that soundfile can read"),
        (lambda: written(votive.zeros(1, 0), format="wav"), "holds no sound"),
        (lambda: written(votive.full((1, 9), float("nan")), format="wav"), "not numbers"),
        (lambda: written(votive.zeros(1, LONGEST * 1000 + 1000), 1000), "up to 30 are accepted here"),
    ],
)
def test_a_file_that_cannot_be_heard_is_told_and_nothing_is_lost(
    speech_studio: Any, data: Callable[[], bytes], reply: str
) -> None:
    with Page(speech_studio) as page:
        before = sent(page, FILE)
        with pytest.raises(Refused, match=reply):
            sent(page, data())
        assert page.ask("speech.state") == before


@pytest.mark.parametrize(
    "asked,reply",
    [
        (("speech.begin", {"name": "a.wav", "size": 0}), "a.wav is empty"),
        (("speech.begin", {"name": "a.wav", "size": LARGEST + 1}), "up to 67 MB"),
        (("speech.part", {"data": "AAAA"}), "no file was announced"),
        (("speech.listen", {}), "no file has come"),
        (("speech.listen", {"example": "song"}), "no example 'song'"),
        (("speech.alignment", {}), "nothing was transcribed yet"),
        (("speech.alignment", {"layer": 2}), "no layer 2"),
        (("speech.alignment", {"layer": 0, "head": 2}), "no head 2"),
        (("speech.alignment", {"head": 0}), "needs its layer"),
        (("speech.heads", {"first": 0, "last": 1, "start": 0, "end": 1}), "nothing was transcribed"),
        (("speech.transcribe", {"language": "klingon"}), "klingon"),
        (("speech.transcribe", {"language": "fr"}), "not one of this model's"),
        (("speech.transcribe", {"task": "sing"}), "task must be one of"),
        (("session.new", {"prompt": "a"}), "is a speech model"),
    ],
)
def test_what_cannot_be_done_is_told(speech_studio: Any, asked: tuple[str, dict[str, Any]], reply: str) -> None:
    with Page(speech_studio) as page:
        page.ask("speech.listen", example="glide")
        with pytest.raises(Refused, match=reply):
            page.ask(asked[0], **asked[1])
        assert page.ask("speech.state")["sound"]["name"] == "A rising tone"


def test_parts_that_are_wrong_are_refused(speech_studio: Any) -> None:
    with Page(speech_studio) as page:
        with pytest.raises(Refused, match="Missing: There is no sound yet"):
            page.ask("speech.window")
        page.ask("speech.begin", name="a.wav", size=4)
        with pytest.raises(Refused, match="base64"):
            page.ask("speech.part", data="!!")
        with pytest.raises(Refused, match="more came"):
            page.ask("speech.part", data=base64.b64encode(b"12345").decode())
        page.ask("speech.part", data=base64.b64encode(b"123").decode())
        with pytest.raises(Refused, match="only 3 of 4 bytes"):
            page.ask("speech.listen")


def test_without_soundfile_it_is_told_what_to_install(speech_studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Page(speech_studio) as page:
        monkeypatch.setitem(sys.modules, "soundfile", None)
        with pytest.raises(Refused, match=r"needs the package soundfile.*votive\[audio\]"):
            sent(page, FILE)
        assert page.ask("speech.listen", example="tones")["sound"]["frames"] == 400


def test_a_transcription_is_stopped_and_whole_windows_stay(speech_studio: Any) -> None:
    with Page(speech_studio) as page:
        sent(page, written(small.sound(20.0).unsqueeze(0), format="wav"))
        page.events.clear()
        asked = page.send("speech.transcribe", {"language": "en"})
        while page.event("transcript")["start"] < 1.0:
            pass
        page.socket.send(f'{{"cancel": {asked}}}')
        found = page.wait(asked)
        assert found["stopped"]
        assert 1 <= len(found["windows"]) < 30
        assert page.ask("speech.alignment", window=0)["map"].shape[0] == len(found["windows"][0]["tokens"])
        # It is done from the beginning when it is asked for again.
        sent(page, FILE)
        assert not transcribed(page)["stopped"]


def test_a_long_sound_tells_how_far_it_is(speech_studio: Any) -> None:
    with Page(speech_studio) as page:
        sent(page, FILE)
        transcribed(page)
        done = [d for name, d in page.events if name == "progress"]
        assert (done[0]["done"], done[-1]["done"], done[0]["total"]) == (0.0, 1.2, 1.2)
        assert [d["done"] for d in done] == sorted(d["done"] for d in done)


def test_a_language_is_detected_and_english_written(speech_studio: Any, whisper: Path) -> None:
    hear = speech.Transcriber.from_pretrained(whisper)
    best, odds = next(iter(hear.detect_language(io.BytesIO(FILE)).items()))
    with Page(speech_studio) as page:
        sent(page, FILE)
        found = page.ask("speech.transcribe")
        assert (found["language"], found["sure"]) == (best, pytest.approx(odds, abs=1e-5))
        with pytest.warns(UserWarning, match="translat"):
            found = transcribed(page, task="translate", language="de")
        assert found["task"] == "translate"
        assert page.ask("speech.alignment")["map"].size


def test_a_model_of_texts_hears_nothing(tmp_path: Path) -> None:
    with studio(tmp_path) as other, Page(other) as page:
        for name, args in (("listen", {}), ("begin", {"name": "a", "size": 1}), ("state", {})):
            with pytest.raises(Refused, match="reads text, not sound; load a Whisper"):
                page.ask(f"speech.{name}", **args)


def test_a_whisper_in_memory_is_opened(whisper: Path, tmp_path: Path) -> None:
    from votive.studio import _held

    hear = speech.Transcriber.from_pretrained(whisper)
    held = _held("mine", hear.model, hear.tokenizer)
    with studio(tmp_path, model=held) as other, Page(other) as page:
        assert page.ask("model.info")["speech"]["bands"] == 80
        assert page.ask("speech.listen", example="tones")["sound"]["frames"] == 400


def test_openais_files_are_opened_with_a_tokenizer_beside_them(whisper: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="writes a file as OpenAI does")
    from tests.models.whisper_files import OPENAI_DIMS, openai_names
    from tests.models.whisper_files import small as openai

    model = openai(encoder_ffn_dim=64, decoder_ffn_dim=64)
    state = {k: torch.tensor(v.numpy()) for k, v in openai_names(model).items()}
    torch.save({"dims": OPENAI_DIMS, "model_state_dict": state}, tmp_path / "mine.pt")
    with studio(tmp_path, model=str(tmp_path / "mine.pt")) as other, Page(other) as page:
        with pytest.raises(Refused, match=r"no tokenizer beside it.*multilingual\.tiktoken"):
            page.ask("model.info")
        (tmp_path / "tokenizer.json").write_bytes((whisper / "tokenizer.json").read_bytes())
        info = page.ask("model.info")["speech"]
        assert (len(info["alignment"]), info["seconds"]) == (4, 0.2)
        assert page.ask("speech.listen", example="tones")["sound"]["frames"] == 400


def test_two_tabs_are_heard_in_turns_and_get_what_they_would_get_alone(speech_studio: Any) -> None:
    with Page(speech_studio) as one, Page(speech_studio) as other:
        sent(one, FILE)
        sent(other, FILE)
        alone = transcribed(one)
        asked = [p.send("speech.transcribe", {"language": "en"}) for p in (one, other)]
        assert [p.wait(id) for p, id in zip((one, other), asked, strict=True)] == [alone, alone]
        waited = [d["text"] for p in (one, other) for name, d in p.events if name == "busy"]
        assert any("waiting: another tab" in text for text in waited)
