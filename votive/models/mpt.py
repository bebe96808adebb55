"""MPT: a decoder without positions and biases, whose scores fall with the distance. MosaicML 2023."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes

_ATTENTION: dict[str, Any] = {
    "attn_type": "multihead_attention",
    "attn_pdrop": 0,
    "attn_impl": "torch",
    "clip_qkv": None,
    "softmax_scale": None,
    "prefix_lm": False,
    "qk_ln": False,
    "attn_uses_sequence_id": False,
    "alibi": True,
    "alibi_bias_max": 8,
}
# What is computed for these values alone, as in transformers, which reads no other.
_ONLY = {"attn_type": "multihead_attention", "prefix_lm": False, "qk_ln": False, "alibi": True, "alibi_bias_max": 8}


@dataclass(kw_only=True)
class MptConfig(DecoderConfig):
    """The numbers of an MPT; `attn_config` holds those of attention.

    `learned_pos_emb`, `emb_pdrop` and `resid_pdrop` change nothing, as in transformers: scores that fall with the
    distance replace positions, and `attn_pdrop` is the only dropout.

    >>> votive.models.MptConfig(attn_config={"clip_qkv": 6.0}).design.clip
    6.0
    """

    model_type = "mpt"
    aliases = {"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}

    d_model: int = 2048
    n_heads: int = 16
    n_layers: int = 24
    expansion_ratio: int = 4
    max_seq_len: int = 2048
    vocab_size: int = 50368
    resid_pdrop: float = 0.0
    layer_norm_epsilon: float = 1e-5
    emb_pdrop: float = 0.0
    learned_pos_emb: bool = True
    attn_config: dict[str, Any] | None = None
    init_device: str = "cpu"
    logit_scale: float | str | None = None
    no_bias: bool = True
    embedding_fraction: float = 1.0
    norm_type: str = "low_precision_layernorm"
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        self.attn_config = {**_ATTENTION, **(self.attn_config or {})}
        wrong = {f"attn_config.{k}": self.attn_config[k] for k, v in _ONLY.items() if self.attn_config[k] != v}
        told = {"expansion_ratio": 4, "no_bias": True, "logit_scale": None}
        wrong |= {key: getattr(self, key) for key, only in told.items() if getattr(self, key) != only}
        if wrong:
            raise ValueError(
                f"MptConfig: {', '.join(f'{k}={v!r}' for k, v in wrong.items())} is not supported; published models "
                f"have {', '.join(f'{k}={v!r}' for k, v in {**_ONLY, **told}.items())}."
            )

    def sizes(self) -> dict[str, Any]:
        told = self.attn_config or _ATTENTION
        return {
            **self.basic(4 * self.d_model, self.max_seq_len),
            "norm": "layer unbiased",
            "eps": self.layer_norm_epsilon,
            "norms": ("norm_1", "", "norm_2", ""),
            "dropout": told["attn_pdrop"],
            "attention": "attn",
            "fused": "Wqkv",
            "o": "out_proj",
            "clip": told["clip_qkv"] or None,
            "scale": told["softmax_scale"],
            "attention_dropout": told["attn_pdrop"],
            "alibi": slopes(self.n_heads, told["alibi_bias_max"]),
            "net": "ffn",
            "net_kind": "plain",
            "net_names": ("", "up_proj", "down_proj"),
            "act": "gelu",
            "embedding": "wte",
            "stack": "blocks",
            "last_norm": "norm_f",
        }


def slopes(heads: int, most: float) -> tuple[float, ...]:
    """How fast each head's scores fall; of heads up to a power of two every second one comes first.

    >>> votive.models.mpt.slopes(3, 8)
    (0.0625, 0.00390625, 0.25)
    """
    whole = 2 ** math.ceil(math.log2(heads))
    found = [2.0 ** -(i * most / whole) for i in range(1, whole + 1)]
    return tuple(found if whole == heads else (found[1::2] + found[::2])[:heads])


MptModel, MptForCausalLM = decoder_classes("Mpt", MptConfig, prefix="transformer")
