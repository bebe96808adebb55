"""The client in Python: texts, streams, and values as tensors, equal to those of the laboratory here."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import votive
from votive import glass
from votive.serve import Client, Refused
from votive.serve.keys import Keys
from votive.serve.server import Server

from .client import engine, language_model, post, serving, tokenizer
from .test_serving_glass import VECTOR, written

PROMPT = "Once upon a time"
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}


def test_texts_are_those_of_the_server(the_server: Server) -> None:
    client = Client(the_server.url)
    whole = post(the_server, "completions", {"prompt": PROMPT, **GREEDY}).json["choices"][0]["text"]
    assert client.models() == ["tiny"]
    assert client.complete(PROMPT, **GREEDY).text == whole
    assert client.complete(tokenizer().encode(PROMPT), **GREEDY).text == whole
    assert "".join(client.stream(PROMPT, **GREEDY)) == whole
    answer = client.chat("Hi", **GREEDY)
    talk = [{"role": "user", "content": "Hi"}]
    assert Client(f"{the_server.url}/v1/", model="tiny").chat(talk, **GREEDY).text == answer.text
    assert "".join(client.stream(talk, **GREEDY)) == answer.text
    assert answer.finish_reason == "length"
    assert answer.message["role"] == "assistant"


def test_values_inside_come_as_tensors(the_server: Server) -> None:
    client = Client(the_server.url)
    edits = [
        glass.Edit("layers.0.resid_post", "add", votive.tensor(VECTOR), positions=range(1, 4)),
        glass.Edit("layers.1.attn.z", "zero", heads=[2]),
    ]
    steer = {"at": "embed", "vector": votive.tensor(VECTOR) * 0.1}
    answer = client.complete(
        PROMPT,
        **GREEDY,
        captures=["layers.*.resid_post", {"at": "layers.0.attn.pattern", "positions": [-1]}],
        edits=edits,
        steer=steer,
    )
    prompt = tokenizer().encode(PROMPT)
    same = [*edits, glass.Edit("embed", "add", votive.tensor(VECTOR) * 0.1)]
    tokens = written(prompt, same)
    assert answer.text == tokenizer().decode(tokens, skip_special_tokens=True)
    model = language_model()
    with votive.no_grad(), glass.patch(model, same), glass.capture(model, "layers.1.resid_post") as seen:
        model(votive.tensor([[*prompt, *tokens[:-1]]]))
    votive.testing.assert_close(answer["layers.1.resid_post"], seen["layers.1.resid_post"][0], rtol=2e-3, atol=2e-3)
    assert answer["layers.0.attn.pattern"].shape == (1, 4, len(prompt))
    assert answer.captures[-1].positions == [len(prompt) - 1]
    assert [e["positions"] for e in answer.edits] == [3, len(prompt) + 7, len(prompt) + 7]
    with pytest.raises(KeyError, match=r"layers.0.resid_post, layers.1.resid_post"):
        answer["layers.2.resid_post"]
    assert client.complete(PROMPT, **GREEDY, skip="layers.1").edits[0]["do"] == "skip"


def test_what_cannot_be_asked_is_said_here_or_there(the_server: Server) -> None:
    client = Client(the_server.url)
    with pytest.raises(Refused) as refused:
        client.complete(PROMPT, temprature=1)
    assert (refused.value.status, refused.value.param) == (400, "temprature")
    with pytest.raises(Refused, match="there is no place"):
        list(client.stream(PROMPT, captures="layers.9.resid_post"))
    for edit in (
        glass.Edit("layers.0", "skip"),
        glass.Edit("embed", "add", 1.0, samples=[0]),
        glass.Edit("embed", "replace", votive.ones(2, 32)),
    ):
        with pytest.raises(ValueError, match="Client: "):
            client.complete(PROMPT, edits=edit)
    for more in ({"n": 2}, {"stream": True}):
        with pytest.raises(ValueError, match="one text"):
            client.complete(PROMPT, **more)
    with pytest.raises(ValueError, match="http://127"):
        Client("localhost")


def test_keys_and_full_queues() -> None:
    one_engine = engine(max_texts=1, max_waiting=0)
    with serving(one_engine, keys=Keys(["secret"])) as one:
        with pytest.raises(Refused, match="key") as refused:
            Client(one.url, api_key="wrong").models()
        assert refused.value.code == "invalid_api_key"
        client = Client(one.url, api_key="secret")
        refused_before = one_engine.counters.refused
        step, held = one_engine.step, threading.Event()
        one_engine.step = lambda: held.wait(120) and step()  # type: ignore[method-assign]
        first = threading.Thread(target=client.complete, args=(PROMPT,), kwargs=GREEDY)
        first.start()
        while not one_engine.busy:
            time.sleep(0.002)
        with pytest.raises(Refused) as full:
            client.complete(PROMPT)
        held.set()
        first.join(120)
        assert full.value.status == 429
        assert full.value.retry_after is not None
        assert one_engine.counters.refused == refused_before + 1


def test_leaving_a_stream_ends_its_work(the_server: Server) -> None:
    stream = Client(the_server.url).stream(PROMPT, temperature=0, max_tokens=400, ignore_eos=True)
    assert next(stream)
    stream.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(stream)
