"""DeepSeek V2 and V3: keys and values of few features, and mixtures of many small experts.

arXiv:2405.04434 and 2412.19437.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig
from .decoder.latent_attention import Latent
from .decoder.routing import check_groups


@dataclass(kw_only=True)
class LatentConfig(RotaryConfig):
    """A configuration of a decoder with latent attention.

    >>> votive.models.deepseek.LatentConfig(qk_rope_head_dim=8).head_dim
    8
    """

    rms_norm_eps: float = 1e-6
    kv_lora_rank: int = 512
    q_lora_rank: int | None = 1536
    qk_nope_head_dim: int = 128
    qk_rope_head_dim: int = 64
    v_head_dim: int | None = 128
    pretraining_tp: int | None = 1
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        self.head_dim = self.qk_rope_head_dim
        super().__post_init__()
        if self.num_key_value_heads != self.num_attention_heads:
            raise ValueError(
                f"{type(self).__name__}: num_key_value_heads={self.num_key_value_heads} must be "
                f"num_attention_heads={self.num_attention_heads}: every head has keys of its own."
            )

    @property
    def qk_head_dim(self) -> int:
        """The features of a query and a key."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    interleaved = True  # pairs of features that are rotated together are neighbours

    def sizes(self) -> dict[str, Any]:
        assert self.v_head_dim is not None, "known once the configuration is made"
        return {
            **super().sizes(),
            "head_dim": self.qk_head_dim,
            "scale": self.qk_head_dim**-0.5 * self._warmth(),
            "eps": self.rms_norm_eps,
            "windows": (),
            "ropes": (self.rope(features=self.qk_rope_head_dim, interleaved=self.interleaved),),
            "mixers": ("latent",) * self.num_hidden_layers,
            "padding": self.pad_token_id,
            "extra": {
                "latent": Latent(
                    q_rank=self.q_lora_rank,
                    kv_rank=self.kv_lora_rank,
                    fixed=self.qk_nope_head_dim,
                    turned=self.qk_rope_head_dim,
                    value=self.v_head_dim,
                    bias=self.attention_bias,
                )
            },
        }

    def _warmth(self) -> float:
        """By how much scores of stretched rotations are larger: DeepSeek-AI 2024, appendix of arXiv:2405.04434."""
        told = self.rope_scaling or {}
        weight, factor = told.get("mscale_all_dim"), told.get("factor", 1.0)
        return (0.1 * weight * math.log(factor) + 1.0) ** 2 if weight and factor > 1 else 1.0

    def told(self, **known: Any) -> None:
        """Raise for a key that says something else than what is computed."""
        wrong = {k: self.extra[k] for k, values in known.items() if k in self.extra and self.extra[k] not in values}
        if wrong:
            raise ValueError(f"{type(self).__name__}: {wrong} is not supported; known: {known}.")


@dataclass(kw_only=True)
class DeepseekV2Config(LatentConfig):
    """The numbers of a DeepSeek V2.

    >>> votive.models.DeepseekV2Config(first_k_dense_replace=1).design.has_experts(0)
    False
    """

    model_type = "deepseek_v2"
    aliases = {"num_experts": "n_routed_experts"}

    vocab_size: int = 102400
    mlp_bias: bool = False
    first_k_dense_replace: int = 0
    n_group: int | None = None
    n_routed_experts: int = 64
    output_router_logits: bool = False
    n_shared_experts: int = 2
    routed_scaling_factor: float = 1.0
    topk_group: int | None = None
    topk_method: str | None = "greedy"
    norm_topk_prob: bool | None = False
    num_experts_per_tok: int | None = None
    moe_intermediate_size: int = 1407

    def __post_init__(self) -> None:
        super().__post_init__()
        self.told(scoring_func=("softmax",), moe_layer_freq=(1,))
        if self.topk_method not in ("greedy", "group_limited_greedy"):
            raise ValueError(
                f"DeepseekV2Config: topk_method={self.topk_method!r}; use 'greedy' or 'group_limited_greedy'."
            )
        if self.norm_topk_prob:
            raise ValueError("DeepseekV2Config: norm_topk_prob=True is not supported; transformers leaves it out.")
        if self.topk_method != "greedy":
            check_groups(self, self.n_routed_experts)

    def choices(self) -> dict[str, Any]:
        grouped = self.topk_method == "group_limited_greedy"
        return {
            "net_bias": self.mlp_bias,
            "experts": Experts(
                count=self.n_routed_experts,
                # Written by the file of every model; the default is none.
                chosen=self.num_experts_per_tok or 1,
                inner=self.moe_intermediate_size,
                dense=tuple(range(min(self.first_k_dense_replace, self.num_hidden_layers))),
                scaled=self.routed_scaling_factor,
                groups=(self.n_group, self.topk_group) if grouped and self.n_group and self.topk_group else None,
                shared=self.moe_intermediate_size * self.n_shared_experts,
                shared_path="shared_experts",
                wide=True,
                balanced=False,
            ),
        }


DeepseekV2Model, DeepseekV2ForCausalLM = decoder_classes("DeepseekV2", DeepseekV2Config)


@dataclass(kw_only=True)
class DeepseekV3Config(LatentConfig):
    """The numbers of a DeepSeek V3; layers that predict further tokens are left out of files.

    >>> votive.models.DeepseekV3Config().design.experts.correction
    'e_score_correction_bias'
    """

    model_type = "deepseek_v3"
    same_network = ("kimi_k2",)
    aliases = {"num_local_experts": "n_routed_experts", "num_nextn_predict_layers": "num_mtp_layers"}

    vocab_size: int = 129280
    hidden_size: int = 7168
    intermediate_size: int = 18432
    moe_intermediate_size: int = 2048
    num_hidden_layers: int = 61
    num_attention_heads: int = 128
    num_key_value_heads: int | None = 128
    n_shared_experts: int = 1
    n_routed_experts: int = 256
    output_router_logits: bool = False
    routed_scaling_factor: float = 2.5
    n_group: int | None = 8
    topk_group: int | None = 4
    num_experts_per_tok: int | None = 8
    first_k_dense_replace: int = 3
    norm_topk_prob: bool | None = True
    max_position_embeddings: int = 4096
    rope_interleave: bool | None = True
    num_mtp_layers: int = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.told(scoring_func=("sigmoid",), topk_method=("noaux_tc",), moe_layer_freq=(1,))
        check_groups(self, self.n_routed_experts)

    def choices(self) -> dict[str, Any]:
        groups, kept, chosen = self.n_group, self.topk_group, self.num_experts_per_tok
        assert groups, "checked when it was made"
        assert kept, "checked when it was made"
        assert chosen, "checked when it was made"
        ropes = (self.rope(features=self.qk_rope_head_dim, interleaved=bool(self.rope_interleave)),)
        return {
            "ropes": ropes,
            "more_layers": self.num_mtp_layers,
            "experts": Experts(
                count=self.n_routed_experts,
                chosen=chosen,
                inner=self.moe_intermediate_size,
                dense=tuple(range(min(self.first_k_dense_replace, self.num_hidden_layers))),
                router="sigmoid",
                normed=bool(self.norm_topk_prob),
                scaled=self.routed_scaling_factor,
                groups=(groups, kept),
                correction="e_score_correction_bias",
                shared=self.moe_intermediate_size * self.n_shared_experts,
                shared_path="shared_experts",
                wide=True,
                balanced=False,
            ),
        }


DeepseekV3Model, DeepseekV3ForCausalLM = decoder_classes("DeepseekV3", DeepseekV3Config)
