"""DeBERTa and its second and third version, whose scores know distances. He et al., arXiv:2006.03654, 2111.09543."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .activations import activation
from .text_encoder import EncoderConfig, encoder_classes

# Not in all files; written where there is a value.
_SPARSE = (
    "embedding_size",
    "attention_head_size",
    "pooler_hidden_size",
    "cls_dropout",
    "conv_kernel_size",
    "position_buckets",
)


@dataclass(kw_only=True)
class DebertaConfig(EncoderConfig):
    """The numbers of a DeBERTa.

    >>> votive.models.DebertaConfig(relative_attention=True, pos_att_type="c2p|p2c").pos_att_type
    ['c2p', 'p2c']
    """

    model_type = "deberta"

    vocab_size: int = 50265
    layer_norm_eps: float = 1e-7
    type_vocab_size: int = 0
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_biased_input: bool = True
    pos_att_type: str | list[str] | None = None
    pooler_dropout: float = 0.0
    pooler_hidden_act: str = "gelu"
    pooler_hidden_size: int | None = None
    cls_dropout: float | None = None
    embedding_size: int | None = None
    legacy: bool = True

    first: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.pos_att_type, str):
            self.pos_att_type = [part.strip() for part in self.pos_att_type.lower().split("|")]
        if self.pooler_hidden_size not in (None, self.hidden_size):
            raise ValueError(
                f"{type(self).__name__}: pooler_hidden_size={self.pooler_hidden_size} must be hidden_size="
                f"{self.hidden_size}, whose features the pooler reads."
            )
        if getattr(self, "talking_head", False):
            raise ValueError(f"{type(self).__name__}: talking_head=True is not supported; no released model has it.")

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        for name in _SPARSE:
            # Below one means none.
            if isinstance(values.get(name), int) and name != "cls_dropout" and values[name] < 1:
                del values[name]
        return values

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name not in _SPARSE or value is not None}

    def relative(self) -> dict[str, Any]:
        """What attention needs to know of distances."""
        kinds = list(self.pos_att_type or [])
        furthest = self.max_relative_positions
        reach = (furthest if furthest > 0 else self.max_position_embeddings) if self.relative_attention else 0
        return {
            "first": self.first,
            "kinds": kinds if self.relative_attention else [],
            "parts": 1 + len(kinds),
            "share": False,
            "reach": reach,
            "buckets": 0,
            "normed": False,
        }

    def choices(self) -> dict[str, Any]:
        return {
            "narrow": self.embedding_size,
            "project": "embeddings.embed_proj",
            "project_bias": False,
            "places": "absolute" if self.position_biased_input else "",
            "silences_padding": True,
            "relative": self.relative(),
            "pooler": "",
            "pools": False,
        }

    def heads(self) -> dict[str, Any]:
        return {
            **({} if self.legacy else {"masked": "shared", "masked_name": "lm_predictions"}),
            "classify": "context",
            "classify_act": self.pooler_hidden_act,
            "net_dropout": self.pooler_dropout,
            "dropout": self.hidden_dropout_prob if self.cls_dropout is None else self.cls_dropout,
            "token_dropout": self.hidden_dropout_prob,
            "soft_labels": True,
        }


# In files also where positions are known by distances alone.
_IGNORED = (r"embeddings\.position_embeddings(\.|$)", r"^mask_predictions\.")
(
    DebertaModel,
    DebertaForMaskedLM,
    DebertaForSequenceClassification,
    DebertaForTokenClassification,
    DebertaForQuestionAnswering,
) = encoder_classes(
    "Deberta",
    DebertaConfig,
    "deberta",
    heads=("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
)


@dataclass(kw_only=True)
class DebertaV2Config(DebertaConfig):
    """The numbers of a DeBERTa of the second or third version.

    >>> votive.models.DebertaV2Config(relative_attention=True, position_buckets=8).relative()["buckets"]
    8
    """

    model_type = "deberta-v2"

    vocab_size: int = 128100
    hidden_size: int = 1536
    num_hidden_layers: int = 24
    num_attention_heads: int = 24
    intermediate_size: int = 6144
    position_buckets: int | None = None
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    attention_head_size: int | None = None
    conv_kernel_size: int | None = None
    conv_groups: int = 1
    conv_act: str = "tanh"

    first: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        reach, buckets = self.relative()["reach"], self.relative()["buckets"]
        if buckets and reach <= buckets // 2 + 1:
            raise ValueError(
                f"DebertaV2Config: the furthest distance must be more than half of position_buckets={buckets} and one, "
                f"got {reach}; set max_relative_positions or position_buckets."
            )

    def relative(self) -> dict[str, Any]:
        kinds = self.pos_att_type or []
        return {
            **super().relative(),
            "parts": 1 + ("c2p" in kinds) + ("p2c" in kinds),
            "share": self.share_att_key,
            "buckets": (self.position_buckets or 0) if self.relative_attention else 0,
            "normed": "layer_norm" in [part.strip() for part in self.norm_rel_ebd.lower().split("|")],
        }

    def choices(self) -> dict[str, Any]:
        found = {**super().choices(), "features": self.attention_head_size}
        if self.conv_kernel_size:
            act = activation(self.conv_act)
            found["convolution"] = {"size": self.conv_kernel_size, "groups": self.conv_groups, "act": act}
        return found


(
    DebertaV2Model,
    DebertaV2ForMaskedLM,
    DebertaV2ForSequenceClassification,
    DebertaV2ForTokenClassification,
    DebertaV2ForQuestionAnswering,
    DebertaV2ForMultipleChoice,
) = encoder_classes("DebertaV2", DebertaV2Config, "deberta")
