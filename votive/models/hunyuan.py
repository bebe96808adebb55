"""Hunyuan's first dense models and mixtures: queries and keys are normed behind the rotation. arXiv:2411.02265."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, Rope, decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class HunYuanDenseV1Config(RotaryConfig):
    """The numbers of a dense Hunyuan.

    >>> votive.models.HunYuanDenseV1Config().design.qk_norm_last
    True
    """

    model_type = "hunyuan_v1_dense"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 290943
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def rope(self, **changes: Any) -> Rope:
        scaling = self.rope_scaling or {}
        if scaling.get("rope_type") == "dynamic":
            if scaling.get("alpha"):
                # Stretched once for all lengths, by a larger base.
                size = self.head_dim or 0
                theta = self.rope_theta * scaling["alpha"] ** (size / (size - 2))
                return super().rope(theta=theta, scaling=None, **changes)
            kept = {"rope_type": "dynamic", "factor": scaling["factor"]}
            return super().rope(scaling=kept, **changes)
        return super().rope(**changes)

    def choices(self) -> dict[str, Any]:
        return {
            "eps": self.rms_norm_eps,
            "qk_norm": "head",
            "qk_norm_last": True,
            "qk_names": ("query_layernorm", "key_layernorm"),
        }


HunYuanDenseV1Model, HunYuanDenseV1ForCausalLM = decoder_classes("HunYuanDenseV1", HunYuanDenseV1Config)


@dataclass(kw_only=True)
class HunYuanMoEV1Config(HunYuanDenseV1Config):
    """The numbers of a Hunyuan mixture.

    >>> votive.models.HunYuanMoEV1Config(num_experts=16, moe_topk=[8] * 32).design.experts.chosen
    8
    """

    model_type = "hunyuan_v1_moe"
    aliases: ClassVar[dict[str, str]] = {"num_experts_per_tok": "moe_topk", "num_local_experts": "num_experts"}

    num_experts: int = 1
    output_router_logits: bool = False
    moe_topk: int | list[int] = 1

    def choices(self) -> dict[str, Any]:
        chosen = self.moe_topk if isinstance(self.moe_topk, int) else self.moe_topk[: self.num_hidden_layers]
        if isinstance(chosen, list):
            if len(chosen) < self.num_hidden_layers or len(set(chosen)) > 1:
                raise ValueError(f"HunYuanMoEV1Config: moe_topk={self.moe_topk} must be the same for every layer.")
            chosen = chosen[0] if chosen else 1
        return {
            **super().choices(),
            "experts": Experts(
                count=self.num_experts,
                chosen=chosen,
                inner=self.intermediate_size,
                normed=True,
                gate="gate.wg",
                balanced=False,
                shared=self.intermediate_size,
                shared_path="shared_mlp",
            ),
        }


HunYuanMoEV1Model, HunYuanMoEV1ForCausalLM = decoder_classes("HunYuanMoEV1", HunYuanMoEV1Config)
