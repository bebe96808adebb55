"""A conversation with a model: who said what, and how the model is asked for the next part.

Knows messages, templates and generation; reads and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .model_options import Loaded
from .sampling_options import seeded

Message = dict[str, str]


@dataclass
class Answer:
    """What the model said and what it took."""

    text: str = ""
    tokens: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    seconds: float = 0.0
    finish_reason: str | None = None
    seed: int | None = None


@dataclass
class Conversation:
    """Messages, the model that answers, and what it remembers of the last prompt.

    A model without a chat template continues the text of all messages instead.
    """

    loaded: Loaded
    settings: dict[str, Any]
    system: str | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        from ..generation import PrefixCache
        from ..nn import DynamicCache

        self.templated = self.loaded.tokenizer.chat_template is not None
        if self.system is not None and not self.templated:
            raise ValueError(f"{self.loaded.name} has no chat template, so no system message.")
        if self.variables and not self.templated:
            raise ValueError(f"{self.loaded.name} has no chat template, so no variables of it.")
        cache = DynamicCache(overwrite=True, dtype=self.settings.get("cache_dtype"))
        self._cache = None if self.loaded.seq2seq else PrefixCache(cache)
        self._ends = self._end_tokens()
        self.answer = Answer()

    # --- asking -------------------------------------------------------------------------------

    def say(self, text: str) -> Iterator[str]:
        """Add what the user says and give the answer in parts.

        Whoever stops listening keeps what has come so far.
        """
        self.messages.append({"role": "user", "content": text})
        try:
            yield from self.reply()
        except Exception:
            if self.messages[-1]["role"] == "user":  # it was never read
                self.messages.pop()
            raise

    def reply(self) -> Iterator[str]:
        """The answer to the last message, in parts; `answer` then tells about it."""
        from ..generation import stream
        from ..generation.prefix import common_length

        ids = self.prompt_ids()
        options = seeded(self.settings)
        answer = self.answer = Answer(prompt_tokens=len(ids), seed=options["seed"])
        if self._ends:
            options["eos_token_id"] = self._ends
        if self._cache is not None:
            options["past_key_values"] = self._cache
            shared = min(common_length(self._cache.ids, ids), len(ids) - 1)
            answer.reused_tokens = min(shared, len(self._cache))
        began = time.perf_counter()
        events = stream(self.loaded.model, self.loaded.tokenizer, [ids], **options)
        try:
            for event in events:
                answer.text += event.text
                answer.tokens += 1
                answer.finish_reason = event.finish_reason
                if event.text:
                    yield event.text
        finally:
            events.close()  # type: ignore[attr-defined]
            answer.seconds = time.perf_counter() - began
            if answer.finish_reason is None:
                answer.finish_reason = "interrupted"
            self.messages.append({"role": "assistant", "content": answer.text})

    def prompt_ids(self) -> list[int]:
        """The conversation as the model reads it."""
        tokenizer = self.loaded.tokenizer
        if self.templated:
            return list(
                tokenizer.apply_chat_template(
                    self.all_messages(), add_generation_prompt=True, return_dict=False, **self.variables
                )
            )
        ids = list(tokenizer.encode("".join(m["content"] for m in self.messages)))
        if not ids:
            raise ValueError("there is nothing to continue yet; write something first.")
        return ids

    def all_messages(self) -> list[Message]:
        """The messages, with the system's first."""
        first = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*first, *self.messages]

    def _end_tokens(self) -> list[int]:
        """Tokens that end an answer: those the model names, and the one its template puts there."""
        tokenizer, model = self.loaded.tokenizer, self.loaded.model
        named = model.generation_config.eos_token_id
        named = model.config.eos_token_id if named is None else named
        ends = [] if named is None else [named] if isinstance(named, int) else list(named)
        if tokenizer.eos_token_id is not None:
            ends.append(tokenizer.eos_token_id)
        if self.templated:
            mark = "ANSWER"
            talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": mark}]
            try:
                text = tokenizer.apply_chat_template(talk, tokenize=False, **self.variables)
            except Exception:  # a template may refuse such a conversation; it is only a question
                return list(dict.fromkeys(ends))
            after = tokenizer.encode(text.rpartition(mark)[2].lstrip(), add_special_tokens=False)
            if after and after[0] in tokenizer.backend_special_ids():
                ends.append(after[0])
        return list(dict.fromkeys(ends))

    # --- changing -----------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget all that was said."""
        self.messages.clear()

    def undo(self) -> bool:
        """Take back the last question and its answer; whether there was one."""
        for i in range(len(self.messages) - 1, -1, -1):
            if self.messages[i]["role"] == "user":
                del self.messages[i:]
                return True
        return False

    def take_back_answer(self) -> bool:
        """Take back the last answer only; whether a question waits for another."""
        while self.messages and self.messages[-1]["role"] == "assistant":
            self.messages.pop()
        return bool(self.messages)

    def change(self, name: str, value: object) -> None:
        """Change a setting of generation; None makes it the model's own again."""
        from ..generation import GenerationConfig

        if value is None:
            self.settings.pop(name, None)
            return
        changed = {**self.settings, name: value}
        if name == "temperature" and value == 0:
            changed = {k: v for k, v in self.settings.items() if k != "temperature"}
            changed["do_sample"] = False
        elif name in ("temperature", "top_k", "top_p", "min_p", "typical_p"):
            changed["do_sample"] = True
        GenerationConfig().updated(**changed).validate()
        self.settings = changed

    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it."""
        return {"model": self.loaded.name, "system": self.system, "settings": self.settings, "messages": self.messages}

    def restore(self, kept: object) -> None:
        """Become what a file kept; the model stays."""
        messages = kept.get("messages") if isinstance(kept, dict) else None
        if not isinstance(kept, dict) or not isinstance(messages, list) or not all(map(_is_message, messages)):
            raise ValueError("the file holds no conversation.")
        self.messages = [{"role": m["role"], "content": m["content"]} for m in messages]
        if self.templated and isinstance(kept.get("system"), str | None):
            self.system = kept.get("system")
        for name, value in (kept.get("settings") or {}).items():
            self.change(name, value)


def _is_message(m: object) -> bool:
    return isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str)
