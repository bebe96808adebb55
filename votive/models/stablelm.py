"""StableLM: layer norms, a part of each head rotated, and queries and keys normed by head. arXiv:2402.17834."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class StableLmConfig(RotaryConfig):
    """The numbers of a StableLM.

    >>> votive.models.StableLmConfig(use_parallel_residual=True).design.parallel
    True
    """

    model_type = "stablelm"
    rotated = 0.25
    unread: ClassVar[tuple[str, ...]] = ("sliding_window", "attention_bias")

    vocab_size: int = 50304
    hidden_size: int = 2560
    intermediate_size: int = 6912
    num_key_value_heads: int = 32
    max_position_embeddings: int = 4096
    layer_norm_eps: float = 1e-5
    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False
    hidden_dropout: float = 0.0
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim != self.hidden_size // self.num_attention_heads or self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"StableLmConfig: hidden_size={self.hidden_size} must be num_attention_heads="
                f"{self.num_attention_heads} times head_dim={self.head_dim}."
            )

    def choices(self) -> dict[str, Any]:
        behind = "" if self.use_parallel_residual else "post_attention_layernorm"
        return {
            "norm": "layer",
            "eps": self.layer_norm_eps,
            "norms": ("input_layernorm", "", behind, ""),
            "parallel": self.use_parallel_residual,
            "dropout": self.hidden_dropout,
            "attention_out_dropout": 0.0,
            "qkv_bias": self.use_qkv_bias,
            "qk_norm": "list" if self.qk_layernorm else "",
            "qk_names": ("q_layernorm", "k_layernorm"),
        }


StableLmModel, StableLmForCausalLM = decoder_classes("StableLm", StableLmConfig)
