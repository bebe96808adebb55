"""Qwen2 and Qwen3: a Llama with biases on queries, keys and values, or with normed heads.

Yang et al. 2024, arXiv:2407.10671 and 2025, arXiv:2505.09388.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import decoder_classes
from .llama import LlamaConfig


@dataclass(kw_only=True)
class Qwen2Config(LlamaConfig):
    """The numbers of a Qwen2.

    >>> design = votive.models.Qwen2Config().design
    >>> design.qkv_bias, design.out_bias
    (True, False)
    """

    model_type = "qwen2"

    vocab_size: int = 151936
    intermediate_size: int = 22016
    max_position_embeddings: int = 32768
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.use_sliding_window:
            self.sliding_window = None
        if self.layer_types is None and not self.all_slide:
            near = self.num_hidden_layers if self.sliding_window is None else self.max_window_layers
            self.layer_types = [
                "sliding_attention" if i >= near else "full_attention" for i in range(self.num_hidden_layers)
            ]

    def choices(self) -> dict[str, Any]:
        return {"qkv_bias": True, "out_bias": False}


Qwen2Model, Qwen2ForCausalLM = decoder_classes("Qwen2", Qwen2Config)


@dataclass(kw_only=True)
class Qwen3Config(Qwen2Config):
    """The numbers of a Qwen3: queries and keys are normed per head, heads have their own width.

    >>> votive.models.Qwen3Config().design.qk_norm, votive.models.Qwen3Config().head_dim
    ('head', 128)
    """

    model_type = "qwen3"

    head_dim: int = 128

    def choices(self) -> dict[str, Any]:
        return {"qk_norm": "head"}


Qwen3Model, Qwen3ForCausalLM = decoder_classes("Qwen3", Qwen3Config)
