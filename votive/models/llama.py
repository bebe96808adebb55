"""Llama, and what is built like it: Mistral. Touvron et al. 2023, arXiv:2302.13971 and 2307.09288.

A decoder: RMS norm, attention with rotary positions and shared key heads, a gated MLP. Parameter
names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from votive import nn
from votive.nn.fused_linear import linear_activation
from votive.nn.points import opens, point, wanted, where
from votive.nn.residual import add_norm

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, attend, causal_mask
from .config import Config, rope_of
from .opened import open_attend, open_heads, open_layer, open_project
from .output import BaseModelOutput
from .pretrained import DecoderLM, PreTrainedModel
from .stack import Trace, run_layers

if TYPE_CHECKING:
    from .fused_decoder import FusedDecoder


Rotate = Callable[[Tensor], Tensor]  # rotates queries or keys, (batch, heads, positions, features)


@dataclass(kw_only=True)
class LlamaConfig(Config):
    """The numbers of a Llama.

    >>> votive.models.LlamaConfig(hidden_size=64, num_attention_heads=4).head_dim
    16
    """

    model_type = "llama"

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    attention_bias: bool = False
    attention_dropout: float | None = 0.0
    mlp_bias: bool = False
    sliding_window: int | None = None
    layer_types: list[str] | None = None
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        heads, shared = self.num_attention_heads, self.num_key_value_heads
        if heads < 1 or shared < 1 or heads % shared:
            raise ValueError(
                f"{type(self).__name__}: num_attention_heads={heads} do not share num_key_value_heads={shared} evenly."
            )
        if self.layer_types is not None and len(self.layer_types) < self.num_hidden_layers:
            raise ValueError(
                f"{type(self).__name__}: layer_types names {len(self.layer_types)} of "
                f"num_hidden_layers={self.num_hidden_layers} layers."
            )
        if self.head_dim is None:
            self.head_dim = self.hidden_size // self.num_attention_heads

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        values["rope_theta"], values["rope_scaling"] = rope_of(values, cls.rope_theta)
        parameters = values.pop("rope_parameters", None) or {}
        if parameters.get("partial_rotary_factor"):
            values["partial_rotary_factor"] = parameters["partial_rotary_factor"]
        return values

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        if self.layer_types is None:
            # transformers takes a Mistral that has the key at all for a Ministral.
            del values["layer_types"]
        return values

    # What sets families apart, as the layers ask for it.
    qk_norm = False
    all_slide = False  # whether `sliding_window` holds where there are no `layer_types`
    attention_scale: ClassVar[float | None] = None  # 1 / sqrt(head_dim)

    @property
    def qkv_bias(self) -> bool:
        return self.attention_bias

    @property
    def out_bias(self) -> bool:
        return self.attention_bias

    def head_sizes(self) -> tuple[int, int, int]:
        """How many heads queries have, how many keys and values, and the width of one."""
        shared, width = self.num_key_value_heads, self.head_dim
        assert shared is not None, "filled in when it was made"
        assert width is not None, "filled in when it was made"
        return self.num_attention_heads, shared, width

    def window_of(self, layer: int) -> int | None:
        """How many last positions a layer sees; None for all."""
        if self.layer_types is not None:
            sliding = self.layer_types[layer] == "sliding_attention"
            return self.sliding_window if sliding else None
        return self.sliding_window if self.all_slide else None


def rotary(
    config: LlamaConfig, theta: float | None = None, scaling: dict[str, Any] | Literal["config"] | None = "config"
) -> nn.RotaryEmbedding:
    """The rotary embedding that a configuration describes, or one with another base."""
    part = config.extra.get("partial_rotary_factor") or 1.0
    return nn.RotaryEmbedding(
        int(config.head_sizes()[2] * part),
        config.max_position_embeddings,
        theta or config.rope_theta,
        scaling=config.rope_scaling if scaling == "config" else scaling,
    )


class LlamaAttention(nn.Module):
    """Attention with rotary positions; groups of query heads share a key and a value head."""

    norm_class: ClassVar[type[nn.RMSNorm]] = nn.RMSNorm

    def __init__(self, config: LlamaConfig, layer_idx: int) -> None:
        super().__init__()
        heads, shared, self.head_dim = config.head_sizes()
        self.layer_idx, self.counts = layer_idx, (heads, shared, shared)
        self.dropout, self.scale = config.attention_dropout or 0.0, config.attention_scale
        self.window = config.window_of(layer_idx)
        self.add_projections(config, heads * self.head_dim, shared * self.head_dim)
        if config.qk_norm:
            self.q_norm = self.norm_class(self.head_dim, eps=config.rms_norm_eps)
            self.k_norm = self.norm_class(self.head_dim, eps=config.rms_norm_eps)
        self.qk_norm = config.qk_norm

    def add_projections(self, config: LlamaConfig, heads: int, shared: int) -> None:
        """The products before and behind attention, in the order that files have."""
        width = config.hidden_size
        self.q_proj = nn.Linear(width, heads, bias=config.qkv_bias)
        self.k_proj = nn.Linear(width, shared, bias=config.qkv_bias)
        self.v_proj = nn.Linear(width, shared, bias=config.qkv_bias)
        self.o_proj = nn.Linear(heads, width, bias=config.out_bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        at = where()
        if at is not None:
            return self.opened(at, x, rope, mask, cache, weights)
        B, T, _ = x.shape
        q, k, v = (part.view(B, T, -1, self.head_dim) for part in self.project(x))
        if self.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        v = v.transpose(1, 2)  # (B, KV, T, D)
        q, k = rope(q.transpose(1, 2)), rope(k.transpose(1, 2))  # (B, H, T, D), (B, KV, T, D)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        y = self.look(q, k, v, mask, weights)
        return self.o_proj(y.transpose(1, 2).reshape(B, T, -1))

    cap: float | None = None  # of scores

    def opened(
        self, at: str, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> Tensor:
        """`forward`, with every value between the pieces shown."""
        q, k, v = open_project(self.project, x, self.head_dim)
        if self.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = point(f"{at}.attn.q", q), point(f"{at}.attn.k", k), point(f"{at}.attn.v", v).transpose(1, 2)
        q, k = rope(q.transpose(1, 2)), rope(k.transpose(1, 2))
        q = point(f"{at}.attn.rot_q", q.transpose(1, 2)).transpose(1, 2)
        k = point(f"{at}.attn.rot_k", k.transpose(1, 2)).transpose(1, 2)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        if wanted(f"{at}.attn.scores", f"{at}.attn.pattern"):
            dropout = self.dropout if self.training else 0.0
            y = open_attend(at, q, k, v, mask, scale=self.scale, cap=self.cap, dropout=dropout, weights=weights)
        else:
            y = self.look(q, k, v, mask, weights)
        return open_heads(at, y.transpose(1, 2), self.o_proj)

    def look(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        """What the queries see; how much of each key goes into `weights`, if that is asked for."""
        dropout = self.dropout if self.training else 0.0
        return attend(q, k, v, mask, dropout=dropout, scale=self.scale, weights=weights)


class LlamaMLP(nn.Module):
    """`down(act(gate(x)) * up(x))`: Shazeer 2020, arXiv:2002.05202."""

    def __init__(self, config: LlamaConfig, hidden: int | None = None) -> None:
        super().__init__()
        width, hidden = config.hidden_size, hidden or config.intermediate_size
        bias = config.mlp_bias
        self.gate_proj = nn.Linear(width, hidden, bias=bias)
        self.up_proj = nn.Linear(width, hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, width, bias=bias)
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.pre_linear", f"{at}.mlp.post"):
            pre, linear = point(f"{at}.mlp.pre", self.gate_proj(x)), point(f"{at}.mlp.pre_linear", self.up_proj(x))
            return self.down_proj(point(f"{at}.mlp.post", self.act_fn(pre) * linear))
        return self.down_proj(linear_activation(self.gate_proj, self.act_fn, x) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    """Attention, then the MLP, each on a normed input and added to the stream."""

    attention_class: ClassVar[type[LlamaAttention]] = LlamaAttention
    norm_class: ClassVar[type[nn.RMSNorm]] = nn.RMSNorm
    net = "mlp"  # what files call the net behind attention

    def __init__(self, config: LlamaConfig, layer_idx: int) -> None:
        super().__init__()
        self.self_attn = self.attention_class(config, layer_idx)
        setattr(self, self.net, self.feed_forward(config, layer_idx))
        width, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm = self.norm_class(width, eps=eps)
        self.post_attention_layernorm = self.norm_class(width, eps=eps)

    def feed_forward(self, config: LlamaConfig, layer_idx: int) -> nn.Module:
        """The net behind attention; mixtures of experts have another."""
        return LlamaMLP(config)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        if opens(self.self_attn.layer_idx):
            return self.opened(x, rope, mask, cache, weights)
        x, change = self.deferred(x, None, rope, mask, cache, weights)
        return x + change

    def norms(self) -> tuple[nn.Module, nn.Module | None, nn.Module, nn.Module | None]:
        """The norms before and behind attention, and before and behind the net."""
        return self.input_layernorm, None, self.post_attention_layernorm, None

    def added(self, y: Tensor) -> Tensor:
        """What of a result is added to the stream."""
        return y

    def opened(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> Tensor:
        """`forward`, with every value between the pieces shown."""
        attn = self.self_attn
        return open_layer(
            f"layers.{attn.layer_idx}",
            x,
            lambda y: attn(y, rope, mask, cache, weights),
            getattr(self, self.net),
            self.norms(),
            attn.counts,
            self.added,
        )

    def deferred(
        self,
        x: Tensor,
        change: Tensor | None,
        rope: Rotate,
        mask: AttentionMask,
        cache: nn.KVCache | None,
        weights: Weights,
    ) -> tuple[Tensor, Tensor]:
        """The stream and what is still to be added to it: the next norm adds it on its way."""
        x, y = add_norm(x, change, self.input_layernorm)
        y = self.self_attn(y, rope, mask, cache, weights)
        net = getattr(self, self.net)
        plain = isinstance(net, LlamaMLP)  # a router does more with its input than a product
        x, y = add_norm(x, y, self.post_attention_layernorm, exact=not plain)
        return x, net(y)


class LlamaModel(PreTrainedModel):
    """The decoder without its head.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.LlamaModel(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    config_class: ClassVar[type[Config]] = LlamaConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = LlamaDecoderLayer
    norm_class: ClassVar[type[nn.RMSNorm]] = nn.RMSNorm
    runs_through_points = True

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(self.layer_class(config, i) for i in range(config.num_hidden_layers))
        self.norm = self.norm_class(config.hidden_size, eps=config.rms_norm_eps)
        self.rotary_emb = rotary(config)
        self.post_init()

    def rotations(self, length: int, past: int, position_ids: Tensor | None) -> Callable[[int], Rotate]:
        """What gives, for a layer, the function that turns its queries and keys."""
        angles = self.rotary_emb.angles(length, past, position_ids)

        def turn(part: Tensor) -> Any:
            return self.rotary_emb.rotate(part, angles)

        return lambda layer: turn

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
    ) -> BaseModelOutput:
        x = point("embed", self.embedded(input_ids, inputs_embeds))
        cache = past_key_values
        if cache is None and use_cache:
            cache = nn.DynamicCache()
        T = x.shape[1]
        past = 0 if cache is None else cache.get_seq_length()
        rope = self.rotations(T, past, position_ids)
        if cache is not None:
            self.rotary_emb.check_cache(cache)
        masks: dict[int | None, AttentionMask] = {}
        trace = Trace(output_attentions, output_hidden_states)
        device = x.device

        def arguments(i: int, layer: nn.Module) -> tuple[Any, ...]:
            window = layer.self_attn.window
            if window not in masks:
                masks[window] = causal_mask(attention_mask, T, past + T, window=window, cache=cache, device=device)
            return rope(i), masks[window], cache, trace.weights

        x = run_layers(self.layers, LlamaDecoderLayer, x, self.norm, trace, arguments)
        return BaseModelOutput(
            last_hidden_state=x, past_key_values=cache, hidden_states=trace.hidden_states, attentions=trace.attentions
        )


