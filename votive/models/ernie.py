"""ERNIE 4.5 and its mixtures: a Llama that rotates pairs of neighbours. Baidu 2025, technical report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class Ernie4_5Config(RotaryConfig):
    """The numbers of an ERNIE 4.5.

    >>> votive.models.Ernie4_5Config(use_bias=True).design.net_bias
    True
    """

    model_type = "ernie4_5"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window", "attention_bias")

    vocab_size: int = 103424
    hidden_size: int = 1024
    intermediate_size: int = 3072
    num_hidden_layers: int = 18
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 5e5
    use_bias: bool | None = False
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True

    def choices(self) -> dict[str, Any]:
        bias = bool(self.use_bias)
        return {
            "eps": self.rms_norm_eps,
            "qkv_bias": bias,
            "out_bias": bias,
            "net_bias": bias,
            "attention_dropout": 0.0,
            "ropes": (self.rope(interleaved=True),),
        }


Ernie4_5Model, Ernie4_5ForCausalLM = decoder_classes("Ernie4_5", Ernie4_5Config)


@dataclass(kw_only=True)
class Ernie4_5_MoeConfig(Ernie4_5Config):
    """The numbers of an ERNIE 4.5 mixture.

    >>> votive.models.Ernie4_5_MoeConfig().design.experts.dense
    (0,)
    """

    model_type = "ernie4_5_moe"
    aliases: ClassVar[dict[str, str]] = {"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"}

    hidden_size: int = 2560
    intermediate_size: int = 12288
    num_hidden_layers: int = 28
    num_attention_heads: int = 20
    num_key_value_heads: int | None = 4
    head_dim: int | None = None
    moe_intermediate_size: int = 1536
    moe_k: int | None = 6
    moe_num_experts: int | None = 64
    moe_num_shared_experts: int | None = 2
    moe_layer_start_index: int | None = 1
    moe_layer_end_index: int | None = -1
    moe_layer_interval: int | None = 1
    moe_norm_min: float | None = 1e-12
    output_router_logits: bool | None = False
    router_aux_loss_coef: float | None = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.moe_layer_end_index == -1:
            self.moe_layer_end_index = self.num_hidden_layers - 1

    def choices(self) -> dict[str, Any]:
        first, last, step = self.moe_layer_start_index, self.moe_layer_end_index, self.moe_layer_interval
        told = (first, last, step, self.moe_k, self.moe_num_experts, self.moe_num_shared_experts, self.moe_norm_min)
        if None in told:
            raise ValueError("Ernie4_5_MoeConfig: no mixture can be made of keys moe_... that are null.")
        sparse = range(self.num_hidden_layers)[(first or 0) : (last or 0) + 1]
        return {
            **super().choices(),
            "head_bias": bool(self.use_bias),
            "experts": Experts(
                count=self.moe_num_experts or 0,
                chosen=self.moe_k or 0,
                inner=self.moe_intermediate_size,
                dense=tuple(i for i in range(self.num_hidden_layers) if i not in sparse or (i + 1) % (step or 1)),
                normed=True,
                floor=self.moe_norm_min or 0.0,
                correction="e_score_correction_bias",
                correction_in="moe_statics",
                correction_row=True,
                shared=self.moe_intermediate_size * (self.moe_num_shared_experts or 0) or None,
                shared_path="shared_experts",
            ),
        }


Ernie4_5_MoeModel, Ernie4_5_MoeForCausalLM = decoder_classes(
    "Ernie4_5_Moe",
    Ernie4_5_MoeConfig,
    renames={r"\.mlp\.gate\.moe_statics\.": ".mlp.moe_statics."},
    ignored=(r"rotary_emb\.inv_freq$", r"(^|\.)mtp_"),
)
