"""The decoder alone, as a model of texts that may look at what somebody else has read. Knows designs, not families."""

from __future__ import annotations

import copy
from typing import Any

from votive import nn
from votive.nn import functional as F

from ...io.source import WeightSource
from ...tensor import Tensor
from ..cross_cache import Cache, EncoderDecoderCache
from ..pretrained import CausalLM
from ..trocr import CausalLMOutputWithCrossAttentions
from .config import Seq2SeqConfig
from .model import Seq2SeqBase
from .stacks import DecoderStack
from .tables import OWN, SHARED


class Seq2SeqForCausalLM(Seq2SeqBase, CausalLM):
    """A decoder with scores of the next token.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, decoder_layers=1, decoder_ffn_dim=8,
    ...     decoder_attention_heads=2)
    >>> votive.models.BartForCausalLM(config)(votive.tensor([[3, 4, 2]])).logits.shape
    votive.Size([1, 3, 10])
    """

    ignored = (
        *Seq2SeqBase.ignored,
        r"^(model\.)?encoder\.",
        r"^final_logits_bias$",
        r"^(model\.)?shared\.weight$",
        r"^(classification_head|qa_outputs)\.",
    )

    def __init__(self, config: Seq2SeqConfig) -> None:
        config = copy.copy(config)
        config.is_decoder, config.is_encoder_decoder = True, False
        super().__init__(config)
        d = self.design
        decoder = DecoderStack(d)
        decoder.embed_tokens = nn.Embedding(d.decoder.vocabulary, d.width, d.padding)
        setattr(self, self.base_model_prefix, nn.ModuleDict({"decoder": decoder}))
        self.lm_head = nn.Linear(d.width, d.decoder.vocabulary, bias=False)
        self.__dict__["tied"] = {"lm_head.weight": f"{self.base_model_prefix}.decoder.embed_tokens.weight"}
        self.post_init()

    @property
    def decoder(self) -> DecoderStack:
        """What writes."""
        found = getattr(self, self.base_model_prefix)["decoder"]
        assert isinstance(found, DecoderStack), "made so"
        return found

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.decoder.embed_tokens

    def get_decoder(self) -> nn.Module:
        """What writes."""
        return self.decoder

    def get_encoder(self) -> Any:
        """There is none."""
        raise AttributeError(f"{type(self).__name__} has no encoder.")

    def glass_parts(self) -> dict[str, Any]:
        """The decoder's layers, and the norm behind them where there is one."""
        norm = self.decoder._modules.get("layer_norm")
        return {"layers": self.decoder.layers, **({} if norm is None else {"norm": norm})}

    def adapted(self, source: WeightSource) -> WeightSource:
        """From files of whole models, which may have one table for both sides."""
        prefix = f"{self.base_model_prefix}."
        names = set(source.names())
        shared = next((n for n in (prefix + SHARED, SHARED) if n in names), None)
        if shared is None or any(n in names for n in (prefix + OWN[1], OWN[1])):
            return source
        return source.renamed({shared: prefix + OWN[1]})

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        return self.with_sines(weights, f"{self.base_model_prefix}.", ("decoder",))

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int = 0,
    ) -> CausalLMOutputWithCrossAttentions:
        """`labels` are the tokens that each position is to give, -100 where none; not shifted.

        `generate` tells positions, so that a text behind padding is written on as it would be alone.
        """
        cache = past_key_values
        if cache is None and use_cache:
            cache = nn.DynamicCache()
        if cache is not None and encoder_hidden_states is not None:
            cache = EncoderDecoderCache.of(cache)
        side, x = self.design.decoder, self.embedded(input_ids, inputs_embeds)
        if side.scale != 1.0 and (inputs_embeds is None or side.scales_given):
            x = x * side.scale
        found, crossed = self.decoder(
            x,
            input_ids,
            attention_mask,
            encoder_hidden_states,
            encoder_attention_mask,
            cache,
            output_attentions,
            output_hidden_states,
            position_ids,
        )
        x = found.last_hidden_state
        logits = self.lm_head(x[:, -logits_to_keep:] if logits_to_keep else x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return CausalLMOutputWithCrossAttentions(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
            cross_attentions=crossed,
        )
