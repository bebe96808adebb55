"""`votive chat --url`: conversations with a model that a server has."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from votive.cli import main
from votive.serve import Client
from votive.serve.keys import Keys
from votive.serve.server import Server

from .client import engine, serving

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Pipes lines into a chat."""

    def call(url: str, lines: list[str], *options: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = main(["chat", "--url", url, "--max-new-tokens", "6", *map(str, options)])
        return code, *capsys.readouterr()

    return call


def test_answers_are_those_of_the_server(the_server: Server, say: Say) -> None:
    code, out, err = say(the_server.url, ["Hello", "And you?"], "--greedy", "--json", "--system", "Be short.")
    assert (code, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    talk = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
    settings: dict[str, Any] = {"temperature": 0, "max_tokens": 6}
    assert first["content"] == Client(the_server.url).chat(talk, **settings).text
    talk += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": "And you?"}]
    assert second["content"] == Client(the_server.url).chat(talk, **settings).text
    assert first["finish_reason"] in ("length", "stop")
    assert 0 < first["tokens"] <= 6
    assert second["prompt_tokens"] > first["prompt_tokens"]
    _, plain, _ = say(f"{the_server.url}/v1", ["Hello"], "--greedy", "--system", "Be short.", "tiny")
    assert plain == first["content"] + "\n"


def test_a_seed_and_settings_are_sent(the_server: Server, say: Say) -> None:
    _, once, _ = say(the_server.url, ["Hello"], "--seed", 3, "--temperature", 1.5, "--top-k", 20)
    _, again, _ = say(the_server.url, ["Hello"], "--seed", 3, "--temperature", 1.5, "--top-k", 20)
    lines = ["Hello", "/set temperature=0", "/retry", "/undo", "/history", "/set cache_dtype=q8_0"]
    code, _, err = say(the_server.url, lines, "--seed", 3)
    assert once == again
    assert "taken back" in err
    assert code == 1
    assert "a server takes no --cache-dtype" in err


def test_what_is_not_there_is_said(the_server: Server, say: Say) -> None:
    code, _, err = say(the_server.url, ["Hello"], "--model", "large")
    assert (code, err) == (1, f"votive: {the_server.url} does not serve 'large'; it serves tiny.\n")
    code, _, err = say(the_server.url, ["Hello"], "--dtype", "float16")
    assert code == 2
    assert "--dtype is the server's business; leave it out with --url" in err
    assert main(["chat", "--api-key", "x"]) == 2
    code, _, err = say("http://127.0.0.1:1", ["Hello"])
    assert code == 1
    assert "Traceback" not in err
    code, _, err = say("ftp://x", ["Hello"])
    assert (code, "an address such as http://127.0.0.1:8000 is needed" in err) == (1, True)


def test_a_key_opens_the_server_and_a_model_is_chosen(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(engine("tiny"), engine("other"), keys=Keys(["secret"])) as server:
        code, _, err = say(server.url, ["Hello"])
        assert code == 1
        assert "give a key of this server" in err
        code, _, err = say(server.url, ["Hello"], "--api-key", "secret")
        assert code == 2
        assert "serves other, tiny; choose one with --model NAME" in err or "serves tiny, other" in err
        monkeypatch.setenv("VOTIVE_API_KEY", "secret")
        code, out, _ = say(server.url, ["Hello"], "--model", "other", "--greedy")
        assert code == 0
        assert out
