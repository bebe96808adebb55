"""The classes of a family, made from its configuration: the model, alone and with each head. Knows no family."""

from __future__ import annotations

import sys
from typing import Any

from .causal import Seq2SeqForCausalLM
from .config import Seq2SeqConfig
from .heads import Seq2SeqForQuestionAnswering, Seq2SeqForSequenceClassification
from .model import Seq2SeqForConditionalGeneration, Seq2SeqModel

HEADS: dict[str, type] = {
    "ForConditionalGeneration": Seq2SeqForConditionalGeneration,
    "ForCausalLM": Seq2SeqForCausalLM,
    "ForSequenceClassification": Seq2SeqForSequenceClassification,
    "ForQuestionAnswering": Seq2SeqForQuestionAnswering,
}
EVERY = tuple(HEADS)


def seq2seq_classes(
    name: str,
    config: type[Seq2SeqConfig],
    *,
    heads: tuple[str, ...] = EVERY,
    writes: str = "ForConditionalGeneration",
    **attributes: Any,
) -> tuple[Any, ...]:
    """`<name>Model` and the model with each of `heads`; `writes` is another end of the name of the one that writes.

    `attributes` are those of the classes, such as `renames`.

    >>> from votive.models.encoder_decoder import seq2seq_classes
    >>> MyModel, MyWriter = seq2seq_classes("My", votive.models.BartConfig, heads=("ForConditionalGeneration",))
    >>> MyWriter.__name__, MyWriter.model_class is MyModel
    ('MyForConditionalGeneration', True)
    """
    kind = config.model_type
    # Computed positions are no weights, although some files hold them.
    computed = () if config().design.places == "learned" else (r"embed_positions\.weights?$",)

    def made(suffix: str, parent: type, **own: Any) -> Any:
        title = (parent.__doc__ or "").strip().split("\n")[0]
        doc = f"{name}: {title[0].lower()}{title[1:]}"
        doc += f"\n\n    >>> votive.models.{name}{suffix}.config_class.model_type\n    {kind!r}\n    "
        ignored = (*parent.ignored, *computed, *attributes.get("ignored", ()))  # type: ignore[attr-defined]
        own = {"__doc__": doc, "__module__": config.__module__, "config_class": config, **own}
        found = type(f"{name}{suffix}", (parent,), {**attributes, **own, "ignored": ignored})
        # Found by its name, as pickles of whole models look for it.
        setattr(sys.modules[config.__module__], found.__name__, found)
        return found

    bare = made("Model", Seq2SeqModel)
    out = [bare]
    for suffix in heads:
        parent = HEADS[suffix]
        end = writes if suffix == "ForConditionalGeneration" else suffix
        own = {} if parent is Seq2SeqForCausalLM else {"model_class": bare}
        out.append(made(end, parent, **own))
    return tuple(out)
