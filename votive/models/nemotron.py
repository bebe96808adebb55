"""Decoders whose net is a squared ReLU between two products: Nemotron, Arcee, Jais 2; and Apertus, whose net learns
its activation. arXiv:2402.16819, 2509.14233.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig
from .llama import LlamaConfig

_PLAIN = {"net_kind": "plain", "net_names": ("", "up_proj", "down_proj")}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}


@dataclass(kw_only=True)
class NemotronConfig(RotaryConfig):
    """The numbers of a Nemotron or Minitron.

    >>> votive.models.NemotronConfig().design.norm
    'layer 1+'
    """

    model_type = "nemotron"
    rotated = 0.5
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 256000
    hidden_size: int = 6144
    intermediate_size: int = 24576
    num_attention_heads: int = 48
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    initializer_range: float = 0.0134
    norm_eps: float = 1e-5
    mlp_bias: bool = False
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 3

    def choices(self) -> dict[str, Any]:
        return {**_PLAIN, "norm": "layer 1+", "eps": self.norm_eps, "net_bias": self.mlp_bias}


NemotronModel, NemotronForCausalLM = decoder_classes("Nemotron", NemotronConfig)


@dataclass(kw_only=True)
class ArceeConfig(LlamaConfig):
    """The numbers of an Arcee Foundation Model.

    >>> votive.models.ArceeConfig().design.act
    'relu2'
    """

    model_type = "arcee"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    hidden_size: int = 2560
    intermediate_size: int = 18432
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = 128001

    def choices(self) -> dict[str, Any]:
        return dict(_PLAIN)


ArceeModel, ArceeForCausalLM = decoder_classes("Arcee", ArceeConfig)


@dataclass(kw_only=True)
class Jais2Config(RotaryConfig):
    """The numbers of a Jais 2.

    >>> votive.models.Jais2Config().design.net_bias
    True
    """

    model_type = "jais2"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 150272
    hidden_size: int = 3328
    intermediate_size: int = 26624
    num_attention_heads: int = 26
    hidden_act: str = "relu2"
    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    attention_bias: bool = True
    mlp_bias: bool = True
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 150024

    def choices(self) -> dict[str, Any]:
        return {**_PLAIN, "norm": "layer", "eps": self.layer_norm_eps, "net_bias": self.mlp_bias}


Jais2Model, Jais2ForCausalLM = decoder_classes("Jais2", Jais2Config)


@dataclass(kw_only=True)
class ApertusConfig(RotaryConfig):
    """The numbers of an Apertus.

    >>> votive.models.ApertusConfig().design.act
    'xielu'
    """

    model_type = "apertus"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)
    stretched: ClassVar[dict[str, Any] | None] = {**_LLAMA3, "rope_theta": 12e6}

    vocab_size: int = 131072
    intermediate_size: int = 14336
    hidden_act: str = "xielu"
    max_position_embeddings: int = 65536
    rms_norm_eps: float = 1e-5
    rope_theta: float = 12e6
    rope_scaling: dict[str, Any] | None = field(default_factory=lambda: dict(_LLAMA3))
    pad_token_id: int | None = 3
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def choices(self) -> dict[str, Any]:
        norms = ("attention_layernorm", "", "feedforward_layernorm", "")
        return {**_PLAIN, "eps": self.rms_norm_eps, "norms": norms, "qk_norm": "head"}


ApertusModel, ApertusForCausalLM = decoder_classes("Apertus", ApertusConfig)
