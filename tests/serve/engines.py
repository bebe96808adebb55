"""Engines over tiny models, and what comes of requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import votive
from tests.generation.tiny import model
from votive.generation import GenerationConfig
from votive.generation.preparing import settings_of
from votive.serve import Delta, Done, Ended, Engine, Failed, ServedModel, TextRequest


@dataclass
class Answers:
    """What an engine told of a request."""

    events: list[Any] = field(default_factory=list)
    ticket: Any = None

    def tokens(self, choice: int = 0) -> list[int]:
        """The tokens of a text."""
        deltas = [e for e in self.events if isinstance(e, Delta) and e.choice == choice]
        return [t.token for e in deltas for t in e.tokens]

    def logprobs(self, choice: int = 0) -> list[float | None]:
        """What the model thought of them."""
        deltas = [e for e in self.events if isinstance(e, Delta) and e.choice == choice]
        return [t.logprob for e in deltas for t in e.tokens]

    def reasons(self) -> list[str]:
        """Why the texts ended."""
        ended = sorted((e for e in self.events if isinstance(e, Ended)), key=lambda e: e.choice)
        return [e.reason for e in ended]

    @property
    def error(self) -> Exception | None:
        """Why the request failed."""
        return next((e.error for e in self.events if isinstance(e, Failed)), None)

    @property
    def done(self) -> Done:
        """The last event."""
        assert isinstance(self.events[-1], Done), self.events[-1]
        return self.events[-1]


def served(kind: str = "llama", **changes: Any) -> ServedModel:
    """A tiny model of a family, without a tokenizer."""
    return ServedModel(kind, model(kind, **changes), None)


def settings(one: Engine, **asked: Any) -> GenerationConfig:
    """Settings as requests have them."""
    return settings_of(one.served.model, None, asked)


def ask(one: Engine, *prompts: list[int], new: int = 8, **options: Any) -> Answers:
    """Ask an engine for texts; nothing is done yet."""
    request = {k: options.pop(k) for k in ("n", "logprobs", "glass", "share") if k in options}
    found = Answers()
    config = settings(one, **options)
    found.ticket = one.submit(TextRequest(list(prompts), config, new, **request), found.events.append)
    return found


def run(one: Engine, steps: int = 2000) -> None:
    """Step until nothing is left to do."""
    for _ in range(steps):
        if not one.step():
            return
    raise AssertionError("the engine does not come to an end")


def written(one: Engine, prompt: list[int], new: int = 8, **options: Any) -> list[int]:
    """What `generate` writes."""
    ids = votive.tensor([prompt])
    # A mask, or tokens that are those of padding would be taken for it.
    mask = votive.ones_like(ids)
    out = votive.generation.generate(one.served.model, ids, attention_mask=mask, max_new_tokens=new, **options)
    return [int(t) for t in out[0].tolist()[len(prompt) :]]
