"""A cache that remembers which ids it has seen, so that prompts that begin alike share the work."""

from __future__ import annotations

from votive import nn


def common_length(a: list[int], b: list[int]) -> int:
    """How many ids two lists begin with in common.

    >>> from votive.generation.prefix import common_length
    >>> common_length([1, 2, 3], [1, 2, 4, 5])
    2
    """
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


class PrefixCache:
    """Keys and values of the last text; the next one reuses what it begins with in common.

    Give the same object as `past_key_values` to each call: only what is new in a prompt is run.
    It serves one text at a time.

    >>> kept = votive.generation.PrefixCache()
    >>> kept
    PrefixCache(0 positions)
    """

    def __init__(self, cache: nn.KVCache | None = None) -> None:
        if cache is not None and cache.get_seq_length():
            raise ValueError("PrefixCache: give an empty cache; what an old one holds is unknown.")
        self.cache = cache if cache is not None else nn.DynamicCache(overwrite=True)
        self.ids: list[int] = []

    def __len__(self) -> int:
        return int(self.cache.get_seq_length())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"PrefixCache({len(self)} positions)"

    def reset(self) -> None:
        """Forget everything."""
        self.cache.reset()
        self.ids = []

    def begin(self, ids: list[int]) -> nn.KVCache:
        """The cache, holding what these ids share with the last; the last id is always new."""
        shared = min(common_length(self.ids, ids), len(self), len(ids) - 1)
        try:
            self.cache.crop(shared)
        except ValueError:  # a window has forgotten what would be needed
            self.cache.reset()
        self.ids = list(ids)
        return self.cache

    def end(self, ids: list[int]) -> None:
        """Remember the ids whose keys and values the cache now holds."""
        self.ids = list(ids[: len(self)])
