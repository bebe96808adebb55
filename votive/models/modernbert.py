"""ModernBERT, most of whose layers see only what is near. Warner et al. 2024, arXiv:2412.13663."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .decoder.design import Rope
from .text_encoder import EncoderConfig, encoder_classes
from .text_encoder.model import PlainEncoder

_THETA = {"full_attention": 160000.0, "sliding_attention": 10000.0}


@dataclass(kw_only=True)
class ModernBertConfig(EncoderConfig):
    """The numbers of a ModernBERT.

    >>> config = votive.models.ModernBertConfig()
    >>> config.layer_types[:3], config.design.windows[:2]
    (['full_attention', 'sliding_attention', 'sliding_attention'], (None, 64))
    """

    model_type = "modernbert"

    vocab_size: int = 50368
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    hidden_activation: str = "gelu"
    max_position_embeddings: int = 8192
    initializer_cutoff_factor: float | None = 2.0
    norm_eps: float = 1e-5
    norm_bias: bool = False
    pad_token_id: int | None = 50283
    eos_token_id: int | list[int] | None = 50282
    bos_token_id: int | None = 50281
    cls_token_id: int | None = 50281
    sep_token_id: int | None = 50282
    attention_bias: bool = False
    attention_dropout: float = 0.0
    layer_types: list[str] | None = None
    rope_parameters: dict[str, Any] | None = None
    local_attention: int = 128
    embedding_dropout: float = 0.0
    mlp_bias: bool = False
    mlp_dropout: float = 0.0
    decoder_bias: bool = True
    classifier_pooling: str = "cls"
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    sparse_prediction: bool = False
    sparse_pred_ignore_index: int = -100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer_types is None:
            every = self.extra.get("global_attn_every_n_layers", 3)
            kinds = ("full_attention", "sliding_attention")
            self.layer_types = [kinds[bool(i % every)] for i in range(self.num_hidden_layers)]
        if len(self.layer_types) < self.num_hidden_layers:
            raise ValueError(
                f"ModernBertConfig: layer_types names {len(self.layer_types)} of {self.num_hidden_layers} layers."
            )
        if self.classifier_pooling not in ("cls", "mean"):
            raise ValueError(
                f"ModernBertConfig: classifier_pooling must be 'cls' or 'mean', got {self.classifier_pooling!r}."
            )
        told = self.rope_parameters or {}
        self.rope_parameters = {
            kind: {"rope_type": "default", "rope_theta": theta, **(told.get(kind) or {})}
            for kind, theta in _THETA.items()
        }
        self.rope_of(0)

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        scaling, older = values.pop("rope_scaling", None), {}
        for kind, key in (("full_attention", "global_rope_theta"), ("sliding_attention", "local_rope_theta")):
            base = values.pop(key, None)
            older[kind] = {**({} if base is None else {"rope_theta": base}), **(scaling or {})}
        told = values.get("rope_parameters") or {}
        values["rope_parameters"] = {kind: {**older[kind], **(told.get(kind) or {})} for kind in older}
        return values

    def rope_of(self, which: int) -> Rope:
        """The rotation of layers that see all, and of those that see what is near."""
        assert self.rope_parameters is not None, "filled in"
        options = dict(self.rope_parameters[tuple(_THETA)[which]])
        kind = options.pop("type", None) if options.get("rope_type") is None else options.pop("rope_type")
        theta = options.pop("rope_theta")
        if not (isinstance(theta, int | float) and theta > 0 and math.isfinite(theta)):
            raise ValueError(f"ModernBertConfig: rope_theta must be a finite number above 0, got {theta!r}.")
        scaling = None if kind in (None, "default") else {"rope_type": kind, **options}
        return Rope(theta=float(theta), scaling=scaling, name=("rotary_emb", "local_rotary_emb")[which])

    def choices(self) -> dict[str, Any]:
        assert self.layer_types is not None, "filled in"
        near = [kind == "sliding_attention" for kind in self.layer_types[: self.num_hidden_layers]]
        return {
            "act": self.hidden_activation,
            "norm": "layer" if self.norm_bias else "layer unbiased",
            "eps": self.norm_eps,
            "dropout": 0.0,
            "attention_dropout": self.attention_dropout,
            "table": "tok_embeddings",
            "embedding_norm": "norm",
            "embedding_dropout": self.embedding_dropout,
            "places": "",
            "layer": "flat",
            "holder": "",
            "stack": "layers",
            "pre_norm": True,
            "skips_first_norm": True,
            "last_norm": "final_norm",
            "attention": "attn",
            "fused": "Wqkv",
            "o": "Wo",
            "qkv_bias": self.attention_bias,
            "out_bias": self.attention_bias,
            "out_dropout": self.attention_dropout,
            "norms": ("attn_norm", "mlp_norm"),
            "ropes": (self.rope_of(0), self.rope_of(1)),
            "rope_of": tuple(map(int, near)),
            "windows": tuple(self.local_attention // 2 if one else None for one in near),
            "net_kind": "fused",
            "net_names": ("", "Wi", "Wo"),
            "net_bias": self.mlp_bias,
            "net_out_bias": self.mlp_bias,
            "net_dropout": self.mlp_dropout,
            "pooler": "",
            "pools": False,
        }

    def heads(self) -> dict[str, Any]:
        return {
            "masked": "apart",
            "masked_name": "head",
            "masked_bias": self.decoder_bias,
            "masked_dense_bias": self.classifier_bias,
            "only_labeled": self.sparse_pred_ignore_index if self.sparse_prediction else None,
            "classify": "head",
            "classify_act": self.classifier_activation,
            "pooling": self.classifier_pooling,
            "dropout": self.classifier_dropout,
        }


(
    ModernBertModel,
    ModernBertForMaskedLM,
    ModernBertForSequenceClassification,
    ModernBertForTokenClassification,
    ModernBertForQuestionAnswering,
    ModernBertForMultipleChoice,
) = encoder_classes("ModernBert", ModernBertConfig, "model", base=PlainEncoder)
