"""From a configuration to the class that reads it. Users add their own with `register`.

>>> from votive.models import AutoConfig
>>> AutoConfig.from_dict({"model_type": "qwen3", "hidden_size": 64}).hidden_size
64
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .arguments import changed, parse_options
from .auto_table import FAMILIES, SAME, USES
from .checkpoint import Checkpoint
from .config import Config, StrPath
from .loading import FromPretrained
from .pretrained import PreTrainedModel
from .remote_code import brings_code, not_run

Classes = dict[str, tuple[type[PreTrainedModel], ...]]
_ADDED: dict[str, tuple[type[Config], Classes]] = {}


def register(
    model_type: str, config_class: type[Config], *, exist_ok: bool = False, **classes: type[PreTrainedModel]
) -> None:
    """Let a family be found by its `model_type`; `classes` are those of AutoModel's uses.

    >>> class MyConfig(votive.models.LlamaConfig):
    ...     model_type = "mine"
    >>> votive.models.register("mine", MyConfig, causal=votive.models.LlamaForCausalLM)
    >>> type(votive.models.AutoConfig.from_dict({"model_type": "mine"})).__name__
    'MyConfig'
    """
    unknown = sorted(set(classes) - set(USES))
    if unknown:
        raise ValueError(f"register: unknown uses {unknown}; known: {sorted(USES)}.")
    if not exist_ok and (model_type in FAMILIES or model_type in _ADDED):
        raise ValueError(f"register: {model_type!r} is taken; pass exist_ok=True to replace it.")
    _ADDED[model_type] = config_class, {use: (cls,) for use, cls in classes.items()}


def families() -> list[str]:
    """The `model_type`s that are known.

    >>> {"llama", "qwen3"} <= set(votive.models.families())
    True
    """
    return sorted({*FAMILIES, *_ADDED})


def _family(model_type: str | None) -> tuple[type[Config], Classes]:
    """The configuration class of a family and its classes by use."""
    if model_type in _ADDED:
        return _ADDED[model_type]
    model_type = SAME.get(model_type or "", model_type)
    if model_type not in FAMILIES:
        raise ValueError(
            f"unknown model_type {model_type!r}; known: {', '.join(families())}. "
            "Add yours with votive.models.register; code that comes with a model is never run."
        )
    file, config, *uses = FAMILIES[model_type]
    module = import_module(f".{file}", __package__)
    classes = (use.split("=") for use in uses)
    return getattr(module, config), {
        use: tuple(getattr(module, name) for name in names.split("|")) for use, names in classes
    }


class AutoConfig:
    """The configuration that fits a `model_type`.

    >>> votive.models.AutoConfig.from_dict({"model_type": "gpt2", "n_embd": 96}).hidden_size
    96
    """

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Config:
        try:
            kind = _family(values.get("model_type"))[0]
        except ValueError:
            if brings_code(values):
                raise ValueError(not_run(values)) from None
            raise
        # The name chose the class; one that was registered may have another of its own.
        return kind.from_dict({**values, "model_type": kind.model_type})

    @staticmethod
    def from_pretrained(name: StrPath, **options: Any) -> Config:
        """The configuration of a folder, a file, a bundled name or a repository id.

        Options are those of `AutoModel.from_pretrained`; fields that are given replace those of
        the file.
        """
        given = parse_options("AutoConfig.from_pretrained", options)
        config = AutoConfig.from_dict(Checkpoint.find(name, **given.places).config)
        if given.dtype is not None:
            config.dtype = given.dtype
        return changed("AutoConfig.from_pretrained", config, given.changes)


class AutoModel(FromPretrained):
    """The model that fits a checkpoint, without a head.

    >>> config = votive.models.LlamaConfig(vocab_size=8, hidden_size=4, intermediate_size=4,
    ...     num_hidden_layers=1, num_attention_heads=1)
    >>> type(votive.models.AutoModel.from_config(config)).__name__
    'LlamaModel'
    """

    use = "base"

    @classmethod
    def _config_for(cls, values: dict[str, Any]) -> Config:
        return AutoConfig.from_dict(values)

    @classmethod
    def _class_for(cls, model_type: str, architectures: list[str] | None = None) -> type[PreTrainedModel]:
        classes = _family(model_type)[1]
        if cls.use not in classes:
            known = ", ".join(USES[use] for use in classes)
            raise ValueError(f"{cls.__name__}: a {model_type} is no such model; use {known}.")
        found = classes[cls.use]
        return next((c for c in found if c.__name__ in (architectures or [])), found[0])

    @classmethod
    def from_config(cls, config: Config) -> PreTrainedModel:
        """A model with start values."""
        return cls._class_for(config.model_type, config.architectures).from_config(config)


class AutoModelForCausalLM(AutoModel):
    """The model that predicts next tokens.

    >>> config = votive.models.GPT2Config(vocab_size=8, n_embd=4, n_layer=1, n_head=1)
    >>> type(votive.models.AutoModelForCausalLM.from_config(config)).__name__
    'GPT2LMHeadModel'
    """

    use = "causal"


class AutoModelForSeq2SeqLM(AutoModel):
    """The model that turns one text into another.

    >>> config = votive.models.T5Config(
    ...     vocab_size=8, d_model=4, d_ff=4, num_layers=1, num_heads=1)
    >>> type(votive.models.AutoModelForSeq2SeqLM.from_config(config)).__name__
    'T5ForConditionalGeneration'
    """

    use = "seq2seq"


class AutoModelForSpeechSeq2Seq(AutoModel):
    """The model that turns speech into a text.

    >>> config = votive.models.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1,
    ...     decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, pad_token_id=0)
    >>> type(votive.models.AutoModelForSpeechSeq2Seq.from_config(config)).__name__
    'WhisperForConditionalGeneration'
    """

    use = "speech"


class AutoModelForMaskedLM(AutoModel):
    """The model that fills gaps.

    >>> config = votive.models.DistilBertConfig(
    ...     vocab_size=8, dim=4, hidden_dim=4, n_layers=1, n_heads=1)
    >>> type(votive.models.AutoModelForMaskedLM.from_config(config)).__name__
    'DistilBertForMaskedLM'
    """

    use = "masked"


class AutoModelForSequenceClassification(AutoModel):
    """The model that gives a text a class.

    >>> config = votive.models.DistilBertConfig(
    ...     vocab_size=8, dim=4, hidden_dim=4, n_layers=1, n_heads=1)
    >>> type(votive.models.AutoModelForSequenceClassification.from_config(config)).__name__
    'DistilBertForSequenceClassification'
    """

    use = "classify"


class AutoModelForTextEncoding(AutoModel):
    """The part of a model that reads a text: the encoder, or the model without a head.

    >>> config = votive.models.T5Config(
    ...     vocab_size=8, d_model=4, d_ff=4, num_layers=1, num_heads=1)
    >>> type(votive.models.AutoModelForTextEncoding.from_config(config)).__name__
    'T5EncoderModel'
    """

    use = "encoder"

    @classmethod
    def _class_for(cls, model_type: str, architectures: list[str] | None = None) -> type[PreTrainedModel]:
        # An encoder that stands alone is a model without a head.
        alone = "encoder" not in _family(model_type)[1]
        return AutoModel._class_for(model_type) if alone else super()._class_for(model_type)


class AutoModelForImageClassification(AutoModel):
    """The model that gives a picture a class.

    >>> config = votive.models.ViTConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    >>> type(votive.models.AutoModelForImageClassification.from_config(config)).__name__
    'ViTForImageClassification'
    """

    use = "image"


class AutoModelForZeroShotImageClassification(AutoModel):
    """The model that says how well texts describe a picture.

    >>> small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
    ...     "num_attention_heads": 1}
    >>> config = votive.models.CLIPConfig(text_config=small, vision_config=small)
    >>> type(votive.models.AutoModelForZeroShotImageClassification.from_config(config)).__name__
    'CLIPModel'
    """

    use = "zero_shot_image"


class AutoModelForVision2Seq(AutoModel):
    """The model that writes what a picture says.

    >>> votive.models.AutoModelForVision2Seq.use
    'vision2seq'
    """

    use = "vision2seq"
