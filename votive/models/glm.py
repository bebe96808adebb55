"""GLM-4 of 2024, of 2025, and the mixtures GLM-4.5 and Solar Open. arXiv:2406.12793 and 2508.06471."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig
from .decoder.routing import sigmoid_experts


@dataclass(kw_only=True)
class GlmConfig(RotaryConfig):
    """The numbers of a GLM-4: half of each head is rotated, in pairs of neighbours, and the net's products are one.

    >>> design = votive.models.GlmConfig().design
    >>> design.ropes[0].interleaved, design.net_kind
    (True, 'fused')
    """

    model_type = "glm"
    rotated = 0.5
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 151552
    intermediate_size: int = 13696
    num_hidden_layers: int = 40
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1.5625e-07
    attention_bias: bool = True
    pad_token_id: int | None = 151329

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eos_token_id is None:
            self.eos_token_id = [151329, 151336, 151338]

    def choices(self) -> dict[str, Any]:
        return {
            "eps": self.rms_norm_eps,
            "out_bias": False,
            "ropes": (self.rope(interleaved=True),),
            "net_kind": "fused",
            "net_names": ("gate_up_proj", "", "down_proj"),
        }


GlmModel, GlmForCausalLM = decoder_classes("Glm", GlmConfig)


@dataclass(kw_only=True)
class Glm4Config(GlmConfig):
    """The numbers of a GLM-4-0414: a GLM-4 with norms behind attention and net, too.

    >>> votive.models.Glm4Config().design.norms[3]
    'post_mlp_layernorm'
    """

    model_type = "glm4"

    num_key_value_heads: int = 2
    head_dim: int = 128

    def choices(self) -> dict[str, Any]:
        return {
            **super().choices(),
            "norms": ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
        }


Glm4Model, Glm4ForCausalLM = decoder_classes("Glm4", Glm4Config)


@dataclass(kw_only=True)
class Glm4MoeConfig(RotaryConfig):
    """The numbers of a GLM-4.5, a mixture.

    >>> votive.models.Glm4MoeConfig().design.experts.shared
    1408
    """

    model_type = "glm4_moe"
    rotated = 0.5
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)
    aliases: ClassVar[dict[str, str]] = {
        "num_local_experts": "n_routed_experts",
        "num_nextn_predict_layers": "num_mtp_layers",
    }

    vocab_size: int = 151552
    intermediate_size: int = 10944
    num_hidden_layers: int = 46
    num_attention_heads: int = 96
    num_key_value_heads: int = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    moe_intermediate_size: int = 1408
    num_experts_per_tok: int = 8
    output_router_logits: bool = False
    n_shared_experts: int = 1
    n_routed_experts: int = 128
    routed_scaling_factor: float = 1.0
    n_group: int = 1
    topk_group: int = 1
    first_k_dense_replace: int = 1
    norm_topk_prob: bool = True
    use_qk_norm: bool = False
    num_mtp_layers: int = 1

    def choices(self) -> dict[str, Any]:
        dense = tuple(range(self.first_k_dense_replace))
        return {
            "eps": self.rms_norm_eps,
            "out_bias": False,
            "qk_norm": "head" if self.use_qk_norm else "",
            "experts": sigmoid_experts(self, self.n_routed_experts, self.n_shared_experts, dense=dense),
            "more_layers": self.num_mtp_layers,
        }


Glm4MoeModel, Glm4MoeForCausalLM = decoder_classes("Glm4Moe", Glm4MoeConfig)


@dataclass(kw_only=True)
class SolarOpenConfig(RotaryConfig):
    """The numbers of a Solar Open: a GLM-4.5 whose heads are rotated whole and whose layers are all mixtures.

    >>> votive.models.SolarOpenConfig().design.experts.dense
    ()
    """

    model_type = "solar_open"
    rotates_part = True
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "n_routed_experts"}

    vocab_size: int = 196608
    num_hidden_layers: int = 48
    num_attention_heads: int = 64
    num_key_value_heads: int = 8
    head_dim: int = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    moe_intermediate_size: int = 1280
    num_experts_per_tok: int = 8
    output_router_logits: bool = False
    n_shared_experts: int = 1
    n_routed_experts: int = 128
    routed_scaling_factor: float = 1.0
    n_group: int = 1
    topk_group: int = 1
    norm_topk_prob: bool = True

    def choices(self) -> dict[str, Any]:
        experts = sigmoid_experts(self, self.n_routed_experts, self.n_shared_experts)
        return {"eps": self.rms_norm_eps, "out_bias": False, "experts": experts}


SolarOpenModel, SolarOpenForCausalLM = decoder_classes("SolarOpen", SolarOpenConfig)
