"""LFM2 and its mixtures: short convolutions, attention in some layers. Liquid AI 2025, arXiv:2511.23404."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Decoder, DecoderConfig, Experts, decoder_classes
from .decoder.config import RotaryConfig
from .decoder.hybrid import mixers, needed, newer
from .decoder.layer import MIXERS
from .decoder.short_conv import ShortConv

MIXERS["short conv"] = (ShortConv, "conv")


@dataclass(kw_only=True)
class _ShortConvConfig(RotaryConfig):
    """What both have."""

    layer_kinds: ClassVar[tuple[str, ...]] = ("conv", "full_attention")
    unread: ClassVar[tuple[str, ...]] = ("sliding_window", "attention_bias", "attention_dropout", "hidden_act")
    older: ClassVar[dict[str, str]] = {"tie_embedding": "tie_word_embeddings"}

    vocab_size: int = 65536
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 128000
    norm_eps: float = 1e-5
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True
    rope_theta: float = 1e6
    conv_bias: bool = False
    conv_L_cache: int = 3

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        for old, name in cls.older.items():
            if old in values:
                values[name] = values.pop(old)
        if "layer_types" in values:
            values["layer_types"] = newer(values["layer_types"])
        return values

    def choices(self) -> dict[str, Any]:
        return {
            "act": "silu",
            "eps": self.norm_eps,
            "norms": ("operator_norm", "", "ffn_norm", ""),
            "o": "out_proj",
            "attention_dropout": 0.0,
            "qk_norm": "head",
            "qk_names": ("q_layernorm", "k_layernorm"),
            "mixers": mixers((self.layer_types or [])[: self.num_hidden_layers], conv="short conv"),
            "net": "feed_forward",
            "net_names": ("w1", "w3", "w2"),
            "padding": self.pad_token_id,
            "last_norm": "embedding_norm",
            "extra": {"conv_bias": self.conv_bias, "conv_width": self.conv_L_cache},
        }


@dataclass(kw_only=True)
class Lfm2Config(_ShortConvConfig):
    """The numbers of an LFM2.

    >>> votive.models.Lfm2Config(num_hidden_layers=3, full_attn_idxs=[1]).layer_types
    ['conv', 'full_attention', 'conv']
    """

    model_type = "lfm2"
    older: ClassVar[dict[str, str]] = {**_ShortConvConfig.older, "block_ff_dim": "intermediate_size"}

    hidden_size: int = 2560
    intermediate_size: int = 12288
    block_multiple_of: int = 256
    block_ffn_dim_multiplier: float | None = 1.0
    block_auto_adjust_ff_dim: bool = True
    full_attn_idxs: list[int] | None = None

    def __post_init__(self) -> None:
        if self.layer_types is None:
            count = self.num_hidden_layers
            self.full_attn_idxs = list(range(count)) if self.full_attn_idxs is None else self.full_attn_idxs
            self.layer_types = ["full_attention" if i in self.full_attn_idxs else "conv" for i in range(count)]
        super().__post_init__()

    def inner(self) -> int:
        """The width of nets."""
        size = self.intermediate_size
        if not self.block_auto_adjust_ff_dim:
            return size
        size = int(2 * size / 3)
        if self.block_ffn_dim_multiplier is not None:
            size = int(self.block_ffn_dim_multiplier * size)
            size = -(-size // self.block_multiple_of) * self.block_multiple_of
        return size

    def choices(self) -> dict[str, Any]:
        return {**super().choices(), "inner": self.inner()}


Lfm2Model, Lfm2ForCausalLM = decoder_classes("Lfm2", Lfm2Config)


@dataclass(kw_only=True)
class Lfm2MoeConfig(_ShortConvConfig):
    """The numbers of an LFM2 mixture, whose first layers are dense.

    >>> votive.models.Lfm2MoeConfig(num_hidden_layers=3, layer_types=["conv"] * 3).design.experts.dense
    (0, 1)
    """

    model_type = "lfm2_moe"

    hidden_size: int = 2048
    intermediate_size: int = 7168
    moe_intermediate_size: int = 1792
    num_dense_layers: int = 2
    num_experts_per_tok: int = 4
    output_router_logits: bool = False
    num_experts: int = 32
    use_expert_bias: bool = True
    routed_scaling_factor: float = 1.0
    norm_topk_prob: bool = True

    def choices(self) -> dict[str, Any]:
        layers = range(self.num_hidden_layers)
        experts = Experts(
            count=self.num_experts,
            chosen=self.num_experts_per_tok,
            inner=self.moe_intermediate_size,
            dense=tuple(layers[: self.num_dense_layers]),
            router="sigmoid",
            normed=self.norm_topk_prob,
            scaled=self.routed_scaling_factor,
            sum_eps=1e-6,
            correction="expert_bias" if self.use_expert_bias else "",
            correction_in="",
            names=("w1", "w3", "w2"),
            balanced=False,
        )
        return {**super().choices(), "experts": experts if self.num_dense_layers < len(layers) else None}


class _Lfm2Moe(Decoder):
    """A decoder that is told which layers have attention."""

    def __init__(self, config: DecoderConfig) -> None:
        needed(config, "layer_types")
        super().__init__(config)


Lfm2MoeModel, Lfm2MoeForCausalLM = decoder_classes(
    "Lfm2Moe",
    Lfm2MoeConfig,
    base=_Lfm2Moe,
    renames={
        r"(\.experts\.\d+\.)gate_proj\.": r"\1w1.",
        r"(\.experts\.\d+\.)down_proj\.": r"\1w2.",
        r"(\.experts\.\d+\.)up_proj\.": r"\1w3.",
    },
)
