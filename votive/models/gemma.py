"""Gemma 1, 2 and 3 (text). arXiv:2403.08295, 2408.00118 and 2503.19786.

Llama's decoder with norms that scale by `1 + weight`, embeddings scaled by the root of their width,
and since Gemma 2: norms also behind attention and MLP, layers that see a window, and capped scores.
Gemma 3 norms queries and keys and turns them at another base in windowed layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import opens

from ..surface.block_attention import as_numbers
from ..tensor import Tensor
from .attention import AttentionMask, Weights, attention_weights
from .config import Config, rope_of
from .llama import LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaForCausalLM, LlamaModel, Rotate, rotary

_NO_CAP: float | None = None


@dataclass(kw_only=True)
class GemmaConfig(LlamaConfig):
    """The numbers of a Gemma.

    >>> votive.models.GemmaConfig().hidden_act
    'gelu_pytorch_tanh'
    """

    model_type = "gemma"

    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int = 16
    head_dim: int = 256
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    pad_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 1
    bos_token_id: int | None = 2
    tie_word_embeddings: bool = True
    use_bidirectional_attention: bool | None = None

    # What sets families apart, as the layers ask for it.
    attn_logit_softcapping = _NO_CAP
    final_logit_softcapping = _NO_CAP

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_bidirectional_attention:
            raise ValueError(f"{type(self).__name__}: use_bidirectional_attention=True is not supported.")
        if self.hidden_act == "gelu":
            # The first files say so, and mean the form that the model was trained with.
            self.hidden_act = "gelu_pytorch_tanh"


@dataclass(kw_only=True)
class Gemma2Config(GemmaConfig):
    """The numbers of a Gemma 2: every other layer sees a window, and scores are capped.

    >>> votive.models.Gemma2Config(num_hidden_layers=3).layer_types
    ['sliding_attention', 'full_attention', 'sliding_attention']
    """

    model_type = "gemma2"

    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    hidden_activation: str = "gelu_pytorch_tanh"
    query_pre_attn_scalar: float = 256
    sliding_window: int | None = 4096
    final_logit_softcapping: float | None = 30.0
    attn_logit_softcapping: float | None = 50.0

    pattern = 2  # how many layers have one that sees all

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_act not in ("gelu_pytorch_tanh", self.hidden_activation):
            raise ValueError(
                f"{type(self).__name__}: hidden_act={self.hidden_act!r} is not read; pass "
                f"hidden_activation={self.hidden_act!r}, which is {self.hidden_activation!r} now."
            )
        self.hidden_act = self.hidden_activation
        if self.layer_types is None:
            every = self.extra.get("sliding_window_pattern") or self.pattern
            self.layer_types = [
                "sliding_attention" if (i + 1) % every else "full_attention" for i in range(self.num_hidden_layers)
            ]

    @property
    def attention_scale(self) -> float:  # type: ignore[override]
        return self.query_pre_attn_scalar**-0.5


@dataclass(kw_only=True)
class Gemma3TextConfig(Gemma2Config):
    """The numbers of a Gemma 3.

    >>> votive.models.Gemma3TextConfig(num_hidden_layers=6).layer_types[-2:]
    ['sliding_attention', 'full_attention']
    """

    model_type = "gemma3_text"

    vocab_size: int = 262_208
    max_position_embeddings: int = 131_072
    rope_theta: float = 1e6
    rope_local_base_freq: float = 1e4
    use_bidirectional_attention: bool | None = False
    final_logit_softcapping: float | None = None
    attn_logit_softcapping: float | None = None

    pattern = 6
    qk_norm = True

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        parameters = values.pop("rope_parameters", None) or {}
        if "full_attention" in parameters or "sliding_attention" in parameters:
            near, far = parameters.get("sliding_attention") or {}, parameters.get("full_attention") or {}
            values["rope_local_base_freq"], stretched = rope_of({"rope_parameters": near}, cls.rope_local_base_freq)
            if stretched:
                raise ValueError("Gemma3TextConfig: windowed layers cannot have rope scaling.")
            values["rope_parameters"] = far
        elif parameters:
            values["rope_parameters"] = parameters
        return super().adapt(values)


class GemmaRMSNorm(nn.RMSNorm):
    """`x / sqrt(mean(x^2) + eps) * (1 + weight)`, in float32."""

    weight_offset = 1.0

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        scale = 1.0 + self.weight.float()
        return F.rms_norm(x.float(), self.normalized_shape, scale, self.eps).to(x.dtype)


class GemmaAttention(LlamaAttention):
    """Llama's attention, with scores that may be capped."""

    norm_class = GemmaRMSNorm

    def __init__(self, config: GemmaConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        self.cap = config.attn_logit_softcapping

    def look(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        if self.cap is None:
            return super().look(q, k, v, mask, weights)
        seen = attention_weights(q, k, mask, scale=self.scale, cap=self.cap)  # (B, H, T, K)
        used = F.dropout(seen, self.dropout, self.training)
        v = as_numbers(v, q.dtype).repeat_interleave(q.shape[1] // v.shape[1], 1)
        if weights is not None:
            weights.append(seen)
        return used @ v


class GemmaDecoderLayer(LlamaDecoderLayer):
    """Attention, then the MLP, each on a normed input and added to the stream."""

    attention_class = GemmaAttention
    norm_class = GemmaRMSNorm


class Gemma2DecoderLayer(GemmaDecoderLayer):
    """Attention, then the MLP, each between two norms and added to the stream."""

    def __init__(self, config: GemmaConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        width, eps = config.hidden_size, config.rms_norm_eps
        self.pre_feedforward_layernorm = GemmaRMSNorm(width, eps=eps)
        self.post_feedforward_layernorm = GemmaRMSNorm(width, eps=eps)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        if opens(self.self_attn.layer_idx):
            return self.opened(x, rope, mask, cache, weights)
        y = self.self_attn(self.input_layernorm(x), rope, mask, cache, weights)
        x = x + self.post_attention_layernorm(y)
        y = self.mlp(self.pre_feedforward_layernorm(x))
        return x + self.post_feedforward_layernorm(y)

    def norms(self) -> tuple[nn.Module, nn.Module | None, nn.Module, nn.Module | None]:
        return (
            self.input_layernorm,
            self.post_attention_layernorm,
            self.pre_feedforward_layernorm,
            self.post_feedforward_layernorm,
        )


class GemmaModel(LlamaModel):
    """Gemma's decoder.

    >>> config = votive.models.GemmaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=4)
    >>> votive.models.GemmaModel(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    config_class: ClassVar[type[Config]] = GemmaConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = GemmaDecoderLayer
    norm_class = GemmaRMSNorm

    def embedded(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
        x = super().embedded(input_ids, inputs_embeds)
        if inputs_embeds is not None:
            return x
        # Rounded to the type of the weights, as in training.
        return x * votive.tensor(self.config.hidden_size**0.5, dtype=x.dtype, device=x.device)


class GemmaForCausalLM(LlamaForCausalLM):
    """Gemma with its head.

    >>> votive.models.GemmaForCausalLM.config_class.model_type
    'gemma'
    """

    config_class: ClassVar[type[Config]] = GemmaConfig
    model_class: ClassVar[type[LlamaModel]] = GemmaModel

    def scores(self, x: Tensor) -> Tensor:
        logits, cap = super().scores(x), self.config.final_logit_softcapping
        return logits if cap is None else cap * votive.tanh(logits / cap)


class Gemma2Model(GemmaModel):
    """Gemma 2's decoder.

    >>> votive.models.Gemma2Model.config_class.model_type
    'gemma2'
    """

    config_class = Gemma2Config
    layer_class = Gemma2DecoderLayer


class Gemma2ForCausalLM(GemmaForCausalLM):
    """Gemma 2 with its head.

    >>> votive.models.Gemma2ForCausalLM.config_class.model_type
    'gemma2'
    """

    config_class = Gemma2Config
    model_class = Gemma2Model


class Gemma3TextModel(Gemma2Model):
    """Gemma 3's decoder; windowed layers turn queries and keys at a base of their own.

    >>> votive.models.Gemma3TextModel.config_class.model_type
    'gemma3_text'
    """

    config_class = Gemma3TextConfig

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__(config)
        self.rotary_emb_local = rotary(config, config.rope_local_base_freq, None)

    def rotations(self, length: int, past: int, position_ids: Tensor | None) -> Callable[[int], Rotate]:
        far = super().rotations(length, past, position_ids)(0)
        angles = self.rotary_emb_local.angles(length, past, position_ids)

        def near(part: Tensor) -> Any:
            return self.rotary_emb_local.rotate(part, angles)

        kinds = self.config.layer_types
        return lambda layer: near if kinds[layer] == "sliding_attention" else far


class Gemma3ForCausalLM(GemmaForCausalLM):
    """Gemma 3 with its head.

    >>> config = votive.models.Gemma3TextConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=4,
    ...     max_position_embeddings=32)
    >>> votive.models.Gemma3ForCausalLM(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3, 10])
    """

    config_class = Gemma3TextConfig
    model_class = Gemma3TextModel
