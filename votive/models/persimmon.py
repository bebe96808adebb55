"""Persimmon: normed heads, half of whose features are rotated, and squared rectifiers. Adept 2023."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class PersimmonConfig(RotaryConfig):
    """The numbers of a Persimmon.

    >>> votive.models.PersimmonConfig().design.ropes[0].part
    0.5
    """

    model_type = "persimmon"

    vocab_size: int = 262144
    hidden_size: int = 4096
    intermediate_size: int = 16384
    num_hidden_layers: int = 36
    num_attention_heads: int = 64
    hidden_act: str = "relu2"
    max_position_embeddings: int = 16384
    layer_norm_eps: float = 1e-5
    qk_layernorm: bool = True
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    rotated = 0.5

    def choices(self) -> dict[str, Any]:
        return {
            **self.basic(self.intermediate_size, self.max_position_embeddings),
            "norm": "layer",
            "eps": self.layer_norm_eps,
            "dropout": self.hidden_dropout,
            "attention_out_dropout": 0.0,
            "fused": "query_key_value",
            "fused_layout": "groups",
            "o": "dense",
            "qkv_bias": True,
            "out_bias": True,
            "qk_norm": "head" if self.qk_layernorm else "",
            "qk_names": ("q_layernorm", "k_layernorm"),
            "windows": (),
            "net_kind": "plain",
            "net_names": ("", "dense_h_to_4h", "dense_4h_to_h"),
            "net_bias": True,
            "padding": self.pad_token_id,
            "last_norm": "final_layernorm",
        }


PersimmonModel, PersimmonForCausalLM = decoder_classes("Persimmon", PersimmonConfig)
