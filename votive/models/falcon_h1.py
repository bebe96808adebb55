"""Falcon-H1: attention and a Mamba 2 side by side in each layer. Zuo et al. 2025, arXiv:2507.22448."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from votive import nn
from votive.nn.points import point, wanted, where

from ..tensor import Tensor
from .attention import AttentionMask, Weights
from .decoder import Decoder, Design, decoder_classes
from .decoder.attention import Rotate
from .decoder.config import RotaryConfig
from .decoder.hybrid import Mamba2Fields, followed, needed
from .decoder.layer import DecoderLayer
from .decoder.nets import GatedMLP
from .decoder.state_space import Mamba2


@dataclass(kw_only=True)
class FalconH1Config(Mamba2Fields, RotaryConfig):
    """The numbers of a Falcon-H1.

    >>> votive.models.FalconH1Config(mamba_d_ssm=64, mamba_n_heads=4).mamba_d_head
    16
    """

    model_type = "falcon_h1"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 128000
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    max_position_embeddings: int = 8192
    mamba_d_ssm: int | None = 1024
    mamba_norm_before_gate: bool | None = True
    mamba_rms_norm: bool | None = False
    projectors_bias: bool | None = False
    lm_head_multiplier: float | None = 1.0
    embedding_multiplier: float | None = 1.0
    mlp_multipliers: list[float] | None = None
    key_multiplier: float | None = 1.0
    attention_out_multiplier: float | None = 1.0
    attention_in_multiplier: float | None = 1.0
    ssm_multipliers: list[float] | None = None
    ssm_in_multiplier: float | None = 1.0
    ssm_out_multiplier: float | None = 1.0
    mlp_bias: bool = False

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        followed(cls, values, "layer_types", "layers_block_type")
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settle_heads()
        self.mlp_multipliers = [1.0, 1.0] if self.mlp_multipliers is None else self.mlp_multipliers
        self.ssm_multipliers = [1.0] * 5 if self.ssm_multipliers is None else self.ssm_multipliers
        for name, count in (("mlp_multipliers", 2), ("ssm_multipliers", 5)):
            if len(getattr(self, name)) != count:
                raise ValueError(f"FalconH1Config: {name} must be {count} numbers, got {getattr(self, name)}.")

    def kinds(self) -> list[str]:
        """The type of each layer."""
        return ["hybrid"] * self.num_hidden_layers

    def mamba_inner(self) -> int:
        return super().mamba_inner() if self.mamba_d_ssm is None else self.mamba_d_ssm

    def sizes(self) -> dict[str, Any]:
        needed(self, *(n for n in FalconH1Config.__dataclass_fields__ if n.endswith("_multiplier")))
        space = self.space(
            eps=self.rms_norm_eps,
            out_bias=bool(self.projectors_bias),
            normed=bool(self.mamba_rms_norm),
            norm_first=bool(self.mamba_norm_before_gate),
            scales=(self.ssm_in_multiplier, *(self.ssm_multipliers or ())),
        )
        return {
            **super().sizes(),
            "eps": self.rms_norm_eps,
            "norms": ("input_layernorm", "", "pre_ff_layernorm", ""),
            # Keys are multiplied; scores are, all the same.
            "scale": (self.head_dim or 1) ** -0.5 * (self.key_multiplier or 0.0),
            "net": "feed_forward",
            "net_bias": self.mlp_bias,
            "embedding_scale": self.embedding_multiplier,
            "padding": self.pad_token_id,
            "last_norm": "final_layernorm",
            "logit_scale": self.lm_head_multiplier,
            "extra": {
                "state_space": space,
                "net_scales": self.mlp_multipliers,
                "attention_scales": (self.attention_in_multiplier, self.attention_out_multiplier),
                "state_scale": self.ssm_out_multiplier,
            },
        }


class _ScaledMLP(GatedMLP):
    """`down(act(a gate(x)) up(x)) b`."""

    def __init__(self, d: Design) -> None:
        super().__init__(d)
        self.scales = d.extra["net_scales"]

    def forward(self, x: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        at = where()
        pre, linear = gate(x) * self.scales[0], up(x)
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.pre_linear", f"{at}.mlp.post"):
            pre, linear = point(f"{at}.mlp.pre", pre), point(f"{at}.mlp.pre_linear", linear)
            return down(point(f"{at}.mlp.post", self.act_fn(pre) * linear)) * self.scales[1]
        return down(self.act_fn(pre) * linear) * self.scales[1]


class AttentionBesideMamba(nn.Module):
    """What a layer's attention and state space give of the same input, added; both are the layer's own children."""

    def __init__(self, layer: DecoderLayer, d: Design) -> None:
        super().__init__()
        self.__dict__["_layer"] = layer
        self.scales, self.state_scale = d.extra["attention_scales"], d.extra["state_scale"]

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        # No module of the tree: a call of its own would have an address that leads nowhere.
        return self.forward(*args, **kwargs)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        layer = self.__dict__["_layer"]
        state = layer.mamba(x, rope, mask, cache, weights) * self.state_scale
        return state + layer.self_attn(x * self.scales[0], rope, mask, cache, weights) * self.scales[1]


class _FalconH1Layer(DecoderLayer):
    """A layer whose mixer is both."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__(d, layer_idx)
        self.mamba = _Beside(d, layer_idx)
        self.feed_forward = _ScaledMLP(d)
        self.__dict__["_both"] = AttentionBesideMamba(self, d)

    def _at(self, path: str) -> nn.Module:
        return self.__dict__["_both"] if path == self.mixer_path else super()._at(path)


class _Beside(Mamba2):
    """A state space in a layer that counts positions by its keys."""

    counts_positions = False


class _FalconH1(Decoder):
    layer_class = _FalconH1Layer


FalconH1Model, FalconH1ForCausalLM = decoder_classes("FalconH1", FalconH1Config, base=_FalconH1)
