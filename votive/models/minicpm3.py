"""MiniCPM3: latent attention, and scaled embeddings, residuals and logits. Hu et al. 2024, arXiv:2404.06395."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .decoder import decoder_classes
from .deepseek import LatentConfig


@dataclass(kw_only=True)
class MiniCPM3Config(LatentConfig):
    """The numbers of a MiniCPM3.

    >>> votive.models.MiniCPM3Config(dim_model_base=512).design.logit_scale
    0.2
    """

    model_type = "minicpm3"

    vocab_size: int = 73448
    hidden_size: int = 2560
    intermediate_size: int = 6400
    num_hidden_layers: int = 62
    num_attention_heads: int = 40
    num_key_value_heads: int | None = 40
    max_position_embeddings: int = 32768
    initializer_range: float = 0.1
    rms_norm_eps: float = 1e-5
    mlp_bias: bool = False
    kv_lora_rank: int = 256
    q_lora_rank: int | None = 768
    qk_nope_head_dim: int = 64
    qk_rope_head_dim: int = 32
    v_head_dim: int | None = None
    scale_emb: float = 12
    scale_depth: float | None = 1.4
    dim_model_base: int | None = 256
    tie_word_embeddings: bool = True

    interleaved = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.v_head_dim is None:
            self.v_head_dim = self.hidden_size // self.num_attention_heads
        if self.scale_depth is None:
            self.scale_depth = math.sqrt(self.num_hidden_layers)
        if self.dim_model_base is None:
            self.dim_model_base = self.hidden_size

    def choices(self) -> dict[str, Any]:
        assert self.scale_depth is not None, "known once it is made"
        assert self.dim_model_base is not None, "known once it is made"
        return {
            "net_bias": self.mlp_bias,
            "embedding_scale": self.scale_emb,
            "residual_scale": self.scale_depth / math.sqrt(self.num_hidden_layers),
            "logit_scale": self.dim_model_base / self.hidden_size,
        }


MiniCPM3Model, MiniCPM3ForCausalLM = decoder_classes("MiniCPM3", MiniCPM3Config)
