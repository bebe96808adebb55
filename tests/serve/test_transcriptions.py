"""What is said in a sound, over HTTP, is what the transcriber hears; texts are written meanwhile."""

from __future__ import annotations

import io
import sys
import threading
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.speech import small
from votive.serve.form import parsed_form
from votive.serve.server import Server
from votive.speech import Transcriber

from .client import Answer, engine, post, send, serving
from .test_serving_glass import VECTOR

LINE = b"\r\n"


def wav(seconds: float, seed: int = 0) -> bytes:
    """A sound file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        samples = small.sound(seconds, seed).numpy()
        out.writeframes((samples * 20000).astype("<i2").tobytes())
    return file.getvalue()


def form(*parts: tuple[str, str | bytes], boundary: str = "b0undary") -> bytes:
    """A form; what is bytes is a file."""
    body = b""
    for name, value in parts:
        file = '; filename="../../etc/passwd"' if isinstance(value, bytes) else ""
        data = value if isinstance(value, bytes) else value.encode()
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + LINE
    return body + f"--{boundary}--\r\n".encode()


def hear(one: Server, *parts: tuple[str, str | bytes], path: str = "transcriptions") -> Answer:
    kind = "multipart/form-data; boundary=b0undary"
    return send(one, "POST", f"/v1/audio/{path}", form(*parts), content_type=kind)


@pytest.fixture(scope="module")
def transcriber(tmp_path_factory: pytest.TempPathFactory) -> Transcriber:
    place: Path = small.written(tmp_path_factory.mktemp("models") / "whisper")
    return Transcriber.from_pretrained(place)


@pytest.fixture(scope="module")
def hearing(transcriber: Transcriber) -> Iterator[Any]:
    pytest.importorskip("soundfile", reason="sound files are read by soundfile")
    with serving(engine(), hearer=transcriber) as one:
        yield one


def test_a_sound_becomes_text_in_every_form(hearing: Server) -> None:
    data = wav(0.7)
    plain: tuple[tuple[str, str | bytes], ...] = (("file", data), ("model", "whisper"), ("language", "en"))
    found = hear(hearing, *plain, ("response_format", "verbose_json"))
    assert found.status == 200, found.text
    told = found.json
    assert told["task"] == "transcribe"
    assert told["language"] == "en"
    assert told["duration"] == pytest.approx(0.7, abs=0.01)
    assert {"id", "start", "end", "text", "tokens", "avg_logprob"} <= set(told["segments"][0])
    words = hear(hearing, *plain, ("response_format", "verbose_json"), ("timestamp_granularities[]", "word")).json
    assert "segments" not in words
    assert all(set(w) == {"word", "start", "end"} for w in words["words"])
    for kind, start in (("srt", "1\n00:00"), ("vtt", "WEBVTT"), ("text", "")):
        answer = hear(hearing, *plain, ("response_format", kind))
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.startswith(start)
    assert set(hear(hearing, ("file", data)).json) == {"text"}
    assert hear(hearing, ("file", data), ("temperature", "0.4"), path="translations").status == 200


def test_the_same_sound_is_heard_the_same(hearing: Server, transcriber: Transcriber) -> None:
    data = wav(0.9, 3)
    options = {"language": "de", "temperature": (1e-3,), "seed": 1}
    expected = transcriber(io.BytesIO(data), **options)
    from votive.serve.form import Part
    from votive.serve.keys import Permissions
    from votive.serve.transcriptions import asked_transcription

    asked = asked_transcription(
        [Part("file", data, True), Part("language", b"de", False)], hearing.registry, Permissions(), "transcribe"
    )
    asked.options |= options
    assert asked.run(lambda: None) == {"text": expected.text.strip()}


def test_texts_are_written_while_a_sound_is_heard(hearing: Server) -> None:
    body = {"prompt": "Once", "temperature": 0, "max_tokens": 30, "ignore_eos": True}
    body["glass"] = {"steer": [{"at": "layers.0.resid_post", "vector": VECTOR}]}
    alone = post(hearing, "completions", body).json["choices"][0]["text"]
    answers: list[Answer] = []
    listening = threading.Thread(target=lambda: answers.append(hear(hearing, ("file", wav(1.5)), ("language", "en"))))
    listening.start()
    while listening.is_alive():
        assert post(hearing, "completions", body).json["choices"][0]["text"] == alone
    assert answers[0].status == 200


@pytest.mark.parametrize(
    ("parts", "param"),
    [
        ([], "file"),
        ([("file", "text")], "file"),
        ([("file", b"no sound")], "file"),
        ([("file", b"")], "file"),
        ([("file", b"x"), ("file", b"y")], "file"),
        ([("file", wav(0.1)), ("sound", b"y")], "file"),
        ([("file", wav(0.1)), ("language", "klingon")], "language"),
        ([("file", wav(0.1)), ("language", "fr")], "language"),
        ([("file", wav(0.1)), ("temperature", "hot")], "temperature"),
        ([("file", wav(0.1)), ("temperature", "2")], "temperature"),
        ([("file", wav(0.1)), ("response_format", "xml")], "response_format"),
        ([("file", wav(0.1)), ("timestamp_granularities[]", "word")], "timestamp_granularities[]"),
        ([("file", wav(0.1)), ("stream", "true")], "stream"),
        ([("file", wav(0.1)), ("langage", "en")], "langage"),
    ],
    ids=lambda given: str(given)[-40:],
)
def test_what_cannot_be_heard_is_refused(hearing: Server, parts: Any, param: str) -> None:
    answer = hear(hearing, *parts)
    assert (answer.status, answer.error["param"]) == (400, param), answer.text
    assert "etc" not in answer.text


def test_without_soundfile_it_is_said_what_to_do(transcriber: Transcriber, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with serving(hearer=transcriber) as one:
        answer = hear(one, ("file", wav(0.1)))
    assert answer.status == 400
    assert "soundfile" in answer.error["message"]


def test_models_that_do_not_hear(hearing: Server, the_server: Server) -> None:
    assert hear(hearing, ("file", wav(0.1)), ("model", "tiny")).status == 404
    assert hear(the_server, ("file", wav(0.1))).status == 404
    assert hear(hearing, ("file", wav(0.1)), ("language", "en"), path="translations").error["param"] == "language"


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data", b"", 400),
        ("multipart/form-data; boundary=" + "x" * 71, b"", 400),
        ("multipart/form-data; boundary=x", b"", 400),
        ("multipart/form-data; boundary=x", b"--x\r\n", 400),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n--x--", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nA: b\r\n\r\nc\r\n--x--", 400),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n--x--', 400),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"a" * 5000 + b"\r\n\r\nc\r\n--x--", 400),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n" * 1000, 400),
        ("multipart/form-data; boundary=x", b" " * ((32 << 20) + 1), 413),
    ],
    ids=lambda given: repr(given)[:40],
)
def test_forms_that_are_none(the_server: Server, kind: str, body: bytes, status: int) -> None:
    assert send(the_server, "POST", "/v1/audio/transcriptions", body, content_type=kind).status == status


def test_parts_of_forms_may_hold_anything() -> None:
    data = bytes(range(256)) * 3 + b"\r\n--b0undar\r\n\r\n--"
    parts = parsed_form(form(("a", "\u00e9"), ("file", data), ("b[]", "1"), ("b[]", "2")), "b0undary")
    assert [(p.name, p.is_file) for p in parts] == [("a", False), ("file", True), ("b[]", False), ("b[]", False)]
    assert parts[1].data == data
    assert np.frombuffer(parts[1].data, np.uint8).size == len(data)
