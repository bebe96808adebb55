"""`votive serve` loads what it is told to, says where it is, and ends by Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from tests.serve.client import language_model, tokenizer
from tests.serve.test_embeddings import encoder
from votive import cli
from votive.cli import serve
from votive.serve.server import Server

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as `save_pretrained` writes it."""
    path = tmp_path_factory.mktemp("models") / "small"
    language_model().save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder in a folder."""
    path = tmp_path_factory.mktemp("models") / "encoder"
    made = encoder()
    made.model.save_pretrained(path)
    made.tokenizer.save_pretrained(path)
    return path


def served(monkeypatch: pytest.MonkeyPatch, *words: object) -> Server:
    """The server that a command line makes; it does not run."""
    made: list[Server] = []

    def taken(one: Server) -> None:
        made.append(one)
        one.close()

    monkeypatch.setattr(Server, "run", taken)
    assert cli.main(["serve", "--port", "0", *map(str, words)]) == 0
    return made[0]


def test_models_are_loaded_under_their_names(
    monkeypatch: pytest.MonkeyPatch, folder: Path, encoder_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = served(monkeypatch, folder, f"other={folder}", encoder_folder)
    assert one.registry.names() == ["small", "other", "encoder"]
    assert list(one.registry.embedders) == ["encoder"]
    assert f"{one.url}/v1" in capsys.readouterr().err


def test_options_reach_the_engine(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("secret\n")
    words = ["--max-running", 3, "--max-waiting", 5, "--cache-memory", 0.001, "--chunk", 32, "--default-tokens", 7]
    words += ["--deterministic", "--no-prefix-sharing", "--api-key", "k", "--api-key-file", keys, "--max-tokens", 9]
    words += ["--dtype", "bfloat16", "--max-capture", 2]
    one = served(monkeypatch, folder, *words)
    (engine,) = one.registry.engines()
    assert (engine._admission.max_texts, engine._admission.max_waiting, engine.chunk) == (3, 5, 32)
    assert engine.deterministic
    assert not engine.share
    assert engine.default_tokens == 7
    assert engine.served.model.dtype is votive.bfloat16
    assert engine.store.total == int(0.001 * (1 << 30)) // (engine.served.position_bytes() * 32)
    for key in ("k", "secret"):
        allowed = one.application.gate.keys.find(f"Bearer {key}")
        assert allowed is not None
        assert (allowed.max_tokens, allowed.capture_bytes) == (9, 2 << 20)
    assert one.application.gate.keys.find(None) is None
    assert served(monkeypatch, folder, "--max-tokens", 9).application.gate.keys.find(None).max_tokens == 9  # type: ignore[union-attr]
    quantized = served(monkeypatch, folder, "--cache-dtype", "bf16", "--dtype", "bfloat16")
    assert quantized.registry.engines()[0].served.cache_dtype == "bf16"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["no-such-model"], 1, "there is no model 'no-such-model'"),
        (["a=tales", "a=tales"], 2, "two models are called 'a'"),
        (["tales", "--host", "0.0.0.0"], 1, "--api-key"),
        (["tales", "--host", "no.such.host.invalid", "--api-key", "k"], 1, "--host"),
        (["tales", "--api-key-file", "/no/such/file"], 1, "/no/such/file"),
        (["tales", "--port", "70000"], 2, "--port"),
        (["tales", "--cache-dtype", "q3_0"], 1, "q3_0"),
        (["tales", "--cache-memory", "1e-6"], 1, "hold no block"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(
    words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", "--port", "0", *words]) == code
    assert says in capsys.readouterr().err


def test_a_whisper_is_served_as_one_that_hears(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.speech import small

    one = served(monkeypatch, small.written(tmp_path / "whisper"))
    assert list(one.registry.hearers) == ["whisper"]


def test_a_model_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vit").mkdir()
    (tmp_path / "vit" / "config.json").write_text('{"model_type": "vit"}')
    assert cli.main(["serve", "--port", "0", str(tmp_path / "vit")]) == 1
    assert "an image classifier; serve takes" in capsys.readouterr().err


def test_names_of_models() -> None:
    assert serve.named("chat=./x") == ("chat", "./x")
    assert serve.named("Qwen/Qwen3-0.6B") == ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_the_command_answers_until_ctrl_c(folder: Path) -> None:
    words = [sys.executable, "-m", "votive", "serve", str(folder), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as one:
        try:
            assert one.stderr is not None
            line = one.stderr.readline()
            found = re.search(r"Serving small at (http://127.0.0.1:\d+)/v1", line)
            assert found is not None, line
            body: dict[str, Any] = {"prompt": "Once", "max_tokens": 3, "ignore_eos": True}
            asked = urllib.request.Request(
                f"{found[1]}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(asked, timeout=120) as answer:
                assert json.loads(answer.read())["usage"]["completion_tokens"] == 3
            one.send_signal(signal.SIGINT)
            out, err = one.communicate(timeout=120)
        finally:
            one.kill()
    assert one.returncode == 0
    assert out == ""
    assert err.strip() == "Stopped by Ctrl-C."
