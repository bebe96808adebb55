"""Families that differ from a Llama or a Mistral in a line or two: Ministral, CWM, InternLM3 and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.design import Temper
from .llama import LlamaConfig, MistralConfig

_YARN = {
    "rope_type": "yarn",
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale_all_dim": 1.0,
    "mscale": 1.0,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 16.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
}


@dataclass(kw_only=True)
class MinistralConfig(MistralConfig):
    """The numbers of a Ministral: a Mistral of which some layers may see all.

    >>> votive.models.MinistralConfig(num_hidden_layers=2).layer_types
    ['sliding_attention', 'sliding_attention']
    """

    model_type = "ministral"
    unread: ClassVar[tuple[str, ...]] = ("attention_bias", "mlp_bias")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            kind = "full_attention" if self.sliding_window is None else "sliding_attention"
            self.layer_types = [kind] * self.num_hidden_layers


MinistralModel, MinistralForCausalLM = decoder_classes("Ministral", MinistralConfig)


@dataclass(kw_only=True)
class Ministral3Config(MistralConfig):
    """The numbers of a Ministral 3: a Mistral whose queries grow far into a text.

    >>> votive.models.Ministral3Config().design.temper.length
    16384
    """

    model_type = "ministral3"
    unread: ClassVar[tuple[str, ...]] = ("attention_bias", "mlp_bias")
    stretched: ClassVar[dict[str, Any] | None] = {**_YARN, "rope_theta": 1e6, "llama_4_scaling_beta": 0.1}

    vocab_size: int = 131072
    num_hidden_layers: int = 34
    head_dim: int = 128
    max_position_embeddings: int = 262144
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    rope_scaling: dict[str, Any] | None = field(default_factory=lambda: dict(_YARN))
    llama_4_scaling_beta: float | None = 0.1
    sliding_window: int | None = None
    pad_token_id: int | None = 11

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        told = dict(values.pop("rope_parameters", None) or values.pop("rope_scaling", None) or cls.stretched or {})
        told.pop("max_position_embeddings", None)  # said again
        beta = told.pop("llama_4_scaling_beta", None)
        return super().adapt({**values, "rope_parameters": told, "llama_4_scaling_beta": beta})

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        told = {"rope_theta": values.pop("rope_theta"), "llama_4_scaling_beta": values.pop("llama_4_scaling_beta")}
        told = {**values.pop("rope_scaling"), **told}
        return {**values, "rope_parameters": told}

    def window_of(self, layer: int) -> int | None:
        return self.sliding_window

    def choices(self) -> dict[str, Any]:
        if self.llama_4_scaling_beta is None:
            raise ValueError("Ministral3Config: rope_parameters must have llama_4_scaling_beta.")
        first = (self.rope_scaling or {}).get("original_max_position_embeddings") or self.max_position_embeddings
        return {"temper": Temper(weight=self.llama_4_scaling_beta, length=first)}


Ministral3Model, Ministral3ForCausalLM = decoder_classes("Ministral3", Ministral3Config)


@dataclass(kw_only=True)
class CwmConfig(LlamaConfig):
    """The numbers of a Code World Model: three of four layers see a window. arXiv:2510.02387.

    >>> votive.models.CwmConfig(num_hidden_layers=2).layer_types
    ['full_attention', 'sliding_attention']
    """

    model_type = "cwm"
    unread: ClassVar[tuple[str, ...]] = ("attention_bias",)
    stretched: ClassVar[dict[str, Any] | None] = {**_LLAMA3, "rope_theta": 1e6}

    vocab_size: int = 128256
    hidden_size: int = 6144
    intermediate_size: int = 21504
    num_hidden_layers: int = 64
    num_attention_heads: int = 48
    num_key_value_heads: int = 8
    head_dim: int = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    rope_scaling: dict[str, Any] | None = field(default_factory=lambda: dict(_LLAMA3))
    sliding_window: int = 8192
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = field(default_factory=lambda: [128001, 128008, 128009])

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            count = range(self.num_hidden_layers)
            self.layer_types = ["sliding_attention" if i % 4 else "full_attention" for i in count]


CwmModel, CwmForCausalLM = decoder_classes("Cwm", CwmConfig)


@dataclass(kw_only=True)
class InternLM3Config(LlamaConfig):
    """The numbers of an InternLM 3.

    >>> votive.models.InternLM3Config().head_dim
    128
    """

    model_type = "internlm3"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)
    aliases: ClassVar[dict[str, str]] = {"qkv_bias": "attention_bias", "bias": "mlp_bias"}

    vocab_size: int = 128512
    intermediate_size: int = 10240
    num_hidden_layers: int = 48
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 2

    def choices(self) -> dict[str, Any]:
        if self.attention_bias != self.mlp_bias:
            raise ValueError("InternLM3Config: qkv_bias and bias must be the same.")
        return {}


InternLM3Model, InternLM3ForCausalLM = decoder_classes("InternLM3", InternLM3Config)


@dataclass(kw_only=True)
class IQuestCoderConfig(LlamaConfig):
    """The numbers of an IQuest-Coder.

    >>> votive.models.IQuestCoderConfig().num_key_value_heads
    8
    """

    model_type = "iquestcoder"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 76800
    hidden_size: int = 5120
    intermediate_size: int = 27648
    num_hidden_layers: int = 80
    num_attention_heads: int = 40
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5

    def choices(self) -> dict[str, Any]:
        if self.extra.get("clip_qkv") is not None or self.extra.get("use_sliding_window"):
            raise ValueError("IQuestCoderConfig: clip_qkv and use_sliding_window are not supported.")
        return {}


IQuestCoderModel, IQuestCoderForCausalLM = decoder_classes("IQuestCoder", IQuestCoderConfig)


@dataclass(kw_only=True)
class SeedOssConfig(LlamaConfig):
    """The numbers of a Seed-OSS: a Llama with biases on queries, keys and values.

    >>> votive.models.SeedOssConfig().design.qkv_bias
    True
    """

    model_type = "seed_oss"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 155136
    intermediate_size: int = 27648
    num_hidden_layers: int = 64
    num_attention_heads: int = 80
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False
    attention_dropout: float = 0.1
    residual_dropout: float = 0.1
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0

    def choices(self) -> dict[str, Any]:
        return {"out_bias": self.attention_out_bias, "dropout": self.residual_dropout}


SeedOssModel, SeedOssForCausalLM = decoder_classes("SeedOss", SeedOssConfig)


@dataclass(kw_only=True)
class HeliumConfig(LlamaConfig):
    """The numbers of a Helium: a Llama that rotates pairs of neighbours.

    >>> votive.models.HeliumConfig().design.ropes[0].interleaved
    True
    """

    model_type = "helium"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 48000
    hidden_size: int = 2560
    intermediate_size: int = 7040
    num_hidden_layers: int = 24
    num_attention_heads: int = 20
    num_key_value_heads: int = 20
    head_dim: int = 128
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-8
    rope_theta: float = 1e5
    pad_token_id: int | None = 3

    def choices(self) -> dict[str, Any]:
        if self.num_attention_heads * self.head_dim != self.hidden_size:
            raise ValueError(
                f"HeliumConfig: num_attention_heads={self.num_attention_heads} of head_dim={self.head_dim} "
                f"must make up hidden_size={self.hidden_size}."
            )
        return {"out_bias": False, "ropes": (self.rope(interleaved=True),)}


HeliumModel, HeliumForCausalLM = decoder_classes("Helium", HeliumConfig)
