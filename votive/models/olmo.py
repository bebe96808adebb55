"""OLMo 1 to 3, and the mixtures OLMoE and FlexOlmo. arXiv:2402.00838, 2501.00656 and 2409.02060.

The first norms without parameters; from the second on norms lie behind attention and net, and queries and keys are
normed whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .config import rope_of
from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig

_BEHIND = ("", "post_attention_layernorm", "", "post_feedforward_layernorm")


@dataclass(kw_only=True)
class OlmoConfig(RotaryConfig):
    """The numbers of an OLMo.

    >>> votive.models.OlmoConfig(clip_qkv=8.0).design.clip
    8.0
    """

    model_type = "olmo"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 50304
    clip_qkv: float | None = None
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 50279

    def choices(self) -> dict[str, Any]:
        return {"norm": "layer plain", "eps": 1e-5, "clip": self.clip_qkv}


OlmoModel, OlmoForCausalLM = decoder_classes("Olmo", OlmoConfig)


@dataclass(kw_only=True)
class Olmo2Config(RotaryConfig):
    """The numbers of an OLMo 2.

    >>> votive.models.Olmo2Config().design.qk_norm
    'whole'
    """

    model_type = "olmo2"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 50304
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 50279

    def choices(self) -> dict[str, Any]:
        return {"eps": self.rms_norm_eps, "norms": _BEHIND, "qk_norm": "whole"}


Olmo2Model, Olmo2ForCausalLM = decoder_classes("Olmo2", Olmo2Config)


@dataclass(kw_only=True)
class Olmo3Config(Olmo2Config):
    """The numbers of an OLMo 3: three of four layers see a window, and only the others are stretched.

    >>> votive.models.Olmo3Config(num_hidden_layers=4).layer_types[-2:]
    ['sliding_attention', 'full_attention']
    """

    model_type = "olmo3"
    unread: ClassVar[tuple[str, ...]] = ()

    rope_theta: float = 5e5
    rope_local_base_freq: float = 5e5
    sliding_window: int | None = 4096

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        parameters = values.pop("rope_parameters", None) or {}
        near, far = parameters.get("sliding_attention") or {}, parameters.get("full_attention") or {}
        if parameters and not near and not far:
            raise ValueError("Olmo3Config: rope_parameters must hold 'full_attention' and 'sliding_attention'.")
        if near:
            values["rope_local_base_freq"], stretched = rope_of({"rope_parameters": near}, cls.rope_local_base_freq)
            if stretched:
                raise ValueError("Olmo3Config: windowed layers cannot have rope scaling.")
        if far:
            values["rope_parameters"] = {**far, **(values.pop("rope_scaling", None) or {})}
        return super().adapt(values)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            count = range(1, self.num_hidden_layers + 1)
            self.layer_types = ["sliding_attention" if i % 4 else "full_attention" for i in count]

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        far = {**(values.pop("rope_scaling") or {"rope_type": "default"}), "rope_theta": values.pop("rope_theta")}
        near = {"rope_type": "default", "rope_theta": values.pop("rope_local_base_freq")}
        return {**values, "rope_parameters": {"full_attention": far, "sliding_attention": near}}

    def choices(self) -> dict[str, Any]:
        near = self.rope(theta=self.rope_local_base_freq, scaling=None, name="rotary_emb_local")
        kinds = (self.layer_types or [])[: self.num_hidden_layers]
        return {
            **super().choices(),
            "ropes": (self.rope(), near),
            "rope_of": tuple(int(kind == "sliding_attention") for kind in kinds),
        }


Olmo3Model, Olmo3ForCausalLM = decoder_classes("Olmo3", Olmo3Config)


@dataclass(kw_only=True)
class OlmoeConfig(RotaryConfig):
    """The numbers of an OLMoE: of 64 experts eight compute a position.

    >>> votive.models.OlmoeConfig().design.experts.count
    64
    """

    model_type = "olmoe"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}

    vocab_size: int = 50304
    hidden_size: int = 2048
    intermediate_size: int = 2048
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    clip_qkv: float | None = None
    num_experts_per_tok: int = 8
    num_experts: int = 64
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.01
    norm_topk_prob: bool = False
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 50279

    def choices(self) -> dict[str, Any]:
        return {
            "eps": self.rms_norm_eps,
            "qk_norm": "whole",
            "clip": self.clip_qkv,
            "clip_last": True,
            "experts": Experts(
                count=self.num_experts,
                chosen=self.num_experts_per_tok,
                inner=self.intermediate_size,
                normed=self.norm_topk_prob,
            ),
        }


OlmoeModel, OlmoeForCausalLM = decoder_classes("Olmoe", OlmoeConfig)


@dataclass(kw_only=True)
class FlexOlmoConfig(OlmoeConfig):
    """The numbers of a FlexOlmo: an OLMo 2 whose experts were trained apart. arXiv:2507.07024.

    >>> votive.models.FlexOlmoConfig().design.norms[0]
    ''
    """

    model_type = "flex_olmo"

    vocab_size: int = 100352
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    rms_norm_eps: float = 1e-6
    rope_theta: float = 5e5
    num_experts_per_tok: int = 5
    num_experts: int = 7
    pad_token_id: int | None = 100277
    eos_token_id: int | list[int] | None = 100257

    def choices(self) -> dict[str, Any]:
        return {**super().choices(), "norms": _BEHIND, "clip": None}


FlexOlmoModel, FlexOlmoForCausalLM = decoder_classes("FlexOlmo", FlexOlmoConfig)
