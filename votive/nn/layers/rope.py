"""Rotary position embedding as a layer: it keeps the tables that nn.functional.rope reads."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from .kv_cache import KVCache
from .rope_scaling import RULES, check_options

_FIRST_ROWS = 4096
_INTEGERS = (votive.int64, votive.int32, votive.int16, votive.int8, votive.uint8)


class Angles(NamedTuple):
    """Tables of cosines and sines, and the row of the first position."""

    cos: Tensor
    sin: Tensor
    offset: int


def in_graph() -> bool:
    """Whether a program is being traced; what is called then says so, see nn/compiled.py."""
    return False


class RotaryEmbedding(Module):
    """Rotates pairs of features of (..., positions, features) by an angle per position.

    Only the first `dim` features are rotated. `scaling` stretches to longer texts, in the words of
    model configurations: `{"rope_type": "linear", "factor": 2.0}`, or "dynamic", "llama3", "yarn",
    "longrope". Feature i pairs with feature i + dim / 2, or with its neighbour if `interleaved`.
    Tables grow with the positions asked for, are not in the state dict, and stay float32 in half
    precision.

    >>> rope = votive.nn.RotaryEmbedding(4, max_position_embeddings=16)
    >>> x = votive.ones(1, 2, 3, 4)
    >>> votive.equal(rope(x)[:, :, 1:], rope(x[:, :, 1:], offset=1))
    True
    """

    def __init__(
        self,
        dim: int,
        max_position_embeddings: int = 2048,
        base: float = 10000.0,
        *,
        scaling: dict[str, Any] | None = None,
        interleaved: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        if dim < 2 or dim % 2:
            raise ValueError(f"RotaryEmbedding: dim must be even and positive, got {dim}.")
        if not 0 < base < math.inf:
            raise ValueError(f"RotaryEmbedding: base must be a finite number above 0, got {base}.")
        self.dim = dim
        self.max_position_embeddings = max_position_embeddings
        self.base = base
        self.interleaved = interleaved
        options = dict(scaling or {})
        # Configurations say "type" before 2024 and "rope_type" since.
        old = options.pop("type", "default")
        self.rope_type = options.pop("rope_type", old)
        self.scaling = _checked(self.rope_type, options)
        self._least = 0  # of a text that is run in parts
        self.newest = self.stretch(0)  # that of the positions asked for last
        # Long tables take long to make, and few texts need them whole.
        rows = min(max_position_embeddings, _FIRST_ROWS, self._original)
        self._build(rows, device, dtype or votive.float32)

    def _build(self, length: int, device: DeviceLike, dtype: dt.dtype | None) -> None:
        """Tables of `length` rows, computed in float32 as models are trained, or in float64."""
        kind = np.float64 if dtype == votive.float64 else np.float32
        device = votive.get_default_device() if device is None else device
        trained = self.max_position_embeddings
        frequencies, self.attention_scaling = RULES[self.rope_type](
            self.dim, self.base, trained, length, kind, **self.scaling
        )
        angles = np.arange(length, dtype=kind)[:, None] * frequencies
        for name, table in (("cos", np.cos(angles)), ("sin", np.sin(angles))):
            table = (table * kind(self.attention_scaling)).astype(kind)
            self.register_buffer(name, votive.from_numpy(table).to(device), persistent=False)
        inv_freq = votive.from_numpy(np.ascontiguousarray(frequencies, kind)).to(device)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @property
    def _original(self) -> int:
        """Up to which length longrope has its first factors."""
        original = self.scaling.get("original_max_position_embeddings")
        return original if self.rope_type == "longrope" and original else self.max_position_embeddings

    @property
    def depends_on_length(self) -> bool:
        """Whether a position's angle changes as the text grows.

        >>> votive.nn.RotaryEmbedding(4).depends_on_length
        False
        """
        return self.rope_type in ("dynamic", "longrope")

    def stretch(self, length: int) -> int:
        """What the angles of a text of `length` positions depend on besides the positions.

        Texts with different stretches rotate the same position by different angles, so keys of one
        are of no use to the other. It is 0 for all texts but with "dynamic" and "longrope".

        >>> scaling = {"rope_type": "dynamic", "factor": 2.0}
        >>> rope = votive.nn.RotaryEmbedding(4, 16, scaling=scaling)
        >>> rope.stretch(3), rope.stretch(16), rope.stretch(17)
        (16, 16, 17)
        """
        length = max(length, self._least)
        if self.rope_type == "dynamic":
            return max(length, self.max_position_embeddings)
        return int(self.rope_type == "longrope" and length > self._original)

    @contextmanager
    def for_length(self, length: int) -> Iterator[None]:
        """Inside, angles are those of a text of `length` positions, of which parts are run.

        >>> scaling = {"rope_type": "dynamic", "factor": 2.0}
        >>> rope = votive.nn.RotaryEmbedding(4, 16, scaling=scaling)
        >>> whole = rope(votive.ones(20, 4))
        >>> with rope.for_length(20):
        ...     votive.equal(rope(votive.ones(8, 4)), whole[:8])
        True
        """
        before, self._least = self._least, length
        try:
            yield
        finally:
            self._least = before

    def check_cache(self, cache: KVCache) -> None:
        """Raise if keys in a cache were rotated by other angles than the newest positions."""
        seen = cache.get_seq_length()
        if seen:
            rotated_by = getattr(cache, "stretch", None)
            if (self.stretch(seen) if rotated_by is None else rotated_by) != self.newest:
                raise ValueError(
                    f"RotaryEmbedding: with rope_type {self.rope_type!r} the angles of all "
                    f"positions change as a text grows beyond {self._original:,}, and the cache "
                    f"holds {seen:,} that were rotated by the old ones; run the whole text with an "
                    "empty cache, as generate does."
                )
        cache.stretch = self.newest

    def _fit(self, length: int) -> None:
        """Tables for positions below `length`."""
        stretch = self.stretch(length)
        if stretch != self.newest:
            self.newest = stretch
        length = max(length, self._least)
        rows, trained = len(self.cos), self.max_position_embeddings
        if self.rope_type == "dynamic":
            # Its angles depend on the longest text so far, and on no text that is short again.
            if length > rows or length <= trained < rows:
                self._build(max(length, trained), self.cos.device, self.cos.dtype)
        elif self.rope_type == "longrope" and (length > self._original) != (rows > self._original):
            # Its angles are others for texts beyond the original length.
            self._build(length, self.cos.device, self.cos.dtype)
        elif self.rope_type == "longrope" and length > rows and length <= self._original:
            self._build(min(2 * length, self._original), self.cos.device, self.cos.dtype)
        elif length > rows:
            # Doubling: growing by one position per generated token would be quadratic.
            self._build(max(length, 2 * rows), self.cos.device, self.cos.dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        if self.cos.dtype not in (votive.float32, votive.float64):
            # In half precision, far positions would share an angle.
            self._build(len(self.cos), self.cos.device, votive.float32)
        return self

    def forward(self, input: Tensor, offset: int = 0, position_ids: Tensor | None = None) -> Tensor:
        """Positions are `offset`, `offset + 1`, …, or as `position_ids` (N, positions) says."""
        return self.rotate(input, self.angles(input.shape[-2], offset, position_ids))

    def angles(self, length: int, offset: int = 0, position_ids: Tensor | None = None) -> Angles:
        """What `rotate` needs for these positions; layers that share a rotation look it up once.

        >>> rope = votive.nn.RotaryEmbedding(4)
        >>> x = votive.ones(1, 2, 3, 4)
        >>> votive.equal(rope.rotate(x, rope.angles(3, offset=5)), rope(x, offset=5))
        True
        """
        if position_ids is None:
            self._fit(offset + length)
            return Angles(self.cos, self.sin, offset)
        if not isinstance(position_ids, votive.Tensor) or position_ids.dtype not in _INTEGERS:
            got = getattr(position_ids, "dtype", type(position_ids).__name__)
            raise TypeError(f"RotaryEmbedding: position_ids must be a tensor of integers, got {got}.")
        if in_graph() and not self.depends_on_length:
            return self._before_first(position_ids)  # of any positions: a graph cannot ask which rows it needs
        # While a graph is recorded nothing can be read; it was run before, with these positions.
        if position_ids.numel() and not (position_ids.is_cuda and votive.cuda.is_current_stream_capturing()):
            least, most = votive.stack([position_ids.min(), position_ids.max()]).tolist()
            self._fit(max(most + 1, 0))
            if least < 0:
                return self._before_first(position_ids)
        # (N, positions, dim / 2)
        return Angles(self.cos[position_ids], self.sin[position_ids], 0)

    def _before_first(self, position_ids: Tensor) -> Angles:
        """Angles of positions wherever they lie, also before the first, which no table has."""
        angles = position_ids.unsqueeze(-1).to(self.cos.dtype) * self.inv_freq
        scale = self.attention_scaling
        return Angles(angles.cos() * scale, angles.sin() * scale, 0)

    def rotate(self, input: Tensor, angles: Angles) -> Tensor:
        """Rotate (..., positions, features) by angles from `angles`."""
        cos, sin, offset = angles
        if cos.dim() > 2:
            for _ in range(input.dim() - cos.dim()):
                cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)
        return F.rope(input, cos, sin, interleaved=self.interleaved, offset=offset)

    def extra_repr(self) -> str:
        text = f"{self.dim}, max_position_embeddings={self.max_position_embeddings}"
        text += f", base={self.base}"
        if self.rope_type != "default":
            text += f", scaling={ {'rope_type': self.rope_type, **self.scaling} }"
        return text + (", interleaved=True" if self.interleaved else "")


def _checked(rope_type: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a rule; unknown ones and missing ones are named."""
    if rope_type not in RULES:
        known = ", ".join(RULES)
        raise ValueError(f"RotaryEmbedding: unknown rope_type {rope_type!r}; use one of {known}.")
    known_names = inspect.signature(RULES[rope_type]).parameters
    takes = {n: p for n, p in known_names.items() if p.kind is p.KEYWORD_ONLY}
    unknown = sorted(set(options) - set(takes))
    missing = sorted(n for n, p in takes.items() if p.default is p.empty and n not in options)
    if unknown or missing:
        raise ValueError(
            f"RotaryEmbedding: rope_type {rope_type!r} takes {sorted(takes)}; unknown {unknown}, missing {missing}."
        )
    check_options("RotaryEmbedding", {"rope_type": rope_type, **options})
    return options
