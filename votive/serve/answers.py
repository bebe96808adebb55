"""Answers in the form of OpenAI's interface, whole or in parts. Knows events, no engine."""

from __future__ import annotations

import secrets
import time
from typing import Any

from .events import Chosen, Delta, Done, Ended, Event, Usage
from .tool_calls import Call, CallReader

_REASONS = {"eos": "stop", "stop": "stop", "length": "length", "cancelled": "stop"}


class Answer:
    """What has come of an answer so far; subclasses say what it looks like."""

    whole_object = part_object = prefix = ""

    def __init__(self, model: str, tokenizer: Any, choices: int, *, logprobs: bool = False, ends: set[int]) -> None:
        self.model, self.tokenizer, self.ends = model, tokenizer, ends
        self.identity = f"{self.prefix}-{secrets.token_hex(12)}"
        self.created = int(time.time())
        self.texts = [""] * choices
        self.tokens: list[list[Chosen]] = [[] for _ in range(choices)]
        self.reasons: list[str | None] = [None] * choices
        self.stops: list[str | None] = [None] * choices
        self.wants_logprobs = logprobs
        self.usage = Usage()
        self.glass: dict[str, Any] | None = None

    def take(self, event: Event) -> list[dict[str, Any]]:
        """Take an event; gives the parts of the answer that can be told by it."""
        if isinstance(event, Delta):
            shown = [t for t in event.tokens if t.token not in self.ends]
            self.tokens[event.choice] += shown
            return self.more(event.choice, event.text, shown)
        if isinstance(event, Ended):
            self.reasons[event.choice] = _REASONS[event.reason]
            self.stops[event.choice] = event.stop
            return self.ended(event.choice)
        if isinstance(event, Done):
            self.usage, self.glass = event.usage, event.glass
        return []

    def more(self, choice: int, text: str, tokens: list[Chosen]) -> list[dict[str, Any]]:
        """More text of a choice."""
        raise NotImplementedError

    def ended(self, choice: int) -> list[dict[str, Any]]:
        """The end of a choice."""
        raise NotImplementedError

    def choice(self, choice: int) -> dict[str, Any]:
        """A choice as a whole."""
        raise NotImplementedError

    def whole(self) -> dict[str, Any]:
        """The answer as a whole."""
        found = {
            **self._head(self.whole_object),
            "choices": [self.choice(i) for i in range(len(self.texts))],
            "usage": self.used(),
        }
        return found if self.glass is None else {**found, "glass": self.glass}

    def last_parts(self, usage: bool) -> list[dict[str, Any]]:
        """What follows the last choice's end: what was found inside, and the usage if it is asked for."""
        found = []
        if self.glass is not None:
            found.append({**self._head(self.part_object), "choices": [], "glass": self.glass})
        if usage:
            found.append({**self._head(self.part_object), "choices": [], "usage": self.used()})
        return found

    def part(self, **choice: Any) -> dict[str, Any]:
        """A part of the answer that is about one choice."""
        return {**self._head(self.part_object), "choices": [choice]}

    def used(self) -> dict[str, Any]:
        """How many tokens were read and written."""
        u = self.usage
        return {
            "prompt_tokens": u.prompt,
            "completion_tokens": u.completion,
            "total_tokens": u.prompt + u.completion,
            "prompt_tokens_details": {"cached_tokens": u.reused},
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.identity, "object": kind, "created": self.created, "model": self.model}

    def text_of(self, token: int) -> str:
        """A token as text."""
        return str(self.tokenizer.decode([token]))

    def name_of(self, token: int) -> str:
        """A token as text that tells it from others: parts of characters by their bytes, as OpenAI names them."""
        # Models may have more tokens than their tokenizer, so that their number is a round one.
        if token >= len(self.tokenizer):
            return f"token:{token}"
        raw = self.tokenizer.token_bytes(token)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{b:02x}" for b in raw)
        return self.text_of(token)


