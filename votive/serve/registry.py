"""The models of a server by name, and what each can be asked for. Knows no HTTP."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from .chat import ends_of
from .engine import Engine
from .errors import ApiError
from .keys import Permissions


@dataclass
class Writer:
    """A model that writes."""

    name: str
    engine: Engine
    ends: list[int] = field(default_factory=list)


@dataclass
class Embedder:
    """A model that makes vectors of texts."""

    name: str
    model: Any


@dataclass
class Hearer:
    """A model that writes down what is said: a `votive.speech.Transcriber`."""

    name: str
    model: Any


class Registry:
    """All models of a server.

    >>> from votive.serve.registry import Registry
    >>> Registry().names()
    []
    """

    def __init__(self) -> None:
        self.writers: dict[str, Writer] = {}
        self.embedders: dict[str, Embedder] = {}
        self.hearers: dict[str, Hearer] = {}
        self.created = int(time.time())

    def add_writer(self, engine: Engine) -> None:
        """A model that writes, under its own name."""
        name = engine.served.name
        self._check_free(name)
        self.writers[name] = Writer(name, engine, ends_of(engine.served.tokenizer))

    def add_embedder(self, name: str, model: Any) -> None:
        """A `votive.models.SentenceEncoder`."""
        self._check_free(name)
        self.embedders[name] = Embedder(name, model)

    def add_hearer(self, name: str, model: Any) -> None:
        """A `votive.speech.Transcriber`."""
        self._check_free(name)
        self.hearers[name] = Hearer(name, model)

    def _check_free(self, name: str) -> None:
        if name in self.names():
            raise ValueError(f"serve: two models are called {name!r}; give one another name, as NAME=MODEL.")

    def names(self) -> list[str]:
        """All names, in the order in which they were given."""
        return [*self.writers, *self.embedders, *self.hearers]

    def engines(self) -> list[Engine]:
        """The engines of all models that write."""
        return [w.engine for w in self.writers.values()]

    def writer(self, name: Any, allowed: Permissions) -> Writer:
        """The model that writes which a request names; the only one where it names none."""
        found: Writer = self._found(self.writers, name, allowed, "that writes texts")
        return found

    def embedder(self, name: Any, allowed: Permissions) -> Embedder:
        """The model that makes vectors which a request names; the only one where it names none."""
        found: Embedder = self._found(self.embedders, name, allowed, "that makes vectors")
        return found

    def hearer(self, name: Any, allowed: Permissions) -> Hearer:
        """The model that hears which a request names; the only one where it names none."""
        found: Hearer = self._found(self.hearers, name, allowed, "that hears")
        return found

    def _found(self, table: dict[str, Any], name: Any, allowed: Permissions, what: str) -> Any:
        known = [n for n in table if allowed.allows_model(n)]
        if name is None and len(known) == 1:
            name = known[0]
        if not isinstance(name, str) or name not in known:
            listed = ", ".join(known) if known else "none"
            said = f"{name!r:.100}" if name is not None else "without a name"
            raise ApiError(
                404, f"there is no model {said} {what}; there are: {listed}.", param="model", code="model_not_found"
            )
        return table[name]
