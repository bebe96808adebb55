"""Asking a server over HTTP, and a small server to ask."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import votive
from votive.serve import Engine, ServedModel
from votive.serve.keys import Keys
from votive.serve.registry import Registry
from votive.serve.server import Server

TEMPLATE = (
    "{% for t in tools or [] %}[tool {{ t.function.name }}]{% endfor %}"
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}"
    "{% for c in m.tool_calls or [] %}(call {{ c.function.name }}){% endfor %}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
TEXT = "Once upon a time there was a queen who had a cat. The cat liked fish and milk. yes no"


class Answer(NamedTuple):
    """What a server says."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        found = json.loads(self.text)["error"]
        assert set(found) == {"message", "type", "param", "code"}
        return dict(found)


def tokenizer() -> Any:
    """A tokenizer of 320 tokens, in which 0 ends a text, with a chat template."""
    made = votive.text.train_bpe([TEXT], vocab_size=320, special_tokens=["<end>"], progress=False)
    made.eos_token = "<end>"
    made.chat_template = TEMPLATE
    return made


def language_model(**changes: Any) -> Any:
    """A tiny model with random weights."""
    votive.manual_seed(0)
    sizes = {
        "vocab_size": 320,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.3,
        "max_position_embeddings": 512,
        "eos_token_id": 0,
        **changes,
    }
    return votive.models.LlamaForCausalLM(votive.models.LlamaConfig(**sizes)).eval()


def engine(name: str = "tiny", **options: Any) -> Engine:
    """An engine over it."""
    return Engine(ServedModel(name, language_model(), tokenizer()), **options)


@contextmanager
def serving(
    *engines: Engine, keys: Keys | None = None, encoder: Any = None, hearer: Any = None, **options: Any
) -> Iterator[Server]:
    """A server on a free port, in a thread."""
    registry = Registry()
    for one in engines or (engine(),):
        registry.add_writer(one)
    if encoder is not None:
        registry.add_embedder("vectors", encoder)
    if hearer is not None:
        registry.add_hearer("whisper", hearer)
    with Server(registry, keys=keys, **options) as server:
        yield server


def send(one: Server, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """Ask, and take the answer whole."""
    asked = http.client.HTTPConnection("127.0.0.1", one.port, timeout=120)
    data = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
    named = {"content-type": "application/json"} if body is not None else {}
    try:
        asked.request(method, path, data, {**named, **{k.replace("_", "-"): v for k, v in headers.items()}})
        reply = asked.getresponse()
        found = {k.lower(): v for k, v in reply.getheaders()}
        return Answer(reply.status, found, reply.read().decode())
    finally:
        asked.close()


def post(one: Server, path: str, body: Any, **headers: str) -> Answer:
    """Ask for something, with JSON."""
    return send(one, "POST", f"/v1/{path}", body, **headers)


def get(one: Server, path: str, **headers: str) -> Answer:
    """Ask for something that is there."""
    return send(one, "GET", path, **headers)


def parts(answer: Answer) -> list[Any]:
    """The parts of an answer that came as a stream, which ends as it should."""
    assert answer.status == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    lines = answer.text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    assert all(line.startswith("data: ") for line in lines[:-1])
    return [json.loads(line[6:]) for line in lines[:-2]]
