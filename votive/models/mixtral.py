"""Mixtures of experts: Mixtral and Qwen3-MoE. Jiang et al. 2024, arXiv:2401.04088.

Llama's and Qwen3's decoders where the net behind attention is a choice: a router sends each token
to its `k` likeliest experts and adds their results, weighted. An expert computes its own tokens
only. Parameters are those of released files, one matrix per expert; stacked ones, as newer files
have them, are taken apart while loading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import linear_activation
from votive.nn.points import inside, point, wanted, where

from ..io.source import WeightSource
from ..tensor import Tensor
from .activations import activation
from .config import Config
from .llama import LlamaConfig, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP, LlamaModel
from .output import BaseModelOutput, MoeCausalLMOutput, MoeModelOutput
from .qwen import Qwen3Config


@dataclass(kw_only=True)
class MixtralConfig(LlamaConfig):
    """The numbers of a Mixtral.

    >>> votive.models.MixtralConfig(num_local_experts=4).num_experts
    4
    """

    model_type = "mixtral"

    intermediate_size: int = 14336
    num_key_value_heads: int = 8
    max_position_embeddings: int = 4096 * 32
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    router_jitter_noise: float = 0.0

    # What sets families apart, as the layers ask for it.
    norm_topk_prob = True

    @property
    def num_experts(self) -> int:
        return self.num_local_experts

    all_slide = True


class MixtralExpert(nn.Module):
    """`w2(act(w1(x)) * w3(x))`."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, hidden = config.hidden_size, config.intermediate_size
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)
        self.w3 = nn.Linear(width, hidden, bias=False)
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(linear_activation(self.w1, self.act_fn, x) * self.w3(x))


class MixtralSparseMoeBlock(nn.Module):
    """A router and its experts."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.top_k, self.normed = config.num_experts_per_tok, config.norm_topk_prob
        self.jitter = config.router_jitter_noise
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList(self.expert(config) for _ in range(config.num_experts))

    def expert(self, config: LlamaConfig) -> nn.Module:
        return MixtralExpert(config)

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.jitter:
            x = x * votive.empty_like(x).uniform_(1 - self.jitter, 1 + self.jitter)
        flat = x.reshape(-1, x.shape[-1])  # (N, C)
        at = where()
        if at is not None:
            with inside(None):  # an expert is no layer's whole net
                if wanted(f"{at}.mlp.router_logits", f"{at}.mlp.expert_weights"):
                    return self.opened(at, x, flat)
                return self.mixed(x, flat)
        return self.mixed(x, flat)

    def opened(self, at: str, x: Tensor, flat: Tensor) -> Tensor:
        """`mixed`, with the router's scores and the weight of each expert shown.

        Experts run for the rows that the router or somebody's edit gives a weight: so one whose weight is made 0 has
        a gradient there, and what is zero is known to be computed from it.
        """
        logits = point(f"{at}.mlp.router_logits", self.gate(flat).view(*x.shape[:2], -1))  # (B, T, E)
        best, chosen = F.softmax(logits.float(), -1).topk(self.top_k, -1)
        if self.normed:
            best = best / best.sum(-1, keepdim=True)
        weights = votive.zeros_like(logits, dtype=best.dtype).scatter(-1, chosen, best)
        asked = weights.detach().flatten(0, 1) != 0
        weights = point(f"{at}.mlp.expert_weights", weights).flatten(0, 1).to(x.dtype)  # (N, E)
        asked = asked | (weights.detach() != 0)
        y = votive.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows = asked[:, i].nonzero().squeeze(-1)
            if rows.numel():
                y = y.index_add(0, rows, expert(flat[rows]) * weights[rows, i].unsqueeze(-1))
        return y.view(x.shape)

    def mixed(self, x: Tensor, flat: Tensor) -> Tensor:
        """The results of each row's likeliest experts, added by their weights."""
        chances = F.softmax(self.gate(flat).float(), -1)  # (N, E)
        weights, chosen = chances.topk(self.top_k, -1)  # (N, k)
        if self.normed:
            weights = weights / weights.sum(-1, keepdim=True)
        # Sorted by expert, the rows that one computes lie together.
        order = chosen.flatten().argsort(stable=True)  # (N k,)
        counts = chosen.flatten().bincount(minlength=len(self.experts)).tolist()
        rows, end, parts = order // self.top_k, 0, []
        for expert, count in enumerate(counts):
            if count:
                mine, end = rows[end : end + count], end + count
                parts.append(self.experts[expert](flat[mine]))
        y = votive.cat(parts)[order.argsort()].view(*chosen.shape, -1)  # (N, k, C)
        return (y * weights.to(x.dtype).unsqueeze(-1)).sum(1).view(x.shape)


class MixtralDecoderLayer(LlamaDecoderLayer):
    """Attention, then the experts, each on a normed input and added to the stream."""

    net = "block_sparse_moe"

    def feed_forward(self, config: LlamaConfig, layer_idx: int) -> nn.Module:
        return MixtralSparseMoeBlock(config)


