"""GPT-2. Radford et al. 2019, Language models are unsupervised multitask learners.

A decoder: layer norm before attention and MLP, learned positions, and weights stored as
(inputs, outputs), the way Hugging Face checkpoints have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..tensor import Tensor
from .decoder import Decoder, DecoderConfig, decoder_classes
from .output import BaseModelOutput


@dataclass(kw_only=True)
class GPT2Config(DecoderConfig):
    """The numbers of a GPT-2.

    >>> votive.models.GPT2Config(n_embd=64, n_head=4).hidden_size
    64
    """

    model_type = "gpt2"

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    # Attention is computed in float32 inside the kernel, whatever this says.
    reorder_and_upcast_attn: bool = False
    add_cross_attention: bool = False
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"GPT2Config: n_embd={self.n_embd} does not split into n_head={self.n_head} heads.")
        if self.add_cross_attention:
            raise ValueError("GPT2Config: add_cross_attention is not supported.")

    @property
    def hidden_size(self) -> int:
        return self.n_embd

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        return self.n_head

    @property
    def max_position_embeddings(self) -> int:
        return self.n_positions

    def sizes(self) -> dict[str, Any]:
        width, heads = self.n_embd, self.n_head
        return {
            "vocabulary": self.vocab_size,
            "width": width,
            "layers": self.n_layer,
            "heads": heads,
            "shared": heads,
            "head_dim": width // heads,
            "inner": self.n_inner or 4 * width,
            "positions": self.n_positions,
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": ("ln_1", "", "ln_2", ""),
            "dropout": self.resid_pdrop,
            "attention": "attn",
            "fused": "c_attn",
            "o": "c_proj",
            "transposed": True,
            "scale": None if self.scale_attn_weights else 1.0,
            "scale_by_layer": self.scale_attn_by_inverse_layer_idx,
            "attention_dropout": self.attn_pdrop,
            "net_kind": "plain",
            "net_names": ("", "c_fc", "c_proj"),
            "net_bias": True,
            "act": self.activation_function,
            "embedding": "wte",
            "embedding_dropout": self.embd_pdrop,
            "places": "wpe",
            "stack": "h",
            "last_norm": "ln_f",
        }


class _GPT2(Decoder):
    """A decoder whose tokens may be of several types, which are rows of the table of tokens."""

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
            inputs_embeds = self.embedded(input_ids, inputs_embeds) + self.wte(token_type_ids)
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


GPT2Model, GPT2LMHeadModel = decoder_classes(
    "GPT2",
    GPT2Config,
    prefix="transformer",
    base=_GPT2,
    causal="LMHeadModel",
    # Old files hold the causal mask, a table.
    ignored=(r"\.attn\.bias$", r"\.attn\.masked_bias$"),
)
