"""What is wrong with a request is told, by the name of the field, as OpenAI's interface tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from votive.serve import Engine, ServedModel
from votive.serve.server import Server

from .client import engine, get, language_model, post, send, serving

TALK = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
TEXT = {"prompt": "Once", "max_tokens": 2}


def refused(one: Server, path: str, body: Any) -> dict[str, Any]:
    """The error of a request that is answered with 400."""
    answer = post(one, path, body)
    assert answer.status == 400, answer.text
    assert answer.error["type"] == "invalid_request_error"
    return answer.error


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"temprature": 1}, "temprature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"top_k": 0.5}, "top_k"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"seed": "x"}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**30}, "messages"),
        ({"stop": [1]}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include": True}}, "stream_options.include"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"400": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 101}}, "logit_bias"),
        ({"logprobs": 3}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x", "mood": "good"}]}, "messages[0].mood"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "messages[0].images"),
        ({"messages": [{"role": "assistant", "content": "x", "audio": {"id": "1"}}]}, "messages[0].audio"),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}, "tools"),
        ({"regex": "a+", "ignore_eos": True}, "ignore_eos"),
        ({"regex": "a+", "choices": ["a"]}, None),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        ({"store": True}, "store"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"functions": []}, "functions"),
        ({"stop_token_ids": [320]}, "stop_token_ids"),
        ({"chat_template_kwargs": {"tokenize": False}}, "chat_template_kwargs"),
        ({"continue_final_message": True}, "continue_final_message"),
    ],
    ids=lambda given: json.dumps(given)[:40] if isinstance(given, dict) else None,
)
def test_a_field_that_cannot_be_honoured_is_refused_by_its_name(
    the_server: Server, more: dict[str, Any], param: str | None
) -> None:
    error = refused(the_server, "chat/completions", {**TALK, **more})
    assert error["param"] == param
    assert error["message"].endswith((".", "?"))


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [["a"]]}, "prompt"),
        ({"prompt": ["x"] * 129}, "prompt"),
        ({"prompt": [1, 2.5]}, "prompt"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"messages": []}, "messages"),
        ({"tools": []}, "tools"),
    ],
    ids=lambda given: json.dumps(given)[:40] if isinstance(given, dict) else None,
)
def test_completions_too(the_server: Server, more: dict[str, Any], param: str) -> None:
    assert refused(the_server, "completions", {**TEXT, **more})["param"] == param


def test_slips_are_answered_with_what_was_meant(the_server: Server) -> None:
    said = refused(the_server, "chat/completions", {**TALK, "temprature": 1})["message"]
    assert said == "there is no field 'temprature'. Did you mean 'temperature'?"


def test_fields_that_say_nothing_about_the_answer_are_taken(the_server: Server) -> None:
    more = {"user": "me", "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "parallel_tool_calls": True}
    assert post(the_server, "chat/completions", {**TALK, **more}).status == 200


def test_tokens_outside_the_vocabulary_and_texts_that_are_too_long(the_server: Server) -> None:
    assert "vocabulary of 320" in refused(the_server, "completions", {**TEXT, "prompt": [1, 320]})["message"]
    error = refused(the_server, "completions", {**TEXT, "prompt": [1] * 600})
    assert error["code"] == "context_length_exceeded"
    error = refused(the_server, "completions", {**TEXT, "max_tokens": 512})
    assert error["code"] == "context_length_exceeded"


def test_what_a_length_nobody_names_comes_to() -> None:
    with serving(engine(default_tokens=20)) as one:
        found = post(one, "chat/completions", {"messages": TALK["messages"], "ignore_eos": True}).json
        assert found["usage"]["completion_tokens"] == 20
        found = post(one, "completions", {"prompt": "x", "ignore_eos": True}).json
        assert found["usage"]["completion_tokens"] == 16  # as OpenAI has it


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "JSON object"),
        (b"null", "JSON object"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "beyond all bounds"),
        (b'{"a": ' + b"9" * 50 + b"}", "40 digits"),
        (b'{"a": "\\ud800"}', "surrogates"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a": ' + b"[" * 65 + b"]" * 65 + b"}", "nested deeper"),
        (b'{"a": 1, "a": 2}', "twice"),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_bodies_that_are_no_requests(the_server: Server, body: bytes, says: str) -> None:
    answer = send(the_server, "POST", "/v1/chat/completions", body)
    assert answer.status == 400
    assert says in answer.error["message"]


def test_other_types_and_sizes_and_methods_and_addresses(the_server: Server) -> None:
    path = "/v1/chat/completions"
    assert send(the_server, "POST", path, json.dumps(TALK), content_type="text/plain").status == 415
    assert send(the_server, "POST", path, b" " * ((8 << 20) + 1)).status == 413
    assert get(the_server, path).status == 405
    for nowhere in ("/", "/v1", "/v1/files", "/v1/chat", "/docs", "/openapi.json"):
        answer = get(the_server, nowhere)
        assert (answer.status, answer.error["type"]) == (404, "invalid_request_error")


def test_models_by_name_where_there_are_several() -> None:
    bare = Engine(ServedModel("bare", language_model(), None))
    with serving(engine("one"), engine("two"), bare) as server:
        for name in ("one", "two"):
            assert post(server, "completions", {**TEXT, "model": name}).json["model"] == name
        for wrong in (None, "three", 3, "../one", ""):
            answer = post(server, "completions", {**TEXT, "model": wrong})
            assert (answer.status, answer.error["code"]) == (404, "model_not_found")
            assert "one, two" in answer.error["message"]
        assert refused(server, "completions", {**TEXT, "model": "bare"})["param"] == "model"
        with pytest.raises(ValueError, match="two models are called 'one'"):
            server.registry.add_writer(engine("one"))


def test_a_model_without_a_template_goes_on_with_the_messages() -> None:
    one = engine()
    one.served.tokenizer.chat_template = None
    with serving(one) as server:
        talk = [{"role": "user", "content": "Once upon "}, {"role": "user", "content": "a time"}]
        asked = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
        found = post(server, "chat/completions", {**asked, "messages": talk}).json
        plain = post(server, "completions", {**asked, "prompt": "Once upon a time"}).json
        assert found["choices"][0]["message"]["content"] == plain["choices"][0]["text"]
        tools = [{"type": "function", "function": {"name": "f"}}]
        assert refused(server, "chat/completions", {"messages": talk, "tools": tools})["param"] == "tools"
