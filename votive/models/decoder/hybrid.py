"""What configurations of decoders share whose layers are not all attention. Knows no family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..config import Config
from .config import DecoderConfig, counted
from .scan import BLOCK
from .state_space import StateSpace

# Names of layers in older files.
_OLDER = {"mamba": "linear_attention", "attention": "full_attention"}
KINDS = ("linear_attention", "full_attention")


def needed(config: Config, *names: str) -> None:
    """Raise if one of these fields is null, with which no model can be made.

    >>> from votive.models.decoder.hybrid import needed
    >>> needed(votive.models.LlamaConfig(), "hidden_size")
    """
    for name in names:
        if getattr(config, name) is None:
            raise ValueError(f"{type(config).__name__}: no model can be made with {name} of null.")


def step_limit(config: Any) -> tuple[float, float]:
    """Between which numbers step sizes stay, as `time_step_limit` says it.

    >>> from votive.models.decoder.hybrid import step_limit
    >>> step_limit(votive.models.Mamba2Config(time_step_limit=[0.0, 2.0]))
    (0.0, 2.0)
    """
    told = config.time_step_limit
    if len(told) != 2 or not told[0] <= told[1]:
        raise ValueError(
            f"{type(config).__name__}: time_step_limit must be two numbers, the lower one first, got {told}."
        )
    return float(told[0]), float(told[1])


def newer(kinds: object) -> Any:
    """Types of layers by their present names.

    >>> from votive.models.decoder.hybrid import newer
    >>> newer(["mamba", "attention"])
    ['linear_attention', 'full_attention']
    """
    if not isinstance(kinds, Sequence) or isinstance(kinds, str):
        return kinds
    return [_OLDER.get(kind, kind) for kind in kinds]


def followed(cls: type[DecoderConfig], values: dict[str, Any], *names: str) -> None:
    """Take keys away that say what follows from others; raise where they say something else.

    >>> from votive.models.decoder.hybrid import followed
    >>> told = {"layer_types": None}
    >>> followed(votive.models.LlamaConfig, told, "layer_types")
    >>> told
    {}
    """
    for name in names:
        if name not in values:
            continue
        told = newer(values.pop(name))
        if told is not None and told != (own := cls.from_dict(dict(values)).kinds()):
            raise ValueError(f"{cls.__name__}: {name} follows from other keys, which say {own}, got {told}.")


@dataclass(kw_only=True)
class Mamba2Fields(DecoderConfig):
    """The numbers of a Mamba 2 beside other layers."""

    mamba_n_heads: int | None = 128
    mamba_d_head: int | str | None = "auto"
    mamba_n_groups: int | None = 1
    mamba_d_state: int | None = 256
    mamba_d_conv: int | None = 4
    mamba_expand: int | None = 2
    mamba_chunk_size: int | None = 256
    mamba_conv_bias: bool | None = True
    mamba_proj_bias: bool | None = False
    time_step_limit: list[float] | None = field(default_factory=lambda: [0.0, math.inf])

    layer_kinds: ClassVar[tuple[str, ...]] = KINDS

    def mamba_inner(self) -> int:
        """How many channels there are."""
        return (self.mamba_expand or 0) * self.hidden_size

    def settle_heads(self) -> None:
        """Make "auto" a number, and raise where heads do not make up the channels."""
        counted(self, "mamba_expand", *(("mamba_d_ssm",) if hasattr(self, "mamba_d_ssm") else ()))
        heads, inner = self.mamba_n_heads, self.mamba_inner()
        if self.mamba_d_head == "auto" and heads:
            self.mamba_d_head = inner // heads
        if isinstance(self.mamba_d_head, str):
            raise ValueError(
                f"{type(self).__name__}: mamba_d_head must be 'auto' or a number, got {self.mamba_d_head!r}."
            )
        if (
            None not in (heads, self.mamba_d_head, self.mamba_expand)
            and (heads or 0) * (self.mamba_d_head or 0) != inner
        ):
            raise ValueError(
                f"{type(self).__name__}: mamba_n_heads={heads} times mamba_d_head={self.mamba_d_head} must be the "
                f"{inner} channels that mamba_expand and hidden_size give."
            )

    def space(self, **changes: Any) -> StateSpace:
        """The state space that the fields describe."""
        names = [n for n in Mamba2Fields.__dataclass_fields__ if n.startswith(("mamba_", "time_step_"))]
        needed(self, *names)
        return StateSpace(
            **{
                "inner": self.mamba_inner(),
                "state": self.mamba_d_state,
                "conv": self.mamba_d_conv,
                "conv_bias": self.mamba_conv_bias,
                "bias": self.mamba_proj_bias,
                "act": self.hidden_act,
                "heads": self.mamba_n_heads,
                "groups": self.mamba_n_groups,
                "limit": step_limit(self),
                "block": min(self.mamba_chunk_size or BLOCK, BLOCK),
                **changes,
            }
        )


def mixers(kinds: Sequence[str], **names: str) -> tuple[str, ...]:
    """The mixers of layers of these kinds; those of attention where nothing else is said.

    >>> from votive.models.decoder.hybrid import mixers
    >>> mixers(["linear_attention", "full_attention"], linear_attention="mamba")
    ('mamba', 'attention')
    """
    return tuple(names.get(kind, "attention") for kind in kinds)
