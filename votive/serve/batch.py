"""Texts that are stepped together, a row each. Knows no requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rows_cache import RowsCache

if TYPE_CHECKING:
    from ..nn import KVCache
    from .served_model import ServedModel
    from .text import Text


class Batch:
    """Texts in the order of the rows of their cache."""

    def __init__(self, served: ServedModel) -> None:
        self.texts: list[Text] = []
        self.cache = RowsCache(served.cache_dtype)

    def add(self, text: Text, cache: KVCache) -> None:
        """Let a text join; a cache of one row holds all but its last token, and is copied."""
        self.cache.join(cache, text.fed, text.longest)
        self.texts.append(text)

    def remove(self, text: Text) -> None:
        """Let a text leave."""
        row = self.texts.index(text)
        self.cache.leave(row)
        self.texts[row] = self.texts[-1]
        self.texts.pop()

    def clear(self) -> None:
        """Let all leave."""
        self.texts.clear()
        self.cache.reset()
