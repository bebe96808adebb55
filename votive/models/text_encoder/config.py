"""What configurations of encoders share: the sizes by their usual names, and their design. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..config import LabeledConfig, rope_of
from ..decoder.design import Rope
from .design import EncoderDesign, Heads


@dataclass(kw_only=True)
class EncoderConfig(LabeledConfig):
    """A configuration in the words of BERT; families say in `choices` and `heads` where they differ.

    >>> votive.models.BertConfig(num_hidden_layers=3).design.layers
    3
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{type(self).__name__}: hidden_size={self.hidden_size} does not split into "
                f"num_attention_heads={self.num_attention_heads}."
            )
        for name in ("is_decoder", "add_cross_attention"):
            if getattr(self, name, False):
                raise ValueError(
                    f"{type(self).__name__}: {name}=True is not supported: here it is an encoder, whose positions see "
                    "all others. Set it to false."
                )

    def choices(self) -> dict[str, Any]:
        """Fields of the design that are not a BERT's."""
        return {}

    def heads(self) -> dict[str, Any]:
        """Fields of the heads that are not a BERT's."""
        return {}

    @property
    def classifier_rate(self) -> float:
        """The dropout before classifiers: `classifier_dropout`, by default that of the layers."""
        told = getattr(self, "classifier_dropout", None)
        return self.hidden_dropout_prob if told is None else told

    @property
    def design(self) -> EncoderDesign:
        """What the encoder is made of."""
        head = {"dropout": self.classifier_rate, **self.heads()}
        sizes = {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": self.num_hidden_layers,
            "heads": self.num_attention_heads,
            "inner": self.intermediate_size,
            "positions": self.max_position_embeddings,
            "act": self.hidden_act,
            "padding": self.pad_token_id,
            "eps": self.layer_norm_eps,
            "dropout": self.hidden_dropout_prob,
            "attention_dropout": self.attention_probs_dropout_prob,
            "kinds": getattr(self, "type_vocab_size", 0),
        }
        return EncoderDesign(**{**sizes, **self.choices(), "head": Heads(**head)})


@dataclass(kw_only=True)
class RotatedConfig(EncoderConfig):
    """An encoder's configuration whose positions are rotations.

    >>> votive.models.NomicBertConfig(rope_theta=1e6).design.ropes[0].theta
    1000000.0
    """

    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        values["rope_theta"], values["rope_scaling"] = rope_of(values, cls.rope_theta)
        values.pop("rope_parameters", None)
        return values

    def choices(self) -> dict[str, Any]:
        return {"places": "", "ropes": (Rope(theta=self.rope_theta, scaling=self.rope_scaling),)}
