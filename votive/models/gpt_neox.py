"""GPT-NeoX and Pythia: attention and net side by side, rotated in part. Black et al. 2022, arXiv:2204.06745."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import rope_of
from .decoder import DecoderConfig, Rope, decoder_classes


@dataclass(kw_only=True)
class GPTNeoXConfig(DecoderConfig):
    """The numbers of a GPT-NeoX.

    >>> votive.models.GPTNeoXConfig(rotary_pct=0.5).design.ropes[0].part
    0.5
    """

    model_type = "gpt_neox"

    vocab_size: int = 50432
    hidden_size: int = 6144
    num_hidden_layers: int = 44
    num_attention_heads: int = 64
    intermediate_size: int = 24576
    hidden_act: str = "gelu"
    rotary_pct: float = 0.25
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    classifier_dropout: float = 0.1
    max_position_embeddings: int = 2048
    layer_norm_eps: float = 1e-5
    use_parallel_residual: bool = True
    attention_bias: bool = True
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        base = values.pop("rotary_emb_base", None)
        if base is not None:
            values.setdefault("rope_theta", base)
        told = values.get("rope_scaling") or values.get("rope_parameters") or {}
        values["rope_theta"], values["rope_scaling"] = rope_of({**values, "rope_parameters": told}, cls.rope_theta)
        values.pop("rope_parameters", None)
        if told.get("partial_rotary_factor") is not None:
            values["rotary_pct"] = told["partial_rotary_factor"]
        return values

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.intermediate_size, self.max_position_embeddings),
            "norm": "layer",
            "eps": self.layer_norm_eps,
            "parallel": self.use_parallel_residual,
            "dropout": self.hidden_dropout,
            "attention": "attention",
            "fused": "query_key_value",
            "fused_layout": "groups",
            "o": "dense",
            "qkv_bias": self.attention_bias,
            "out_bias": self.attention_bias,
            "attention_dropout": self.attention_dropout,
            "ropes": (Rope(theta=self.rope_theta, scaling=self.rope_scaling, part=self.rotary_pct),),
            "net_kind": "plain",
            "net_names": ("", "dense_h_to_4h", "dense_4h_to_h"),
            "net_bias": True,
            "act": self.hidden_act,
            "embedding": "embed_in",
            "embedding_dropout": self.hidden_dropout,
            "last_norm": "final_layer_norm",
            "head": "embed_out",
        }


GPTNeoXModel, GPTNeoXForCausalLM = decoder_classes(
    "GPTNeoX",
    GPTNeoXConfig,
    prefix="gpt_neox",
    renames={r"^lm_head\.": "embed_out."},
    # Old files hold the causal mask and the frequencies, tables.
    ignored=(r"\.attention\.(bias|masked_bias)$", r"rotary_emb\.inv_freq$"),
)
