"""OPT: a decoder with learned positions, counted from the first token. Zhang et al. 2022, arXiv:2205.01068."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes


@dataclass(kw_only=True)
class OPTConfig(DecoderConfig):
    """The numbers of an OPT.

    >>> votive.models.OPTConfig(word_embed_proj_dim=512, hidden_size=768).design.embedding_width
    512
    """

    model_type = "opt"

    vocab_size: int = 50272
    hidden_size: int = 768
    num_hidden_layers: int = 12
    ffn_dim: int = 3072
    max_position_embeddings: int = 2048
    do_layer_norm_before: bool = True
    _remove_final_layer_norm: bool = False
    word_embed_proj_dim: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    num_attention_heads: int = 12
    activation_function: str = "relu"
    layerdrop: float = 0.0
    init_std: float = 0.02
    enable_bias: bool = True
    layer_norm_elementwise_affine: bool = True
    pad_token_id: int | None = 1
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        self.initializer_range = self.init_std
        if self.word_embed_proj_dim is None:
            self.word_embed_proj_dim = self.hidden_size

    def sizes(self) -> dict[str, Any]:
        last = self.do_layer_norm_before and not self._remove_final_layer_norm
        return {
            **self.basic(self.ffn_dim, self.max_position_embeddings),
            "norm": "layer" if self.layer_norm_elementwise_affine else "layer plain",
            "eps": 1e-5,
            "norms": ("self_attn_layer_norm", "", "final_layer_norm", ""),
            "norm_place": "before" if self.do_layer_norm_before else "sum",
            "dropout": self.dropout,
            "layer_drop": self.layerdrop,
            "o": "out_proj",
            "qkv_bias": self.enable_bias,
            "out_bias": self.enable_bias,
            "attention_dropout": self.attention_dropout,
            "net": "",
            "net_kind": "plain",
            "net_names": ("", "fc1", "fc2"),
            "net_bias": self.enable_bias,
            "act": self.activation_function,
            "embedding_width": self.word_embed_proj_dim,
            "places": "embed_positions",
            "places_offset": 2,
            "places_skip_padding": True,
            "padding": self.pad_token_id,
            "body": "decoder",
            "last_norm": "final_layer_norm" if last else "",
        }


# The first files begin without the model's name.
OPTModel, OPTForCausalLM = decoder_classes("OPT", OPTConfig)
