"""In which form a cache holds keys and values: as the model's numbers, or in blocks of few bits. Knows no cache.

Rows are the features of one position of one head. A row is rounded when it is written and never again: whatever a
cache does later moves bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import votive

from ...core import dtype as dt
from ...core.blocks import block_dtype, by_name
from ...tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

Pair = tuple[Tensor, Tensor]
OneDtype = str | dt.dtype | None
CacheDtype = OneDtype | tuple[OneDtype, OneDtype]

# llama.cpp's types of caches; then those with a scale in single precision for up to 128 features of a row.
BLOCKS = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
GROUPS = {"int8": "absmax8", "float8_e4m3fn": "fp8"}
# The model's own numbers, by llama.cpp's names and torch's.
NUMBERS = {
    "f32": dt.float32,
    "f16": dt.float16,
    "bf16": dt.bfloat16,
    "f64": dt.float64,
    "float32": dt.float32,
    "float16": dt.float16,
    "bfloat16": dt.bfloat16,
    "float64": dt.float64,
}
NAMES = (*BLOCKS, *GROUPS)
_BITS = {4: "q4_0", 5: "q5_0", 8: "q8_0"}


def cache_name(dtype: OneDtype) -> str | None:
    """The one name of a type of caches, None for the model's numbers; anything else raises.

    >>> from votive.nn.layers.kv_storage import cache_name
    >>> cache_name(votive.q8_0), cache_name("FP8"), cache_name("bf16"), cache_name(None)
    ('q8_0', 'float8_e4m3fn', 'bfloat16', None)
    """
    if dtype is None:
        return None
    name = dtype.name if isinstance(dtype, dt.dtype) else dtype.lower() if isinstance(dtype, str) else ""
    name = name.rpartition(".")[2]
    name = "float8_e4m3fn" if name == "fp8" else NUMBERS[name].name if name in NUMBERS else name
    if name not in NAMES and name not in NUMBERS:
        raise ValueError(
            f"a cache keeps {', '.join(NAMES)}, or the model's own numbers (None, float32, …); got {dtype!r}."
        )
    return name


def pair_of(dtype: CacheDtype | Sequence[OneDtype]) -> tuple[str | None, str | None]:
    """The types of keys and of values.

    >>> from votive.nn.layers.kv_storage import pair_of
    >>> pair_of("q8_0"), pair_of(("q8_0", "q4_0"))
    (('q8_0', 'q8_0'), ('q8_0', 'q4_0'))
    """
    if not isinstance(dtype, (tuple, list)):
        name = cache_name(dtype)  # type: ignore[arg-type]
        return name, name
    if len(dtype) != 2:
        raise ValueError(f"a cache has a type of keys and one of values; got {len(dtype)} types.")
    return cache_name(dtype[0]), cache_name(dtype[1])


def format_of_bits(backend: str, nbits: int, residual_length: int) -> str:
    """The format of a cache that is described by transformers' names.

    >>> from votive.nn.layers.kv_storage import format_of_bits
    >>> format_of_bits("votive", 4, 0)
    'q4_0'
    """
    if backend != "votive":
        raise ValueError(
            f"QuantizedCache: backend={backend!r} is the format of another library; 'votive' keeps blocks of 32 in "
            "nbits of 4, 5 or 8, and cache_dtype names more formats."
        )
    if nbits not in _BITS:
        raise ValueError(f"QuantizedCache: nbits must be 4, 5 or 8, got {nbits!r}.")
    if residual_length != 0:
        raise ValueError(
            f"QuantizedCache: residual_length must be 0, got {residual_length!r}: every position is rounded once, when "
            "it is added."
        )
    return _BITS[nbits]


def row_format(name: str, features: int) -> block_dtype:
    """The block format of rows of so many features.

    >>> from votive.nn.layers.kv_storage import row_format
    >>> row_format("q4_0", 64), row_format("int8", 64), row_format("int8", 96)
    (votive.q4_0, votive.absmax8_g64, votive.absmax8_g32)
    """
    from ...core.group_formats import SIZES, group_format

    if features % 32 or not features:
        raise ValueError(
            f"a cache of {name} keeps whole blocks of 32 neighbours, and heads here have {features} features; leave "
            "cache_dtype out for this model."
        )
    if name in GROUPS:
        return group_format(GROUPS[name], next(size for size in SIZES if features % size == 0))
    return by_name(name)


@dataclass(frozen=True)
class KVStorage:
    """How keys and values are written into a cache and read from it."""

    key: str | None
    value: str | None

    @property
    def dtype(self) -> CacheDtype:
        """As it was asked for, a name or a pair."""
        return self.key if self.key == self.value else (self.key, self.value)

    def write(self, new: Pair) -> Pair:
        """What is kept of new positions: bytes, (batch, heads, positions, bytes), or numbers as they are."""
        if votive.is_grad_enabled() and any(x.requires_grad for x in new):
            raise RuntimeError(
                f"a cache of {self.key} keys and {self.value} values does not keep gradients; run under "
                "votive.no_grad(), or use DynamicCache() without dtype."
            )
        return _written(new[0], self.key), _written(new[1], self.value)

    def read(self, kept: Pair, like: Pair) -> Pair:
        """The tensors that stand for what is kept, which become numbers like those that were written."""
        return _read(kept[0], self.key, like[0]), _read(kept[1], self.value, like[1])


def _written(x: Tensor, name: str | None) -> Tensor:
    if name is None or name in NUMBERS:
        if name is not None and x.dtype is not NUMBERS[name]:
            raise ValueError(
                f"the cache was asked to keep {name}, and the model computes in {x.dtype.name}; use model.to("
                f"votive.{name}), cache_dtype=None or a format in blocks."
            )
        return x
    from ...surface.block_attention import rows_as_blocks

    return rows_as_blocks(x, row_format(name, x.shape[3]))


def _read(x: Tensor, name: str | None, like: Tensor) -> Tensor:
    if name is None or name in NUMBERS:
        return x
    from ...surface.block_tensor import from_blocks

    return from_blocks(x, row_format(name, like.shape[3]), compute_dtype=like.dtype)


def storage_of(dtype: CacheDtype) -> KVStorage | None:
    """How a cache of a type keeps what it is given; None where it keeps the model's numbers, whatever they are."""
    if dtype is None:
        return None
    key, value = pair_of(dtype)
    return None if key is value is None else KVStorage(key, value)
