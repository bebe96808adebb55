"""RecurrentGemma: linear recurrences, attention near by in every third layer. De et al. 2024, arXiv:2402.19427."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import votive
from votive import nn

from ..tensor import Tensor
from .config import rope_of
from .decoder import Decoder, DecoderConfig, DecoderForCausalLM, Design, Rope, decoder_classes
from .decoder.attention import DecoderAttention, Rotate
from .decoder.hybrid import followed, mixers
from .decoder.layer import MIXERS
from .decoder.model import DecoderBase, Turn
from .decoder.rg_lru import RecurrentBlock, SpreadLinear
from .output import BaseModelOutput

MIXERS["recurrent block"] = (RecurrentBlock, "")


@dataclass(kw_only=True)
class RecurrentGemmaConfig(DecoderConfig):
    """The numbers of a RecurrentGemma.

    >>> votive.models.RecurrentGemmaConfig().kinds()[:3]
    ['linear_attention', 'linear_attention', 'sliding_attention']
    """

    model_type = "recurrent_gemma"
    aliases: ClassVar[dict[str, str]] = {"sliding_window": "attention_window_size"}

    num_hidden_layers: int = 26
    vocab_size: int = 256000
    hidden_size: int = 2560
    intermediate_size: int = 3 * 2560
    num_attention_heads: int = 10
    lru_width: int | None = None
    attention_window_size: int = 2048
    conv1d_width: int = 4
    logits_soft_cap: float = 30.0
    rms_norm_eps: float = 1e-6
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 1
    hidden_activation: str = "gelu_pytorch_tanh"
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    block_types: list[str] = field(default_factory=lambda: ["recurrent", "recurrent", "attention"])
    attention_dropout: float | None = 0.0
    num_key_value_heads: int | None = None
    attention_bias: bool = False
    w_init_variance_scale: float = 0.01
    tie_word_embeddings: bool = True

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        followed(cls, values, "layer_types", "layers_block_type")
        values["rope_theta"], values["rope_scaling"] = rope_of(values, cls.rope_theta)
        parameters = values.pop("rope_parameters", None) or {}
        if parameters.get("partial_rotary_factor"):
            values["partial_rotary_factor"] = parameters["partial_rotary_factor"]
        return values

    def __post_init__(self) -> None:
        if self.lru_width is None:
            self.lru_width = self.hidden_size
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        if self.num_key_value_heads > self.num_attention_heads:
            raise ValueError(
                f"RecurrentGemmaConfig: num_key_value_heads={self.num_key_value_heads} are more than "
                f"num_attention_heads={self.num_attention_heads}."
            )
        unknown = [kind for kind in self.block_types if kind not in ("recurrent", "attention")]
        if unknown or not self.block_types:
            raise ValueError(
                f"RecurrentGemmaConfig: block_types are 'recurrent' or 'attention', got {self.block_types}."
            )
        if self.rope_scaling is not None:
            raise ValueError(
                "RecurrentGemmaConfig: the rotation is not stretched, got rope_type "
                f"{self.rope_scaling['rope_type']!r}."
            )

    def kinds(self) -> list[str]:
        """The type of each layer."""
        each = ["linear_attention" if kind == "recurrent" else "sliding_attention" for kind in self.block_types]
        return [each[i % len(each)] for i in range(self.num_hidden_layers)]

    @property
    def conv_std(self) -> float:
        """The spread of what filters start from."""
        return math.sqrt(self.w_init_variance_scale / self.conv1d_width)

    @property
    def head_dim(self) -> int:
        """Features of a head, which files may state."""
        stated: int | None = self.extra.get("head_dim")
        return self.hidden_size // self.num_attention_heads if stated is None else stated

    def window_of(self, layer: int) -> int | None:
        """How many last positions a layer sees; None for all."""
        return self.attention_window_size if self.kinds()[layer] == "sliding_attention" else None

    def sizes(self) -> dict[str, Any]:
        heads, shared = self.num_attention_heads, self.num_key_value_heads or 1
        if heads < 1 or heads % shared:
            raise ValueError(
                f"RecurrentGemmaConfig: num_attention_heads={heads} do not share num_key_value_heads={shared} evenly."
            )
        part = getattr(self, "partial_rotary_factor", 0.5)
        # Rounded as in training, whatever the weights are.
        scale = votive.tensor(self.hidden_size**0.5, dtype=votive.bfloat16).item()
        return {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": self.num_hidden_layers,
            "heads": heads,
            "shared": shared,
            "head_dim": self.head_dim,
            "inner": self.intermediate_size // 2,
            "positions": 1 << 16,
            "norm": "rms 1+",
            "eps": self.rms_norm_eps,
            "norms": ("temporal_pre_norm", "", "channel_pre_norm", ""),
            "attention": "temporal_block",
            "qkv_bias": self.attention_bias,
            "out_bias": True,
            "attention_dropout": self.attention_dropout or 0.0,
            "windows": tuple(self.window_of(i) for i in range(self.num_hidden_layers)),
            "ropes": (Rope(theta=self.rope_theta, part=1.0 if part is None else part),),
            "mixers": mixers(self.kinds(), linear_attention="recurrent block", sliding_attention="spread attention"),
            "net": "mlp_block",
            "net_bias": True,
            "act": self.hidden_activation,
            "embedding_scale": scale,
            "padding": self.pad_token_id,
            "last_norm": "final_norm",
            "logit_cap": self.logits_soft_cap,
            "extra": {"lru_width": self.lru_width, "conv_width": self.conv1d_width},
        }


class _Attention(DecoderAttention):
    """Attention whose products start as those of recurrent blocks do."""

    def add_projections(self, d: Design) -> None:
        super().add_projections(d)
        for name in (*self.names, d.o):
            old = getattr(self, name)
            new = SpreadLinear(old.in_features, old.out_features, bias=old.bias is not None)
            new.spread = 2.0 / d.layers * old.in_features / d.width if name == d.o else 1.0
            setattr(self, name, new)


MIXERS["spread attention"] = (_Attention, "")


class _Spread(DecoderBase):
    """What starts from the spread that the configuration names."""

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if isinstance(module, (nn.Linear, nn.Embedding)) and not isinstance(module, SpreadLinear):
            nn.init.normal_(module.weight, std=self.config.conv_std)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])


class _Head(_Spread, DecoderForCausalLM):
    """Tokens' scores."""


