"""Ollama's interface: the texts are those of OpenAI's, in another form."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from votive.serve import Delta, Ended
from votive.serve.answers import ChatAnswer
from votive.serve.ollama import Told
from votive.serve.request_parsing import Asked
from votive.serve.server import Server

from .client import get, post, send, tokenizer

TALK = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
OPTIONS: dict[str, Any] = {"temperature": 0, "num_predict": 6, "num_ctx": 4096}
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 6}


def ask(server: Server, path: str, **body: Any) -> Any:
    """What an address of Ollama's answers, whole."""
    found = send(server, "POST", f"/api/{path}", body)
    assert found.status == 200, found.text
    return found.json


def lines(server: Server, path: str, **body: Any) -> list[Any]:
    found = send(server, "POST", f"/api/{path}", body)
    assert found.status == 200, found.text
    assert found.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(one) for one in found.text.splitlines()]


def test_a_chat_is_that_of_the_other_interface(the_server: Server) -> None:
    wanted = post(the_server, "chat/completions", {"messages": TALK, **GREEDY}).json
    whole = ask(the_server, "chat", model="tiny:latest", messages=TALK, options=OPTIONS, stream=False)
    said = wanted["choices"][0]["message"]["content"]
    assert whole["message"] == {"role": "assistant", "content": said}
    assert (whole["model"], whole["done"]) == ("tiny", True)
    assert whole["done_reason"] == wanted["choices"][0]["finish_reason"]
    assert whole["prompt_eval_count"] == wanted["usage"]["prompt_tokens"]
    assert whole["eval_count"] == wanted["usage"]["completion_tokens"]
    parts = lines(the_server, "chat", model="tiny", messages=TALK, options=OPTIONS)
    assert "".join(p["message"]["content"] for p in parts) == said
    assert [p["done"] for p in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1]["eval_count"] == whole["eval_count"]


def test_a_prompt_goes_through_the_template_or_is_raw(the_server: Server) -> None:
    wanted = post(the_server, "chat/completions", {"messages": TALK, **GREEDY}).json
    asked: dict[str, Any] = {"model": "tiny", "options": OPTIONS}
    whole = ask(the_server, "generate", prompt="Hello", system="Be short.", stream=False, **asked)
    assert whole["response"] == wanted["choices"][0]["message"]["content"]
    plain = post(the_server, "completions", {"prompt": "Once upon a", **GREEDY}).json["choices"][0]["text"]
    parts = lines(the_server, "generate", prompt="Once upon a", raw=True, keep_alive="5m", **asked)
    assert "".join(p["response"] for p in parts) == plain


def test_models_are_listed_and_shown(the_server: Server) -> None:
    (one,) = get(the_server, "/api/tags").json["models"]
    assert (one["name"], one["details"]["family"]) == ("tiny", "llama")
    found = ask(the_server, "show", model="tiny")
    assert found["capabilities"] == ["completion", "tools"]
    assert found["model_info"]["votive.context_length"] == 512
    assert "version" in get(the_server, "/api/version").json


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("chat", {"model": "huge", "messages": TALK}, "there is no model 'huge'"),
        ("chat", {"model": "tiny", "messages": TALK, "options": {"mirostat": 1}}, "mirostat"),
        ("chat", {"model": "tiny", "messages": TALK, "options": {"temprature": 1}}, "temprature"),
        ("chat", {"model": "tiny", "messages": TALK, "format": "xml"}, "format"),
        ("chat", {"model": "tiny", "messages": TALK, "think": True}, "think"),
        ("chat", {"model": "tiny", "messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "images"),
        ("chat", {"model": "tiny"}, "messages must be a list"),
        ("generate", {"model": "tiny", "prompt": "x", "context": [1, 2]}, "context"),
        ("generate", {"model": "tiny", "prompt": "x", "raw": True, "system": "y"}, "system goes with"),
        ("show", {"model": "huge"}, "there is no model 'huge'"),
        ("embed", {"model": "tiny", "input": "x"}, "model"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_text(the_server: Server, path: str, body: Any, said: str) -> None:
    found = send(the_server, "POST", f"/api/{path}", body)
    assert found.status in (400, 404)
    assert said in found.json["error"]


@pytest.mark.parametrize("stream", [False, True])
def test_calls_of_tools_have_objects_for_arguments(stream: bool) -> None:
    answer = ChatAnswer("tiny", tokenizer(), 1, ends=set(), tools={"weather"})
    writer: Any = SimpleNamespace(name="tiny")
    request: Any = None
    told = Told(Asked(writer, request, answer, stream, False), chat=True)
    text = 'Let me see.<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
    parts = [json.loads(p) for event in (Delta(0, text), Ended(0, "eos")) for p in told.parts(event)]
    message = told.whole()["message"]
    if stream:
        said = [p["message"]["content"] for p in parts]
        calls = [c for p in parts for c in p["message"].get("tool_calls", [])]
        message = {"content": "".join(said), "tool_calls": calls}
    assert message["content"] == "Let me see."
    assert message["tool_calls"] == [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]
