"""NomicBERT, GTE and Jina's third embeddings: encoders with rotations. arXiv:2402.01613, 2407.19669, 2409.10173."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..io.source import WeightSource
from .text_encoder import encoder_classes
from .text_encoder.config import RotatedConfig
from .text_encoder.model import EncoderBase
from .text_encoder.split import Split

_FLAT: dict[str, Any] = {
    "layer": "flat",
    "holder": "",
    "stack": "layers",
    "attention": "self_attn",
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "o": "o_proj",
    "norms": ("post_attention_layernorm", "post_mlp_layernorm"),
}
_GATED = {"net_kind": "gated", "net_names": ("gate_proj", "up_proj", "down_proj"), "net_bias": False}


@dataclass(kw_only=True)
class NomicBertConfig(RotatedConfig):
    """The numbers of a NomicBERT.

    >>> votive.models.NomicBertConfig().rope_theta
    1000.0
    """

    model_type = "nomic_bert"

    vocab_size: int = 30528
    hidden_act: str = "silu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 2048
    type_vocab_size: int = 2
    classifier_dropout: float | None = None
    head_dim: int | None = None
    rope_theta: float = 1000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None:
            self.head_dim = self.hidden_size // self.num_attention_heads

    def choices(self) -> dict[str, Any]:
        own = {"features": self.head_dim, "qkv_bias": False, "out_bias": False, "net_out_bias": False, "pools": False}
        return {**super().choices(), **_FLAT, **_GATED, **own}

    def heads(self) -> dict[str, Any]:
        return {"masked_norm": "layer_norm"}


_PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


class _Nomic(EncoderBase):
    """The first files have one product for queries, keys and values."""

    def adapted(self, source: WeightSource) -> WeightSource:
        renames = {
            r"encoder\.layers": "layers",
            "emb_ln": "embeddings.LayerNorm",
            r"attn\.out_proj": "self_attn.o_proj",
            "fc11": "up_proj",
            "fc12": "gate_proj",
            "fc2": "down_proj",
            "norm1": "post_attention_layernorm",
            "norm2": "post_mlp_layernorm",
        }
        return super().adapted(Split(source, renames, {"attn.Wqkv": _PARTS}))


_HEADS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
(NomicBertModel, NomicBertForMaskedLM, NomicBertForSequenceClassification, NomicBertForTokenClassification) = (
    encoder_classes("NomicBert", NomicBertConfig, "nomic_bert", heads=_HEADS, mixin=_Nomic)
)


@dataclass(kw_only=True)
class GteConfig(RotatedConfig):
    """The numbers of a GTE.

    >>> votive.models.GteConfig().rope_theta
    160000.0
    """

    model_type = "gte"

    vocab_size: int = 250048
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 8192
    type_vocab_size: int = 1
    pad_token_id: int | None = 1
    classifier_dropout: float | None = None
    rope_theta: float = 160000.0

    def choices(self) -> dict[str, Any]:
        own = {"net_out_bias": True, "net_dropout": self.hidden_dropout_prob, "pools": False}
        return {**super().choices(), **_FLAT, **_GATED, **own}

    def heads(self) -> dict[str, Any]:
        return {
            "masked": "flat",
            "masked_name": "lm_head",
            "masked_norm": "layer_norm",
            "masked_act": "gelu",
            "shared_bias": False,
        }


class _Gte(EncoderBase):
    """The first files have one product for queries, keys and values, and one for gates and neurons."""

    def adapted(self, source: WeightSource) -> WeightSource:
        renames = {
            r"^new\.": "gte.",
            r"encoder\.layer\.": "layers.",
            r"attention\.o_proj": "self_attn.o_proj",
            "attn_ln": "post_attention_layernorm",
            "mlp_ln": "post_mlp_layernorm",
            r"lm_head\.norm": "lm_head.layer_norm",
        }
        cuts = {"attention.qkv_proj": _PARTS, "mlp.up_gate_proj": ("mlp.up_proj", "mlp.gate_proj")}
        return super().adapted(Split(source, renames, cuts))


(GteModel, GteForMaskedLM, GteForSequenceClassification, GteForTokenClassification) = encoder_classes(
    "Gte", GteConfig, "gte", heads=_HEADS, mixin=_Gte
)


@dataclass(kw_only=True)
class JinaEmbeddingsV3Config(RotatedConfig):
    """The numbers of Jina's third embeddings: an XLM-RoBERTa with rotations.

    >>> votive.models.JinaEmbeddingsV3Config().rope_theta
    20000.0
    """

    model_type = "jina_embeddings_v3"

    vocab_size: int = 250002
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    max_position_embeddings: int = 8194
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2
    classifier_dropout: float | None = None
    rope_theta: float = 20000.0

    def choices(self) -> dict[str, Any]:
        return {**super().choices(), **_FLAT}

    def heads(self) -> dict[str, Any]:
        return {
            "masked": "flat",
            "masked_name": "lm_head",
            "masked_norm": "layer_norm",
            "masked_act": "gelu",
            "classify": "net",
        }


class _Jina(EncoderBase):
    """The first files have one product for queries, keys and values."""

    def adapted(self, source: WeightSource) -> WeightSource:
        renames = {
            "emb_ln": "embeddings.LayerNorm",
            r"encoder\.layers": "layers",
            r"mixer\.out_proj": "self_attn.o_proj",
            "norm1": "post_attention_layernorm",
            "norm2": "post_mlp_layernorm",
        }
        return super().adapted(Split(source, renames, {"mixer.Wqkv": _PARTS}))


(
    JinaEmbeddingsV3Model,
    JinaEmbeddingsV3ForMaskedLM,
    JinaEmbeddingsV3ForSequenceClassification,
    JinaEmbeddingsV3ForTokenClassification,
    JinaEmbeddingsV3ForQuestionAnswering,
) = encoder_classes(
    "JinaEmbeddingsV3", JinaEmbeddingsV3Config, "roberta", heads=(*_HEADS, "ForQuestionAnswering"), mixin=_Jina
)
