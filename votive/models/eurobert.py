"""EuroBERT, a Llama whose positions see all others. Boizard et al. 2025, arXiv:2503.05500."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .text_encoder import encoder_classes
from .text_encoder.config import RotatedConfig
from .text_encoder.model import PlainEncoder

_POOLINGS = ("bos", "mean", "late")


@dataclass(kw_only=True)
class EuroBertConfig(RotatedConfig):
    """The numbers of a EuroBERT.

    >>> votive.models.EuroBertConfig(num_attention_heads=12, num_key_value_heads=4).design.shared
    4
    """

    model_type = "eurobert"

    vocab_size: int = 128256
    num_key_value_heads: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 128001
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = 128001
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    attention_dropout: float = 0.0
    mlp_bias: bool = False
    head_dim: int | None = None
    mask_token_id: int = 128002
    classifier_pooling: str = "late"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        if self.head_dim is None:
            self.head_dim = self.hidden_size // self.num_attention_heads
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"EuroBertConfig: num_attention_heads={self.num_attention_heads} do not share "
                f"num_key_value_heads={self.num_key_value_heads} evenly."
            )
        if self.classifier_pooling not in _POOLINGS:
            raise ValueError(
                f"EuroBertConfig: classifier_pooling must be one of {', '.join(map(repr, _POOLINGS))}, got "
                f"{self.classifier_pooling!r}."
            )

    def choices(self) -> dict[str, Any]:
        return {
            **super().choices(),
            "shared": self.num_key_value_heads,
            "features": self.head_dim,
            "norm": "rms",
            "eps": self.rms_norm_eps,
            "dropout": 0.0,
            "attention_dropout": self.attention_dropout,
            "embeddings": "",
            "table": "embed_tokens",
            "layer": "flat",
            "holder": "",
            "stack": "layers",
            "pre_norm": True,
            "last_norm": "norm",
            "attention": "self_attn",
            "q": "q_proj",
            "k": "k_proj",
            "v": "v_proj",
            "o": "o_proj",
            "qkv_bias": self.attention_bias,
            "out_bias": self.attention_bias,
            "norms": ("input_layernorm", "post_attention_layernorm"),
            "net_kind": "gated",
            "net_names": ("gate_proj", "up_proj", "down_proj"),
            "net_bias": self.mlp_bias,
            "net_out_bias": self.mlp_bias,
            "pooler": "",
            "pools": False,
        }

    def heads(self) -> dict[str, Any]:
        return {
            "masked": "plain",
            "masked_decoder": "lm_head",
            "masked_bias": self.mlp_bias,
            "classify": "late",
            "pooling": self.classifier_pooling,
            "token_dropout": 0.0,
        }


(EuroBertModel, EuroBertForMaskedLM, EuroBertForSequenceClassification, EuroBertForTokenClassification) = (
    encoder_classes(
        "EuroBert",
        EuroBertConfig,
        "model",
        heads=("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
        base=PlainEncoder,
    )
)
