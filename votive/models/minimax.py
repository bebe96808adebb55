"""MiniMax M2, a mixture: experts are chosen by sigmoids and a correction. MiniMax 2025."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig


@dataclass(kw_only=True)
class MiniMaxM2Config(RotaryConfig):
    """The numbers of a MiniMax M2.

    >>> votive.models.MiniMaxM2Config.from_dict({"rotary_dim": 64}).design.ropes[0].part
    0.5
    """

    model_type = "minimax_m2"
    rotates_part = True
    unread: ClassVar[tuple[str, ...]] = ("sliding_window", "attention_bias")
    aliases: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}

    vocab_size: int = 200064
    hidden_size: int = 3072
    intermediate_size: int = 1536
    num_hidden_layers: int = 62
    num_attention_heads: int = 48
    num_key_value_heads: int = 8
    head_dim: int = 128
    max_position_embeddings: int = 196608
    rms_norm_eps: float = 1e-6
    rope_theta: float = 5e6
    num_experts_per_tok: int = 8
    num_local_experts: int = 256
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    router_jitter_noise: float = 0.0
    bos_token_id: int | None = 200034
    eos_token_id: int | list[int] | None = 200020

    def __post_init__(self) -> None:
        super().__post_init__()
        features = self.extra.get("rotary_dim")
        if features is not None:
            self.extra.setdefault("partial_rotary_factor", features / self.head_dim)

    def choices(self) -> dict[str, Any]:
        return {
            "eps": self.rms_norm_eps,
            "qk_norm": "whole",
            "experts_net": "block_sparse_moe",
            "experts": Experts(
                count=self.num_local_experts,
                chosen=self.num_experts_per_tok,
                inner=self.intermediate_size,
                router="sigmoid",
                normed=True,
                jitter=self.router_jitter_noise,
                names=("w1", "w3", "w2"),
                correction="e_score_correction_bias",
                correction_in="",
            ),
        }


MiniMaxM2Model, MiniMaxM2ForCausalLM = decoder_classes(
    "MiniMaxM2",
    MiniMaxM2Config,
    renames={
        r"\.mlp\.(gate\.|experts\.|e_score)": r".block_sparse_moe.\1",
        r"(\.experts\.\d+\.)gate_proj\.": r"\1w1.",
        r"(\.experts\.\d+\.)down_proj\.": r"\1w2.",
        r"(\.experts\.\d+\.)up_proj\.": r"\1w3.",
    },
    ignored=(r"rotary_emb\.inv_freq$", r"(^|\.)mtp"),
)
