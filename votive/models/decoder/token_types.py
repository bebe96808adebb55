"""Decoders whose tokens may be of several types, which are rows of the table of tokens. Knows no family."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..output import BaseModelOutput
from .model import Decoder


class TypedDecoder(Decoder):
    """A decoder that adds the embeddings of `token_type_ids` to those of the tokens.

    >>> config = votive.models.GPT2Config(vocab_size=8, n_embd=4, n_layer=1, n_head=1)
    >>> model, ids = votive.models.GPT2Model(config).eval(), votive.tensor([[3, 4]])
    >>> votive.equal(model(ids)[0], model(ids, token_type_ids=ids)[0])
    False
    """

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        output_router_logits: bool | None = None,
        token_type_ids: Tensor | None = None,
    ) -> BaseModelOutput:
        if token_type_ids is not None:
            table = self.get_input_embeddings()
            if (input_ids is None) == (inputs_embeds is None):
                self.embedded(input_ids, inputs_embeds)  # says what is wrong
            # Scaled behind this, if at all, as given embeddings are.
            inputs_embeds = (table(input_ids) if inputs_embeds is None else inputs_embeds) + table(token_type_ids)
            input_ids = None
        return super().forward(
            input_ids,
            attention_mask,
            position_ids,
            past_key_values,
            inputs_embeds,
            use_cache,
            output_attentions,
            output_hidden_states,
            output_router_logits,
        )
