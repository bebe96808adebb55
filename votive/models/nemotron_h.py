"""Nemotron-H: layers of one part each, Mamba 2, attention, a net or experts. NVIDIA 2025, arXiv:2504.03624."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn.points import point

from ..tensor import Tensor
from .decoder import Decoder, DecoderConfig, Design, Experts, decoder_classes
from .decoder.hybrid import newer
from .decoder.layer import MIXERS
from .decoder.mixture import Mixture
from .decoder.nets import PlainMLP
from .decoder.routing import check_groups
from .decoder.scan import BLOCK
from .decoder.solo import SoloLayer
from .decoder.state_space import Mamba2, StateSpace
from .mamba import WideHead

MIXERS["mamba2"] = (Mamba2, "mamba")
_LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
_MIXERS = {"linear_attention": "mamba2", "full_attention": "attention", "moe": "moe", "mlp": "mlp"}
# What older files call some keys.
_OLDER = {
    "mamba_n_groups": "n_groups",
    "mamba_d_conv": "conv_kernel",
    "mamba_expand": "expand",
    "mamba_dt_min": "time_step_min",
    "mamba_dt_max": "time_step_max",
    "mamba_dt_limit": "time_step_limit",
    "mamba_dt_init_floor": "time_step_floor",
    "mamba_conv_bias": "use_conv_bias",
    "mamba_chunk_size": "chunk_size",
}


@dataclass(kw_only=True)
class NemotronHConfig(DecoderConfig):
    """The numbers of a Nemotron-H; its layers are as many as `layers_block_type` names.

    >>> votive.models.NemotronHConfig.from_dict({"hybrid_override_pattern": "M-*"}).layers_block_type
    ['linear_attention', 'mlp', 'full_attention']
    """

    model_type = "nemotron_h"
    aliases: ClassVar[dict[str, str]] = {"layer_types": "layers_block_type", "num_local_experts": "n_routed_experts"}

    vocab_size: int = 131072
    hidden_size: int = 4096
    layers_block_type: list[str] | None = None
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 8
    head_dim: int = 128
    max_position_embeddings: int = 4096
    attention_dropout: float | None = 0.0
    intermediate_size: int = 21504
    mlp_hidden_act: str = "relu2"
    mlp_bias: bool = False
    ssm_state_size: int = 128
    mamba_num_heads: int = 128
    mamba_head_dim: int = 64
    mamba_hidden_act: str = "silu"
    n_groups: int = 8
    conv_kernel: int = 4
    time_step_min: float = 0.001
    time_step_max: float = 0.1
    time_step_limit: list[float] = field(default_factory=lambda: [0.0, math.inf])
    time_step_floor: float = 1e-4
    use_conv_bias: bool = True
    chunk_size: int = 128
    n_routed_experts: int = 8
    moe_intermediate_size: int = 7688
    moe_shared_expert_intermediate_size: int = 7688
    moe_latent_size: int | None = None
    num_experts_per_tok: int = 2
    routed_scaling_factor: float = 1.0
    n_group: int = 1
    topk_group: int = 1
    norm_topk_prob: bool = True
    use_bias: bool = False
    layer_norm_epsilon: float = 1e-5
    rescale_prenorm_residual: bool = True

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        for old, name in _OLDER.items():
            if old in values:
                values[name] = values.pop(old)
        pattern = values.pop("hybrid_override_pattern", None)
        kinds = values.get("layers_block_type")
        if kinds is None and pattern is not None:
            unknown = sorted(set(pattern) - set(_LETTERS))
            if unknown:
                raise ValueError(
                    f"NemotronHConfig: hybrid_override_pattern has {unknown[0]!r}; known are M, E, * and -."
                )
            kinds = [_LETTERS[letter] for letter in pattern]
        values["layers_block_type"] = newer(kinds)
        told = values.pop("num_hidden_layers", None)
        if told is not None and kinds is not None and told != len(kinds):
            warnings.warn(
                f"NemotronHConfig: num_hidden_layers={told} is not read: {len(kinds)} layers are named.", stacklevel=4
            )
        return values

    def __post_init__(self) -> None:
        if self.layers_block_type is None:
            self.layers_block_type = ["linear_attention", "moe", "full_attention", "mlp"]
        unknown = [kind for kind in self.layers_block_type if kind not in _MIXERS]
        if unknown:
            raise ValueError(
                f"NemotronHConfig: layers_block_type has {unknown[0]!r}; layers here are "
                f"{' or '.join(map(repr, _MIXERS))}."
            )
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads

    @property
    def num_hidden_layers(self) -> int:
        """How many layers are named."""
        return len(self.layers_block_type or ())

    def sizes(self) -> dict[str, Any]:
        heads, shared = self.num_attention_heads, self.num_key_value_heads or 1
        if heads < 1 or heads % shared:
            raise ValueError(
                f"NemotronHConfig: num_attention_heads={heads} do not share num_key_value_heads={shared} evenly."
            )
        kinds = self.layers_block_type or []
        if "moe" in kinds and self.n_group > 1:
            check_groups(self, self.n_routed_experts)
        experts = Experts(
            count=self.n_routed_experts,
            chosen=self.num_experts_per_tok,
            inner=self.moe_intermediate_size,
            router="sigmoid",
            normed=self.norm_topk_prob,
            scaled=self.routed_scaling_factor,
            groups=(self.n_group, self.topk_group) if self.n_group > 1 else None,
            correction="e_score_correction_bias",
            names=("", "up_proj", "down_proj"),
            shared=self.moe_shared_expert_intermediate_size,
            shared_path="shared_experts",
            shared_kind="plain",
        )
        space = StateSpace(
            inner=self.mamba_num_heads * self.mamba_head_dim,
            state=self.ssm_state_size,
            conv=self.conv_kernel,
            conv_bias=self.use_conv_bias,
            bias=self.use_bias,
            act=self.mamba_hidden_act,
            eps=self.layer_norm_epsilon,
            heads=self.mamba_num_heads,
            groups=self.n_groups,
            limit=(self.time_step_min, math.inf),
            block=min(self.chunk_size, BLOCK),
        )
        return {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": len(kinds),
            "heads": heads,
            "shared": shared,
            "head_dim": self.head_dim,
            "inner": self.intermediate_size,
            "positions": self.max_position_embeddings,
            "eps": self.layer_norm_epsilon,
            "norms": ("norm", "", "", ""),
            "attention": "mixer",
            "attention_dropout": self.attention_dropout or 0.0,
            "mixers": tuple(_MIXERS[kind] for kind in kinds),
            "net_kind": "plain",
            "net_names": ("", "up_proj", "down_proj"),
            "net_bias": self.mlp_bias,
            "act": self.mlp_hidden_act,
            "experts": experts if "moe" in kinds else None,
            "embedding": "embeddings",
            "last_norm": "norm_f",
            "extra": {"state_space": space, "latent": self.moe_latent_size},
        }


class _Mixture(Mixture):
    """Experts without gates, which may read and write fewer features than the stream has."""

    def __init__(self, d: Design) -> None:
        super().__init__(d)
        self.latent: int | None = d.extra["latent"]
        if self.latent is not None:
            self.fc1_latent_proj = nn.Linear(d.width, self.latent, bias=d.net_bias)
            self.fc2_latent_proj = nn.Linear(self.latent, d.width, bias=d.net_bias)

    def expert(self, d: Design, e: Experts) -> nn.Module:
        return PlainMLP(replace(d, width=d.extra["latent"] or d.width, net_bias=False), e.inner, e.names)

    def mixed(self, x: Tensor, flat: Tensor) -> Tensor:
        if self.latent is None:
            return super().mixed(x, flat)
        weights, chosen = self.chances(self.router(flat))  # (N, k)
        return self.weighed(flat, weights, chosen).view(x.shape)

    def opened(self, at: str, x: Tensor, flat: Tensor) -> Tensor:
        if self.latent is None:
            return super().opened(at, x, flat)
        logits = point(f"{at}.mlp.router_logits", self.router(flat).view(*x.shape[:2], -1))  # (B, T, E)
        best, chosen = self.chances(logits.flatten(0, 1))
        weights = best.new_zeros(flat.shape[0], logits.shape[-1]).scatter(-1, chosen, best)
        weights = point(f"{at}.mlp.expert_weights", weights.view(logits.shape)).flatten(0, 1)
        every = votive.arange(logits.shape[-1], device=x.device).expand(weights.shape)
        return self.weighed(flat, weights, every).view(x.shape)

    def weighed(self, flat: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """The results of these experts for each row, weighed and added, and what they become in the stream."""
        read = self.fc1_latent_proj(flat)
        y = votive.zeros_like(read)
        for i, expert in enumerate(self.nets):
            share = (weights * (chosen == i)).sum(-1)
            rows = ((chosen == i).any(-1)).nonzero().squeeze(-1)
            if rows.numel():
                y = y.index_add(0, rows, expert(read[rows]) * share[rows].unsqueeze(-1).to(read.dtype))
        return self.fc2_latent_proj(y)


class _NemotronHLayer(SoloLayer):
    mixture_class = _Mixture


class _NemotronH(Decoder):
    layer_class = _NemotronHLayer


NemotronHModel, NemotronHForCausalLM = decoder_classes(
    "NemotronH",
    NemotronHConfig,
    base=_NemotronH,
    head=WideHead,
    renames={r"^backbone\.": "model."},
    ignored=(r"^mtp\.",),
)
