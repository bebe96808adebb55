"""Configurations that hold others: of the sides of a model. Knows no tensors."""

from __future__ import annotations

from typing import Any, ClassVar

from .config import Config

# What a side is by default: its class, or a model_type (any may be asked for) and fields where nothing is said.
Side = type[Config] | tuple[str, dict[str, Any]]


class Nested(Config):
    """A configuration some of whose fields are configurations, given as such or as dicts.

    >>> votive.models.SiglipConfig(text_config={"hidden_size": 96}).text_config.hidden_size
    96
    """

    sides: ClassVar[dict[str, Side]] = {}

    def __post_init__(self) -> None:
        inherited = getattr(super(), "__post_init__", None)
        if inherited is not None:
            inherited()
        for name, kind in self.sides.items():
            setattr(self, name, self._side(name, kind))

    def _side(self, name: str, kind: Side) -> Config:
        from .auto import AutoConfig

        given = getattr(self, name)
        if isinstance(given, Config):
            if isinstance(kind, type) and not isinstance(given, kind):
                raise TypeError(
                    f"{type(self).__name__}: {name} must be a {kind.__name__} or a dict, got {type(given).__name__}."
                )
            return given
        if given is not None and not isinstance(given, dict):
            raise TypeError(
                f"{type(self).__name__}: {name} must be a configuration or a dict, got {type(given).__name__}."
            )
        if isinstance(kind, type):
            values = {k: v for k, v in (given or {}).items() if k != "model_type"}
            return kind.from_dict(values)
        model_type, defaults = kind
        return AutoConfig.from_dict({"model_type": model_type, **(defaults if given is None else given)})

    def to_dict(self) -> dict[str, Any]:
        """What config.json holds, the sides as objects in it."""
        return {**super().to_dict(), **{name: getattr(self, name).to_dict() for name in self.sides}}


class MultimodalConfig(Nested):
    """A configuration of a decoder that reads more than text; what `generate` asks for is the decoder's.

    >>> votive.models.LlavaConfig().vocab_size
    32000
    """

    @property
    def vocab_size(self) -> int:
        return self.text_config.vocab_size

    @property
    def hidden_size(self) -> int:
        return self.text_config.hidden_size

    @property
    def num_hidden_layers(self) -> int:
        return self.text_config.num_hidden_layers

    @property
    def num_attention_heads(self) -> int:
        return self.text_config.num_attention_heads

    @property
    def max_position_embeddings(self) -> int:
        return self.text_config.max_position_embeddings

    def window_of(self, layer: int) -> int | None:
        """How many last positions a layer of the decoder sees; None for all."""
        return self.text_config.window_of(layer)
