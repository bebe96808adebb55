"""BART, an encoder and a decoder that mend texts, and PLBART and MVP, which are built alike. arXiv:1910.13461."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .encoder_decoder import Seq2SeqConfig, seq2seq_classes


@dataclass(kw_only=True)
class BartConfig(Seq2SeqConfig):
    """The numbers of a BART.

    >>> votive.models.BartConfig(d_model=64).design.reads_source
    True
    """

    model_type = "bart"
    classes = 3

    decoder_start_token_id: int | None = 2
    forced_eos_token_id: int | list[int] | None = 2

    def choices(self) -> dict[str, Any]:
        return {"reads_source": True}


BartModel, BartForConditionalGeneration, BartForCausalLM, BartForSequenceClassification, BartForQuestionAnswering = (
    seq2seq_classes("Bart", BartConfig)
)


@dataclass(kw_only=True)
class PLBartConfig(Seq2SeqConfig):
    """The numbers of a PLBART: programs and their descriptions. Ahmad et al. 2021, arXiv:2103.06333.

    >>> votive.models.PLBartConfig().design.start
    'last'
    """

    model_type = "plbart"

    vocab_size: int = 50005
    encoder_layers: int = 6
    encoder_ffn_dim: int = 3072
    encoder_attention_heads: int = 12
    decoder_layers: int = 6
    decoder_ffn_dim: int = 3072
    decoder_attention_heads: int = 12
    d_model: int = 768
    attention_dropout: float = 0.1
    scale_embedding: bool = True
    forced_eos_token_id: int | list[int] | None = 2

    def choices(self) -> dict[str, Any]:
        return {"reads_source": True, "start": "last"}


PLBartModel, PLBartForConditionalGeneration, PLBartForCausalLM, PLBartForSequenceClassification = seq2seq_classes(
    "PLBart", PLBartConfig, heads=("ForConditionalGeneration", "ForCausalLM", "ForSequenceClassification")
)


@dataclass(kw_only=True)
class MvpConfig(Seq2SeqConfig):
    """The numbers of an MVP, a BART trained on many tasks. Tang et al. 2022, arXiv:2206.12131.

    >>> votive.models.MvpConfig().label_count
    2
    """

    model_type = "mvp"

    vocab_size: int = 50267
    decoder_start_token_id: int | None = 2
    use_prompt: bool = False
    prompt_length: int = 100
    prompt_mid_dim: int = 800

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_prompt:
            raise ValueError(
                "MvpConfig: use_prompt=True, which tunes prompts of each layer alone, is not supported; set it to "
                "False, and put an adapter on the model with add_adapter(PrefixTuningConfig(...))."
            )

    def choices(self) -> dict[str, Any]:
        return {"reads_source": True}


MvpModel, MvpForConditionalGeneration, MvpForCausalLM, MvpForSequenceClassification, MvpForQuestionAnswering = (
    seq2seq_classes("Mvp", MvpConfig)
)
