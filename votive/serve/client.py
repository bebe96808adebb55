"""Asking a server from Python: texts, streams, and what was found inside as tensors. Knows HTTP and no model."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import votive

from ..glass.edits import Edit
from ..tensor import Tensor

Message = Mapping[str, Any]


class Refused(RuntimeError):
    """What a server says instead of an answer; `param` is the field that it is about.

    >>> from votive.serve.client import Refused
    >>> Refused(429, {"message": "ask again later."}, 2).retry_after
    2
    """

    def __init__(self, status: int, error: Mapping[str, Any], retry_after: int | None = None) -> None:
        super().__init__(str(error.get("message", f"the server answers {status}.")))
        self.status, self.retry_after = status, retry_after
        self.param, self.code = error.get("param"), error.get("code")


@dataclass(frozen=True)
class Captured:
    """Values at a place; the first dimension is that of `positions`, unless they were reduced."""

    at: str
    positions: list[int]
    value: Tensor


@dataclass
class Answer:
    """A text, and what was found inside while it was read and written; `answer[address]` is the values at a place.

    >>> from votive.serve.client import Answer, Captured
    >>> answer = Answer("Hi", "stop", [Captured("embed", [0], votive.ones(1, 2))])
    >>> answer["embed"].shape
    votive.Size([1, 2])
    """

    text: str
    finish_reason: str | None
    captures: list[Captured] = field(default_factory=list)
    edits: list[dict[str, Any]] = field(default_factory=list)  # at how many positions each was made
    message: dict[str, Any] = field(default_factory=dict)  # of a chat, with calls of tools
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, address: str) -> Tensor:
        found = [c for c in self.captures if c.at == address]
        if not found:
            known = ", ".join(c.at for c in self.captures) or "nothing"
            raise KeyError(f"there are no values of {address!r}; there are those of {known}.")
        return found[0].value


class Client:
    """Asks a server for texts.

    >>> client = votive.serve.Client("http://127.0.0.1:8000", model="tales")
    >>> client
    <client of http://127.0.0.1:8000>
    """

    def __init__(self, url: str, *, api_key: str | None = None, model: str | None = None, timeout: float = 600) -> None:
        found = urlsplit(url)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ValueError(f"Client: an address such as http://127.0.0.1:8000 is needed, got {url!r}.")
        self.url, self.model, self.timeout = url.rstrip("/").removesuffix("/v1"), model, timeout
        self._key = api_key
        self._parts = urlsplit(self.url)

    def __repr__(self) -> str:
        return f"<client of {self.url}>"

    def models(self) -> list[str]:
        """The names of what is served."""
        with self._asked("GET", "models", None) as reply:
            return [m["id"] for m in json.loads(reply.read())["data"]]

    def complete(self, prompt: str | Sequence[int], **settings: Any) -> Answer:
        """Go on with a text. `settings` are the fields of a request, and of `glass`: captures, edits, steer, skip.

        A capture is an address or a table of its fields; an edit may be a `votive.glass.Edit`.
        """
        return self._answer("completions", self._body({"prompt": _prompt(prompt)}, settings))

    def chat(self, messages: str | Sequence[Message], **settings: Any) -> Answer:
        """Answer a conversation, or what a user says. `settings` are as in `complete`."""
        return self._answer("chat/completions", self._body({"messages": _messages(messages)}, settings))

    def stream(self, prompt: str | Sequence[int] | Sequence[Message], **settings: Any) -> Iterator[str]:
        """Parts of a text as they are written: of a prompt, or with messages of an answer to them."""
        for part in self.parts(prompt, **settings):
            for choice in part["choices"]:
                text = choice["delta"].get("content") if "delta" in choice else choice["text"]
                if text:
                    yield text

    def parts(self, prompt: str | Sequence[int] | Sequence[Message], **settings: Any) -> Iterator[dict[str, Any]]:
        """The same as the server writes them: with reasons to end and, where they are asked for, counts of tokens."""
        talk = not isinstance(prompt, str) and len(prompt) > 0 and isinstance(prompt[0], Mapping)
        first: dict[str, Any] = {"messages": list(prompt)} if talk else {"prompt": _prompt(prompt)}
        body = self._body(first, settings) | {"stream": True}
        with self._asked("POST", "chat/completions" if talk else "completions", body) as reply:
            for line in reply:
                data = line.decode().strip().removeprefix("data: ")
                if not data:
                    continue
                if data == "[DONE]":
                    return
                part = json.loads(data)
                if "error" in part:
                    raise Refused(reply.status, part["error"])
                yield part
        raise ConnectionError(f"the answer of {self.url} broke off.")

    def _body(self, first: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
        if settings.get("stream") or (settings.get("n") or 1) != 1:
            raise ValueError("Client: an answer has one text; ask again for others, and use stream() for parts of one.")
        inside = {name: settings.pop(name) for name in ("captures", "edits", "steer", "skip") if name in settings}
        body = {**first, **({} if self.model is None else {"model": self.model}), **settings}
        if inside:
            body["glass"] = {name: _listed(name, value) for name, value in inside.items()} | {"format": "base64"}
        return body

    def _answer(self, path: str, body: dict[str, Any]) -> Answer:
        with self._asked("POST", path, body) as reply:
            raw = json.loads(reply.read())
        choice, inside = raw["choices"][0], (raw.get("glass") or {"choices": [{}]})["choices"][0]
        message = choice.get("message", {})
        text = message.get("content") or "" if message else choice["text"]
        captures = [Captured(c["at"], c["positions"], _tensor(c)) for c in inside.get("captures", [])]
        return Answer(text, choice["finish_reason"], captures, inside.get("edits", []), message, raw)

    @contextmanager
    def _asked(self, method: str, path: str, body: dict[str, Any] | None) -> Iterator[http.client.HTTPResponse]:
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=self.timeout)
        headers = {"Accept": "application/json, text/event-stream"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{self._parts.path}/v1/{path}", data, headers)
            reply = connection.getresponse()
            if reply.status != 200:
                raise _refused(reply)
            yield reply
        finally:
            connection.close()


def _refused(reply: http.client.HTTPResponse) -> Refused:
    try:
        error = json.loads(reply.read())["error"]
    except (ValueError, KeyError, TypeError):
        error = {"message": f"the server answers {reply.status} {reply.reason}."}
    after = reply.headers.get("Retry-After", "")
    return Refused(reply.status, error, int(after) if after.isdigit() else None)


def _prompt(given: str | Sequence[Any]) -> Any:
    return given if isinstance(given, str) else [int(t) for t in given]


def _messages(given: str | Sequence[Message]) -> list[Message]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _listed(name: str, value: Any) -> list[Any]:
    """What is asked for inside, as requests have it."""
    items: list[Any] = [value] if isinstance(value, (str, Edit, Mapping)) else list(value)
    if name == "captures":
        return [{"at": one} if isinstance(one, str) else dict(one) for one in items]
    if name == "skip":
        return items
    return [_edit(one) if isinstance(one, Edit) else _plain(one) for one in items]


def _edit(edit: Edit) -> dict[str, Any]:
    """An edit of the laboratory, if a server can make it."""
    if edit.do not in ("replace", "add", "scale", "zero") or edit.samples is not None or edit.runs is not None:
        raise ValueError(
            f"Client: {edit.do!r} at {edit.at!r} is made here only; a server takes replace, add, scale and zero of "
            "positions, heads and features, and skips by name."
        )
    fields = {"value": edit.value, "positions": edit.positions, "heads": edit.heads, "features": edit.features}
    return _plain({"at": edit.at, "do": edit.do, **{k: v for k, v in fields.items() if v is not None}})


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and lists in place of tensors."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Tensor) and value.dim() > 1:
            raise ValueError(f"Client: {name} must be a number or a vector, got shape {tuple(value.shape)}.")
        found[name] = (
            value.tolist() if isinstance(value, Tensor) else list(value) if isinstance(value, tuple) else value
        )
    return found


def _tensor(capture: Mapping[str, Any]) -> Tensor:
    values = np.frombuffer(base64.b64decode(capture["data"]), "<f4").reshape(capture["shape"])
    return votive.tensor(values.astype(np.float32))
