"""BioGPT: a decoder with learned positions, of medical texts. Luo et al. 2022, arXiv:2210.10341."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes


@dataclass(kw_only=True)
class BioGptConfig(DecoderConfig):
    """The numbers of a BioGPT; its norms add 1e-5, whatever `layer_norm_eps` says, as in transformers.

    >>> votive.models.BioGptConfig().design.head
    'output_projection'
    """

    model_type = "biogpt"

    vocab_size: int = 42384
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 1024
    layer_norm_eps: float = 1e-12
    scale_embedding: bool = True
    layerdrop: float = 0.0
    activation_dropout: float = 0.0
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.intermediate_size, self.max_position_embeddings),
            "norm": "layer",
            "eps": 1e-5,
            "norms": ("self_attn_layer_norm", "", "final_layer_norm", ""),
            "dropout": self.hidden_dropout_prob,
            "net_dropout": self.activation_dropout,
            "layer_drop": self.layerdrop,
            "o": "out_proj",
            "qkv_bias": True,
            "out_bias": True,
            "attention_dropout": self.attention_probs_dropout_prob,
            "net": "",
            "net_kind": "plain",
            "net_names": ("", "fc1", "fc2"),
            "net_bias": True,
            "act": self.hidden_act,
            "embedding_scale": self.hidden_size**0.5 if self.scale_embedding else 1.0,
            "embedding_dropout": self.hidden_dropout_prob,
            "places": "embed_positions",
            "places_offset": 2,
            "padding": self.pad_token_id,
            "last_norm": "layer_norm",
            "head": "output_projection",
        }


BioGptModel, BioGptForCausalLM = decoder_classes("BioGpt", BioGptConfig, prefix="biogpt")
