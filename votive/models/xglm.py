"""XGLM: a decoder with sines for positions, for many languages. Lin et al. 2021, arXiv:2112.10668."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes


@dataclass(kw_only=True)
class XGLMConfig(DecoderConfig):
    """The numbers of an XGLM.

    >>> votive.models.XGLMConfig(d_model=64, attention_heads=4).design.embedding_scale
    8.0
    """

    model_type = "xglm"
    aliases = {"num_attention_heads": "attention_heads", "hidden_size": "d_model", "num_hidden_layers": "num_layers"}

    vocab_size: int = 256008
    max_position_embeddings: int = 2048
    d_model: int = 1024
    ffn_dim: int = 4096
    num_layers: int = 24
    attention_heads: int = 16
    activation_function: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.0
    layerdrop: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = True
    decoder_start_token_id: int = 2
    add_cross_attention: bool = False
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        self.initializer_range = self.init_std
        if self.add_cross_attention:
            raise ValueError("XGLMConfig: add_cross_attention is not supported.")

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.ffn_dim, self.max_position_embeddings),
            "norm": "layer",
            "eps": 1e-5,
            "norms": ("self_attn_layer_norm", "", "final_layer_norm", ""),
            "dropout": self.dropout,
            "net_dropout": self.activation_dropout,
            "layer_drop": self.layerdrop,
            "o": "out_proj",
            "qkv_bias": True,
            "out_bias": True,
            "attention_dropout": self.attention_dropout,
            "net": "",
            "net_kind": "plain",
            "net_names": ("", "fc1", "fc2"),
            "net_bias": True,
            "act": self.activation_function,
            "embedding_scale": self.d_model**0.5 if self.scale_embedding else 1.0,
            "embedding_dropout": self.dropout,
            "places": "embed_positions",
            "places_kind": "sines",
            "places_offset": 2,
            "padding": self.pad_token_id,
            "last_norm": "layer_norm",
        }


XGLMModel, XGLMForCausalLM = decoder_classes("XGLM", XGLMConfig, ignored=(r"embed_positions\.weights$",))
