"""The classes of a family, made from its configuration: the encoder, alone and with each head. Knows no family."""

from __future__ import annotations

import sys
from typing import Any

from .design import Heads
from .heads import (
    EncoderForMultipleChoice,
    EncoderForQuestionAnswering,
    EncoderForSequenceClassification,
    EncoderForTokenClassification,
)
from .masked import EncoderForMaskedLM, EncoderForNextSentencePrediction, EncoderForPreTraining, tied_words
from .model import EncoderBase, EncoderModel

HEADS: dict[str, type] = {
    "ForMaskedLM": EncoderForMaskedLM,
    "ForSequenceClassification": EncoderForSequenceClassification,
    "ForTokenClassification": EncoderForTokenClassification,
    "ForQuestionAnswering": EncoderForQuestionAnswering,
    "ForMultipleChoice": EncoderForMultipleChoice,
    "ForPreTraining": EncoderForPreTraining,
    "ForNextSentencePrediction": EncoderForNextSentencePrediction,
}
COMMON = tuple(HEADS)[:5]


def encoder_classes(
    name: str,
    config: type[Any],
    prefix: str,
    *,
    heads: tuple[str, ...] = COMMON,
    base: type[EncoderModel] = EncoderModel,
    mixin: type[EncoderBase] | None = None,
    model: str = "Model",
    **attributes: Any,
) -> tuple[Any, ...]:
    """`<name>Model` and the model with each of `heads`; `prefix` is what the encoder is called inside these.

    `base` is an encoder with methods of its own, `mixin` has methods of all classes; `attributes` are those of the
    classes, such as `renames`.

    >>> from votive.models.text_encoder import encoder_classes
    >>> MyModel, MyForMaskedLM = encoder_classes("My", votive.models.BertConfig, "bert", heads=("ForMaskedLM",))
    >>> MyForMaskedLM.__name__, MyForMaskedLM.model_class is MyModel
    ('MyForMaskedLM', True)
    """
    kind, design = config.model_type, config().design

    def made(suffix: str, parent: type, **own: Any) -> Any:
        title = (parent.__doc__ or "").strip().split("\n")[0].replace("An encoder", name)
        doc = f"{title}\n\n    >>> votive.models.{name}{suffix}.config_class.model_type\n    {kind!r}\n    "
        own = {"__doc__": doc, "__module__": config.__module__, "config_class": config, **own}
        bases = (parent,) if mixin is None else (mixin, parent)
        found = type(f"{name}{suffix}", bases, {"base_model_prefix": prefix, **attributes, **own})
        # Found by its name, as pickles of whole models look for it.
        setattr(sys.modules[config.__module__], found.__name__, found)
        return found

    bare = made(model, base)
    out = [bare]
    for suffix in heads:
        parent = HEADS[suffix]
        own: dict[str, Any] = {"model_class": bare}
        if suffix in ("ForMaskedLM", "ForPreTraining"):
            own["tied"] = tied_words(prefix, design)
        own["ignored"] = (*base.ignored, *attributes.get("ignored", ()), *_left(suffix, design.head))
        out.append(made(suffix, parent, **own))
    return tuple(out)


def _left(suffix: str, head: Heads) -> tuple[str, ...]:
    """Names in files that a head does not read: the encoder's pooler, and other heads of training."""
    kinds = {"ForSequenceClassification": head.classify, "ForMultipleChoice": head.choose or head.classify}
    if suffix in ("ForPreTraining", "ForNextSentencePrediction") or kinds.get(suffix) in ("pooled", "context"):
        return ()
    pooler = (r"\bpooler\.",)
    return (*pooler, r"^cls\.seq_relationship\.", r"^sop_classifier\.") if suffix == "ForMaskedLM" else pooler
