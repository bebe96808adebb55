"""StarCoder 2: layer norms, biases and a plain net. Lozhkov et al. 2024, arXiv:2402.19173."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class Starcoder2Config(RotaryConfig):
    """The numbers of a StarCoder 2.

    >>> votive.models.Starcoder2Config(use_bias=False).design.qkv_bias
    False
    """

    model_type = "starcoder2"
    unread: ClassVar[tuple[str, ...]] = ("attention_bias",)

    vocab_size: int = 49152
    hidden_size: int = 3072
    intermediate_size: int = 12288
    num_hidden_layers: int = 30
    num_attention_heads: int = 24
    num_key_value_heads: int = 2
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    initializer_range: float = 0.018042
    norm_epsilon: float = 1e-5
    residual_dropout: float = 0.0
    embedding_dropout: float = 0.0
    use_bias: bool = True
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    tie_word_embeddings: bool = True

    all_slide = True

    def window_of(self, layer: int) -> int | None:
        return self.sliding_window

    def choices(self) -> dict[str, Any]:
        return {
            "norm": "layer",
            "eps": self.norm_epsilon,
            "dropout": self.residual_dropout,
            "embedding_dropout": self.embedding_dropout,
            "qkv_bias": self.use_bias,
            "out_bias": self.use_bias,
            "net_kind": "plain",
            "net_names": ("", "c_fc", "c_proj"),
            "net_bias": self.use_bias,
        }


Starcoder2Model, Starcoder2ForCausalLM = decoder_classes("Starcoder2", Starcoder2Config)
