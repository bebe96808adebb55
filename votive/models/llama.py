"""Llama, and what is built like it: Mistral. Touvron et al. 2023, arXiv:2302.13971 and 2307.09288."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class LlamaConfig(RotaryConfig):
    """The numbers of a Llama.

    >>> votive.models.LlamaConfig(hidden_size=64, num_attention_heads=4).head_dim
    16
    """

    model_type = "llama"

    rms_norm_eps: float = 1e-6
    mlp_bias: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def sizes(self) -> dict[str, Any]:
        return {**super().sizes(), "eps": self.rms_norm_eps, "net_bias": bool(self.reads("mlp_bias"))}


LlamaModel, LlamaForCausalLM = decoder_classes("Llama", LlamaConfig)


@dataclass(kw_only=True)
class MistralConfig(LlamaConfig):
    """A Llama whose layers may all see only the last `sliding_window` positions.

    With `layer_types`, only those that are "sliding_attention" do. Jiang et al. 2023, arXiv:2310.06825.

    >>> votive.models.MistralConfig(sliding_window=8).window_of(0)
    8
    """

    model_type = "mistral"

    intermediate_size: int = 14336
    num_key_value_heads: int = 8
    max_position_embeddings: int = 4096 * 32
    sliding_window: int | None = 4096

    all_slide = True


MistralModel, MistralForCausalLM = decoder_classes("Mistral", MistralConfig)
