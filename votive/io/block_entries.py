"""How safetensors files hold weights in blocks: as rows of bytes, with the formats in the metadata. Reads no file.

The format knows no such types, so a file says under one key which of its uint8 tensors are blocks, and of which kind.
Other programs see the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..core import dtype as dt
from ..core.blocks import FORMATS, block_dtype
from ..serialization.container import Entry, FileFormatError
from ..surface.block_tensor import BlockTensor
from .source import Values

KEY = "votive.blocks"
_TRANSPOSED = "transposed"


class Stored(NamedTuple):
    """What rows of bytes stand for."""

    format: block_dtype
    flipped: bool
    shape: tuple[int, ...]  # as the tensor's user sees it


def as_bytes(tensors: Mapping[str, Values]) -> tuple[dict[str, Values], dict[str, str]]:
    """Tensors with bytes in the place of blocks, and the metadata that tells.

    >>> from votive.io.block_entries import as_bytes
    >>> plain, told = as_bytes({"w": votive.ones(2, 32).to(votive.q8_0)})
    >>> plain["w"].shape, told
    (votive.Size([2, 34]), {'votive.blocks': '{"w": ["q8_0"]}'})
    """
    blocks = {name: t for name, t in tensors.items() if isinstance(t, BlockTensor)}
    if not blocks:
        return dict(tensors), {}
    plain = {name: t.blocks if isinstance(t, BlockTensor) else t for name, t in tensors.items()}
    known = {name: [t._format.name, *([_TRANSPOSED] if t._flipped else [])] for name, t in blocks.items()}
    return plain, {KEY: json.dumps(known)}


def only(told: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """What `as_bytes` tells, for some of the tensors."""
    known = {n: w for n, w in json.loads(told.get(KEY, "{}")).items() if n in names}
    return {KEY: json.dumps(known)} if known else {}


def stored(metadata: Mapping[str, str], entries: Mapping[str, Entry]) -> dict[str, Stored]:
    """The blocks among the tensors of a file; what does not fit its format is an error."""
    if KEY not in metadata:
        return {}
    try:
        known = json.loads(metadata[KEY])
        return {name: _stored(name, words, entries) for name, words in dict(known).items()}
    except FileFormatError:
        raise
    except (ValueError, TypeError, RecursionError) as e:
        raise FileFormatError(f"load: the list of block formats cannot be read: {e}") from None


def _stored(name: str, words: object, entries: Mapping[str, Entry]) -> Stored:
    if not isinstance(words, list) or not words or words[0] not in FORMATS or words[1:] not in ([], [_TRANSPOSED]):
        raise FileFormatError(f"load: {name!r} is said to be in blocks of an unknown kind, {words!r}.")
    format, flipped = FORMATS[words[0]], len(words) > 1
    e = entries.get(name)
    if e is None or e.dtype is not dt.uint8 or not e.shape or e.shape[-1] % format.block_bytes:
        raise FileFormatError(
            f"load: {name!r} is said to be {format.name} blocks, but its bytes do not form rows of them."
        )
    shape = (*e.shape[:-1], format.row_elements(e.shape[-1]))
    if flipped and len(shape) < 2:
        raise FileFormatError(f"load: {name!r} is said to be transposed, but has one dimension.")
    return Stored(format, flipped, (*shape[:-2], shape[-1], shape[-2]) if flipped else shape)
