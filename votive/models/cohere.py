"""Command R and its followers: attention and net side by side, layer norms without biases, scaled logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class CohereConfig(RotaryConfig):
    """The numbers of a Command R.

    >>> votive.models.CohereConfig().design.logit_scale
    0.0625
    """

    model_type = "cohere"
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 256000
    hidden_size: int = 8192
    intermediate_size: int = 22528
    logit_scale: float | None = 0.0625
    num_hidden_layers: int = 40
    num_attention_heads: int = 64
    max_position_embeddings: int = 8192
    layer_norm_eps: float | None = 1e-5
    rope_theta: float = 5e5
    use_qk_norm: bool | None = False
    pad_token_id: int | None = 0
    bos_token_id: int | None = 5
    eos_token_id: int | list[int] | None = 255001
    tie_word_embeddings: bool = True

    def choices(self) -> dict[str, Any]:
        if self.logit_scale is None or self.layer_norm_eps is None:
            raise ValueError(f"{type(self).__name__}: no model can be made with logit_scale or layer_norm_eps of null.")
        return {
            "norm": "layer unbiased",
            "eps": self.layer_norm_eps,
            "norms": ("input_layernorm", "", "", ""),
            "parallel": True,
            "qk_norm": "heads" if self.use_qk_norm else "",
            "ropes": (self.rope(interleaved=True),),
            "logit_scale": self.logit_scale,
        }


CohereModel, CohereForCausalLM = decoder_classes("Cohere", CohereConfig)


@dataclass(kw_only=True)
class Cohere2Config(CohereConfig):
    """The numbers of a Command R7B: three of four layers see a window and rotate, the others do neither.

    >>> votive.models.Cohere2Config(num_hidden_layers=4).design.rope_of
    (0, 0, 0, None)
    """

    model_type = "cohere2"
    unread: ClassVar[tuple[str, ...]] = ("use_qk_norm",)

    logit_scale: float = 0.0625
    layer_norm_eps: float = 1e-5
    rope_theta: float = 1e4
    sliding_window: int | None = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            every = self.extra.get("sliding_window_pattern", 4)
            count = range(1, self.num_hidden_layers + 1)
            self.layer_types = ["sliding_attention" if i % every else "full_attention" for i in count]

    def choices(self) -> dict[str, Any]:
        seen = [self.window_of(i) for i in range(self.num_hidden_layers)]
        return {**super().choices(), "qk_norm": "", "rope_of": tuple(None if window is None else 0 for window in seen)}


Cohere2Model, Cohere2ForCausalLM = decoder_classes("Cohere2", Cohere2Config)
