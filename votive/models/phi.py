"""Phi 1 to 2, whose net reads what attention reads, and the mixture Phi-3.5. arXiv:2309.05463 and 2404.14219."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class PhiConfig(RotaryConfig):
    """The numbers of a Phi.

    >>> design = votive.models.PhiConfig().design
    >>> design.parallel, design.ropes[0].part
    (True, 0.5)
    """

    model_type = "phi"
    rotated = 0.5
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 51200
    hidden_size: int = 2048
    intermediate_size: int = 8192
    num_hidden_layers: int = 24
    hidden_act: str = "gelu_new"
    resid_pdrop: float = 0.0
    embd_pdrop: float = 0.0
    layer_norm_eps: float = 1e-5
    qk_layernorm: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def choices(self) -> dict[str, Any]:
        return {
            "norm": "layer",
            "eps": self.layer_norm_eps,
            "norms": ("input_layernorm", "", "", ""),
            "parallel": True,
            "dropout": self.resid_pdrop,
            "embedding_dropout": self.embd_pdrop,
            "o": "dense",
            "qkv_bias": True,
            "out_bias": True,
            "qk_norm": "head" if self.qk_layernorm else "",
            "qk_names": ("q_layernorm", "k_layernorm"),
            "net_kind": "plain",
            "net_names": ("", "fc1", "fc2"),
            "net_bias": True,
            "last_norm": "final_layernorm",
            "head_bias": True,
        }


PhiModel, PhiForCausalLM = decoder_classes("Phi", PhiConfig)


@dataclass(kw_only=True)
class PhimoeConfig(RotaryConfig):
    """The numbers of a Phi-3.5 mixture: of 16 experts two compute a position.

    >>> votive.models.PhimoeConfig().design.experts.router
    'sparsemixer'
    """

    model_type = "phimoe"
    aliases: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}

    vocab_size: int = 32064
    intermediate_size: int = 6400
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 4096 * 32
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    num_experts_per_tok: int = 2
    num_local_experts: int = 16
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    router_jitter_noise: float = 0.01
    input_jitter_noise: float = 0.0
    lm_head_bias: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    all_slide = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_experts_per_tok != 2:
            raise ValueError(f"PhimoeConfig: num_experts_per_tok must be 2, got {self.num_experts_per_tok}.")

    def choices(self) -> dict[str, Any]:
        return {
            "norm": "layer",
            "eps": self.rms_norm_eps,
            "head_bias": self.lm_head_bias,
            "experts_net": "block_sparse_moe",
            "experts": Experts(
                count=self.num_local_experts,
                chosen=2,
                inner=self.intermediate_size,
                router="sparsemixer",
                near=self.router_jitter_noise,
                jitter=self.input_jitter_noise,
                names=("w1", "w3", "w2"),
            ),
        }


PhimoeModel, PhimoeForCausalLM = decoder_classes(
    "Phimoe",
    PhimoeConfig,
    renames={
        r"\.mlp\.(router|experts)\.": r".block_sparse_moe.\1.",
        r"\.block_sparse_moe\.router\.": ".block_sparse_moe.gate.",
        r"(\.experts\.\d+\.)gate_proj\.": r"\1w1.",
        r"(\.experts\.\d+\.)down_proj\.": r"\1w2.",
        r"(\.experts\.\d+\.)up_proj\.": r"\1w3.",
    },
)
