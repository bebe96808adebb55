"""What is said of a kind of model whose files are GGUF's: one record. Reads nothing, knows no kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Shapes = Callable[[str], tuple[int, ...] | None]

# What is done to a tensor on its way from GGUF; the other way does the opposite.
QUERY, KEY = "query", "key"  # rows are ordered for rotary pairs of neighbours
ONE = "one"  # one has been added
TRANSPOSED = "transposed"
ROW = "row"  # a matrix of one row is stored as a vector
EXPERTS = "experts"  # one tensor holds those of all experts, the name has {e}
FILTER = "filter"  # (channels, 1, width) is stored without the dimension of one
COLUMN = "column"  # a vector is stored as a matrix of one column
GROUPED = "grouped"  # a vector is stored as a row for each group
DECAY, DECAYS = "decay", "decays"  # minus its exponential is stored; that of a vector, as a column


@dataclass(frozen=True)
class Family:
    """One kind of model. Names in `whole` and `block` lack the `.weight` or `.bias` behind them."""

    architecture: str
    model_type: str
    model_class: str
    keys: dict[str, str]
    whole: dict[str, str]
    block: dict[str, str]
    layers: str = "model.layers"
    fixes: dict[str, str] = field(default_factory=dict)
    # What config.json has for all models of this kind, and the file does not say.
    fixed: dict[str, Any] = field(default_factory=dict)
    theta: float = 10000.0
    # Names without this prefix mean the same: checkpoints of the bare model lack it.
    prefix: str = "model."
    # In checkpoints, but no weights of the model proper.
    dropped: tuple[str, ...] = (r"rotary_emb\.inv_freq$",)
    # Names in layers that have nothing behind them, here and there.
    bare: dict[str, str] = field(default_factory=dict)
    # What only some layers have, of `block`; others say in which.
    some: frozenset[str] = frozenset()
    # Whether the file tells heads and rotations as a Llama's does.
    rotates: bool = True
    # What else the metadata says of a configuration, and what the configuration says by that; keys lack the
    # architecture in front. The last gives the shape of a tensor, or None.
    told: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    understood: Callable[[dict[str, Any], Mapping[str, Any], Shapes], dict[str, Any]] | None = None
