"""Finding stop strings in text that comes in parts. Knows strings only."""

from __future__ import annotations

from collections.abc import Iterable


class StopMatcher:
    """Passes text on until a stop string begins; nothing of a stop string is ever passed on.

    `add` returns the text that is safe to show and the stop string that ended it, or None. The
    match that is complete first wins, the longest of those that end together.

    >>> stop = votive.text.StopMatcher(["</s>"])
    >>> stop.add("Hi <"), stop.add("/s> more")
    (('Hi ', None), ('', '</s>'))
    """

    def __init__(self, stops: str | Iterable[str]) -> None:
        self.stops = [stops] if isinstance(stops, str) else list(dict.fromkeys(stops))
        if any(not isinstance(s, str) or not s for s in self.stops):
            raise ValueError(f"StopMatcher: stop strings are not empty; got {self.stops!r}.")
        # What can still begin a match, for each stop string.
        self._prefixes = {s[:k] for s in self.stops for k in range(1, len(s))}
        self._longest = max(map(len, self.stops), default=1)
        self._held = ""
        self.rest = ""
        self.hit: str | None = None

    def add(self, text: str) -> tuple[str, str | None]:
        """The text that is certain to be shown, and the stop string found (then `rest` follows)."""
        if self.hit is not None:
            raise RuntimeError(f"StopMatcher.add: {self.hit!r} was found; call reset() first.")
        text = self._held + text
        at, hit = self._find(text)
        if hit is not None:
            self._held, self.hit, self.rest = "", hit, text[at + len(hit) :]
            return text[:at], hit
        keep = self._open(text)
        self._held = text[keep:]
        return text[:keep], None

    def finish(self) -> str:
        """The text held back because it could have begun a stop string."""
        held, self._held = self._held, ""
        return held

    def reset(self) -> None:
        """Begin another text."""
        self._held = self.rest = ""
        self.hit = None

    def _find(self, text: str) -> tuple[int, str | None]:
        found = [(at + len(s), at, s) for s in self.stops if (at := text.find(s)) >= 0]
        # By where a match ends, so that the result does not depend on how the text was cut.
        _, at, hit = min(found, default=(0, 0, None))
        return at, hit

    def _open(self, text: str) -> int:
        for k in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[k:] in self._prefixes:
                return k
        return len(text)
