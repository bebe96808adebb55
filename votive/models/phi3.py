"""Phi-3 and Phi-4: a Llama whose products are fused. Abdin et al. 2024, arXiv:2404.14219."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from votive import nn
from votive.nn import functional as F
from votive.nn.points import opens, point, wanted, where

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights
from .llama import LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaForCausalLM, LlamaModel, Rotate


@dataclass(kw_only=True)
class Phi3Config(LlamaConfig):
    """The numbers of a Phi-3.

    >>> votive.models.Phi3Config(sliding_window=8).window_of(0)
    8
    """

    model_type = "phi3"

    vocab_size: int = 32064
    hidden_size: int = 3072
    intermediate_size: int = 8192
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    original_max_position_embeddings: int = 4096
    resid_pdrop: float = 0.0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 32000
    pad_token_id: int | None = 32000

    def __post_init__(self) -> None:
        super().__post_init__()
        scaling = self.rope_scaling
        kind = scaling and (scaling.get("rope_type") or scaling.get("type"))
        if kind == "default":
            self.rope_scaling = None
        if self.rope_scaling is not None:
            # The first files call it "su", some "yarn", and all mean the same.
            if kind not in ("longrope", "su", "yarn"):
                raise ValueError(
                    f"Phi3Config: rope_scaling has rope_type {kind!r}; a Phi-3 is stretched by "
                    "'longrope' alone, which older files call 'su' or 'yarn'."
                )
            self.rope_scaling = {
                "original_max_position_embeddings": self.original_max_position_embeddings,
                **self.rope_scaling,
                "rope_type": "longrope",
            }

    all_slide = True


class Phi3Attention(LlamaAttention):
    """Llama's attention; queries, keys and values come from one product."""

    def add_projections(self, config: LlamaConfig, heads: int, shared: int) -> None:
        self.sizes = [heads, shared, shared]
        self.o_proj = nn.Linear(heads, config.hidden_size, bias=False)
        self.qkv_proj = nn.Linear(config.hidden_size, sum(self.sizes), bias=False)

    def project(self, x: Tensor) -> tuple[Any, Any, Any]:
        return self.qkv_proj(x).split(self.sizes, -1)


class Phi3MLP(nn.Module):
    """`down(act(gate) * up)`, with both halves from one product."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, hidden = config.hidden_size, config.intermediate_size
        self.gate_up_proj = nn.Linear(width, 2 * hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.pre_linear", f"{at}.mlp.post"):
            gate, up = point(f"{at}.mlp.pre", gate), point(f"{at}.mlp.pre_linear", up)
            return self.down_proj(point(f"{at}.mlp.post", self.act_fn(gate) * up))
        return self.down_proj(self.act_fn(gate) * up)


class Phi3DecoderLayer(LlamaDecoderLayer):
    """Llama's layer, with dropout on what is added to the stream."""

    attention_class = Phi3Attention

    def __init__(self, config: LlamaConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        self.dropout = config.resid_pdrop

    def feed_forward(self, config: LlamaConfig, layer_idx: int) -> nn.Module:
        return Phi3MLP(config)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        if opens(self.self_attn.layer_idx):
            return self.opened(x, rope, mask, cache, weights)
        y = self.self_attn(self.input_layernorm(x), rope, mask, cache, weights)
        x = x + F.dropout(y, self.dropout, self.training)
        y = self.mlp(self.post_attention_layernorm(x))
        return x + F.dropout(y, self.dropout, self.training)

    def added(self, y: Tensor) -> Tensor:
        return F.dropout(y, self.dropout, self.training)


class Phi3Model(LlamaModel):
    """Phi-3's decoder.

    >>> config = votive.models.Phi3Config(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.Phi3Model(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    config_class = Phi3Config
    layer_class = Phi3DecoderLayer


class Phi3ForCausalLM(LlamaForCausalLM):
    """Phi-3 with its head.

    >>> votive.models.Phi3ForCausalLM.config_class.model_type
    'phi3'
    """

    config_class = Phi3Config
    model_class = Phi3Model
