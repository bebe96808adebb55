"""Gemma 1, 2 and 3 (text). arXiv:2403.08295, 2408.00118 and 2503.19786.

Llama's decoder with norms that scale by `1 + weight`, embeddings scaled by the root of their width,
and since Gemma 2: norms also behind attention and MLP, layers that see a window, and capped scores.
Gemma 3 norms queries and keys and turns them at another base in windowed layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import rope_of
from .decoder import decoder_classes
from .llama import LlamaConfig


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_bidirectional_attention:
            raise ValueError(f"{type(self).__name__}: use_bidirectional_attention=True is not supported.")
        if self.hidden_act == "gelu":
            # The first files say so, and mean the form that the model was trained with.
            self.hidden_act = "gelu_pytorch_tanh"

    def choices(self) -> dict[str, Any]:
        return {"norm": "rms 1+", "embedding_scale": self.hidden_size**0.5}


GemmaModel, GemmaForCausalLM = decoder_classes("Gemma", GemmaConfig)


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

    def choices(self) -> dict[str, Any]:
        return {
            **super().choices(),
            "norms": (
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            ),
            "scale": self.query_pre_attn_scalar**-0.5,
            "cap": self.attn_logit_softcapping,
            "logit_cap": self.final_logit_softcapping,
        }


Gemma2Model, Gemma2ForCausalLM = decoder_classes("Gemma2", Gemma2Config)


@dataclass(kw_only=True)
class VaultGemmaConfig(Gemma2Config):
    """The numbers of a VaultGemma: a Gemma 2 without norms behind attention and net, trained in private.

    >>> votive.models.VaultGemmaConfig().design.norms
    ('input_layernorm', '', 'pre_feedforward_layernorm', '')
    """

    model_type = "vaultgemma"

    def choices(self) -> dict[str, Any]:
        return {**super().choices(), "norms": ("input_layernorm", "", "pre_feedforward_layernorm", "")}


VaultGemmaModel, VaultGemmaForCausalLM = decoder_classes("VaultGemma", VaultGemmaConfig)


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

    def choices(self) -> dict[str, Any]:
        if self.attn_logit_softcapping is not None:
            raise ValueError(
                f"{type(self).__name__}: attn_logit_softcapping={self.attn_logit_softcapping} is not supported; "
                "transformers leaves it out."
            )
        kinds = self.layer_types or []
        return {
            **super().choices(),
            "qk_norm": "head",
            "ropes": (self.rope(), self.rope(theta=self.rope_local_base_freq, scaling=None, name="rotary_emb_local")),
            "rope_of": tuple(int(kinds[i] == "sliding_attention") for i in range(self.num_hidden_layers)),
        }


Gemma3TextModel, Gemma3ForCausalLM = decoder_classes("Gemma3", Gemma3TextConfig, model="TextModel")
