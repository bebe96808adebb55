"""`votive transcribe`: texts, subtitles, JSON, and what can be wrong with a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.speech import Transcriber

from ..speech import small

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]
HOW = ("--temperature", "0", "--logprob-threshold", "-99", "--language", "en")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.written(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("soundfile")
    path = tmp_path_factory.mktemp("sounds") / "talk.wav"
    votive.audio.save(path, small.sound(0.9).unsqueeze(0), 16000)
    return path


def test_what_is_printed_is_what_the_library_hears(run: Run, model: Path, talk: Path) -> None:
    code, out, err = run("transcribe", talk, "--model", model, *HOW)
    expected = Transcriber.from_pretrained(model)(talk, language="en", temperature=0.0, logprob_threshold=-99.0)
    assert (code, err) == (0, "")
    assert out == expected.format("txt")
    assert out.strip()
    assert run("transcribe", talk, "--model", model, *HOW, "--format", "vtt")[1] == expected.format("vtt")


def test_files_of_all_formats_are_written(run: Run, model: Path, talk: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, printed, err = run("transcribe", talk, "--model", model, *HOW, "--format", "all", "--output-dir", out)
    assert (code, printed) == (0, "")
    assert sorted(p.name for p in out.iterdir()) == ["talk.json", "talk.srt", "talk.tsv", "talk.txt", "talk.vtt"]
    assert err.count("talk.") == 5
    assert json.loads((out / "talk.json").read_text())["language"] == "en"


def test_one_document_of_all_files(run_json: RunJson, model: Path, talk: Path) -> None:
    found = run_json("transcribe", talk, talk, "--model", model, *HOW, "--word-timestamps")
    assert [f["file"] for f in found["files"]] == [str(talk)] * 2
    first = found["files"][0]
    assert first["duration"] == pytest.approx(0.9)
    assert {"word", "start", "end", "probability"} == set(first["segments"][0]["words"][0])


def test_words_are_printed_with_their_times(run: Run, model: Path, talk: Path) -> None:
    _, out, _ = run("transcribe", talk, "--model", model, *HOW, "--word-timestamps")
    assert all(float(line.split()[0]) <= float(line.split()[1]) for line in out.splitlines())


def test_a_detected_language_is_told(run: Run, model: Path, talk: Path) -> None:
    _, _, err = run("transcribe", talk, "--model", model, "--temperature", "0")
    assert "% sure" in err
    assert run("transcribe", talk, "--model", model, "--temperature", "0", "-q")[2] == ""


def test_one_bad_file_does_not_stop_the_others(run: Run, model: Path, talk: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"no sound")
    code, out, err = run("transcribe", bad, talk, "--model", model, *HOW)
    assert code == 1
    assert "bad.wav" in err
    assert f"# {talk}" in out
    assert run("transcribe", bad, "--model", model, *HOW)[0] == 1


def test_wrong_usage_is_told(run: Run, model: Path, talk: Path, tmp_path: Path) -> None:
    def fails(code: int, printed: str, *args: Any) -> None:
        found, out, err = run("transcribe", *args)
        assert (found, out) == (code, "")
        assert printed in err, err

    fails(2, "--model", talk)
    fails(2, "not known", talk, "--model", model, "--language", "klingon")
    fails(2, "--output-dir", talk, "--model", model, "--format", "srt", "--format", "vtt")
    fails(2, "neither", talk, "--model", model, "--json", "--format", "srt")
    fails(2, "the same name", talk, talk, "--model", model, "--output-dir", tmp_path)
    fails(1, "no such file", tmp_path / "none.wav", "--model", model)
    fails(1, "is a text generator; transcribe needs a speech recogniser", talk, "--model", "tales")
    fails(1, "no file or folder", talk, "--model", tmp_path / "nope")
