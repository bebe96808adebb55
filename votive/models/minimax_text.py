"""MiniMax-Text-01: linear attention in every other layer, norms of the stream, experts. arXiv:2501.08313."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from votive import nn
from votive.nn.points import inside, opens, point

from ..tensor import Tensor
from .attention import AttentionMask, Weights
from .decoder import Decoder, DecoderForCausalLM, Design, decoder_classes
from .decoder.attention import Rotate
from .decoder.hybrid import KINDS, mixers, newer
from .decoder.layer import MIXERS, DecoderLayer
from .decoder.lightning import LightningAttention
from .decoder.model import DecoderBase
from .mixtral import MixtralConfig, MixtralForCausalLM
from .opened import open_norm

MIXERS["lightning attention"] = (LightningAttention, "")


@dataclass(kw_only=True)
class MiniMaxConfig(MixtralConfig):
    """The numbers of a MiniMax.

    >>> votive.models.MiniMaxConfig(num_hidden_layers=2).layer_types
    ['full_attention', 'linear_attention']
    """

    model_type = "minimax"
    layer_kinds: ClassVar[tuple[str, ...]] = KINDS
    aliases: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}
    unread: ClassVar[tuple[str, ...]] = ("attention_bias", "mlp_bias")

    block_size: int = 256
    full_attn_alpha_factor: float = 1.0
    full_attn_beta_factor: float = 1.0
    linear_attn_alpha_factor: float = 1.0
    linear_attn_beta_factor: float = 1.0
    mlp_alpha_factor: float = 1.0
    mlp_beta_factor: float = 1.0

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if "layer_types" in values:
            values["layer_types"] = newer(values["layer_types"])
        return values

    def __post_init__(self) -> None:
        if self.layer_types is None:
            self.layer_types = [KINDS[i % 2 == 0] for i in range(self.num_hidden_layers)]
        super().__post_init__()

    def window_of(self, layer: int) -> int | None:
        return self.sliding_window

    def choices(self) -> dict[str, Any]:
        kinds = (self.layer_types or [])[: self.num_hidden_layers]
        factors = {
            kind: tuple(getattr(self, f"{kind}_{which}_factor") for which in ("alpha", "beta"))
            for kind in ("full_attn", "linear_attn", "mlp")
        }
        return {
            **super().choices(),
            "norm_place": "stream",
            "mixers": mixers(kinds, linear_attention="lightning attention"),
            "padding": self.pad_token_id,
            "extra": {"block_size": self.block_size, "factors": factors},
        }


class _MiniMaxLayer(DecoderLayer):
    """`norm(x) a + mixer(norm(x)) b`, then the same with the net."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__(d, layer_idx)
        factors = d.extra["factors"]
        self.mixer_factors = factors["full_attn" if d.mixer(layer_idx) == "attention" else "linear_attn"]
        self.net_factors = factors["mlp"]

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        norm, _, net_norm, _ = self.norms()
        assert norm is not None, "the design has it"
        assert net_norm is not None, "the design has it"
        mixer = self._at(self.mixer_path)
        (a, b), (c, d) = self.mixer_factors, self.net_factors
        if not opens(self.layer_idx):
            x = norm(x)
            x = net_norm(x * a + mixer(x, rope, mask, cache, weights) * b)
            return x * c + self._call_net(x) * d
        at = f"layers.{self.layer_idx}"
        x = open_norm(norm, point(f"{at}.resid_pre", x), f"{at}.ln1")
        with inside(at):
            y = mixer(point(f"{at}.attn_in", x), rope, mask, cache, weights)
        x = point(f"{at}.resid_mid", x * a + point(f"{at}.attn_out", y * b))
        x = open_norm(net_norm, x, f"{at}.ln2")
        with inside(at):
            y = self._call_net(point(f"{at}.mlp_in", x))
        return point(f"{at}.resid_post", x * c + point(f"{at}.mlp_out", y * d))


class _Filed(DecoderBase):
    """Files have tables that follow from the numbers of heads, layers and positions of a block."""

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        weights = super().filed(weights)
        for name, module in self.named_modules():
            if isinstance(module, LightningAttention):
                weights |= {f"{name}.{key}": table for key, table in module.tables(self.config.block_size).items()}
        return weights


class _MiniMax(_Filed, Decoder):
    """A decoder whose layers weigh the stream and what is added to it."""

    layer_class = _MiniMaxLayer


class _Head(_Filed, DecoderForCausalLM):
    """Tokens' scores."""


MiniMaxModel, MiniMaxForCausalLM = decoder_classes(
    "MiniMax",
    MiniMaxConfig,
    base=_MiniMax,
    head=_Head,
    renames=MixtralForCausalLM.renames,
    # Tables that follow from the numbers of heads and layers.
    ignored=(r"rotary_emb\.inv_freq$", r"\.(slope_rate|query_decay|key_decay|diagonal_decay)$"),
)
