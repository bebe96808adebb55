"""The classes of a family, made from its configuration: the model, alone and with each head. Knows no family."""

from __future__ import annotations

import sys
from typing import Any

from .config import WaveConfig
from .model import WaveForAudioFrameClassification, WaveForCTC, WaveForSequenceClassification, WaveModel

HEADS: dict[str, type] = {
    "ForCTC": WaveForCTC,
    "ForSequenceClassification": WaveForSequenceClassification,
    "ForAudioFrameClassification": WaveForAudioFrameClassification,
}


def wave_classes(
    name: str, config: type[WaveConfig], prefix: str, *, heads: tuple[str, ...] = tuple(HEADS), **attributes: Any
) -> tuple[Any, ...]:
    """`<name>Model` and the model with each of `heads`; `prefix` is what the model is called inside these.

    `attributes` are those of the model's class.

    >>> from votive.models.wave import wave_classes
    >>> MyModel, MyForCTC = wave_classes("My", votive.models.HubertConfig, "hubert", heads=("ForCTC",))
    >>> MyForCTC.__name__, MyForCTC.model_class is MyModel
    ('MyForCTC', True)
    """

    def made(suffix: str, parent: type, **own: Any) -> Any:
        title = (parent.__doc__ or "").strip().split("\n")[0]
        doc = f"{name}: {title[0].lower()}{title[1:]}"
        doc += f"\n\n    >>> votive.models.{name}{suffix}.config_class.model_type\n    {config.model_type!r}\n    "
        own |= {"__doc__": doc, "__module__": config.__module__, "config_class": config, "base_model_prefix": prefix}
        found = type(f"{name}{suffix}", (parent,), own)
        # Found by its name, as pickles of whole models look for it.
        setattr(sys.modules[config.__module__], found.__name__, found)
        return found

    bare = made("Model", WaveModel, **attributes)
    return (bare, *(made(suffix, HEADS[suffix], model_class=bare) for suffix in heads))
