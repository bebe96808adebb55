"""T5's other heads: classes of texts, classes of positions, and where answers are; and the classes of its likes."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from votive import nn

from ..tensor import Tensor
from .encoder_decoder.heads import ClassificationHead
from .losses import class_loss, span_loss, span_scores, token_output
from .output import PredictionOutput, Seq2SeqQuestionAnsweringModelOutput, Seq2SeqSequenceClassifierOutput
from .seq2seq import last_of
from .t5 import T5Base, T5Config, T5EncoderModel, T5ForConditionalGeneration, T5Model


def _rest(found: Any) -> dict[str, Any]:
    """All of a model's answer but its last state."""
    return {name: value for name, value in found.items() if name != "last_hidden_state"}


class T5ForSequenceClassification(T5Base):
    """T5 with a head that gives a text a class, by what the decoder says at the text's end.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> votive.models.T5ForSequenceClassification(config)(votive.tensor([[3, 4, 1]])).logits.shape
    votive.Size([1, 2])
    """

    model_class: ClassVar[type[T5Model]] = T5Model
    ignored = (*T5Base.ignored, r"^lm_head\.")

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.transformer = self.model_class(config)
        self.classification_head = ClassificationHead(config.d_model, config.label_count, config.classifier_dropout)
        self.post_init()

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if isinstance(module, ClassificationHead):
            _start(module, self.config.initializer_factor * self.config.d_model**-0.5)

    def glass_parts(self) -> dict[str, Any]:
        """Those of the model below the head."""
        return self.transformer.glass_parts()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings, shared by encoder and decoder."""
        return self.transformer.shared

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> Seq2SeqSequenceClassifierOutput:
        """As the model, and `labels`: classes (batch,), or values per class. Texts end with the same number of ends."""
        if input_ids is None:
            raise NotImplementedError(
                f"{type(self).__name__}: it looks for the ends of texts in input_ids, which must be given."
            )
        _reads_source(self, input_ids, args, kwargs)
        found = self.transformer(input_ids, *args, **kwargs)
        logits = self.classification_head(last_of(found.last_hidden_state, input_ids, self.config.eos_token_id))
        loss = None if labels is None else class_loss(logits, labels, self.config)
        return Seq2SeqSequenceClassifierOutput(loss=loss, logits=logits, **_rest(found))


class T5ForTokenClassification(T5Base):
    """T5's encoder with a head that gives each position a class.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> votive.models.T5ForTokenClassification(config)(votive.tensor([[3, 4, 1]])).logits.shape
    votive.Size([1, 3, 2])
    """

    model_class: ClassVar[type[T5EncoderModel]] = T5EncoderModel
    ignored = (*T5Base.ignored, r"^(transformer\.)?decoder\.", r"^lm_head\.")

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.transformer = self.model_class(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, config.label_count)
        self.post_init()

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if module is self:
            _start(self.classifier, self.config.initializer_factor)

    def glass_parts(self) -> dict[str, Any]:
        """Those of the encoder below the head."""
        return self.transformer.glass_parts()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.transformer.shared

    def forward(self, *args: Any, labels: Tensor | None = None, **kwargs: Any) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch, positions), -100 where none."""
        found = self.transformer(*args, **kwargs)
        return token_output(self.classifier(self.dropout(found.last_hidden_state)), labels, found)


class T5ForQuestionAnswering(T5Model):
    """T5 with a head that finds where in a text an answer begins and ends.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> votive.models.T5ForQuestionAnswering(config)(votive.tensor([[3, 4, 1]])).start_logits.shape
    votive.Size([1, 3])
    """

    ignored = (*T5Base.ignored, r"^lm_head\.")

    def add_head(self, config: T5Config) -> None:
        config.num_labels = 2  # a beginning and an end
        self.qa_outputs = nn.Linear(config.d_model, 2)

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if module is self:
            _start(self.qa_outputs, self.config.initializer_factor * self.config.d_model**-0.5)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        *args: Any,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **kwargs: Any,
    ) -> Seq2SeqQuestionAnsweringModelOutput:
        """As the model, and where answers begin and end, (batch,) each."""
        _reads_source(self, input_ids, args, kwargs)
        found = super().forward(input_ids, *args, **kwargs)
        start, end = span_scores(self.qa_outputs(found.last_hidden_state))
        loss = span_loss(start, end, start_positions, end_positions)
        return Seq2SeqQuestionAnsweringModelOutput(loss=loss, start_logits=start, end_logits=end, **_rest(found))


def _start(part: nn.Module, std: float) -> None:
    for name, p in part.named_parameters():
        nn.init.normal_(p, std=std) if name.endswith("weight") else nn.init.zeros_(p)


def _reads_source(model: T5Base, ids: Tensor | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Without ids of its own, the decoder reads the encoder's, shifted."""
    given = kwargs.get("decoder_input_ids"), kwargs.get("decoder_inputs_embeds")
    if len(args) < 2 and given == (None, None) and ids is not None:
        kwargs["decoder_input_ids"] = model.shifted(ids)


_PARENTS: tuple[type[T5Base], ...] = (
    T5EncoderModel, T5Model, T5ForConditionalGeneration, T5ForSequenceClassification, T5ForTokenClassification,
    T5ForQuestionAnswering,
)  # fmt: skip


def t5_classes(name: str, config: type[T5Config]) -> tuple[Any, ...]:
    """A family's encoder, model, and model with each head that T5 has, in this order.

    >>> from votive.models.t5_heads import t5_classes
    >>> [made.__name__ for made in t5_classes("My", votive.models.T5Config)][:3]
    ['MyEncoderModel', 'MyModel', 'MyForConditionalGeneration']
    """
    made: dict[type, Any] = {}
    for parent in _PARENTS:
        suffix, title = parent.__name__.removeprefix("T5"), (parent.__doc__ or "").split("\n")[0]
        doc = f"{name}{title.removeprefix('T5')}\n\n    >>> votive.models.{name}{suffix}.config_class.model_type\n"
        doc += f"    {config.model_type!r}\n    "
        own: dict[str, Any] = {"__doc__": doc, "__module__": config.__module__, "config_class": config}
        if hasattr(parent, "model_class"):
            own["model_class"] = made[parent.model_class]
        made[parent] = type(name + suffix, (parent,), own)
        # Found by its name, as pickles of whole models look for it.
        setattr(sys.modules[config.__module__], name + suffix, made[parent])
    return tuple(made.values())
