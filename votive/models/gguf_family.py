"""What is said of a kind of model whose files are GGUF's: one record. Reads nothing, knows no kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..tensor import Tensor
from .stacked import Stacked

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

Change = Callable[..., Tensor]
# Keys with one of these words hold fractions, the others integers.
_FRACTIONS = ("epsilon", "freq_base", "softcapping", "factor", "beta", "scale", "clamp", "alibi", "multiplier")
# Of what there may be none.
_FROM_ZERO = (
    "leading_dense_block_count",
    "expert_shared_count",
    "expert_count",
    "expert_used_count",
    "decoder_start_token_id",
)
_LARGEST = 1 << 40


def fractional(key: str) -> bool:
    """Whether a key of metadata holds a fraction.

    >>> from votive.models.gguf_family import fractional
    >>> fractional("llama.rope.freq_base"), fractional("llama.block_count")
    (True, False)
    """
    return any(word in key for word in _FRACTIONS)


def number(key: str, value: object) -> Any:
    """A number of metadata; a list of one per layer counts if all are the same.

    >>> from votive.models.gguf_family import number
    >>> number("llama.block_count", [4, 4]), number("llama.attention.layer_norm_rms_epsilon", 1e-5)
    (4, 1e-05)
    """
    if isinstance(value, list):
        if not value or any(v != value[0] for v in value):
            raise ValueError(f"{key} differs between layers ({value}); such models are unknown.")
        value = value[0]
    whole = isinstance(value, int) and not isinstance(value, bool)
    found = value if whole or (fractional(key) and isinstance(value, float)) else None
    if (
        not isinstance(found, int | float)
        or not (found > 0 or (found == 0 and key.endswith(_FROM_ZERO)))
        or (found >= _LARGEST)
    ):
        what = "number" if fractional(key) else "integer"
        raise ValueError(f"{key} is {value!r}; a positive {what} is needed.")
    # Files hold float32: the shortest number that means the same is what the model was made with.
    return float(str(np.float32(found))) if fractional(key) else found


@dataclass(frozen=True, kw_only=True)
class Bond:
    """Tensors of a layer that correspond only together: how those of one side are made of those of the other.

    Names have their endings; each function takes the tensors of the other side, in their order. With `rows` nothing
    but whole rows is moved. Where tensors of `named` are missing it is an error unless the bond is `optional`; one
    that is not `written` is for files of other origin.
    """

    stored: dict[str, Change]
    named: dict[str, Change]
    rows: bool = False
    optional: bool = False
    written: bool = True
    whole: bool = False  # of the model, not of each layer


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
    # Other spellings of names, as patterns, and what they are here.
    respelled: tuple[tuple[str, str], ...] = ()
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
    # The field that says which share of a head's features is rotated, where not all are.
    partial: str = ""
    # Whether configurations are read with all their defaults before they are written, and what is done to them then.
    settled: bool = False
    prepared: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    # How checkpoints have the weights of all experts in one tensor, where their names are not the usual ones.
    stacked: Stacked | None = None
    # What follows from a configuration: tensors that correspond only together, and names that differ from `block`.
    bonds: Callable[[Mapping[str, Any]], list[Bond]] | None = None
    variant: Callable[[Mapping[str, Any]], dict[str, str]] | None = None
    # All names of a model whose tensors are the same on both sides, of files and of checkpoints.
    table: Callable[[Mapping[str, Any]], dict[str, str]] | None = None
    # Of several kinds with one name in files: whether metadata are those of this one.
    when: Callable[[Mapping[str, Any]], bool] | None = None
    # Of several kinds of files for one type of model: whether this one is for a configuration.
    fits: Callable[[Mapping[str, Any]], bool] | None = None

    @property
    def head(self) -> str:
        """The name of the product that makes the logits."""
        return self.whole.get("output", "lm_head")
