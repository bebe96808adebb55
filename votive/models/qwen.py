"""Qwen2 and Qwen3: a Llama with biases on queries, keys and values, or with normed heads.

Yang et al. 2024, arXiv:2407.10671 and 2025, arXiv:2505.09388.
"""

from __future__ import annotations

from dataclasses import dataclass

from .llama import LlamaConfig, LlamaForCausalLM, LlamaModel


@dataclass(kw_only=True)
class Qwen2Config(LlamaConfig):
    """The numbers of a Qwen2.

    >>> votive.models.Qwen2Config().qkv_bias, votive.models.Qwen2Config().out_bias
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

    qkv_bias = True
    out_bias = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.use_sliding_window:
            self.sliding_window = None
        if self.layer_types is None and not self.all_slide:
            near = self.num_hidden_layers if self.sliding_window is None else self.max_window_layers
            self.layer_types = [
                "sliding_attention" if i >= near else "full_attention" for i in range(self.num_hidden_layers)
            ]


class Qwen2Model(LlamaModel):
    """Qwen2's decoder.

    >>> votive.models.Qwen2Model.config_class.model_type
    'qwen2'
    """

    config_class = Qwen2Config


class Qwen2ForCausalLM(LlamaForCausalLM):
    """Qwen2 with its head.

    >>> votive.models.Qwen2ForCausalLM.config_class.model_type
    'qwen2'
    """

    config_class = Qwen2Config
    model_class = Qwen2Model


@dataclass(kw_only=True)
class Qwen3Config(Qwen2Config):
    """The numbers of a Qwen3: queries and keys are normed per head, heads have their own width.

    >>> votive.models.Qwen3Config().qk_norm, votive.models.Qwen3Config().head_dim
    (True, 128)
    """

    model_type = "qwen3"

    head_dim: int = 128

    qk_norm = True

    @property
    def qkv_bias(self) -> bool:  # type: ignore[override]
        return self.attention_bias

    @property
    def out_bias(self) -> bool:  # type: ignore[override]
        return self.attention_bias


class Qwen3Model(LlamaModel):
    """Qwen3's decoder.

    >>> votive.models.Qwen3Model.config_class.model_type
    'qwen3'
    """

    config_class = Qwen3Config


class Qwen3ForCausalLM(LlamaForCausalLM):
    """Qwen3 with its head.

    >>> config = votive.models.Qwen3Config(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=4)
    >>> sum(p.numel() for p in votive.models.Qwen3ForCausalLM(config).parameters())
    768
    """

    config_class = Qwen3Config
    model_class = Qwen3Model
