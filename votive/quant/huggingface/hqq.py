"""HQQ: codes of 1 to 8 bits whose zero points are no whole numbers, along rows or columns. Reads headers first.

x = s (q - z). The weight is seen as groups: rows of `group_size` neighbours (axis 1), or as many columns (axis 0). The
rows of that view are packed in planes, the first ones in the highest bits of bytes, or of int32 words for three bits.
HQQ rounds the difference to the dtype it computes in; here it is not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .packed import Array, Layer, Packed, Reader

# What HQQ calls a packing: bits of a code as packed, the type of the words.
_PACKINGS = {
    "8bit_u8": (8, "uint8"),
    "4bit_u8": (4, "uint8"),
    "3bit_32": (3, "int32"),
    "2bit_u8": (2, "uint8"),
    "1bit_u8": (1, "uint8"),
}
# Kinds of blocks hold codes of 2, 4 and 8 bits.
_KINDS = {1: "int2", 2: "int2", 3: "int4", 4: "int4", 8: "int8"}
_FACTS = (
    *("nbits", "group_size", "shape", "axis", "packing", "unpack_view_dtype", "view_as_float", "quant_scale"),
    *("quant_zero", "compute_dtype", "offload_meta", "encoded_state_dict", "stores_quant_config", "channel_wise"),
    *("optimize", "round_zero"),
)


@dataclass(frozen=True)
class _Facts:
    """How a layer is stored: its shape, the group's size, along which axis, and its packing."""

    rows: int
    columns: int
    group: int
    axis: int
    bits: int
    words: str
    viewed: bool

    @property
    def grouped(self) -> tuple[int, int]:
        """The shape of the weight as groups."""
        count = self.rows * self.columns // self.group
        return (count, self.group) if self.axis == 1 else (self.group, count)


def hqq(reader: Reader, config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of an HQQ file, each of which tells how it is stored."""
    if not isinstance(config.get("quant_config", {}), dict):
        raise ValueError(f"{reader.scheme}: quant_config must be a mapping, got {config['quant_config']!r}.")
    for name in sorted(reader.known):
        if name.endswith(".W_q"):
            base = name.removesuffix(".W_q")
            yield f"{base}.weight", _layer(reader, base)


def _whole(reader: Reader, name: str) -> int:
    """A number that is a tensor of its own."""
    info = reader.source.info(name)
    if math.prod(info.shape) != 1 or info.dtype.is_complex:
        raise reader.fail(name, "must be one number")
    found = float(reader.source.tensor(name).numpy().reshape(-1)[0])
    if found != found // 1:
        raise reader.fail(name, f"is {found}; whole numbers are supported")
    return int(found)


def _facts(reader: Reader, base: str) -> _Facts:
    for part in ("shape", "axis", "packing", "scale", "zero"):
        if f"{base}.{part}" not in reader.known:
            more = "; quantized scales and zero points are not supported" if part in ("scale", "zero") else ""
            raise reader.fail(f"{base}.{part}", f"is missing{more}")
    reader.want(f"{base}.shape", (2,))
    rows, columns = (int(n) for n in reader.stored(f"{base}.shape", "int64"))
    axis = _whole(reader, f"{base}.axis")

    def known(part: str, otherwise: int) -> int:
        return _whole(reader, f"{base}.{part}") if f"{base}.{part}" in reader.known else otherwise

    packing = reader.stored(f"{base}.packing", "uint8").tobytes().decode("latin-1")
    if packing not in _PACKINGS:
        raise reader.fail(f"{base}.packing", f"is {packing!r}; known are {', '.join(_PACKINGS)}")
    if min(rows, columns) < 1 or axis not in (0, 1):
        raise reader.fail(f"{base}.shape", f"tells {(rows, columns)}, grouped along axis {axis}, which cannot be")
    if not known("channel_wise", 1):
        group = rows * columns
    else:
        group = known("group_size", columns if axis == 1 else rows)
    if group < 1 or rows * columns % group:
        raise reader.fail(f"{base}.group_size", f"is {group}, which does not divide {rows} x {columns} numbers")
    bits, words = _PACKINGS[packing]
    return _Facts(rows, columns, group, axis, bits, words, bool(known("view_as_float", 0)))


def _layer(reader: Reader, base: str) -> Layer:
    facts = _facts(reader, base)
    height, width = facts.grouped
    per = 10 if facts.bits == 3 else 8 // facts.bits
    # Three bits are padded to whole words; of the others HQQ packs what is a multiple.
    if facts.bits != 3 and height % per:
        raise reader.fail(f"{base}.W_q", f"cannot hold {height} rows of {facts.bits} bits")
    lines, each = math.ceil(height / per), np.dtype(facts.words).itemsize
    weight = f"{base}.W_q"
    shape = reader.shape(weight, 2)
    if reader.source.info(weight).nbytes != lines * width * each or shape[0] != lines:
        raise reader.fail(weight, f"of shape {shape} does not hold {facts.rows} x {facts.columns} codes")
    groups = (height, 1) if facts.axis == 1 else (1, width)
    for part in ("scale", "zero"):
        reader.want(f"{base}.{part}", groups, *([(), (1,), (1, 1)] if math.prod(groups) == 1 else []))

    def codes() -> Array:
        raw = np.ascontiguousarray(reader.source.tensor(weight).numpy())
        if not facts.viewed and raw.dtype != facts.words:
            raise reader.fail(weight, f"must be {facts.words}, got {raw.dtype}")
        packed = raw.reshape(lines, -1).view(np.uint8).view(facts.words.replace("int32", "uint32"))
        shifts = np.arange(per - 1, -1, -1, dtype=packed.dtype) * packed.dtype.type(facts.bits)
        planes = (packed[None] >> shifts[:, None, None]) & packed.dtype.type((1 << facts.bits) - 1)
        return planes.reshape(-1, width)[:height].astype(np.uint8).reshape(facts.rows, facts.columns)

    def unpack() -> Packed:
        rows, columns = facts.rows, facts.columns
        scale, zero = (reader.floats(f"{base}.{part}").reshape(-1) for part in ("scale", "zero"))
        if facts.axis == 1:
            # Groups may cross the ends of rows.
            step = math.gcd(columns, facts.group)
            at = (np.arange(0, rows * columns, step) // facts.group).reshape(rows, -1)
            index = np.arange(columns) // step
        else:
            # Neighbours along a row belong to different groups: every number has a scale of its own.
            at = (np.arange(rows * columns) % width).reshape(rows, columns)
            index = np.arange(columns)
        return Packed(_KINDS[facts.bits], codes(), scale[at], zero[at], index)

    facts_of = tuple(f"{base}.{part}" for part in _FACTS if f"{base}.{part}" in reader.known)
    return Layer((weight, f"{base}.scale", f"{base}.zero", *facts_of), (facts.rows, facts.columns), unpack)