class ChatAnswer(Answer):
    """An answer to a conversation; with tools, of which some may be called.

    >>> from votive.serve.answers import ChatAnswer
    >>> tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
    >>> answer = ChatAnswer("tiny", tok, 1, ends=set())
    >>> _ = answer.take(votive.serve.Delta(0, "Hi")), answer.take(votive.serve.Ended(0, "eos"))
    >>> answer.choice(0)["message"], answer.choice(0)["finish_reason"]
    ({'role': 'assistant', 'content': 'Hi'}, 'stop')
    """

    whole_object, part_object, prefix = "chat.completion", "chat.completion.chunk", "chatcmpl"

    def __init__(
        self, *args: Any, tools: set[str] | None = None, forced: bool = False, parallel: bool = True, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.parallel = parallel
        count = len(self.texts)
        self.readers = None if tools is None else [CallReader(tools, forced) for _ in range(count)]
        self.calls: list[list[Call]] = [[] for _ in range(count)]
        self._begun = [False] * count

    def more(self, choice: int, text: str, tokens: list[Chosen]) -> list[dict[str, Any]]:
        if self.readers is not None:
            text = self.readers[choice].add(text)
        self.texts[choice] += text
        found = self._beginning(choice)
        if text or (tokens and self.wants_logprobs):
            found.append(self._part(choice, {"content": text}, tokens))
        return found

    def ended(self, choice: int) -> list[dict[str, Any]]:
        found = self._beginning(choice)
        if self.readers is not None:
            rest, self.calls[choice] = self.readers[choice].finish()
            if not self.parallel:
                del self.calls[choice][1:]
            self.texts[choice] += rest
            if rest:
                found.append(self._part(choice, {"content": rest}))
            for i, call in enumerate(self.calls[choice]):
                found.append(self._part(choice, {"tool_calls": [call.to_json(i)]}))
        if self.calls[choice] and self.reasons[choice] == "stop":
            self.reasons[choice] = "tool_calls"
        return [*found, self._part(choice, {}, reason=self.reasons[choice])]

    def _beginning(self, choice: int) -> list[dict[str, Any]]:
        if self._begun[choice]:
            return []
        self._begun[choice] = True
        return [self._part(choice, {"role": "assistant", "content": ""})]

    def _part(
        self, choice: int, delta: dict[str, Any], tokens: list[Chosen] | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        logprobs = self._logprobs(tokens) if tokens and self.wants_logprobs else None
        return self.part(index=choice, delta=delta, logprobs=logprobs, finish_reason=reason)

    def choice(self, choice: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.texts[choice]}
        if self.calls[choice]:
            message["content"] = self.texts[choice] or None
            message["tool_calls"] = [c.to_json() for c in self.calls[choice]]
        return {
            "index": choice,
            "message": message,
            "logprobs": self._logprobs(self.tokens[choice]) if self.wants_logprobs else None,
            "finish_reason": self.reasons[choice],
        }

    def _logprobs(self, tokens: list[Chosen]) -> dict[str, Any]:
        return {
            "content": [
                {**self._scored(t.token, t.logprob), "top_logprobs": [self._scored(*pair) for pair in t.top]}
                for t in tokens
            ],
            "refusal": None,
        }

    def _scored(self, token: int, logprob: float | None) -> dict[str, Any]:
        raw = self.tokenizer.token_bytes(token) if token < len(self.tokenizer) else b""
        # JSON has no infinities; OpenAI's own answers say -9999 for what cannot come.
        value = max(logprob if logprob is not None else 0.0, -9999.0)
        return {"token": self.text_of(token), "logprob": value, "bytes": list(raw)}


class CompletionAnswer(Answer):
    """A text that goes on, with `echo` behind its prompt.

    >>> from votive.serve.answers import CompletionAnswer
    >>> tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
    >>> answer = CompletionAnswer("tiny", tok, 1, ends=set())
    >>> answer.take(votive.serve.Delta(0, "Hi"))[0]["choices"][0]["text"]
    'Hi'
    """

    whole_object, part_object, prefix = "text_completion", "text_completion", "cmpl"

    def __init__(self, *args: Any, echo: list[str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._echo = list(echo) if echo is not None else [""] * len(self.texts)
        self._lengths = [0] * len(self.texts)  # characters before the next token, for offsets

    def more(self, choice: int, text: str, tokens: list[Chosen]) -> list[dict[str, Any]]:
        text, self._echo[choice] = self._echo[choice] + text, ""
        self.texts[choice] += text
        if not text and not (tokens and self.wants_logprobs):
            return []
        return [self._part(choice, text, tokens)]

    def ended(self, choice: int) -> list[dict[str, Any]]:
        return [self._part(choice, "", reason=self.reasons[choice])]

    def _part(
        self, choice: int, text: str, tokens: list[Chosen] | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        logprobs = None
        if tokens and self.wants_logprobs:
            logprobs = self._logprobs(tokens, self._lengths[choice])
            self._lengths[choice] += sum(len(self.text_of(t.token)) for t in tokens)
        return self.part(index=choice, text=text, logprobs=logprobs, finish_reason=reason)

    def choice(self, choice: int) -> dict[str, Any]:
        return {
            "index": choice,
            "text": self.texts[choice],
            "logprobs": self._logprobs(self.tokens[choice], 0) if self.wants_logprobs else None,
            "finish_reason": self.reasons[choice],
        }

    def _logprobs(self, tokens: list[Chosen], offset: int) -> dict[str, Any]:
        texts, offsets = [self.text_of(t.token) for t in tokens], []
        for text in texts:
            offsets.append(offset)
            offset += len(text)
        return {
            "tokens": [self.name_of(t.token) for t in tokens],
            "token_logprobs": [max(t.logprob if t.logprob is not None else 0.0, -9999.0) for t in tokens],
            "top_logprobs": [{self.name_of(i): max(p, -9999.0) for i, p in t.top} for t in tokens],
            "text_offset": offsets,
        }
