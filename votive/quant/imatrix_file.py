"""Importance matrices in files: llama.cpp's GGUF kind and its older `imatrix.dat`, read and written.

GGUF: `NAME.in_sum2` (matrices, columns) and `NAME.counts` (matrices, 1). The older kind: entries of a name, a count and
sums, then perhaps the number of chunks and the name of the data. Knows bytes and names, no weights.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..io.gguf import GGUFFile, Value, write
from ..io.gguf.types import MAGIC
from ..io.mapped import MappedFile
from ..serialization.atomic import replacing
from ..serialization.container import FileFormatError
from .grid import Array
from .imatrix import Entry, ImportanceMatrix, keys, means

_SUMS, _COUNTS = ".in_sum2", ".counts"


def load_imatrix(path: str | os.PathLike[str]) -> ImportanceMatrix:
    """The importance matrix in a file of llama.cpp's: GGUF, or the older binary kind, whatever it is called.

    For `votive.quantize_(imatrix=...)`, which also takes the path itself.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/imatrix.gguf"
    >>> votive.quant.save_imatrix(path, {"blk.0.ffn_up.weight": ([4.0, 8.0], 2)}, datasets=["a.txt"])
    >>> found = votive.quant.load_imatrix(path)
    >>> found, found.datasets
    ({'blk.0.ffn_up.weight': (array([4., 8.], dtype=float32), 2)}, ['a.txt'])
    """
    file = Path(path)
    with open(file, "rb") as f:
        magic = f.read(len(MAGIC))
    try:
        return _read_gguf(file) if magic == MAGIC else _read_dat(file)
    except (ValueError, OverflowError) as e:
        raise FileFormatError(f"{file.name}: {e}") from None


def _read_gguf(path: Path) -> ImportanceMatrix:
    with GGUFFile(path) as file:
        head = file.metadata
        kind = head.get("general.type")
        names = [n.removesuffix(_SUMS) for n in file if n.endswith(_SUMS)]
        if kind not in (None, "imatrix") or not names:
            raise FileFormatError(f"{path.name}: this is not an importance matrix (its general.type is {kind!r}).")
        found = {}
        for name in names:
            for part in (name + _SUMS, name + _COUNTS):
                if part not in file:
                    raise FileFormatError(f"{path.name}: there is no {part!r} beside {name + _SUMS!r}.")
                if file.info(part).stored != "F32":
                    raise FileFormatError(f"{path.name}: {part!r} must be F32, got {file.info(part).stored}.")
            sums, counts = (np.array(file.tensor(name + end).numpy()) for end in (_SUMS, _COUNTS))
            if not sums.ndim or not sums.size:
                raise FileFormatError(f"{path.name}: {name + _SUMS!r} is empty.")
            rows = sums.reshape(-1, sums.shape[-1])
            if counts.size != len(rows):
                raise FileFormatError(f"{path.name}: {name!r} has {counts.size} counts for {len(rows)} matrices.")
            found[name] = (rows, counts) if len(rows) > 1 else (rows[0], counts)
        datasets = head.get("imatrix.datasets", [])
        numbers = [head.get(f"imatrix.{key}", 1) for key in ("chunk_count", "chunk_size")]
        if not isinstance(datasets, list) or not all(isinstance(d, str) for d in datasets):
            raise FileFormatError(f"{path.name}: imatrix.datasets is not a list of names.")
        if not all(type(n) is int and n >= 0 for n in numbers):
            raise FileFormatError(f"{path.name}: imatrix.chunk_count and chunk_size must be whole, got {numbers}.")
        return ImportanceMatrix(found, datasets=datasets, chunk_count=numbers[0], chunk_size=numbers[1])


class _Words:
    """Little-endian numbers one after the other, never past the end."""

    def __init__(self, path: Path) -> None:
        self.file, self.at, self.path = MappedFile(path), 0, path

    def take(self, nbytes: int, what: str) -> Array:
        if nbytes > self.file.size - self.at:
            raise FileFormatError(f"{self.path.name}: {what} of {nbytes} bytes is announced, the file ends before.")
        self.at += nbytes
        return self.file.peek(self.at - nbytes, nbytes)

    def number(self, what: str, least: int = 0) -> int:
        found = int(struct.unpack("<i", self.take(4, what).tobytes())[0])
        if found < least:
            raise FileFormatError(f"{self.path.name}: {what} is {found}; this is not an importance matrix.")
        return found

    def text(self, what: str, least: int = 0) -> str:
        return self.take(self.number(f"the length of {what}", least), what).tobytes().decode()


def _read_dat(path: Path) -> ImportanceMatrix:
    words = _Words(path)
    try:
        found: dict[str, Entry] = {}
        for _ in range(words.number("the number of entries", 1)):
            name = words.text("a name", 1)
            if name in found:
                raise FileFormatError(f"{path.name}: {name!r} is there twice.")
            count = words.number(f"the count of {name!r}")
            size = words.number(f"the size of {name!r}", 1)
            found[name] = np.array(words.take(4 * size, f"data of {name!r}").view("<f4"), np.float32), count
        chunks, datasets = 1, []
        if words.at < words.file.size:  # the first files of this kind end here
            chunks = words.number("the number of chunks")
            datasets = [words.text("the name of the data")] if words.at < words.file.size else []
        if words.at < words.file.size:
            raise FileFormatError(f"{path.name}: {words.file.size - words.at} bytes follow the end.")
        return ImportanceMatrix(found, datasets=datasets, chunk_count=chunks)
    finally:
        words.file.close()


def save_imatrix(
    path: str | os.PathLike[str],
    imatrix: Mapping[str, Any],
    *,
    datasets: Sequence[str] | None = None,
    chunk_count: int | None = None,
    chunk_size: int | None = None,
    format: str = "gguf",
) -> None:
    """Write an importance matrix under llama.cpp's names: as GGUF, or with `format="dat"` as its older kind.

    Names of modules of a model are translated, and weights of experts stacked. An `ImportanceMatrix` keeps what it was
    made from, unless other `datasets`, `chunk_count` and `chunk_size` are given.

    >>> import tempfile
    >>> net = votive.nn.Linear(2, 1)
    >>> found = votive.quant.importance(net, [votive.tensor([[1.0, 2.0], [3.0, 0.0]])])
    >>> votive.quant.save_imatrix(tempfile.mkdtemp() + "/imatrix.gguf", found, datasets=["two rows"])
    """
    if format not in ("gguf", "dat"):
        raise ValueError(f"save_imatrix: format is 'gguf' or 'dat', got {format!r}.")
    if not imatrix:
        raise ValueError("save_imatrix: the importance matrix is empty.")
    told = imatrix if isinstance(imatrix, ImportanceMatrix) else ImportanceMatrix()
    made = ImportanceMatrix(
        _renamed(ImportanceMatrix(imatrix)),
        datasets=told.datasets if datasets is None else datasets,
        chunk_count=told.chunk_count if chunk_count is None else chunk_count,
        chunk_size=(told.chunk_size if told else None) if chunk_size is None else chunk_size,
    )
    (_write_gguf if format == "gguf" else _write_dat)(Path(path), made)


def _write_gguf(path: Path, made: ImportanceMatrix) -> None:
    metadata = {
        "general.type": "imatrix",
        "imatrix.datasets": Value(made.datasets, "array", "string"),
        "imatrix.chunk_count": Value(made.chunk_count, "u32"),
        "imatrix.chunk_size": Value(made.chunk_size, "u32"),
    }
    tensors = {}
    for name in sorted(made):
        sums, count = made[name]
        tensors[name + _SUMS] = sums.reshape(-1, sums.shape[-1])
        tensors[name + _COUNTS] = np.asarray(count, np.float32).reshape(-1, 1)
    write(path, tensors, metadata)


def _write_dat(path: Path, made: ImportanceMatrix) -> None:
    def text(value: str) -> bytes:
        raw = value.encode()
        return struct.pack("<i", len(raw)) + raw

    with replacing(path) as f:
        f.write(struct.pack("<i", len(made)))
        for name in sorted(made):
            sums, count = made[name]
            # One count for all experts: what each was fed is a mean, times the number of chunks.
            calls = max(1, -(-int(np.max(count)) // max(1, made.chunk_size)))
            values = (means((sums, count)) * np.float32(calls)).astype("<f4")
            f.write(text(name) + struct.pack("<ii", calls, values.size) + values.tobytes())
        f.write(struct.pack("<i", made.chunk_count) + text(", ".join(made.datasets)))


def _renamed(given: ImportanceMatrix) -> dict[str, Entry]:
    """Entries under llama.cpp's names where they have one; experts stacked."""
    out: dict[str, Entry] = {}
    stacks: dict[str, dict[int, Entry]] = {}
    for name, entry in given.items():
        if name.startswith("blk."):
            out[name] = entry
            continue
        key, expert = keys(name)[1]
        if expert is not None and entry[0].ndim == 1:
            stacks.setdefault(key, {})[expert] = entry
        else:
            out[name if ".other." in key or key in out else key] = entry
    for key, rows in stacks.items():
        blank = np.zeros_like(next(iter(rows.values()))[0])
        members = [rows.get(i, (blank, 0)) for i in range(max(rows) + 1)]
        out[key] = np.stack([sums for sums, _ in members]), np.array([int(np.max(n)) for _, n in members])
    return out
