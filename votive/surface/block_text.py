"""Block formats and single blocks as text: layout by bytes and bits, scales, codes, numbers. Knows no operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backends.common.blocks import DECODE
from ..backends.common.blocks.anatomy import Anatomy, anatomy, holders
from ..core.blocks import block_dtype
from ..core.group_formats import KINDS
from .block_tensor import BlockTensor

# Numbers and codes shown in a line.
_LINE = 16
_KINDS_RULE = {
    "int": "x = d (q - z), q of {bits} bits, z a whole number",
    "absmax8": "x = q d / 127, q of eight bits with a sign",
    "nf4": "x = d values[q], values the sixteen quantiles of nf4",
    "fp4": "x = d values[q], values the sixteen of bitsandbytes' fp4",
    "fp8": "x = d q, q a number of FP8 (E4M3)",
}


def rule(format: block_dtype) -> str:
    """The formula by which a block's numbers come from its fields.

    >>> from votive.surface.block_text import rule
    >>> rule(votive.q4_k)
    'x = d s q - dmin m, s and m of six bits for each 32.'
    """
    kind = format.name.partition("_g")[0]
    if kind in KINDS:
        text = _KINDS_RULE.get(kind) or _KINDS_RULE["int"]
        return text.format(bits=KINDS[kind][0]) + "."
    found = (DECODE[format.name].__doc__ or "").strip().split("\n")[0]
    return found.rstrip(".") + "."


def format_text(format: block_dtype) -> str:
    """What `votive.explain` prints of a block format.

    >>> from votive.surface.block_text import format_text
    >>> print(format_text(votive.q8_0))
    q8_0: 32 numbers in 34 bytes, 8.5 bits each
        x = d q.
    <BLANKLINE>
    Bytes
        0..1   d   float16    one number for the block
        2..33  qs  int8 x 32  8 bits for each number
    <BLANKLINE>
    Bits
        number 0   byte 2 bits 0-7
        number 1   byte 3 bits 0-7
        number 31  byte 33 bits 0-7
    <BLANKLINE>
    """
    seen = holders(format)
    bits = 8 * format.block_bytes / format.block_size
    lines = [
        f"{format.name}: {format.block_size} numbers in {format.block_bytes} bytes, {bits:.4g} bits each",
        f"    {rule(format)}",
        "",
        "Bytes",
        *_fields(format, seen),
    ]
    own = _own_bits(format, seen)
    if own:
        lines += ["", "Bits", *own]
    return "\n".join(lines) + "\n"


def _spans(format: block_dtype) -> list[tuple[str, np.dtype[Any], int]]:
    """Name, type and first byte of each field."""
    fields: Any = format.np.fields or {}
    return sorted(((n, f[0], f[1]) for n, f in fields.items()), key=lambda s: s[2])


def _fields(format: block_dtype, seen: np.ndarray[Any, Any]) -> list[str]:
    rows = []
    for name, kind, start in _spans(format):
        stop = start + kind.itemsize
        base, shape = kind.base, kind.shape
        typed = f"{base.name}{' x ' + str(shape[0]) if shape else ''}"
        part = seen[8 * start : 8 * stop]
        rows.append((f"{start}..{stop - 1}" if kind.itemsize > 1 else str(start), name, typed, _role(part)))
    wide = [max(len(r[i]) for r in rows) for i in range(3)]
    return ["    " + "  ".join(f"{c:{w}}" for c, w in zip(r, wide)) + "  " + r[3] for r in rows]


def _role(part: np.ndarray[Any, Any]) -> str:
    """What a field does, by how many numbers each of its bits takes part in."""
    touched = part.sum(axis=1)
    elements = part.shape[1]
    used = touched[touched > 0]
    if not len(used):
        return "for products only: the numbers do not depend on it"
    if (used == 1).all():
        bits = len(used) / elements
        return f"{bits:.3g} bit{'s' if bits != 1 else ''} for each number"
    most = int(used.max())
    if most == elements and (len(part) <= 32 or elements < 64):
        return "one number for the block"
    if most > 1 and most < elements:
        return f"shared by {most} numbers at most"
    return "shared by numbers of the block"


def _own_bits(format: block_dtype, seen: np.ndarray[Any, Any]) -> list[str]:
    """Where the bits lie that belong to one number alone: of the first, the next, and where planes begin."""
    alone = seen & (seen.sum(axis=1, keepdims=True) == 1)
    if not alone.any(axis=0).all():
        return []
    places = [_places(np.flatnonzero(alone[:, i])) for i in range(format.block_size)]
    shown = sorted({0, 1, *(i for i in (16, 32, 64, 128) if i < format.block_size), format.block_size - 1})
    wide = len(str(shown[-1]))
    return [f"    number {i:<{wide}}  {places[i]}" for i in shown]


def _places(bits: np.ndarray[Any, Any]) -> str:
    texts = []
    for byte in sorted({int(b) // 8 for b in bits}):
        own = sorted(int(b) % 8 for b in bits if int(b) // 8 == byte)
        run = f"bit {own[0]}" if len(own) == 1 else f"bits {own[0]}-{own[-1]}"
        if own != list(range(own[0], own[-1] + 1)):
            run = "bits " + ", ".join(map(str, own))
        texts.append(f"byte {byte} {run}")
    return ", ".join(texts)


def _listed(a: np.ndarray[Any, Any] | None) -> list[Any] | None:
    return None if a is None else list(np.asarray(a).tolist())


@dataclass(frozen=True)
class Block:
    """One block of a tensor, taken apart; `str()` shows it."""

    format: block_dtype
    index: int
    row: int
    start: int  # the first of its columns
    raw: bytes
    parts: Anatomy
    numbers: np.ndarray[Any, Any]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        p = self.parts
        return {
            "format": self.format.name,
            "block": self.index,
            "row": self.row,
            "columns": [self.start, self.start + len(self.numbers)],
            "rule": rule(self.format),
            "bytes": self.raw.hex(),
            **p.whole,
            **{name: _listed(values) for name, values in p.groups.items()},
            "scale": _listed(p.scale),
            "offset": _listed(p.offset),
            "zero": p.zero,
            "codes": _listed(p.codes),
            "numbers": _listed(self.numbers),
        }

    def __str__(self) -> str:
        f, p = self.format, self.parts
        lines = [
            f"{f.name} block {self.index}: row {self.row}, columns {self.start}..{self.start + len(self.numbers) - 1}, "
            f"{f.block_bytes} bytes",
            f"    {rule(f)}",
            "",
        ]
        lines += [f"{name:8}{value:.6g}" for name, value in p.whole.items()]
        lines += [f"{name:8}{' '.join(f'{int(v):d}' for v in values)}" for name, values in p.groups.items()]
        if p.zero:
            lines.append(f"zero    {p.zero:g}")
        count = len(p.scale) if p.scale is not None else 1
        size = len(self.numbers) // count
        for g in range(count):
            at = slice(g * size, (g + 1) * size)
            lines.append("")
            if p.scale is not None:
                least = "" if p.offset is None else f", offset {p.offset[g]:.6g}"
                lines.append(
                    f"columns {self.start + g * size}..{self.start + at.stop - 1}: scale {p.scale[g]:.6g}{least}"
                )
            if p.codes is not None:
                lines += _lines("codes", [str(int(c)) for c in p.codes[at]])
            lines += _lines("numbers", [f"{v:.4g}" for v in self.numbers[at]])
        return "\n".join(lines)


def _lines(title: str, cells: list[str]) -> list[str]:
    wide = max(len(c) for c in cells)
    rows = [" ".join(f"{c:>{wide}}" for c in cells[i : i + _LINE]) for i in range(0, len(cells), _LINE)]
    return [f"  {title if i == 0 else '':8}{row}" for i, row in enumerate(rows)]


def open_block(tensor: BlockTensor, index: int = 0) -> Block:
    """One block of a tensor in blocks: its scales, codes and numbers, as they are stored.

    Blocks are counted along the rows in which they lie; negative indices count from the end.

    >>> from votive.quant import open_block
    >>> block = open_block(votive.ones(2, 32).to(votive.q4_0), 1)
    >>> block.row, block.parts.codes[0], block.parts.scale
    (1, np.uint8(0), array([-0.125], dtype=float32))
    >>> print(block)
    q4_0 block 1: row 1, columns 0..31, 18 bytes
        x = d (q - 8).
    <BLANKLINE>
    d       -0.125
    zero    8
    <BLANKLINE>
    columns 0..31: scale -0.125
      codes   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
              0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
      numbers 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
              1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
    """
    if not isinstance(tensor, BlockTensor):
        raise TypeError(f"open_block: wants a tensor in blocks, got {type(tensor).__name__}.")
    format, data = tensor._format, tensor.blocks
    if data.device.type == "meta":
        raise ValueError("open_block: a tensor on meta has no blocks to look at.")
    per_row = data.shape[-1] // format.block_bytes
    count = data.numel() // format.block_bytes
    if not -count <= index < count:
        raise IndexError(f"open_block: block {index} is out of range; the tensor has {count}.")
    index %= count
    row, column = divmod(index, per_row)
    rows = data.reshape(-1, data.shape[-1])
    raw = rows[row, column * format.block_bytes : (column + 1) * format.block_bytes].cpu().numpy().copy()
    record = raw.view(format.np)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = DECODE[format.name](record)[0].astype(np.float32)
    return Block(format, index, row, column * format.block_size, raw.tobytes(), anatomy(record, format), numbers)


def tensor_text(tensor: BlockTensor) -> str:
    """What `votive.explain` prints of a tensor in blocks: its format, and its first block.

    >>> from votive.surface.block_text import tensor_text
    >>> tensor_text(votive.ones(2, 32).to(votive.q8_0)).splitlines()[0]
    'tensor of shape (2, 32) in 2 blocks, 68 bytes'
    """
    count = tensor.blocks.numel() // tensor._format.block_bytes
    head = f"tensor of shape {tuple(tensor.shape)} in {count:,} blocks, {tensor.nbytes:,} bytes"
    there = count > 0 and tensor.blocks.device.type != "meta"
    first = [str(open_block(tensor, 0)), ""] if there else []
    return "\n".join([head, "", format_text(tensor._format), *first])
