"""Scores that depend on what was read: the prompt of a decoder, the text that an encoder got. Knows no model."""

from __future__ import annotations

import math

import votive
from votive.core import dtype as dt

from ..tensor import Tensor
from .warpers import LogitsProcessor


def _for_rows(read: Tensor, rows: int) -> Tensor:
    """What was read, repeated for the rows that continue it."""
    if rows % read.shape[0]:
        raise ValueError(f"{rows} rows of scores do not belong to {read.shape[0]} texts that were read.")
    return read if rows == read.shape[0] else read.repeat_interleave(rows // read.shape[0], 0)


def _without_padding(read: Tensor, mask: Tensor | None, size: int) -> Tensor:
    """Ids with the vocabulary's size, which is no token, at padding."""
    ids = read if mask is None else read.masked_fill(~mask.bool(), size)
    return ids.clamp(max=size)


class EncoderRepetitionPenaltyLogitsProcessor(LogitsProcessor):
    """Tokens that were read become likelier with a penalty above 1: positive scores times it, negative ones divided.

    >>> kept = votive.generation.EncoderRepetitionPenaltyLogitsProcessor(2.0, votive.tensor([[0, 1]]))
    >>> kept(None, votive.tensor([[1.0, -1.0, 1.0]]))
    tensor([[ 2.0000, -0.5000,  1.0000]])
    """

    reads = False

    def __init__(self, penalty: float, encoder_input_ids: Tensor, encoder_mask: Tensor | None = None) -> None:
        if not penalty > 0:
            raise ValueError(f"encoder_repetition_penalty must be above 0, got {penalty}.")
        self.penalty, self.read, self.mask = float(penalty), encoder_input_ids, encoder_mask

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        size = scores.shape[-1]
        ids = _for_rows(_without_padding(self.read, self.mask, size), scores.shape[0])
        seen = votive.zeros((scores.shape[0], size + 1), dtype=dt.bool_, device=scores.device)
        seen = seen.scatter(1, ids, True)[:, :size]
        return votive.where(seen, votive.where(scores < 0, scores / self.penalty, scores * self.penalty), scores)


class EncoderNoRepeatNGramLogitsProcessor(LogitsProcessor):
    """No sequence of `encoder_ngram_size` tokens that was read is written.

    >>> new = votive.generation.EncoderNoRepeatNGramLogitsProcessor(2, votive.tensor([[0, 1]]))
    >>> new(votive.tensor([[2, 0]]), votive.zeros(1, 3))
    tensor([[0., -inf, 0.]])
    """

    def __init__(self, encoder_ngram_size: int, encoder_input_ids: Tensor, encoder_mask: Tensor | None = None) -> None:
        if not isinstance(encoder_ngram_size, int) or encoder_ngram_size <= 0:
            raise ValueError(f"encoder_no_repeat_ngram_size must be a positive integer, got {encoder_ngram_size}.")
        self.size = encoder_ngram_size
        read = encoder_input_ids if encoder_input_ids.dim() > 1 else encoder_input_ids.unsqueeze(0)
        masks = None if encoder_mask is None else encoder_mask.tolist()
        self.rows = [self._follow(row, None if masks is None else masks[i]) for i, row in enumerate(read.tolist())]

    def _follow(self, row: list[int], mask: list[int] | None) -> dict[tuple[int, ...], set[int]]:
        """What followed each beginning of a sequence."""
        ids = row if mask is None else [i for i, m in zip(row, mask, strict=True) if m]
        found: dict[tuple[int, ...], set[int]] = {}
        for at in range(len(ids) - self.size + 1):
            *begin, last = ids[at : at + self.size]
            found.setdefault(tuple(begin), set()).add(last)
        return found

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        rows, size = scores.shape
        if rows % len(self.rows):
            raise ValueError(f"{rows} rows of scores do not belong to {len(self.rows)} texts that were read.")
        copies, reach = rows // len(self.rows), self.size - 1
        if input_ids.shape[1] < reach:
            return scores
        ends = input_ids[:, input_ids.shape[1] - reach :].tolist()
        banned = [(r, t) for r in range(rows) for t in self.rows[r // copies].get(tuple(ends[r]), ()) if t < size]
        if not banned:
            return scores
        at = votive.tensor(banned, device=scores.device)
        scores = scores.clone()
        scores[at[:, 0], at[:, 1]] = -math.inf
        return scores
