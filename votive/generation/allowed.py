"""Tokens that a function of the caller's allows after each beginning. Knows no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import votive

from ..tensor import Tensor
from .warpers import LogitsProcessor

Allowed = Callable[[int, Tensor], Iterable[int]]  # of a prompt's number and its ids so far


class PrefixConstrainedLogitsProcessor(LogitsProcessor):
    """Only the tokens that `prefix_allowed_tokens_fn(batch_id, input_ids)` lists may come next.

    >>> even = votive.generation.PrefixConstrainedLogitsProcessor(lambda batch_id, ids: [0, 2], num_beams=1)
    >>> even(votive.tensor([[1]]), votive.zeros(1, 3))
    tensor([[0., -inf, 0.]])
    """

    def __init__(self, prefix_allowed_tokens_fn: Allowed, num_beams: int) -> None:
        if not callable(prefix_allowed_tokens_fn):
            raise TypeError(
                "generate: prefix_allowed_tokens_fn must be a function of a batch id and ids that gives a list of "
                f"tokens, got {type(prefix_allowed_tokens_fn).__name__}."
            )
        self.allowed, self.beams = prefix_allowed_tokens_fn, num_beams

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        rows, size = scores.shape
        found: list[tuple[int, int]] = []
        for row in range(rows):
            tokens = [int(t) for t in self.allowed(row // self.beams, input_ids[row])]
            if not tokens:
                raise ValueError(
                    f"generate: prefix_allowed_tokens_fn allows no token to follow in text "
                    f"{row // self.beams}; let it give at least one, such as the token that ends texts."
                )
            if not all(0 <= t < size for t in tokens):
                raise ValueError(f"generate: prefix_allowed_tokens_fn gave tokens outside of 0..{size - 1}.")
            found += [(row, t) for t in tokens]
        at = votive.tensor(found, device=scores.device)
        mask = votive.full_like(scores, -math.inf)
        mask[at[:, 0], at[:, 1]] = 0.0
        kept = scores + mask
        # Where every allowed token was forbidden before, in all beams of a text, the function has the last word.
        none = kept.amax(-1).view(-1, self.beams).eq(-math.inf).all(-1, keepdim=True)
        return votive.where(none.repeat_interleave(self.beams, 0), mask, kept)
