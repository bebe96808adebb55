"""What Whisper's rules do to scores: points in time come in pairs and never go back.

Built like the processors of `votive.generation`. Knows no model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import votive

from ..generation import (
    GenerationConfig,
    LogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
from ..tensor import Tensor


class WhisperTimeStampLogitsProcessor(LogitsProcessor):
    """The rules of points in time, as in transformers.

    A text begins with one; after one that ends a part comes another that begins the next, or the
    end; they never fall. Where all of them together are likelier than any word, one comes.

    >>> rules = votive.speech.WhisperTimeStampLogitsProcessor(
    ...     votive.generation.GenerationConfig.from_dict(
    ...         {"no_timestamps_token_id": 2, "eos_token_id": 1}), begin_index=1)
    >>> rules(votive.tensor([[0]]), votive.zeros(1, 5))
    tensor([[-inf, -inf, -inf, 0., 0.]])
    """

    def __init__(
        self, generate_config: GenerationConfig, begin_index: int, max_initial_timestamp_index: int | None = None
    ) -> None:
        extra = generate_config.extra
        if extra.get("no_timestamps_token_id") is None:
            raise ValueError(
                "WhisperTimeStampLogitsProcessor: the generation configuration has no "
                "no_timestamps_token_id, so timestamp tokens are not known."
            )
        self.no_timestamps = int(extra["no_timestamps_token_id"])
        self.first = self.no_timestamps + 1
        ends = generate_config.eos_ids()
        end = ends[0] if ends else generate_config.bos_token_id
        if end is None:
            raise ValueError("WhisperTimeStampLogitsProcessor: the generation configuration has no eos_token_id.")
        self.end = int(end)
        self.begin_index = begin_index
        if max_initial_timestamp_index is None:
            max_initial_timestamp_index = extra.get("max_initial_timestamp_index")
        self.latest_start = max_initial_timestamp_index

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = scores.clone()
        scores[:, self.no_timestamps] = -math.inf
        for row, ids in enumerate(input_ids[:, self.begin_index :].tolist()):
            for start, stop in self.forbidden(ids):
                scores[row, start:stop] = -math.inf
        if input_ids.shape[1] == self.begin_index:
            scores[:, : self.first] = -math.inf
            if self.latest_start is not None:
                scores[:, self.first + self.latest_start + 1 :] = -math.inf
        times = scores[:, self.first :].float().logsumexp(-1)
        words = scores[:, : self.first].float().amax(-1)
        for row in (times > words).nonzero().flatten().tolist():
            scores[row, : self.first] = -math.inf
        return scores

    def forbidden(self, ids: list[int]) -> list[tuple[int, int | None]]:
        """Ranges of tokens that may not follow what was written."""
        found: list[tuple[int, int | None]] = []
        last = bool(ids) and ids[-1] >= self.first
        before = len(ids) < 2 or ids[-2] >= self.first
        if last and before:
            found.append((self.first, None))
        elif last:
            found.append((0, self.end))
        newest = next((i for i in reversed(ids) if i >= self.first), None)
        if newest is not None:
            # A part that was prefix must take time; one that begins may begin where one ended.
            found.append((self.first, newest + int(not (last and not before))))
        return found


def no_speech_probability(logits: Tensor, token: int) -> list[float]:
    """How likely it is that nothing is spoken, from logits (batch, vocabulary) after the start.

    >>> from votive.speech.processors import no_speech_probability
    >>> no_speech_probability(votive.zeros(1, 4), 2)
    [0.25]
    """
    return votive.softmax(logits.float(), -1)[:, token].tolist()


def logits_processors(
    settings: GenerationConfig,
    begin: int,
    *,
    begin_suppress: Sequence[int] | None,
    suppress: Sequence[int] | None,
    timestamps: bool,
    latest_start: int | None = None,
) -> list[Any]:
    """What changes scores, in transformers' order; `begin` is where new tokens begin."""
    found: list[Any] = []
    if begin_suppress:
        found.append(SuppressTokensAtBeginLogitsProcessor(begin_suppress, begin))
    if suppress:
        found.append(SuppressTokensLogitsProcessor(suppress))
    if timestamps:
        found.append(WhisperTimeStampLogitsProcessor(settings, begin, latest_start))
    return found
