"""Guidance without a classifier: scores moved away from those that another prompt gives. Runs the model a second time.

Sanchez et al. 2023, arXiv:2306.17806.
"""

from __future__ import annotations

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .stepping import DecoderStepper, Model, cache_for
from .warpers import LogitsProcessor


class UnbatchedClassifierFreeGuidanceLogitsProcessor(LogitsProcessor):
    """`u + guidance_scale * (c - u)` of the log probabilities with the prompt, c, and with `unconditional_ids`, u.

    Without `unconditional_ids` the last token of the prompt stands for them. It follows one text as it grows, so it
    serves one call of `generate`.

    >>> config = votive.models.LlamaConfig(vocab_size=6, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> away = votive.generation.UnbatchedClassifierFreeGuidanceLogitsProcessor(1.5, model)
    >>> with votive.no_grad():
    ...     away(votive.tensor([[1, 2]]), votive.zeros(1, 6)).shape
    votive.Size([1, 6])
    """

    def __init__(
        self,
        guidance_scale: float,
        model: Model,
        unconditional_ids: Tensor | None = None,
        unconditional_attention_mask: Tensor | None = None,
        use_cache: bool = True,
        *,
        max_length: int | None = None,
    ) -> None:
        self.scale, self.model, self.use_cache = float(guidance_scale), model, use_cache
        self.ids, self.mask = unconditional_ids, unconditional_attention_mask
        self.room = max_length  # of the text, to know how far a mask must reach
        self._stepper: DecoderStepper | None = None
        self._start = 0

    def _begin(self, input_ids: Tensor) -> None:
        ids = input_ids[:, -1:] if self.ids is None else self.ids.to(input_ids.device)
        rows = input_ids.shape[0]
        mask = None if self.mask is None else self.mask.to(ids.device)
        if ids.shape[0] not in (1, rows) and rows % ids.shape[0]:
            raise ValueError(f"generate: negative_prompt_ids have {ids.shape[0]} rows, and the texts {rows}.")
        if ids.shape[0] != rows:
            ids = ids.repeat_interleave(rows // ids.shape[0], 0)
            mask = None if mask is None else mask.repeat_interleave(rows // mask.shape[0], 0)
        self.ids, self._start = ids, input_ids.shape[1]
        room = self.room or getattr(self.model.config, "max_position_embeddings", None) or 4096
        length = ids.shape[1] + max(room - self._start, 1)
        cache = cache_for(self.model, "dynamic", length) if self.use_cache else None
        self._stepper = DecoderStepper(self.model, cache=cache, mask=mask, max_length=length)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = F.log_softmax(scores, -1)
        if self.scale == 1:
            return scores
        if self._stepper is None:
            self._begin(input_ids)
        assert self._stepper is not None, "it has begun"
        assert self.ids is not None, "it has begun"
        ids = votive.cat([self.ids, input_ids[:, self._start :]], 1)
        other = F.log_softmax(self._stepper.feed(ids).logits[:, -1], -1)
        return self.scale * (scores - other) + other
