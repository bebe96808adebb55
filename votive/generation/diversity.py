"""A penalty for tokens that another group of beams has just chosen. Knows no model and no search."""

from __future__ import annotations

import numpy as np

import votive

from ..tensor import Tensor
from .warpers import LogitsProcessor


class HammingDiversityLogitsProcessor(LogitsProcessor):
    """Scores less a penalty for each time that an earlier group of the same text chose the token in this step.

    A search says with `chosen` what its groups chose by now; rows are `num_beams` for each text, group after group.

    >>> apart = votive.generation.HammingDiversityLogitsProcessor(0.5, num_beams=2, num_beam_groups=2)
    >>> apart.chosen = [[1]]  # by the first group of the only text
    >>> apart(None, votive.zeros(2, 3))[1]
    tensor([ 0.0000, -0.5000,  0.0000])
    """

    reads = False

    def __init__(self, diversity_penalty: float, num_beams: int, num_beam_groups: int) -> None:
        if not diversity_penalty > 0:
            raise ValueError(
                "generate: num_beam_groups needs a diversity_penalty above 0, or all groups would be alike; got "
                f"{diversity_penalty}."
            )
        if num_beam_groups < 2 or num_beams % num_beam_groups:
            raise ValueError(
                f"generate: num_beams={num_beams} cannot be divided into num_beam_groups={num_beam_groups} of a size."
            )
        self.penalty, self.beams = float(diversity_penalty), num_beams
        self.chosen: list[list[int]] = []  # of each text

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if not any(self.chosen):
            return scores
        size = scores.shape[-1]
        times = np.stack([np.bincount(tokens, minlength=size)[:size] for tokens in self.chosen])
        less = votive.tensor((times * self.penalty).astype(np.float32), device=scores.device)
        return scores - less.to(scores.dtype).repeat_interleave(self.beams, 0)
