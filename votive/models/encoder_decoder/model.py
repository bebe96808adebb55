"""An encoder with a decoder, alone and with the head that writes. Knows designs, not families."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import votive
from votive import nn

from ...tensor import Tensor
from ..checkpoint import Checkpoint
from ..cross_cache import Cache
from ..output import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from ..pretrained import CausalLM, PreTrainedModel
from ..seq2seq import Encoded, answer, encoded, predicted, prepared, shifted, wrapped
from .config import Seq2SeqConfig
from .positions import Learned
from .stacks import DecoderStack, EncoderStack
from .tables import TablesOfFiles


class Seq2SeqBase(TablesOfFiles, PreTrainedModel):
    """What the model and the model with a head share."""

    config_class: ClassVar[type[Any]] = Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.design = config.design
        self.generation_config = config.search()

    @property
    def bare(self) -> Seq2SeqModel:
        """The model without its head."""
        found = getattr(self, self.base_model_prefix, self)
        assert isinstance(found, Seq2SeqModel), "made so"
        return found

    @classmethod
    def from_checkpoint(cls, found: Checkpoint, **options: Any) -> Self:
        model = super().from_checkpoint(found, **options)
        if not found.generation_config:
            model.generation_config = model.config.search()
        return model

    def init_weights(self, module: nn.Module) -> None:
        std = self.config.init_std
        if isinstance(module, (nn.Linear, nn.Embedding, Learned)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def glass_parts(self) -> dict[str, Any]:
        """The decoder's layers write; what is behind the last is normed where the design says so."""
        decoder = self.bare.decoder
        norm = decoder._modules.get("layer_norm")
        return {"layers": decoder.layers, **({} if norm is None else {"norm": norm})}

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings; the encoder's where both have one."""
        return self.bare.table(self.bare.encoder)

    def get_encoder(self) -> Any:
        """What makes `encoder_outputs` of ids and a mask."""
        return self.bare.encode

    def get_decoder(self) -> nn.Module:
        """What writes."""
        return self.bare.decoder

    def shifted(self, labels: Tensor) -> Tensor:
        """What the decoder reads to predict `labels`: a start, then all but the last."""
        pad, first = self.config.pad_token_id, self.config.decoder_start_token_id
        if self.design.start == "last":
            return wrapped(labels, pad)
        if first is None:
            raise ValueError(f"{type(self).__name__}: labels need decoder_start_token_id in the configuration.")
        return shifted(labels, first, pad)


class Seq2SeqModel(Seq2SeqBase):
    """The encoder and the decoder without a head.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2)
    >>> votive.models.BartModel(config)(votive.tensor([[3, 4, 2]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        d = self.design
        self.encoder, self.decoder = EncoderStack(d), DecoderStack(d)
        if d.one_table:
            self.shared = nn.Embedding(d.encoder.vocabulary, d.width, d.padding)
        else:
            for stack in (self.encoder, self.decoder):
                stack.embed_tokens = nn.Embedding(stack.side.vocabulary, d.width, d.padding)
        self.post_init()

    def table(self, stack: nn.Module) -> nn.Module:
        """The table of tokens that a stack reads."""
        return self.shared if "shared" in self._modules else stack.embed_tokens

    def words(self, stack: EncoderStack | DecoderStack, ids: Tensor | None, embeds: Tensor | None) -> Tensor:
        """Embeddings of a stack's tokens, scaled as the design says."""
        side = stack.side
        if embeds is None and ids is not None and ids.dim() == 2:
            x = self.table(stack)(ids)
        else:
            x = self.embedded(ids, embeds)  # which were given, or say what is wrong
            if not side.scales_given:
                return x
        return x if side.scale == 1.0 else x * side.scale

    def encode(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """What the encoder makes of a text; `encoder_outputs` of a decoder that writes on."""
        x = self.words(self.encoder, input_ids, inputs_embeds)
        return self.encoder(x, input_ids, attention_mask, output_attentions, output_hidden_states)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Seq2SeqModelOutput:
        """Some families read `input_ids`, shifted, where the decoder is given nothing."""
        if self.design.reads_source and decoder_input_ids is None and decoder_inputs_embeds is None:
            if input_ids is None:
                raise ValueError(f"{type(self).__name__}: give input_ids, decoder_input_ids or decoder_inputs_embeds.")
            decoder_input_ids = self.shifted(input_ids)
        if encoder_outputs is None:
            encoder_outputs = self.encode(
                input_ids, attention_mask, inputs_embeds, output_attentions, output_hidden_states
            )
        encoder = encoded(encoder_outputs)
        cache = prepared(self, past_key_values, use_cache, decoder_input_ids, decoder_inputs_embeds)
        found, crossed = self.decoder(
            self.words(self.decoder, decoder_input_ids, decoder_inputs_embeds),
            decoder_input_ids,
            decoder_attention_mask,
            encoder.last_hidden_state,
            attention_mask,
            cache,
            output_attentions,
            output_hidden_states,
        )
        return answer(found, crossed, cache, encoder)


class Seq2SeqHead(Seq2SeqBase):
    """A model and what stands on it."""

    model_class: ClassVar[type[Seq2SeqModel]] = Seq2SeqModel

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        setattr(self, self.base_model_prefix, self.model_class(config))
        self.add()
        self.post_init()

    def add(self) -> None:
        """Make the head's own modules."""
        raise NotImplementedError


class Seq2SeqForConditionalGeneration(Seq2SeqHead, CausalLM):
    """A model that writes: an encoder, a decoder, and scores of the next token.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2)
    >>> model = votive.models.BartForConditionalGeneration(config)
    >>> model(votive.tensor([[3, 4, 2]]), labels=votive.tensor([[5, 2]])).logits.shape
    votive.Size([1, 2, 10])
    """

    def add(self) -> None:
        d = self.design
        self.lm_head = nn.Linear(d.width, d.decoder.vocabulary, bias=False)
        if d.head_bias:
            self.register_buffer("final_logits_bias", votive.zeros(1, d.decoder.vocabulary))
        self.tables_changed()

    def tables_changed(self) -> None:
        table = "shared" if "shared" in self.bare._modules else "decoder.embed_tokens"
        self.__dict__["tied"] = {"lm_head.weight": f"{self.base_model_prefix}.{table}.weight"}

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Seq2SeqLMOutput:
        """As the model; from `labels` (-100 is left out) come the decoder's ids and the loss."""
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.shifted(labels)
        found = self.bare(
            input_ids,
            attention_mask,
            decoder_input_ids,
            decoder_attention_mask,
            encoder_outputs,
            past_key_values,
            inputs_embeds,
            decoder_inputs_embeds,
            use_cache,
            output_attentions,
            output_hidden_states,
        )
        logits = self.lm_head(found.last_hidden_state)
        if self.design.head_bias:
            logits = logits + self.final_logits_bias
        return predicted(found, logits, labels)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """What the decoder reads to predict `labels`, as collators of batches ask for it.

        >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
        ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2)
        >>> model = votive.models.BartForConditionalGeneration(config)
        >>> model.prepare_decoder_input_ids_from_labels(votive.tensor([[5, 2]]))
        tensor([[2, 5]])
        """
        return self.shifted(labels)
