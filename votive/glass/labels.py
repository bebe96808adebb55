"""Tokens as short texts for tables and pictures. Knows no tokenizer by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias


class Decodes(Protocol):
    """A tokenizer, as far as it is needed here."""

    def decode(self, ids: Any) -> str:
        """Ids as text."""
        ...


TokenNames: TypeAlias = Decodes | Callable[[int], object] | Sequence[object]


def token_labels(ids: Sequence[int], tokenizer: TokenNames | None = None) -> list[str]:
    """Each id as a text: what a tokenizer's `decode` gives, or a function, a list, or the number.

    >>> from votive.glass.labels import token_labels
    >>> token_labels([1, 0], ["a", "b"]), token_labels([7])
    (['b', 'a'], ['7'])
    """
    if tokenizer is None:
        return [str(i) for i in ids]
    if isinstance(tokenizer, Sequence):
        return [_visible(str(tokenizer[i])) for i in ids]
    if hasattr(tokenizer, "decode"):
        return [_visible(tokenizer.decode([i])) for i in ids]
    return [_visible(str(tokenizer(i))) for i in ids]


def _visible(text: str) -> str:
    """Spaces and line ends as signs, so that they can be seen."""
    signs = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍"}
    text = "".join(signs.get(c, c if c.isprintable() else "�") for c in text)
    return text or "∅"
