"""Tokens handed over one by one, while a window is decoded. Knows no windows and chooses nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..tensor import Tensor


@dataclass(frozen=True)
class Token:
    """A token when it is chosen: its id, how likely it was, and its place in its window's text.

    A text begins with `index` 0, and begins again where it was bad, at a higher `temperature`;
    `start` are the seconds at which the window begins.

    >>> votive.speech.Token(50364, 0.9, index=0).temperature
    0.0
    """

    id: int
    probability: float
    index: int
    temperature: float = 0.0
    start: float = 0.0


class TokenStreamer:
    """A logits processor that sees the scores last, and a streamer that gets what is chosen from them."""

    def __init__(self, on_token: Callable[[Token], None], temperature: float, start: float) -> None:
        self.on_token, self.temperature, self.start = on_token, temperature, start
        self._scores: Tensor | None = None
        self._index = -1  # what comes first is the prompt

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        self._scores = scores
        return scores

    def put(self, tokens: Tensor) -> None:
        """Take what was chosen, as `generate` gives it."""
        if self._index >= 0 and self._scores is not None:
            token = int(tokens.reshape(-1)[0])
            odds = float(self._scores[0].float().softmax(-1)[token])
            self.on_token(Token(token, odds, self._index, self.temperature, self.start))
        self._index += 1

    def end(self) -> None:
        """Nothing more comes."""
