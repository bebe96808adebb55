"""Qwen3-Next: the gated delta rule in most layers, gated attention in some, experts. Qwen Team 2025."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig
from .decoder.delta_net import DeltaNet, GatedAttention, GatedDeltaNet
from .decoder.hybrid import KINDS, mixers, newer
from .decoder.layer import MIXERS

MIXERS["gated delta net"] = (GatedDeltaNet, "linear_attn")
MIXERS["gated attention"] = (GatedAttention, "")
_MOST_LAYERS = 1 << 16


@dataclass(kw_only=True)
class Qwen3NextConfig(RotaryConfig):
    """The numbers of a Qwen3-Next.

    >>> votive.models.Qwen3NextConfig().layer_types[2:4]
    ['linear_attention', 'full_attention']
    """

    model_type = "qwen3_next"
    layer_kinds: ClassVar[tuple[str, ...]] = KINDS
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)
    rotated = 0.25

    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 48
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int = 256
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-6
    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int = 512
    num_experts_per_tok: int = 10
    num_experts: int = 512
    norm_topk_prob: bool = True
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    mlp_only_layers: list[int] | None = None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if values.get("layer_types") is None:
            every = values.pop("full_attention_interval", 4)
            count = values.get("num_hidden_layers", cls.num_hidden_layers)
            # What is no number of layers is told by its own name.
            if isinstance(count, int) and isinstance(every, int) and 0 < count <= _MOST_LAYERS and every > 0:
                values["layer_types"] = [
                    "linear_attention" if (i + 1) % every else "full_attention" for i in range(count)
                ]
        else:
            values["layer_types"] = newer(values["layer_types"])
        return values

    def __post_init__(self) -> None:
        self.mlp_only_layers = self.mlp_only_layers or []
        if self.layer_types is None:
            self.layer_types = [
                "linear_attention" if (i + 1) % 4 else "full_attention" for i in range(self.num_hidden_layers)
            ]
        super().__post_init__()

    def choices(self) -> dict[str, Any]:
        step, only = self.decoder_sparse_step, self.mlp_only_layers or ()
        layers = range(self.num_hidden_layers)
        dense = tuple(i for i in layers if i in only or not self.num_experts or step < 1 or (i + 1) % step)
        experts = Experts(
            count=self.num_experts,
            chosen=self.num_experts_per_tok,
            inner=self.moe_intermediate_size,
            normed=self.norm_topk_prob,
            dense=dense,
            shared=self.shared_expert_intermediate_size,
            shared_gate="shared_expert_gate",
        )
        kinds = (self.layer_types or [])[: self.num_hidden_layers]
        net = DeltaNet(
            key_heads=self.linear_num_key_heads,
            value_heads=self.linear_num_value_heads,
            key_dim=self.linear_key_head_dim,
            value_dim=self.linear_value_head_dim,
            conv=self.linear_conv_kernel_dim,
            eps=self.rms_norm_eps,
        )
        return {
            "norm": "rms 1+",
            "eps": self.rms_norm_eps,
            "qk_norm": "head",
            "mixers": mixers(kinds, linear_attention="gated delta net", full_attention="gated attention"),
            "experts": experts if len(dense) < len(layers) else None,
            "padding": self.pad_token_id,
            "extra": {"delta_net": net},
        }


Qwen3NextModel, Qwen3NextForCausalLM = decoder_classes(
    "Qwen3Next", Qwen3NextConfig, ignored=(r"rotary_emb\.inv_freq$", r"^mtp\.")
)
