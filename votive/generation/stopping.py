"""When a text ends: at a token, a length, a string, a time, or where the caller says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import votive

from ..tensor import Tensor

if TYPE_CHECKING:
    from ..text import Tokenizer

# Why a row ended.
EOS, LENGTH, STOP, TIME, OWN = "eos", "length", "stop", "time", "criteria"


# Of ids and scores: whether the texts end, all or each.
Criterion = Callable[[Tensor, Tensor], bool | Tensor | Sequence[bool]]


class Text(Protocol):
    """Texts so far."""

    @property
    def length(self) -> int: ...
    @property
    def ids(self) -> Tensor: ...


class Reader:
    """The text of one row as its tokens come, with what a stop string hides held back."""

    def __init__(self, tokenizer: Tokenizer, stops: str | Iterable[str] | None, eos: set[int]) -> None:
        from ..text import StopMatcher, StreamingDetokenizer

        self._text = StreamingDetokenizer(tokenizer, skip_special_tokens=True)
        self._match = StopMatcher(stops) if stops else None
        # A stop string may be a special token, or have one in it; those are read but not shown.
        self._whole = StreamingDetokenizer(tokenizer, skip_special_tokens=False) if stops else None
        self._watch = StopMatcher(stops or ())
        self._eos = eos
        self.stop: str | None = None

    def add(self, token: int) -> str:
        """The text that is certain to be shown by now; `stop` then says whether it ended."""
        # Not every tokenizer marks the token that ends a text as special.
        if token in self._eos:
            return self._shown("")
        shown = self._shown(self._text.add(token))
        if self._match is None or self._whole is None or self.stop is not None:
            return shown
        before, self.stop = self._watch.add(self._whole.add(token))
        if self.stop is None:
            return shown
        # What was held back may have looked like a beginning; the match began after it.
        return self._match.finish()[: len(before)]

    def finish(self) -> str:
        """The rest of the text."""
        if self.stop is not None:
            return ""
        shown = self._shown(self._text.finish())
        if self._match is None or self.stop is not None:
            return shown
        return shown + self._match.finish()

    def _shown(self, text: str) -> str:
        if self._match is None or self.stop is not None:
            return "" if self.stop is not None else text
        shown, self.stop = self._match.add(text)
        return shown


class Ending:
    """Says for each row and token whether the row ends there, and why.

    `own` are the caller's functions of (ids, scores) that give True, or a truth value per row.
    """

    def __init__(
        self,
        *,
        eos: Iterable[int],
        max_length: int,
        max_time: float | None = None,
        own: Any = None,
        readers: list[Reader] | None = None,
    ) -> None:
        self.eos, self.max_length = set(eos), max_length
        self.own, self.readers = listed(own), readers
        self.deadline = None if max_time is None else time.monotonic() + max_time

    def reasons(self, history: Text, scores: Tensor, tokens: list[int], open_: list[bool]) -> list[Any]:
        """For each row why it ends with its token, or None; `history` has a length and ids."""
        found: list[str | None] = [None] * len(tokens)
        if history.length >= self.max_length:
            found = [LENGTH] * len(tokens)
        elif self.deadline is not None and time.monotonic() >= self.deadline:
            found = [TIME] * len(tokens)
        for criterion in self.own:
            said = criterion(history.ids, scores)
            flags = [said] * len(tokens) if isinstance(said, bool) else _flags(said)
            found = [OWN if f else r for f, r in zip(flags, found, strict=True)]
        for row, token in enumerate(tokens):
            if self.readers is not None and open_[row] and self.readers[row].stop is not None:
                found[row] = STOP
            if token in self.eos:
                found[row] = EOS
        return found


def listed(own: Any, name: str = "stopping_criteria") -> list[Any]:
    """One function or several, as a list."""
    if own is None:
        return []
    given = [own] if callable(own) and not isinstance(own, list) else own
    found = list(given) if isinstance(given, Iterable) else [None]
    if not all(map(callable, found)):
        raise TypeError(f"generate: {name} must be a function or a list of them, got {own!r}.")
    return found


def _flags(said: Any) -> list[bool]:
    if isinstance(said, votive.Tensor):
        return [bool(v) for v in said.flatten().tolist()]
    return [bool(v) for v in said]