class _RecurrentGemma(_Spread, Decoder):
    """A decoder whose states begin anew where positions do."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: nn.KVCache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        output_router_logits: bool | None = None,
    ) -> BaseModelOutput:
        if position_ids is None and attention_mask is not None and attention_mask.dim() == 2:
            # Where a text begins is where its first token is, not where its padding is.
            given = input_ids if input_ids is not None else inputs_embeds
            length = 0 if given is None else given.shape[1]
            counted = (attention_mask.long().cumsum(1) - 1).clamp(min=0)
            position_ids = counted[:, counted.shape[1] - length :]
        return super().forward(
            input_ids,
            attention_mask,
            position_ids,
            past_key_values,
            inputs_embeds,
            use_cache,
            output_attentions,
            output_hidden_states,
            output_router_logits,
        )

    def rotations(self, length: int, past: int, position_ids: Tensor | None) -> Callable[[int], Rotate]:
        found = super().rotations(length, past, position_ids)
        if position_ids is None:
            position_ids = votive.arange(past, past + length, device=self.device).unsqueeze(0)
        first = position_ids == 0

        def of(layer: int) -> Rotate:
            turn = found(layer)
            assert isinstance(turn, Turn), "made by the decoder"
            turn.first = first  # type: ignore[attr-defined]
            return turn

        return of


RecurrentGemmaModel, RecurrentGemmaForCausalLM = decoder_classes(
    "RecurrentGemma", RecurrentGemmaConfig, base=_RecurrentGemma, head=_Head, scales_given=True
)
