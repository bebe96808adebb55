"""Qwen1.5 and Qwen2 mixtures: beside the chosen experts one computes all positions, weighed. arXiv:2407.10671."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class Qwen2MoeConfig(RotaryConfig):
    """The numbers of a Qwen2 mixture.

    >>> votive.models.Qwen2MoeConfig(mlp_only_layers=[1]).design.experts.dense
    (1,)
    """

    model_type = "qwen2_moe"
    unread: ClassVar[tuple[str, ...]] = ("attention_bias",)

    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-6
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int = 5632
    num_experts_per_tok: int = 4
    num_experts: int = 60
    norm_topk_prob: bool = False
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    mlp_only_layers: list[int] | None = None
    qkv_bias: bool = True

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("sliding_window") == 0:
            values["sliding_window"] = None  # which transformers writes so
        return super().adapt(values)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mlp_only_layers = self.mlp_only_layers or []
        if not self.use_sliding_window:
            self.sliding_window = None
        if self.layer_types is None:
            near = self.max_window_layers if self.use_sliding_window else 0
            self.layer_types = [
                "sliding_attention" if i < near and not i % 2 else "full_attention"
                for i in range(self.num_hidden_layers)
            ]

    def choices(self) -> dict[str, Any]:
        step, only = self.decoder_sparse_step, self.mlp_only_layers or []
        return {
            "eps": self.rms_norm_eps,
            "qkv_bias": self.qkv_bias,
            "experts": Experts(
                count=self.num_experts,
                chosen=self.num_experts_per_tok,
                inner=self.moe_intermediate_size,
                normed=self.norm_topk_prob,
                dense=tuple(
                    i for i in range(self.num_hidden_layers) if (i + 1) % step or i in only or not self.num_experts
                ),
                shared=self.shared_expert_intermediate_size,
                shared_gate="shared_expert_gate",
            ),
        }


Qwen2MoeModel, Qwen2MoeForCausalLM = decoder_classes("Qwen2Moe", Qwen2MoeConfig)