class LlamaForCausalLM(DecoderLM):
    """The decoder with a head that predicts the next token.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.LlamaForCausalLM(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3, 10])
    """

    config_class: ClassVar[type[Config]] = LlamaConfig
    model_class: ClassVar[type[LlamaModel]] = LlamaModel
    tied = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.model = self.model_class(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def fused_decoder(self) -> FusedDecoder | None:
        from .fused_decoder import FusedDecoder

        return FusedDecoder.of(self)


@dataclass(kw_only=True)
class MistralConfig(LlamaConfig):
    """A Llama whose layers may all see only the last `sliding_window` positions.

    With `layer_types`, only those that are "sliding_attention" do.

    >>> votive.models.MistralConfig(sliding_window=8).window_of(0)
    8
    """

    model_type = "mistral"

    intermediate_size: int = 14336
    num_key_value_heads: int = 8
    max_position_embeddings: int = 4096 * 32
    sliding_window: int | None = 4096

    all_slide = True


class MistralModel(LlamaModel):
    """Mistral's decoder. Jiang et al. 2023, arXiv:2310.06825.

    >>> votive.models.MistralModel.config_class.model_type
    'mistral'
    """

    config_class = MistralConfig


class MistralForCausalLM(LlamaForCausalLM):
    """Mistral with its head.

    >>> votive.models.MistralForCausalLM.config_class.model_type
    'mistral'
    """

    config_class = MistralConfig
    model_class = MistralModel
