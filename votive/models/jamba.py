"""Jamba: Mamba layers, attention in some of them, experts in others. Lieber et al. 2024, arXiv:2403.19887."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import DecoderConfig, Experts, decoder_classes
from .decoder.hybrid import followed, mixers
from .decoder.layer import MIXERS
from .decoder.state_space import Mamba, StateSpace

MIXERS["mamba"] = (Mamba, "mamba")


@dataclass(kw_only=True)
class JambaConfig(DecoderConfig):
    """The numbers of a Jamba.

    >>> votive.models.JambaConfig().kinds()[3:5]
    ['linear_attention', 'full_attention']
    """

    model_type = "jamba"
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}

    vocab_size: int = 65536
    hidden_size: int = 4096
    intermediate_size: int = 14336
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 8
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    max_position_embeddings: int = 262144
    attention_dropout: float | None = 0.0
    num_experts_per_tok: int = 2
    num_experts: int = 16
    expert_layer_period: int = 2
    expert_layer_offset: int = 1
    attn_layer_period: int = 8
    attn_layer_offset: int = 4
    mamba_d_state: int = 16
    mamba_d_conv: int = 4
    mamba_expand: int = 2
    mamba_dt_rank: int | str = "auto"
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        followed(cls, values, "layer_types", "layers_block_type")
        return values

    def __post_init__(self) -> None:
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        if self.mamba_dt_rank == "auto":
            self.mamba_dt_rank = math.ceil(self.hidden_size / 16)
        if isinstance(self.mamba_dt_rank, str):
            raise ValueError(f"JambaConfig: mamba_dt_rank must be 'auto' or a number, got {self.mamba_dt_rank!r}.")
        for what in ("attn", "expert"):
            period, offset = getattr(self, f"{what}_layer_period"), getattr(self, f"{what}_layer_offset")
            if offset >= period or period < 1:
                raise ValueError(
                    f"JambaConfig: {what}_layer_offset={offset} must be below {what}_layer_period={period}."
                )

    def kinds(self) -> list[str]:
        """The type of each layer."""
        period, offset = self.attn_layer_period, self.attn_layer_offset
        return ["full_attention" if i % period == offset else "linear_attention" for i in range(self.num_hidden_layers)]

    def sizes(self) -> dict[str, Any]:
        heads, shared = self.num_attention_heads, self.num_key_value_heads or 1
        if heads < 1 or heads % shared:
            raise ValueError(
                f"JambaConfig: num_attention_heads={heads} do not share num_key_value_heads={shared} evenly."
            )
        sparse = [i % self.expert_layer_period == self.expert_layer_offset for i in range(self.num_hidden_layers)]
        experts = Experts(
            count=self.num_experts,
            chosen=self.num_experts_per_tok,
            inner=self.intermediate_size,
            dense=tuple(i for i, has in enumerate(sparse) if not has),
            gate="router",
        )
        space = StateSpace(
            inner=self.mamba_expand * self.hidden_size,
            state=self.mamba_d_state,
            conv=self.mamba_d_conv,
            conv_bias=self.mamba_conv_bias,
            bias=self.mamba_proj_bias,
            act=self.hidden_act,
            eps=self.rms_norm_eps,
            rank=int(self.mamba_dt_rank),
            norms="rms",
        )
        return {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": self.num_hidden_layers,
            "heads": heads,
            "shared": shared,
            "head_dim": getattr(self, "head_dim", None) or self.hidden_size // heads,
            "inner": self.intermediate_size,
            "positions": self.max_position_embeddings,
            "eps": self.rms_norm_eps,
            "norms": ("input_layernorm", "", "pre_ff_layernorm", ""),
            "attention_dropout": self.attention_dropout or 0.0,
            "mixers": mixers(self.kinds(), linear_attention="mamba"),
            "net": "feed_forward",
            "act": self.hidden_act,
            "experts": experts if self.num_experts > 1 and any(sparse) else None,
            "padding": self.pad_token_id,
            "last_norm": "final_layernorm",
            "extra": {"state_space": space},
        }


JambaModel, JambaForCausalLM = decoder_classes("Jamba", JambaConfig)
