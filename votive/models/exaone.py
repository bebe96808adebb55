"""EXAONE 4 and its mixture: norms behind attention and net, and layers that see all do not rotate. arXiv:2507.11407."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import decoder_classes
from .decoder.config import RotaryConfig
from .decoder.routing import sigmoid_experts


@dataclass(kw_only=True)
class Exaone4Config(RotaryConfig):
    """The numbers of an EXAONE 4.

    >>> votive.models.Exaone4Config(num_hidden_layers=4).design.rope_of
    (0, 0, 0, None)
    """

    model_type = "exaone4"
    unread: ClassVar[tuple[str, ...]] = ("attention_bias",)

    vocab_size: int = 102400
    intermediate_size: int = 16384
    num_key_value_heads: int = 32
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = 4096
    sliding_window_pattern: int | str | None = 4
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sliding_window is None:
            self.sliding_window_pattern = 0
        if self.layer_types is None:
            every = self.sliding_window_pattern
            if not isinstance(every, int):
                raise ValueError(
                    f"{type(self).__name__}: sliding_window_pattern must be a number where layer_types are not given, "
                    f"got {every!r}."
                )
            count = range(1, self.num_hidden_layers + 1)
            self.layer_types = ["sliding_attention" if every and i % every else "full_attention" for i in count]

    def choices(self) -> dict[str, Any]:
        kinds = (self.layer_types or [])[: self.num_hidden_layers]
        everywhere = self.sliding_window is None
        return {
            "eps": self.rms_norm_eps,
            "norms": ("", "post_attention_layernorm", "", "post_feedforward_layernorm"),
            "qk_norm": "head",
            "rope_of": tuple(0 if everywhere or kind == "sliding_attention" else None for kind in kinds),
        }


Exaone4Model, Exaone4ForCausalLM = decoder_classes("Exaone4", Exaone4Config)


@dataclass(kw_only=True)
class ExaoneMoeConfig(Exaone4Config):
    """The numbers of a K-EXAONE, a mixture with norms before attention and net.

    >>> votive.models.ExaoneMoeConfig(num_hidden_layers=2).mlp_layer_types
    ['dense', 'sparse']
    """

    model_type = "exaone_moe"
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}

    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 53
    pad_token_id: int | None = 0
    sliding_window: int = 4096
    mlp_layer_types: list[str] | None = None
    first_k_dense_replace: int = 1
    moe_intermediate_size: int = 1024
    num_experts: int = 64
    num_experts_per_tok: int = 8
    output_router_logits: bool = False
    num_shared_experts: int = 1
    norm_topk_prob: bool = True
    routed_scaling_factor: float = 2.5
    n_group: int = 1
    topk_group: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mlp_layer_types is None:
            first = self.first_k_dense_replace
            self.mlp_layer_types = ["dense" if i < first else "sparse" for i in range(self.num_hidden_layers)]

    def choices(self) -> dict[str, Any]:
        dense = tuple(i for i, kind in enumerate(self.mlp_layer_types or []) if kind != "sparse")
        return {
            **super().choices(),
            "norms": ("input_layernorm", "", "post_attention_layernorm", ""),
            "experts": sigmoid_experts(self, self.num_experts, self.num_shared_experts, dense=dense, correction_in=""),
        }


ExaoneMoeModel, ExaoneMoeForCausalLM = decoder_classes(
    "ExaoneMoe",
    ExaoneMoeConfig,
    renames={r"\.mlp\.gate\.e_score_correction_bias": ".mlp.e_score_correction_bias"},
    ignored=(r"rotary_emb\.inv_freq$", r"^mtp\."),
)
