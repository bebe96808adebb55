"""Granite: a Llama with factors for embeddings, scores, what is added and logits, and its mixtures. arXiv:2408.13359.

HyperCLOVA X is one with norms behind attention and net.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from .decoder import Decoder, DecoderForCausalLM, Experts, decoder_classes
from .decoder.model import DecoderBase
from .llama import LlamaConfig
from .stacked import Stacked


@dataclass(kw_only=True)
class GraniteConfig(LlamaConfig):
    """The numbers of a Granite.

    >>> votive.models.GraniteConfig(logits_scaling=8.0).design.logit_scale
    0.125
    """

    model_type = "granite"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    embedding_multiplier: float | None = 1.0
    logits_scaling: float | None = 1.0
    residual_multiplier: float | None = 1.0
    attention_multiplier: float | None = 1.0

    def choices(self) -> dict[str, Any]:
        told = (self.embedding_multiplier, self.logits_scaling, self.residual_multiplier, self.attention_multiplier)
        if None in told:
            raise ValueError(f"{type(self).__name__}: no model can be made with multipliers of null.")
        return {
            "embedding_scale": self.embedding_multiplier,
            "logit_scale": 1 / (self.logits_scaling or 1.0),
            "residual_scale": self.residual_multiplier,
            "scale": self.attention_multiplier,
        }


GraniteModel, GraniteForCausalLM = decoder_classes("Granite", GraniteConfig, scales_given=True)


@dataclass(kw_only=True)
class GraniteMoeConfig(GraniteConfig):
    """The numbers of a Granite mixture, whose files have one tensor for all experts.

    >>> votive.models.GraniteMoeConfig().design.experts.router
    'chosen'
    """

    model_type = "granitemoe"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window", "mlp_bias")
    aliases: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}

    num_local_experts: int | None = 8
    num_experts_per_tok: int | None = 2
    output_router_logits: bool | None = False
    router_aux_loss_coef: float | None = 0.001

    @property
    def shared_width(self) -> int:
        """The width of the net that computes all positions; 0 for none."""
        return 0

    def choices(self) -> dict[str, Any]:
        return {
            **super().choices(),
            "experts_net": "block_sparse_moe",
            "experts": Experts(
                count=self.num_local_experts or 0,
                chosen=self.num_experts_per_tok or 0,
                inner=self.intermediate_size,
                router="chosen",
                gate="router.layer",
                shared=self.shared_width or None,
                shared_path="shared_mlp",
                shared_beside=True,
                shared_kind="fused",
                shared_names=("input_linear", "", "output_linear"),
                files=Stacked(gate_up="input_linear.weight", down="output_linear.weight"),
            ),
        }


_MIXED: dict[str, Any] = {"scales_given": True, "renames": {r"\.router\.weight$": ".router.layer.weight"}}
GraniteMoeModel, GraniteMoeForCausalLM = decoder_classes("GraniteMoe", GraniteMoeConfig, **_MIXED)


@dataclass(kw_only=True)
class GraniteMoeSharedConfig(GraniteMoeConfig):
    """The numbers of a Granite mixture with a net that computes all positions beside it.

    >>> votive.models.GraniteMoeSharedConfig(shared_intermediate_size=64).design.experts.shared
    64
    """

    model_type = "granitemoeshared"

    shared_intermediate_size: int = 0

    @property
    def shared_width(self) -> int:
        return self.shared_intermediate_size


GraniteMoeSharedModel, GraniteMoeSharedForCausalLM = decoder_classes(
    "GraniteMoeShared", GraniteMoeSharedConfig, **_MIXED
)


class _WindowsOfGranite(GraniteConfig):
    """What Granites with windows share: three of four layers see one, heads may look at nothing, bases differ."""

    # Fields of both, which are no dataclass here: mixtures have other bases.
    layer_rope_theta: list[float] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        count = range(self.num_hidden_layers)
        if self.layer_types is None:
            self.layer_types = ["sliding_attention" if i % 4 else "full_attention" for i in count]
        if self.layer_rope_theta is None:
            self.layer_rope_theta = [self.rope_theta for _ in count]

    def choices(self) -> dict[str, Any]:
        bases = (self.layer_rope_theta or [])[: self.num_hidden_layers]
        known = sorted({base for base in bases if base})
        return {
            **super().choices(),
            "sinks": True,
            "sinks_shown": False,
            "ropes": tuple(self.rope(theta=base, name=f"rotary_emb_{i}") for i, base in enumerate(known)),
            "rope_of": tuple(known.index(base) if base else None for base in bases),
        }


@dataclass(kw_only=True)
class GraniteSWAConfig(_WindowsOfGranite):
    """The numbers of a Granite of which three of four layers see a window.

    >>> votive.models.GraniteSWAConfig(num_hidden_layers=2).layer_types
    ['full_attention', 'sliding_attention']
    """

    model_type = "granite_swa"
    unread: ClassVar[tuple[str, ...]] = ()

    vocab_size: int = 100352
    hidden_size: int = 2560
    intermediate_size: int = 8192
    num_hidden_layers: int = 24
    num_attention_heads: int = 20
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    bos_token_id: int | None = 100257
    eos_token_id: int | list[int] | None = 100257
    tie_word_embeddings: bool = True
    sliding_window: int | None = 128
    layer_rope_theta: list[float] | None = None


GraniteSWAModel, GraniteSWAForCausalLM = decoder_classes("GraniteSWA", GraniteSWAConfig, scales_given=True)


@dataclass(kw_only=True)
class GraniteMoeSWAConfig(_WindowsOfGranite, GraniteMoeSharedConfig):
    """The numbers of a Granite mixture of which three of four layers see a window.

    >>> votive.models.GraniteMoeSWAConfig().sliding_window
    128
    """

    model_type = "granitemoe_swa"
    unread: ClassVar[tuple[str, ...]] = ("mlp_bias",)

    sliding_window: int | None = 128
    layer_rope_theta: list[float] | None = None

    def choices(self) -> dict[str, Any]:
        found = super().choices()
        return {**found, "experts": replace(found["experts"], files=Stacked())}


class _PlainRouters(DecoderBase):
    """Files whose routers have no layer inside."""

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        return {k.replace(".router.layer.", ".router."): v for k, v in super().filed(weights).items()}


class _GraniteMoeSWA(_PlainRouters, Decoder):
    """The decoder of such a mixture."""


class _Head(_PlainRouters, DecoderForCausalLM):
    """The same with its head."""


GraniteMoeSWAModel, GraniteMoeSWAForCausalLM = decoder_classes(
    "GraniteMoeSWA", GraniteMoeSWAConfig, base=_GraniteMoeSWA, head=_Head, **_MIXED
)


@dataclass(kw_only=True)
class HyperCLOVAXConfig(GraniteConfig):
    """The numbers of a HyperCLOVA X.

    >>> votive.models.HyperCLOVAXConfig().design.norms[1]
    'post_norm1'
    """

    model_type = "hyperclovax"

    attention_multiplier: float | None = None
    use_post_norm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention_multiplier is None:
            self.attention_multiplier = (self.head_dim or 1) ** -0.5

    def choices(self) -> dict[str, Any]:
        behind = ("post_norm1", "post_norm2") if self.use_post_norm else ("", "")
        return {
            **super().choices(),
            "norms": ("input_layernorm", behind[0], "post_attention_layernorm", behind[1]),
            "logit_scale": self.logits_scaling,
        }


HyperCLOVAXModel, HyperCLOVAXForCausalLM = decoder_classes("HyperCLOVAX", HyperCLOVAXConfig, scales_given=True)
