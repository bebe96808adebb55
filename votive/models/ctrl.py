"""CTRL: a decoder with sines for positions, steered by its first token. Keskar et al. 2019, arXiv:1909.05858."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes
from .decoder.token_types import TypedDecoder


@dataclass(kw_only=True)
class CTRLConfig(DecoderConfig):
    """The numbers of a CTRL; `layer_norm_epsilon` is that of the last norm, the others have 1e-6, as in transformers.

    >>> votive.models.CTRLConfig(n_embd=64, n_head=4).design.embedding_scale
    8.0
    """

    model_type = "ctrl"
    aliases = {
        "max_position_embeddings": "n_positions",
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }

    vocab_size: int = 246534
    n_positions: int = 256
    n_embd: int = 1280
    dff: int = 8192
    n_layer: int = 48
    n_head: int = 16
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-6
    tie_word_embeddings: bool = True

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.dff, self.n_positions),
            "norm": "layer",
            "eps": 1e-6,
            "norms": ("layernorm1", "", "layernorm2", ""),
            "dropout": self.resid_pdrop,
            "attention": "multi_head_attention",
            "q": "Wq",
            "k": "Wk",
            "v": "Wv",
            "o": "dense",
            "qkv_bias": True,
            "out_bias": True,
            "net": "ffn",
            "net_kind": "plain",
            "net_names": ("", "0", "2"),
            "net_bias": True,
            "act": "relu",
            "embedding": "w",
            "embedding_scale": self.n_embd**0.5,
            "embedding_dropout": self.embd_pdrop,
            "places": "pos_encoding",
            "places_kind": "angles",
            "stack": "h",
            "last_norm": "layernorm",
            "last_norm_eps": self.layer_norm_epsilon,
            "head_bias": True,
        }


class _CTRL(TypedDecoder):
    scales_given = True


CTRLModel, CTRLLMHeadModel = decoder_classes(
    "CTRL",
    CTRLConfig,
    prefix="transformer",
    base=_CTRL,
    causal="LMHeadModel",
    reader="classifier",
    ignored=(r"pos_encoding$",),
)
