"""Bamba and hybrid Granites: Mamba 2 layers, and attention in some of them.

Ganti et al. 2024, Bamba; IBM 2025, Granite 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..tensor import Tensor
from .decoder import DecoderForCausalLM, decoder_classes
from .decoder.config import RotaryConfig
from .decoder.hybrid import Mamba2Fields, followed, mixers, needed, newer
from .decoder.layer import MIXERS
from .decoder.state_space import Mamba2
from .granite import GraniteMoeConfig, GraniteMoeSharedConfig
from .output import BaseModelOutput, CausalLMOutput, MoeCausalLMOutput

MIXERS["mamba2"] = (Mamba2, "mamba")


@dataclass(kw_only=True)
class BambaConfig(Mamba2Fields, RotaryConfig):
    """The numbers of a Bamba.

    >>> votive.models.BambaConfig(attn_layer_indices=[1], num_hidden_layers=2).kinds()
    ['linear_attention', 'full_attention']
    """

    model_type = "bamba"
    rotated = 0.5
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 128000
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    max_position_embeddings: int = 262144
    attn_layer_indices: list[int] | None = None
    z_loss_coefficient: float | None = 0.0
    mlp_bias: bool = False

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        followed(cls, values, "layer_types", "layers_block_type")
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settle_heads()

    def kinds(self) -> list[str]:
        """The type of each layer."""
        here = self.attn_layer_indices or ()
        return ["full_attention" if i in here else "linear_attention" for i in range(self.num_hidden_layers)]

    def sizes(self) -> dict[str, Any]:
        needed(self, "z_loss_coefficient")
        return {
            **super().sizes(),
            "eps": self.rms_norm_eps,
            "norms": ("input_layernorm", "", "pre_ff_layernorm", ""),
            "mixers": mixers(self.kinds(), linear_attention="mamba2"),
            "net": "feed_forward",
            "net_bias": self.mlp_bias,
            "padding": self.pad_token_id,
            "last_norm": "final_layernorm",
            "extra": {"state_space": self.space(eps=self.rms_norm_eps)},
        }


class _BambaHead(DecoderForCausalLM):
    """A head whose loss may ask for small scores, too."""

    def predictions(
        self, found: BaseModelOutput, labels: Tensor | None, logits_to_keep: int, attention_mask: Tensor | None
    ) -> CausalLMOutput | MoeCausalLMOutput:
        made = super().predictions(found, labels, logits_to_keep, attention_mask)
        weight = self.config.z_loss_coefficient
        if made.loss is not None and weight > 0:
            assert made.logits is not None, "a head gives it"
            made.loss = made.loss + weight * made.logits.logsumexp(-1).to(made.loss.dtype).square().mean()
        return made


BambaModel, BambaForCausalLM = decoder_classes("Bamba", BambaConfig, head=_BambaHead)


@dataclass(kw_only=True)
class GraniteMoeHybridConfig(Mamba2Fields, GraniteMoeSharedConfig):
    """The numbers of a hybrid Granite, with experts or without.

    >>> votive.models.GraniteMoeHybridConfig(num_hidden_layers=2).layer_types
    ['linear_attention', 'linear_attention']
    """

    model_type = "granitemoehybrid"
    aliases: ClassVar[dict[str, str]] = {**GraniteMoeConfig.aliases, "layers_block_type": "layer_types"}

    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    shared_intermediate_size: int = 1024
    position_embedding_type: str | None = None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if "layer_types" in values:
            values["layer_types"] = newer(values["layer_types"])
        return values

    def __post_init__(self) -> None:
        if self.layer_types is None:
            self.layer_types = ["linear_attention"] * self.num_hidden_layers
        super().__post_init__()
        self.settle_heads()
        if self.position_embedding_type not in (None, "rope", "nope"):
            raise ValueError(
                f"GraniteMoeHybridConfig: position_embedding_type must be 'rope' or null, got "
                f"{self.position_embedding_type!r}."
            )

    def choices(self) -> dict[str, Any]:
        needed(self, "num_local_experts")
        told = super().choices()
        if not self.num_local_experts:
            told |= {
                "experts": None,
                "net": "shared_mlp",
                "net_kind": "fused",
                "net_names": ("input_linear", "", "output_linear"),
                "inner": self.shared_intermediate_size,
            }
        return {
            **told,
            "mixers": mixers(self.layer_types or (), linear_attention="mamba2"),
            "ropes": (self.rope(),) if self.position_embedding_type == "rope" else (),
            "extra": {"state_space": self.space(eps=self.rms_norm_eps)},
        }


GraniteMoeHybridModel, GraniteMoeHybridForCausalLM = decoder_classes(
    "GraniteMoeHybrid",
    GraniteMoeHybridConfig,
    scales_given=True,
    renames={r"\.router\.weight$": ".router.layer.weight"},
)
