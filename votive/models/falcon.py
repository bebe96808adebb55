"""Falcon, old and new: attention and net side by side. Almazrouei et al. 2023, arXiv:2311.16867."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import rope_of
from .decoder import DecoderConfig, Rope, decoder_classes
from .decoder.positions import alibi_slopes


@dataclass(kw_only=True)
class FalconConfig(DecoderConfig):
    """The numbers of a Falcon.

    >>> config = votive.models.FalconConfig(hidden_size=64, num_attention_heads=4)
    >>> config.design.shared, config.design.parallel
    (1, True)
    """

    model_type = "falcon"

    vocab_size: int = 65024
    hidden_size: int = 4544
    num_hidden_layers: int = 32
    num_attention_heads: int = 71
    num_ln_in_parallel_attn: int | None = None
    layer_norm_epsilon: float = 1e-5
    hidden_dropout: float = 0.0
    attention_dropout: float | None = 0.0
    num_kv_heads: int | None = None
    alibi: bool | None = False
    new_decoder_architecture: bool | None = False
    multi_query: bool | None = True
    parallel_attn: bool | None = True
    bias: bool | None = False
    max_position_embeddings: int = 2048
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    ffn_hidden_size: int | None = None
    activation: str = "gelu"
    bos_token_id: int | None = 11
    eos_token_id: int | list[int] | None = 11
    tie_word_embeddings: bool = True

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        values["rope_theta"], values["rope_scaling"] = rope_of(values, cls.rope_theta)
        values.pop("rope_parameters", None)
        width = values.pop("n_embed", None)
        return values if width is None else {**values, "hidden_size": width}

    def __post_init__(self) -> None:
        heads = self.num_attention_heads
        self.num_kv_heads = heads if self.num_kv_heads is None else self.num_kv_heads
        self.ffn_hidden_size = 4 * self.hidden_size if self.ffn_hidden_size is None else self.ffn_hidden_size
        two = self.num_ln_in_parallel_attn == 2
        if self.new_decoder_architecture and not self.parallel_attn:
            raise ValueError("FalconConfig: new_decoder_architecture=True needs parallel_attn=True.")
        if two and self.parallel_attn and not self.new_decoder_architecture:
            raise ValueError("FalconConfig: num_ln_in_parallel_attn=2 needs new_decoder_architecture=True.")
        if self.new_decoder_architecture and heads % self.num_kv_heads:
            raise ValueError(f"FalconConfig: num_attention_heads={heads} do not share {self.num_kv_heads} evenly.")
        if not self.new_decoder_architecture and not self.multi_query and self.num_kv_heads != heads:
            raise ValueError(
                f"FalconConfig: num_kv_heads={self.num_kv_heads} other than num_attention_heads={heads} needs "
                "new_decoder_architecture=True."
            )

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def sizes(self) -> dict[str, Any]:
        new, parallel, bias = bool(self.new_decoder_architecture), bool(self.parallel_attn), bool(self.bias)
        assert self.ffn_hidden_size is not None, "known once the configuration is made"
        norms = ("input_layernorm", "", "" if parallel else "post_attention_layernorm", "")
        if new and self.num_ln_in_parallel_attn in (None, 2):
            norms = ("ln_attn", "", "ln_mlp", "")
        shared = self.num_kv_heads if new else 1 if self.multi_query else self.num_attention_heads
        dropout = self.attention_dropout or 0.0
        return {
            **self.basic(self.ffn_hidden_size, self.max_position_embeddings),
            "shared": shared,
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": norms,
            "parallel": parallel,
            "dropout": self.hidden_dropout,
            "attention_out_dropout": self.hidden_dropout if parallel else dropout,
            "attention": "self_attention",
            "fused": "query_key_value",
            "fused_layout": "groups",
            "o": "dense",
            "qkv_bias": bias,
            "out_bias": bias,
            # As in transformers: only where scores fall with the distance.
            "attention_dropout": dropout if self.alibi else 0.0,
            "alibi": alibi_slopes(self.num_attention_heads) if self.alibi else (),
            "alibi_counts": True,
            "alibi_rounded": True,
            "alibi_scale": self.head_dim**-0.5,
            "ropes": () if self.alibi else (Rope(theta=self.rope_theta, scaling=self.rope_scaling),),
            "net_kind": "plain",
            "net_names": ("", "dense_h_to_4h", "dense_4h_to_h"),
            "net_bias": bias,
            "act": self.activation,
            "embedding": "word_embeddings",
            "stack": "h",
            "last_norm": "ln_f",
        }


FalconModel, FalconForCausalLM = decoder_classes("Falcon", FalconConfig, prefix="transformer")
