"""What configurations of decoders share: the sizes, rotations and windows, and the design that follows from them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from ..config import Config, rope_of
from .design import Design, Rope

_MOST = 1 << 24  # of what is counted and has no name that says of what


def counted(config: Config, *names: str) -> None:
    """Raise if one of these fields is no count of 1 or more that a model may have; null is another's to judge.

    >>> from votive.models.decoder.config import counted
    >>> counted(votive.models.LlamaConfig(), "hidden_size")
    """
    for name in names:
        value = getattr(config, name)
        if value is not None and not 1 <= value <= _MOST:
            raise ValueError(f"{type(config).__name__}: {name} must be 1 or more and {_MOST:,} at most, got {value:,}.")


@dataclass(kw_only=True)
class DecoderConfig(Config):
    """A configuration that gives a design; families say in `choices` where they differ from a Llama.

    >>> votive.models.LlamaConfig(num_hidden_layers=3).design.layers
    3
    """

    # Other names of fields, which files may have and which can be read.
    aliases: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        field = type(self).aliases.get(name)
        return super().__getattr__(name) if field is None else getattr(self, field)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(type(self).aliases.get(name, name), value)

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        for other, name in cls.aliases.items():
            if other in values:
                values[name] = values.pop(other)
        return values

    def basic(self, inner: int, positions: int) -> dict[str, Any]:
        """The sizes of a decoder whose heads share nothing and split the width evenly."""
        width, heads = self.hidden_size, self.num_attention_heads
        if heads < 1 or width % heads:
            names = type(self).aliases
            raise ValueError(
                f"{type(self).__name__}: {names.get('hidden_size', 'hidden_size')}={width} does not split into "
                f"{names.get('num_attention_heads', 'num_attention_heads')}={heads} heads."
            )
        return {
            "vocabulary": self.vocab_size,
            "width": width,
            "layers": self.num_hidden_layers,
            "heads": heads,
            "shared": heads,
            "head_dim": width // heads,
            "inner": inner,
            "positions": positions,
        }

    @abstractmethod
    def sizes(self) -> dict[str, Any]:
        """The sizes of the design, and what else every family has."""

    def choices(self) -> dict[str, Any]:
        """Fields of the design that are not a Llama's."""
        return {}

    @property
    def design(self) -> Design:
        """What the decoder is made of."""
        return Design(**{**self.sizes(), **self.choices()})


@dataclass(kw_only=True)
class RotaryConfig(DecoderConfig):
    """A decoder's configuration in the words that most families use.

    >>> votive.models.decoder.config.RotaryConfig(hidden_size=64, num_attention_heads=4).head_dim
    16
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    attention_bias: bool = False
    attention_dropout: float | None = 0.0
    sliding_window: int | None = None
    layer_types: list[str] | None = None

    def __post_init__(self) -> None:
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        heads, shared = self.num_attention_heads, self.num_key_value_heads
        if heads < 1 or shared < 1 or heads % shared:
            raise ValueError(
                f"{type(self).__name__}: num_attention_heads={heads} do not share num_key_value_heads={shared} evenly."
            )
        if self.layer_types is not None and len(self.layer_types) < self.num_hidden_layers:
            raise ValueError(
                f"{type(self).__name__}: layer_types names {len(self.layer_types)} of "
                f"num_hidden_layers={self.num_hidden_layers} layers."
            )
        if self.head_dim is None:
            self.head_dim = self.hidden_size // self.num_attention_heads

    # The share of a head's features that is rotated, where files do not say.
    rotated: ClassVar[float] = 1.0
    # Whether files may say it, as `partial_rotary_factor`; None where a part is rotated anyhow.
    rotates_part: ClassVar[bool | None] = None
    # How the rotation is stretched where files do not say.
    stretched: ClassVar[dict[str, Any] | None] = None
    # Keys of the words above that mean nothing in the family.
    unread: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if cls.stretched is not None and not (values.get("rope_parameters") or values.get("rope_scaling")):
            values["rope_parameters"] = dict(cls.stretched)
        values["rope_theta"], values["rope_scaling"] = rope_of(values, cls.rope_theta)
        parameters = values.pop("rope_parameters", None) or {}
        if parameters.get("partial_rotary_factor"):
            values["partial_rotary_factor"] = parameters["partial_rotary_factor"]
        return values

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        if self.layer_types is None:
            # transformers takes a Mistral that has the key at all for a Ministral.
            del values["layer_types"]
        if self.stretched is not None and self.rope_scaling is None:
            values["rope_scaling"] = {"rope_type": "default"}
        return values

    def reads(self, key: str) -> Any:
        """The value of a field, or None if it means nothing in the family."""
        return None if key in self.unread else getattr(self, key)

    all_slide = False  # whether `sliding_window` holds where there are no `layer_types`

    def window_of(self, layer: int) -> int | None:
        """How many last positions a layer sees; None for all."""
        if self.layer_types is not None:
            sliding = self.layer_types[layer] == "sliding_attention"
            return self.sliding_window if sliding else None
        return self.sliding_window if self.all_slide else None

    def rope(self, **changes: Any) -> Rope:
        """The rotation that the fields describe."""
        part = getattr(self, "partial_rotary_factor", self.rotated)
        part = 1.0 if part is None else part
        may = self.rotated != 1.0 if self.rotates_part is None else self.rotates_part
        if part != 1.0 and not may and "features" not in changes:
            raise ValueError(
                f"{type(self).__name__}: partial_rotary_factor={part} is not supported: heads are rotated whole here. "
                "transformers leaves it out."
            )
        return Rope(**{"theta": self.rope_theta, "scaling": self.rope_scaling, "part": part, **changes})

    def sizes(self) -> dict[str, Any]:
        return {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": self.num_hidden_layers,
            "heads": self.num_attention_heads,
            "shared": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "inner": self.intermediate_size,
            "positions": self.max_position_embeddings,
            "qkv_bias": bool(self.reads("attention_bias")),
            "out_bias": bool(self.reads("attention_bias")),
            "attention_dropout": self.attention_dropout or 0.0,
            "windows": ()
            if "sliding_window" in self.unread
            else tuple(map(self.window_of, range(self.num_hidden_layers))),
            "ropes": (self.rope(),),
            "act": self.hidden_act,
        }