class MixtralModel(LlamaModel):
    """Mixtral's decoder.

    >>> config = votive.models.MixtralConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
    >>> votive.models.MixtralModel(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    config_class: ClassVar[type[Config]] = MixtralConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = MixtralDecoderLayer
    renames = {
        r"\.mlp\.(gate|experts)\.": r".block_sparse_moe.\1.",
        r"(\.experts\.\d+\.)gate_proj\.": r"\1w1.",
        r"(\.experts\.\d+\.)down_proj\.": r"\1w2.",
        r"(\.experts\.\d+\.)up_proj\.": r"\1w3.",
    }

    def adapted(self, source: WeightSource) -> WeightSource:
        return unstacked(source)

    def forward(self, *args: Any, output_router_logits: bool | None = None, **kwargs: Any) -> MoeModelOutput:
        if output_router_logits is None:
            output_router_logits = self.config.output_router_logits
        gates = [m.gate for m in self.modules() if isinstance(m, MixtralSparseMoeBlock)]
        with _heard(gates if output_router_logits else []) as logits:
            found = super().forward(*args, **kwargs)
        return MoeModelOutput(**dict(found.items()), router_logits=tuple(logits) if output_router_logits else None)


class MixtralForCausalLM(LlamaForCausalLM):
    """Mixtral with its head; with `output_router_logits` the loss asks for even use of experts.

    >>> config = votive.models.MixtralConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
    >>> model = votive.models.MixtralForCausalLM(config)
    >>> model(votive.tensor([[1, 2, 3]]), output_router_logits=True).router_logits[0].shape
    votive.Size([3, 8])
    """

    config_class: ClassVar[type[Config]] = MixtralConfig
    model_class = MixtralModel
    renames = MixtralModel.renames

    def adapted(self, source: WeightSource) -> WeightSource:
        return unstacked(source)

    def predictions(
        self, found: BaseModelOutput, labels: Tensor | None, logits_to_keep: int, attention_mask: Tensor | None
    ) -> MoeCausalLMOutput:
        made = MoeCausalLMOutput(**dict(super().predictions(found, labels, logits_to_keep, attention_mask).items()))
        logits = found.router_logits if isinstance(found, MoeModelOutput) else None
        made.router_logits = logits
        if logits:
            made.aux_loss = load_balancing_loss(logits, self.config.num_experts_per_tok, attention_mask)
            if made.loss is not None:
                made.loss = made.loss + self.config.router_aux_loss_coef * made.aux_loss
        return made


def load_balancing_loss(logits: Sequence[Tensor], top_k: int, attention_mask: Tensor | None = None) -> Any:
    """How unevenly experts are used: E sum_e (share of tokens of e) (mean chance of e).

    `logits` are those of each layer, (tokens, experts); padding in `attention_mask` (batch,
    positions) does not count. Fedus et al. 2021, arXiv:2101.03961, equations 4 to 6.

    >>> votive.models.load_balancing_loss((votive.zeros(4, 2),), top_k=2)
    tensor(2.)
    """
    experts = logits[0].shape[-1]
    chances = F.softmax(votive.cat(list(logits)), -1).float()  # (L N, E)
    chosen = F.one_hot(chances.topk(top_k, -1)[1], experts).sum(1).float()
    if attention_mask is None:
        return experts * (chosen.mean(0) * chances.mean(0)).sum()
    real = attention_mask.flatten().float().repeat(len(logits)).unsqueeze(1)  # (L N, 1)
    used, likely = (chosen * real).sum(0) / real.sum(), (chances * real).sum(0) / real.sum()
    return experts * (used * likely).sum()


@contextmanager
def _heard(modules: list[Any]) -> Iterator[list[Any]]:
    """The results of modules while the block runs, in the order of their calls."""
    found: list[Any] = []
    handles = [m.register_forward_hook(lambda m, args, y: found.append(y)) for m in modules]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def unstacked(source: WeightSource) -> Any:
    """Files of released models have one matrix per expert, some newer ones all in one tensor."""
    from .stacked import Unstacked

    return Unstacked(source)


@dataclass(kw_only=True)
class Qwen3MoeConfig(Qwen3Config):
    """The numbers of a Qwen3 mixture of experts.

    >>> config = votive.models.Qwen3MoeConfig(mlp_only_layers=[1])
    >>> config.is_sparse(0), config.is_sparse(1)
    (True, False)
    """

    model_type = "qwen3_moe"

    hidden_size: int = 2048
    intermediate_size: int = 6144
    num_hidden_layers: int = 24
    num_key_value_heads: int = 4
    head_dim: int | None = None  # type: ignore[assignment]  # null in some files
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 768
    num_experts_per_tok: int = 8
    num_experts: int = 128
    norm_topk_prob: bool = False
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    mlp_only_layers: list[int] | None = None

    router_jitter_noise = 0.0

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if "num_local_experts" in values:
            values.setdefault("num_experts", values.pop("num_local_experts"))
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mlp_only_layers = self.mlp_only_layers or []

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts."""
        every = (layer + 1) % self.decoder_sparse_step == 0
        return every and self.num_experts > 0 and layer not in (self.mlp_only_layers or ())

    all_slide = True


class Qwen3MoeSparseMoeBlock(MixtralSparseMoeBlock):
    """A router and its experts, each a small gated MLP."""

    def expert(self, config: LlamaConfig) -> nn.Module:
        return LlamaMLP(config, config.moe_intermediate_size)


class Qwen3MoeDecoderLayer(LlamaDecoderLayer):
    """A layer whose net is dense or has experts."""

    def feed_forward(self, config: LlamaConfig, layer_idx: int) -> nn.Module:
        return Qwen3MoeSparseMoeBlock(config) if config.is_sparse(layer_idx) else LlamaMLP(config)


class Qwen3MoeModel(MixtralModel):
    """Qwen3-MoE's decoder.

    >>> votive.models.Qwen3MoeModel.config_class.model_type
    'qwen3_moe'
    """

    config_class = Qwen3MoeConfig
    layer_class = Qwen3MoeDecoderLayer
    renames = {}


class Qwen3MoeForCausalLM(MixtralForCausalLM):
    """Qwen3-MoE with its head.

    >>> votive.models.Qwen3MoeForCausalLM.config_class.model_type
    'qwen3_moe'
    """

    config_class = Qwen3MoeConfig
    model_class = Qwen3MoeModel
    renames = {}
