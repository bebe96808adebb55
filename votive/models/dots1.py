"""dots.llm1, a mixture: DeepSeek-V3's routing under Qwen3's attention. arXiv:2506.05767."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig
from .decoder.routing import sigmoid_experts


@dataclass(kw_only=True)
class Dots1Config(RotaryConfig):
    """The numbers of a dots.llm1.

    >>> votive.models.Dots1Config(n_routed_experts=8, num_experts_per_tok=2).design.experts.chosen
    2
    """

    model_type = "dots1"
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "n_routed_experts"}

    vocab_size: int = 152064
    hidden_size: int = 4608
    intermediate_size: int = 10944
    moe_intermediate_size: int = 1408
    num_hidden_layers: int = 62
    num_key_value_heads: int | None = 32
    n_shared_experts: int | None = None
    n_routed_experts: int | None = None
    output_router_logits: bool = False
    n_group: int | None = 1
    topk_group: int | None = 1
    num_experts_per_tok: int | None = None
    first_k_dense_replace: int | None = 0
    norm_topk_prob: bool | None = False
    rms_norm_eps: float = 1e-6
    routed_scaling_factor: float = 1.0
    sliding_window: int | None = 4096
    max_window_layers: int | None = 62

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            near = self.num_hidden_layers if self.sliding_window is None else self.max_window_layers or 0
            count = range(self.num_hidden_layers)
            self.layer_types = ["sliding_attention" if i >= near else "full_attention" for i in count]

    def choices(self) -> dict[str, Any]:
        dense = tuple(range(self.first_k_dense_replace or 0))
        return {
            "eps": self.rms_norm_eps,
            "qk_norm": "head",
            "experts": sigmoid_experts(self, self.n_routed_experts, self.n_shared_experts, dense=dense),
        }


Dots1Model, Dots1ForCausalLM = decoder_classes("Dots1", Dots1Config)
