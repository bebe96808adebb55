"""A conversation whose answers come from a server, votive's or another that speaks OpenAI's interface.

Knows messages and requests; reads and prints nothing.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ..serve.client import Client, Refused
from . import UsageError
from .conversation import Answer, Conversation
from .model_options import Loaded
from .sampling_options import seeded

# Settings of generation, and what requests call them.
_FIELDS = {
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "stop_strings": "stop",
    **{
        name: name
        for name in (
            *("temperature", "top_k", "top_p", "min_p", "typical_p", "seed"),
            *("repetition_penalty", "presence_penalty", "frequency_penalty", "no_repeat_ngram_size"),
        )
    },
}


def served_model(client: Client, wanted: str | None) -> str:
    """The model to talk with: the one that is asked for, or the only one."""
    names = _asked(client.models)
    if wanted is not None:
        if wanted not in names:
            raise ValueError(f"{client.url} does not serve {wanted!r}; it serves {', '.join(names) or 'nothing'}.")
        return wanted
    if len(names) != 1:
        raise UsageError(f"{client.url} serves {', '.join(names) or 'nothing'}; choose one with --model NAME")
    return names[0]


def _asked(ask: Any) -> Any:
    """What a server answers, with errors as the program tells them."""
    try:
        return ask()
    except Refused as e:
        raise ValueError(str(e)) from e
    except http.client.HTTPException as e:
        raise ConnectionError(f"the answer is not HTTP as it should be: {type(e).__name__} {e}") from e


@dataclass
class ServedConversation(Conversation):
    """Messages here, the model there."""

    client: Client | None = None

    @classmethod
    def begin(
        cls, client: Client, model: str, settings: dict[str, Any], system: str | None, variables: dict[str, Any]
    ) -> ServedConversation:
        """One with a model of a server."""
        client.model = model
        return cls(Loaded(model, None, None), settings, system, variables, client=client)

    def __post_init__(self) -> None:
        self.templated = True  # the server's business
        self.answer = Answer()
        request_fields(self.settings)

    def reply(self) -> Iterator[str]:
        """The answer to the last message, in parts; `answer` then tells about it."""
        assert self.client is not None
        options = seeded(self.settings)
        fields = request_fields(options)
        if self.variables:
            fields["chat_template_kwargs"] = self.variables
        answer = self.answer = Answer(seed=options["seed"])
        began = time.perf_counter()
        asked = self.client.parts(self.all_messages(), stream_options={"include_usage": True}, **fields)
        begun = False
        try:
            with closing(asked):  # type: ignore[type-var]  # a generator
                while (part := _asked(lambda: next(asked, None))) is not None:
                    begun = True
                    _count(answer, part.get("usage") or {})
                    for choice in part.get("choices") or ():
                        answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
                        text = (choice.get("delta") or {}).get("content")
                        if text:
                            answer.text += text
                            yield text
        finally:
            answer.seconds = time.perf_counter() - began
            if answer.finish_reason is None:
                answer.finish_reason = "interrupted"
            if begun:
                self.messages.append({"role": "assistant", "content": answer.text})

    def change(self, name: str, value: object) -> None:
        """Change a setting of generation; None makes it the model's own again."""
        before = self.settings
        super().change(name, value)
        try:
            request_fields(self.settings)
        except UsageError:
            self.settings = before
            raise


def request_fields(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of generation as the fields of a request.

    >>> from votive.cli.served_conversation import request_fields
    >>> request_fields({"max_new_tokens": 5, "do_sample": False})
    {'max_tokens': 5, 'temperature': 0}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in _FIELDS:
            found[_FIELDS[name]] = value
        elif name == "do_sample":
            if not value:
                found["temperature"] = 0
        else:
            raise UsageError(f"a server takes no --{name.replace('_', '-')}; leave it out with --url")
    return found


def _count(answer: Answer, usage: dict[str, Any]) -> None:
    if usage:
        answer.tokens = int(usage.get("completion_tokens") or 0)
        answer.prompt_tokens = int(usage.get("prompt_tokens") or 0)
        answer.reused_tokens = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
