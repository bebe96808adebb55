"""Mixtures of experts: Mixtral and Qwen3-MoE. Jiang et al. 2024, arXiv:2401.04088.

Llama's and Qwen3's decoders where the net behind attention is a choice. Parameters are those of released files, one
matrix per expert; stacked ones, as newer files have them, are taken apart while loading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import Experts, decoder_classes
from .decoder.balance import load_balancing_loss as load_balancing_loss
from .llama import LlamaConfig
from .qwen import Qwen3Config


@dataclass(kw_only=True)
class MixtralConfig(LlamaConfig):
    """The numbers of a Mixtral.

    >>> votive.models.MixtralConfig(num_local_experts=4).num_experts
    4
    """

    model_type = "mixtral"

    intermediate_size: int = 14336
    num_key_value_heads: int = 8
    max_position_embeddings: int = 4096 * 32
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    router_jitter_noise: float = 0.0

    all_slide = True

    @property
    def num_experts(self) -> int:
        return self.num_local_experts

    def choices(self) -> dict[str, Any]:
        return {
            "experts_net": "block_sparse_moe",
            "experts": Experts(
                count=self.num_local_experts,
                chosen=self.num_experts_per_tok,
                inner=self.intermediate_size,
                normed=True,
                jitter=self.router_jitter_noise,
                names=("w1", "w3", "w2"),
            ),
        }


MixtralModel, MixtralForCausalLM = decoder_classes(
    "Mixtral",
    MixtralConfig,
    renames={
        r"\.mlp\.(gate|experts)\.": r".block_sparse_moe.\1.",
        r"(\.experts\.\d+\.)gate_proj\.": r"\1w1.",
        r"(\.experts\.\d+\.)down_proj\.": r"\1w2.",
        r"(\.experts\.\d+\.)up_proj\.": r"\1w3.",
    },
)


@dataclass(kw_only=True)
class Qwen3MoeConfig(Qwen3Config):
    """The numbers of a Qwen3 mixture of experts.

    >>> config = votive.models.Qwen3MoeConfig(mlp_only_layers=[1])
    >>> config.is_sparse(0), config.is_sparse(1)
    (True, False)
    """

    model_type = "qwen3_moe"

    hidden_size: int = 2048
    intermediate_size: int = 6144
    num_hidden_layers: int = 24
    num_key_value_heads: int = 4
    head_dim: int | None = None  # type: ignore[assignment]  # null in some files
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 768
    num_experts_per_tok: int = 8
    num_experts: int = 128
    norm_topk_prob: bool = False
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    mlp_only_layers: list[int] | None = None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if "num_local_experts" in values:
            values.setdefault("num_experts", values.pop("num_local_experts"))
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mlp_only_layers = self.mlp_only_layers or []

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts."""
        every = (layer + 1) % self.decoder_sparse_step == 0
        return every and self.num_experts > 0 and layer not in (self.mlp_only_layers or ())

    all_slide = True

    def choices(self) -> dict[str, Any]:
        return {
            **super().choices(),
            "experts": Experts(
                count=self.num_experts,
                chosen=self.num_experts_per_tok,
                inner=self.moe_intermediate_size,
                normed=self.norm_topk_prob,
                dense=tuple(i for i in range(self.num_hidden_layers) if not self.is_sparse(i)),
            ),
        }


Qwen3MoeModel, Qwen3MoeForCausalLM = decoder_classes("Qwen3Moe", Qwen3MoeConfig)
