"""Bloom: a decoder without positions, whose scores fall with the distance. Le Scao et al. 2022, arXiv:2211.05100."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes
from .decoder.positions import alibi_slopes


@dataclass(kw_only=True)
class BloomConfig(DecoderConfig):
    """The numbers of a Bloom.

    >>> votive.models.BloomConfig.from_dict({"n_embed": 64, "num_attention_heads": 4}).design.head_dim
    16
    """

    model_type = "bloom"
    aliases = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}

    vocab_size: int = 250880
    hidden_size: int = 64
    n_layer: int = 2
    n_head: int = 8
    layer_norm_epsilon: float = 1e-5
    apply_residual_connection_post_layernorm: bool = False
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    pretraining_tp: int = 1
    slow_but_exact: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        width = values.pop("n_embed", None)
        return values if width is None else {**values, "hidden_size": width}

    def __post_init__(self) -> None:
        if self.slow_but_exact and self.pretraining_tp > 1:
            raise ValueError(
                f"BloomConfig: slow_but_exact=True with pretraining_tp={self.pretraining_tp} leaves biases out in "
                "transformers; set slow_but_exact to false."
            )

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(4 * self.hidden_size, 2048),
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norm_place": "stream" if self.apply_residual_connection_post_layernorm else "before",
            "dropout": self.hidden_dropout,
            "attention": "self_attention",
            "fused": "query_key_value",
            "fused_layout": "groups",
            "o": "dense",
            "qkv_bias": True,
            "out_bias": True,
            "attention_dropout": self.attention_dropout,
            "alibi": alibi_slopes(self.n_head),
            "alibi_counts": True,
            "net_kind": "plain",
            "net_names": ("", "dense_h_to_4h", "dense_4h_to_h"),
            "net_bias": True,
            "act": "gelu_pytorch_tanh",
            "embedding": "word_embeddings",
            "embedding_norm": "word_embeddings_layernorm",
            "stack": "h",
            "last_norm": "ln_f",
        }


BloomModel, BloomForCausalLM = decoder_classes("Bloom", BloomConfig, prefix="transformer")
