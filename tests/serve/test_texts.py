"""Texts over HTTP: what clients of OpenAI's interface ask for, and what they get."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from typing import Any

import pytest

import votive
from votive.serve.server import Server

from .client import get, language_model, parts, post, tokenizer

PROMPT = "Once upon a time"
ALL = {"prompt": PROMPT, "temperature": 0, "max_tokens": 12, "ignore_eos": True}
TALK = {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 8, "ignore_eos": True}


def expected(prompt: list[int], new: int, **options: Any) -> str:
    """What `generate` writes."""
    model, words = language_model(), tokenizer()
    out = votive.generation.generate(model, votive.tensor([prompt]), max_new_tokens=new, eos_token_id=None, **options)
    return str(words.decode(out[0].tolist()[len(prompt) :], skip_special_tokens=True))


def test_a_completion_is_that_of_generate(the_server: Server) -> None:
    answer = post(the_server, "completions", ALL)
    assert answer.status == 200
    found, ids = answer.json, tokenizer().encode(PROMPT)
    assert found["choices"] == [{"index": 0, "text": expected(ids, 12), "logprobs": None, "finish_reason": "length"}]
    assert found["usage"]["prompt_tokens"] == len(ids)
    assert found["usage"]["completion_tokens"] == 12
    assert found["usage"]["total_tokens"] == len(ids) + 12
    assert (found["object"], found["model"]) == ("text_completion", "tiny")
    assert answer.headers["cache-control"] == "no-store"


def test_a_chat_is_what_the_template_makes_of_it(the_server: Server) -> None:
    words = tokenizer()
    prompt = words.apply_chat_template(TALK["messages"], add_generation_prompt=True, return_dict=False)
    found = post(the_server, "chat/completions", TALK).json
    assert found["object"] == "chat.completion"
    assert found["choices"][0]["message"] == {"role": "assistant", "content": expected(prompt, 8)}
    assert found["usage"]["prompt_tokens"] == len(prompt)
    newer = {**TALK, "max_completion_tokens": 8, "max_tokens": None, "model": "tiny"}
    assert post(the_server, "chat/completions", newer).json["choices"] == found["choices"]


@pytest.mark.parametrize("path", ["completions", "chat/completions"])
def test_a_stream_says_what_the_whole_answer_says(the_server: Server, path: str) -> None:
    asked = {**(ALL if path == "completions" else TALK), "n": 2, "temperature": 0.8, "seed": 4}
    whole = post(the_server, path, asked).json
    found = parts(post(the_server, path, {**asked, "stream": True, "stream_options": {"include_usage": True}}))
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert all(p["usage"] is None for p in found[:-1])
    assert {p["id"] for p in found} == {found[0]["id"]}
    for i, choice in enumerate(whole["choices"]):
        mine = [c for p in found for c in p["choices"] if c["index"] == i]
        if path == "completions":
            assert "".join(c["text"] for c in mine) == choice["text"]
        else:
            assert mine[0]["delta"] == {"role": "assistant", "content": ""}
            assert "".join(c["delta"].get("content", "") for c in mine) == choice["message"]["content"]
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == [choice["finish_reason"]]


def test_without_usage_asked_for_no_part_has_any(the_server: Server) -> None:
    found = parts(post(the_server, "completions", {**ALL, "stream": True}))
    assert all("usage" not in p for p in found)
    assert len([p for p in found if p["choices"][0]["text"]]) > 1


def test_stop_strings_end_a_text_and_are_not_shown(the_server: Server) -> None:
    whole = post(the_server, "completions", {**ALL, "max_tokens": 40}).json["choices"][0]["text"]
    stop = whole[12:15]
    for given in (stop, [stop, "no such text"]):
        found = post(the_server, "completions", {**ALL, "max_tokens": 40, "stop": given}).json["choices"][0]
        assert found["text"] == whole[: whole.index(stop)]
        assert found["finish_reason"] == "stop"
    streamed = parts(post(the_server, "completions", {**ALL, "max_tokens": 40, "stop": stop, "stream": True}))
    assert "".join(c["text"] for p in streamed for c in p["choices"]) == whole[: whole.index(stop)]


def test_seeds_repeat_and_differ(the_server: Server) -> None:
    def text(**more: Any) -> list[str]:
        asked = {**ALL, "temperature": 1, "n": 2, **more}
        return [c["text"] for c in post(the_server, "completions", asked).json["choices"]]

    assert text(seed=1) == text(seed=1)
    assert text(seed=1) != text(seed=2)
    assert text() != text()
    first, second = text(seed=1)
    assert first != second


def test_several_prompts_and_tokens_as_prompts(the_server: Server) -> None:
    words = tokenizer()
    one, two = PROMPT, "The cat"
    texts = post(the_server, "completions", {**ALL, "prompt": [one, two], "n": 2}).json["choices"]
    assert [c["index"] for c in texts] == [0, 1, 2, 3]
    assert [c["text"] for c in texts] == [expected(words.encode(p), 12) for p in (one, one, two, two)]
    ids = post(the_server, "completions", {**ALL, "prompt": [words.encode(one), words.encode(two)]}).json["choices"]
    assert [c["text"] for c in ids] == [texts[0]["text"], texts[2]["text"]]
    flat = post(the_server, "completions", {**ALL, "prompt": words.encode(one), "echo": True}).json["choices"]
    assert flat[0]["text"] == PROMPT + texts[0]["text"]


def test_log_probabilities_of_completions(the_server: Server) -> None:
    found = post(the_server, "completions", {**ALL, "max_tokens": 3, "logprobs": 2}).json["choices"][0]
    told, words = found["logprobs"], tokenizer()
    assert len(told["tokens"]) == 3
    assert told["text_offset"][0] == 0
    assert told["text_offset"] == sorted(told["text_offset"])
    logits = language_model()(votive.tensor([words.encode(PROMPT)])).logits[0, -1].log_softmax(-1)
    assert told["token_logprobs"][0] == pytest.approx(float(logits.max()), abs=1e-4)
    assert all(len(t) == 2 for t in told["top_logprobs"])
    assert [max(t, key=t.get) for t in told["top_logprobs"]] == told["tokens"]  # greedy
    streamed = parts(post(the_server, "completions", {**ALL, "max_tokens": 3, "logprobs": 2, "stream": True}))
    tokens = [t for p in streamed for c in p["choices"] if c["logprobs"] for t in c["logprobs"]["tokens"]]
    assert tokens == told["tokens"]


def test_log_probabilities_of_chats(the_server: Server) -> None:
    found = post(the_server, "chat/completions", {**TALK, "logprobs": True, "top_logprobs": 3}).json["choices"][0]
    content = found["logprobs"]["content"]
    assert len(content) == 8
    for one in content:
        assert one["logprob"] <= 0
        assert len(one["top_logprobs"]) == 3
        assert one["top_logprobs"][0]["logprob"] == one["logprob"]  # greedy
    # What a client puts together of the bytes is the text, also where characters are torn.
    assert bytes(b for t in content for b in t["bytes"]).decode("utf-8", "replace") == found["message"]["content"]


def test_settings_are_honoured(the_server: Server) -> None:
    def text(**more: Any) -> str:
        return str(post(the_server, "completions", {**ALL, **more}).json["choices"][0]["text"])

    ids, plain = tokenizer().encode(PROMPT), text()
    seeded = {"temperature": 1.3, "seed": 9}
    assert text(**seeded, top_k=3) == expected(ids, 12, do_sample=True, seed=9, temperature=1.3, top_k=3)
    assert text(**seeded, top_p=0.5) == expected(ids, 12, do_sample=True, seed=9, temperature=1.3, top_p=0.5, top_k=0)
    assert text(**seeded, min_p=0.2) == expected(ids, 12, do_sample=True, seed=9, temperature=1.3, min_p=0.2, top_k=0)
    assert text(**seeded, top_p=0) == plain
    assert text(repetition_penalty=1.5) == expected(ids, 12, repetition_penalty=1.5)
    assert text(presence_penalty=2, frequency_penalty=2) == expected(ids, 12, presence_penalty=2, frequency_penalty=2)
    token = tokenizer().encode("queen")[0]
    assert text(logit_bias={str(token): 100}, max_tokens=3) == tokenizer().decode([token] * 3)
    best = language_model()(votive.tensor([ids])).logits[0, -1].argmax().item()
    assert text(logit_bias={str(best): -100}) != plain
    assert text(stop_token_ids=[best]) == ""


def test_a_text_ends_at_its_end_unless_told_otherwise(the_server: Server) -> None:
    asked = {**ALL, "ignore_eos": False, "logit_bias": {"0": 100}}
    found = post(the_server, "completions", asked).json
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["choices"][0]["text"] == ""
    assert found["usage"]["completion_tokens"] == 1
    held = post(the_server, "completions", {**asked, "min_tokens": 5, "logprobs": 0}).json
    assert held["usage"]["completion_tokens"] == 6


def test_a_chat_goes_on_with_a_message_that_was_begun(the_server: Server) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "The cat"}]
    found = post(the_server, "chat/completions", {**TALK, "messages": talk, "continue_final_message": True}).json
    prompt = tokenizer().apply_chat_template(talk, continue_final_message=True, return_dict=False)
    assert found["choices"][0]["message"]["content"] == expected(prompt, 8)


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "How it is outside.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Ulm", "Bonn"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
FORMS = importlib.util.find_spec("llguidance") is not None
needs_forms = pytest.mark.skipif(not FORMS, reason="forms of texts are found by llguidance")


@needs_forms
@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_that_must_be_called_is_called(the_server: Server, stream: bool) -> None:
    asked = {**TALK, "max_tokens": 200, "ignore_eos": False, "tools": [TOOL], "tool_choice": "required"}
    answer = post(the_server, "chat/completions", {**asked, "stream": stream})
    if stream:
        deltas = [c for p in parts(answer) for c in p["choices"]]
        calls = [call for c in deltas for call in c["delta"].get("tool_calls", [])]
        assert deltas[-1]["finish_reason"] == "tool_calls"
        assert not any(c["delta"].get("content") for c in deltas)
    else:
        choice = answer.json["choices"][0]
        calls = choice["message"]["tool_calls"]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] is None
    assert len(calls) == 1
    assert calls[0]["function"]["name"] == "weather"
    assert json.loads(calls[0]["function"]["arguments"])["city"] in ("Ulm", "Bonn")


def test_tools_and_their_answers_are_given_to_the_template(the_server: Server) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
    talk = [
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ]
    found = post(the_server, "chat/completions", {**TALK, "messages": talk, "tools": [TOOL]}).json
    text = "[tool weather][user] And?<end>[assistant] (call weather)<end>[tool] rain<end>[assistant] "
    assert found["usage"]["prompt_tokens"] == len(tokenizer().encode(text, add_special_tokens=False))
    assert found["choices"][0]["finish_reason"] == "length"


def test_calls_are_read_as_models_write_them() -> None:
    from votive.serve.answers import ChatAnswer
    from votive.serve.events import Delta, Ended

    def answered(text: str, **options: Any) -> dict[str, Any]:
        """What comes of a text that is told letter by letter."""
        made = ChatAnswer("tiny", tokenizer(), 1, ends=set(), tools={"f", "g"}, **options)
        streamed = [p for c in text for p in made.take(Delta(0, c))] + made.take(Ended(0, "eos"))
        shown = "".join(p["choices"][0]["delta"].get("content", "") for p in streamed)
        whole = made.choice(0)
        assert shown == (whole["message"]["content"] or "")
        return dict(whole)

    one, two = '{"name": "f", "arguments": {"x": 1}}', '{"name": "g", "parameters": {}}'
    for text, content, names in [
        (f"<tool_call>{one}</tool_call>", None, ["f"]),
        (f"Let me see.<tool_call>\n{one}\n</tool_call>\n<tool_call>{two}</tool_call>", "Let me see.", ["f", "g"]),
        (f"[TOOL_CALLS] [{one}, {two}]", None, ["f", "g"]),
        (one, None, ["f"]),
        (f"[{two}]", None, ["g"]),
        ("<tool_call>{broken</tool_call>", "<tool_call>{broken</tool_call>", []),
        ('{"name": "h", "arguments": {}}', '{"name": "h", "arguments": {}}', []),
        ('{"name": ["f"]}', '{"name": ["f"]}', []),
        ("a < b, and <tool is no mark", "a < b, and <tool is no mark", []),
    ]:
        found = answered(text)
        assert found["message"]["content"] == content, text
        assert [c["function"]["name"] for c in found["message"].get("tool_calls", [])] == names
        assert found["finish_reason"] == ("tool_calls" if names else "stop")
    single = answered(f"[{one}, {two}]", parallel=False)["message"]["tool_calls"]
    assert [c["function"]["name"] for c in single] == ["f"]


@needs_forms
def test_texts_of_a_form(the_server: Server) -> None:
    def text(**more: Any) -> str:
        # Between the parts of JSON there may be any number of spaces, and random weights would write them.
        words = tokenizer()
        spaces = {str(i): -100 for i in range(len(words)) if words.token_bytes(i).isspace()}
        asked = {**TALK, "max_tokens": 400, "ignore_eos": False, "logit_bias": spaces, **more}
        found = post(the_server, "chat/completions", asked)
        assert found.status == 200, found.text
        return str(found.json["choices"][0]["message"]["content"])

    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}},
        "required": ["age", "ok"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}}
    found = json.loads(text(response_format=form))
    assert isinstance(found["ok"], bool)
    assert 0 <= found["age"] <= 99
    assert text(choices=["yes", "no"]) in ("yes", "no")
    assert text(regex="[0-9]{4}").isdigit()
    assert text(response_format={"type": "text"}, max_tokens=5)


def test_without_llguidance_forms_are_refused_and_it_is_said_what_to_do(
    the_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    answer = post(the_server, "chat/completions", {**TALK, "ignore_eos": False, "regex": "[0-9]"})
    assert answer.status == 400
    assert "llguidance" in answer.error["message"]


def test_models_are_listed(the_server: Server) -> None:
    listed = get(the_server, "/v1/models").json
    assert [m["id"] for m in listed["data"]] == ["tiny"]
    assert listed["data"][0]["max_model_len"] == 512
    assert get(the_server, "/v1/models/tiny").json["id"] == "tiny"
    missing = get(the_server, "/v1/models/large")
    assert (missing.status, missing.error["code"]) == (404, "model_not_found")


def test_health_and_numbers_for_prometheus(the_server: Server) -> None:
    assert get(the_server, "/health").json == {"status": "ok"}
    post(the_server, "completions", ALL)
    answer = get(the_server, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values: dict[str, float] = {}
    for line in answer.text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    assert values['votive_texts_writing{model="tiny"}'] == 0
    assert values['votive_blocks_held{model="tiny"}'] == 0
    assert values['votive_completion_tokens_total{model="tiny"}'] >= 12
    assert values['votive_http_answers_total{path="/v1/completions",status="200"}'] >= 1
    assert all(math.isfinite(v) for v in values.values())
    types = [line for line in answer.text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) > 15
