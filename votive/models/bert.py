"""BERT, and ERNIE and the encoder of BERT-generation, which are built like it. Devlin et al. 2018, arXiv:1810.04805.

An encoder: every position sees all others; attention and MLP are followed by layer norm. Parameter
names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..tensor import Tensor
from .losses import class_output as class_output
from .output import EncoderOutput
from .text_encoder import EncoderConfig, EncoderModel, encoder_classes
from .text_encoder.classes import HEADS
from .text_encoder.model import PlainEncoder


@dataclass(kw_only=True)
class BertConfig(EncoderConfig):
    """The numbers of a BERT.

    >>> votive.models.BertConfig(id2label={0: "no", 1: "yes", 2: "maybe"}).num_labels
    3
    """

    model_type = "bert"

    type_vocab_size: int = 2
    classifier_dropout: float | None = None
    position_embedding_type: str = "absolute"
    is_decoder: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.position_embedding_type != "absolute":
            raise ValueError(
                f"{type(self).__name__}: position_embedding_type must be 'absolute', got "
                f"{self.position_embedding_type!r}."
            )


(
    BertModel,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertForQuestionAnswering,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForNextSentencePrediction,
) = encoder_classes("Bert", BertConfig, "bert", heads=tuple(HEADS))


@dataclass(kw_only=True)
class ErnieConfig(BertConfig):
    """The numbers of an ERNIE 2 or 3: a BERT that may be told the kind of task. Sun et al. 2019, arXiv:1907.12412.

    >>> votive.models.ErnieConfig(use_task_id=True).design.tasks
    3
    """

    model_type = "ernie"

    task_type_vocab_size: int = 3
    use_task_id: bool = False

    def choices(self) -> dict[str, Any]:
        return {"tasks": self.task_type_vocab_size if self.use_task_id else 0}


class _Ernie(EncoderModel):
    """An encoder that may be told the kind of task."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        task_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        if task_type_ids is not None and not self.design.tasks:
            raise ValueError(f"{type(self).__name__}: it knows no tasks; its configuration must say use_task_id=True.")
        return self.encode(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
            task_type_ids,
        )


(
    ErnieModel,
    ErnieForMaskedLM,
    ErnieForSequenceClassification,
    ErnieForTokenClassification,
    ErnieForQuestionAnswering,
    ErnieForMultipleChoice,
    ErnieForPreTraining,
    ErnieForNextSentencePrediction,
) = encoder_classes("Ernie", ErnieConfig, "ernie", heads=tuple(HEADS), base=_Ernie)


@dataclass(kw_only=True)
class BertGenerationConfig(EncoderConfig):
    """The numbers of a BERT that reads for one that writes: without kinds of text. Rothe et al. 2019, arXiv:1907.12461.

    >>> votive.models.BertGenerationConfig().hidden_size
    1024
    """

    model_type = "bert-generation"

    vocab_size: int = 50358
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 1

    def choices(self) -> dict[str, Any]:
        return {"pooler": "", "pools": False}


(BertGenerationEncoder,) = encoder_classes(
    "BertGeneration", BertGenerationConfig, "bert", heads=(), base=PlainEncoder, model="Encoder"
)
