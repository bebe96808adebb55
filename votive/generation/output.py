"""What `generate` returns when more than the ids is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..tensor import Tensor
from ..utils.output import ModelOutput


@dataclass
class Acceptance:
    """How a draft model did: tokens it drafted, and those of them that were accepted.

    >>> votive.generation.Acceptance(drafted=8, accepted=6).rate
    0.75
    """

    drafted: int = 0
    accepted: int = 0
    rounds: int = 0

    @property
    def rate(self) -> float:
        """The accepted share of what was drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0


@dataclass
class GenerateOutput(ModelOutput):
    """The ids, and what was asked for besides; fields are named as in transformers.

    `scores` (as processed), `logits` (as the model gave them), `attentions` and `hidden_states`
    are tuples with an element for each generated token. `finish_reasons` says why each row ended:
    "eos", "length", "stop" (a stop string), "time" or "criteria".
    """

    sequences: Any = None
    sequences_scores: Any = None
    scores: tuple[Tensor, ...] | None = None
    logits: tuple[Tensor, ...] | None = None
    beam_indices: Any = None
    attentions: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    past_key_values: Any = None
    finish_reasons: list[str] | None = None
    acceptance: Acceptance | None = None
