"""mT5: a T5 v1.1 of many languages. Xue et al. 2020, arXiv:2010.11934."""

from __future__ import annotations

from dataclasses import dataclass

from .t5 import T5Config, T5EncoderModel, T5ForConditionalGeneration, T5Model


@dataclass(kw_only=True)
class MT5Config(T5Config):
    """The numbers of an mT5: a T5 v1.1 of many languages.

    >>> votive.models.MT5Config().scale_decoder_outputs
    False
    """

    model_type = "mt5"

    vocab_size: int = 250112
    d_ff: int = 1024
    num_layers: int = 8
    num_heads: int = 6
    feed_forward_proj: str = "gated-gelu"
    tie_word_embeddings: bool = False

    def __post_init__(self) -> None:
        self.scale_decoder_outputs = False
        super().__post_init__()


class MT5EncoderModel(T5EncoderModel):
    """mT5's encoder alone.

    >>> votive.models.MT5EncoderModel.config_class.model_type
    'mt5'
    """

    config_class = MT5Config


class MT5Model(T5Model):
    """mT5 without a head.

    >>> votive.models.MT5Model.config_class.model_type
    'mt5'
    """

    config_class = MT5Config


class MT5ForConditionalGeneration(T5ForConditionalGeneration):
    """mT5 with its head.

    >>> votive.models.MT5ForConditionalGeneration.config_class.model_type
    'mt5'
    """

    config_class = MT5Config
