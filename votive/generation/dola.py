"""Contrast of layers: what the last layer says against what an earlier one says of the next token.

Chuang et al. 2024, arXiv:2309.03883. Chooses no tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .config import GenerationConfig
from .stepping import Model, StepOutput

Contrast = Callable[[StepOutput], Tensor]
# Tokens less probable than this share of the best one's are left out, and what an early layer says of them counts so.
_SHARE, _LEFT_OUT = 0.1, -1e-3


def contrast_of(model: Model, config: GenerationConfig, seq2seq: bool) -> Contrast | None:
    """What is searched instead of the logits; None for themselves."""
    if config.dola_layers is None or seq2seq:
        return None
    head = getattr(model, "scores", None) or getattr(model, "lm_head", None)
    if head is None:
        raise ValueError(
            f"generate: dola_layers need a model with a head for hidden states, got {type(model).__name__}."
        )
    layers = layers_of(config.dola_layers, model.config.num_hidden_layers, bool(model.config.tie_word_embeddings))
    return lambda fed: contrasted(fed, layers, head)


def layers_of(asked: str | list[int], count: int, tied: bool) -> list[int]:
    """The layers that the last one of `count` may be compared with; of tied embeddings nothing is learned.

    >>> from votive.generation.dola import layers_of
    >>> layers_of("low", 8, True), layers_of("high", 8, False)
    ([2], [4, 6])
    """
    first = (2 if count > 2 else 1 if count == 2 else 0) if tied else 0
    half = count // 2
    if asked == "low":
        found = [first] if first == half else list(range(first, half if count <= 40 else 20, 2))
    elif asked == "high":
        found = list(range(half if count <= 40 else count - 20, count, 2))
    else:
        found = [i for i in asked if isinstance(i, int) and i < count]
    if not found:
        raise ValueError(f"generate: dola_layers={asked!r} names none of the layers 0..{count - 1} of this model.")
    return found


def contrasted(fed: StepOutput, layers: list[int], head: Any) -> Tensor:
    """The last layer's log probabilities less those of the layer that differs most from it, for each row."""
    last = fed.logits[:, -1]
    early = votive.stack([head(fed.hidden_states[i][:, -1:])[:, -1].float() for i in layers])  # (layers, rows, tokens)
    if len(layers) == 1:
        base = early[0]
    else:
        p, q = F.softmax(last, -1), F.softmax(early, -1)
        middle = 0.5 * (p + q)
        logs = middle.log()
        # Jensen and Shannon's divergence, with the middle as target as the published code has it.
        apart = (middle * (logs - F.log_softmax(last, -1))).mean(-1) + (
            middle * (logs - F.log_softmax(early, -1))
        ).mean(-1)
        chosen = apart.argmax(0)  # (rows,)
        base = early[chosen, votive.arange(last.shape[0], device=last.device)]
    sure = F.log_softmax(last, -1)
    unlikely = sure < sure.amax(-1, keepdim=True) + math.log(_SHARE)
    base = F.log_softmax(base, -1).masked_fill(unlikely, _LEFT_OUT)
    return sure.masked_fill(unlikely, -math.inf) - base
