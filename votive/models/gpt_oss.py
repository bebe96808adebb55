"""gpt-oss: a mixture whose heads may look at nothing, and whose neurons stay within a limit. arXiv:2508.10925.

Released files hold experts in blocks of four bits, which load as they are; others in two tensors for all experts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig
from .stacked import Stacked

_YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}


@dataclass(kw_only=True)
class GptOssConfig(RotaryConfig):
    """The numbers of a gpt-oss.

    >>> votive.models.GptOssConfig().design.sinks
    True
    """

    model_type = "gpt_oss"
    aliases: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}
    stretched: ClassVar[dict[str, Any] | None] = _YARN

    num_hidden_layers: int = 36
    num_local_experts: int = 128
    vocab_size: int = 201088
    hidden_size: int = 2880
    intermediate_size: int = 2880
    head_dim: int = 64
    num_attention_heads: int = 64
    num_key_value_heads: int = 8
    sliding_window: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 150000.0
    rope_scaling: dict[str, Any] | None = field(default_factory=lambda: dict(_YARN))
    num_experts_per_tok: int = 4
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0
    router_aux_loss_coef: float = 0.001
    output_router_logits: bool = False
    attention_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            count = range(1, self.num_hidden_layers + 1)
            self.layer_types = ["sliding_attention" if i % 2 else "full_attention" for i in count]

    def choices(self) -> dict[str, Any]:
        return {
            "eps": self.rms_norm_eps,
            "sinks": True,
            "experts": Experts(
                count=self.num_local_experts,
                chosen=self.num_experts_per_tok,
                inner=self.intermediate_size,
                router="chosen",
                gate="router",
                gate_bias=True,
                bias=True,
                clamp=(self.swiglu_limit, self.swiglu_alpha),
                files=Stacked(transposed=True, alternating=True),
            ),
        }


GptOssModel, GptOssForCausalLM = decoder_classes("GptOss", GptOssConfig)
