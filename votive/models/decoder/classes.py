"""The classes of a family, made from its configuration: the decoder and the decoder with each head. Knows no family."""

from __future__ import annotations

import sys
from typing import Any

from .classify import DecoderForSequenceClassification
from .config import DecoderConfig
from .model import Decoder, DecoderForCausalLM


def decoder_classes(
    name: str,
    config: type[DecoderConfig],
    *,
    prefix: str = "model",
    base: type[Decoder] = Decoder,
    head: type[DecoderForCausalLM] = DecoderForCausalLM,
    model: str = "Model",
    causal: str = "ForCausalLM",
    classifier: bool = True,
    **attributes: Any,
) -> tuple[type[Decoder], type[DecoderForCausalLM]]:
    """`<name>Model` and `<name>ForCausalLM`, whose layers are called `<name>DecoderLayer`.

    `<name>ForSequenceClassification` is put beside them if `classifier`.

    `model` and `causal` are other ends of the classes' names; `prefix` is what the decoder is called inside the one
    with a head; `base` and `head` a decoder and one with a head that have methods of their own;
    `attributes` are those of the classes, such as `renames` and `ignored`.

    >>> from votive.models.decoder import decoder_classes
    >>> MyModel, MyForCausalLM = decoder_classes("My", votive.models.LlamaConfig)
    >>> MyForCausalLM.__name__, MyForCausalLM.model_class is MyModel
    ('MyForCausalLM', True)
    """
    kind, design = config.model_type, config().design

    def made(suffix: str, parent: type, doc: str, **own: Any) -> Any:
        if "config_class" in own:
            doc += f"\n\n    >>> {config.__module__}.{name}{suffix}.config_class.model_type\n    {kind!r}\n    "
        own |= {"__doc__": doc, "__module__": config.__module__}
        found = type(f"{name}{suffix}", (parent,), own)
        # Found by its name, as pickles of whole models look for it.
        setattr(sys.modules[config.__module__], found.__name__, found)
        return found

    layer = made("DecoderLayer", base.layer_class, f"A layer of {name}.")
    shared = {"config_class": config, "base_model_prefix": prefix, **attributes}
    bare = made(model, base, f"{name}'s decoder.", layer_class=layer, **shared)
    table = ".".join(part for part in (prefix, design.body, design.embedding, "weight") if part)
    tied = {f"{design.head}.weight": table}
    whole = made(causal, head, f"{name} with a head.", model_class=bare, tied=tied, **shared)
    if classifier:
        config.head_fields = ("id2label", "num_labels", "problem_type")
        # Found in the family's file, where the table of families names it.
        texts = f"{model.removesuffix('Model')}ForSequenceClassification"
        made(texts, DecoderForSequenceClassification, f"{name} that gives a text a class.", model_class=bare, **shared)
    return bare, whole
