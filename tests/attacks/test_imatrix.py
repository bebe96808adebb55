"""Hostile importance matrices: a clear error and bounded memory, whatever the bytes say."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from votive.io import FileFormatError
from votive.io.gguf import Value, write
from votive.quant import load_imatrix, save_imatrix

HUGE = [-1, -(1 << 31), (1 << 31) - 1, 1 << 20]


def entry(
    name: bytes = b"w", calls: int = 1, size: int = 2, data: bytes = bytes(8), length: int | None = None
) -> bytes:
    length = len(name) if length is None else length
    return struct.pack("<i", length) + name + struct.pack("<ii", calls, size) + data


def refused(path: Path, content: bytes, match: str) -> None:
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=match) as caught:
            load_imatrix(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert path.name in str(caught.value)


@pytest.mark.parametrize("number", HUGE)
def test_numbers_of_the_older_kind_that_the_file_cannot_hold_are_refused(tmp_path: Path, number: int) -> None:
    path, one = tmp_path / "imatrix.dat", struct.pack("<i", 1)
    refused(path, struct.pack("<i", number) + entry(), "number of entries|announced")
    refused(path, one + entry(length=number), "a name")
    refused(path, one + entry(size=number), "'w'")
    refused(path, one + entry() + struct.pack("<ii", 1, number), "name of the data")
    if number < 0:
        refused(path, one + entry(calls=number), "count of 'w'")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "announced"),
        (bytes(64), "number of entries"),
        (struct.pack("<i", 1) + entry(name=b"\xff\xfe"), "decode"),
        (struct.pack("<i", 1) + entry(size=0, data=b""), "size of 'w'"),
        (struct.pack("<i", 2) + entry() + entry(), "there twice"),
        (struct.pack("<i", 1) + entry(data=struct.pack("<2f", 1, float("nan"))), "finite"),
        (struct.pack("<i", 1) + entry(data=struct.pack("<2f", 1, -1)), "not negative"),
        (struct.pack("<i", 1) + entry() + struct.pack("<ii", 1, 1) + b"ab", "1 bytes follow"),
    ],
)
def test_files_of_the_older_kind_that_make_no_sense_are_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(tmp_path / "imatrix.dat", content, match)


@pytest.mark.parametrize("format", ["gguf", "dat"])
def test_a_file_cut_off_at_any_byte_is_refused_or_ends_after_its_entries(tmp_path: Path, format: str) -> None:
    path = tmp_path / "imatrix"
    save_imatrix(path, {"w": (np.arange(1, 9, dtype=np.float32), 3)}, datasets=["x"], format=format)
    whole = path.read_bytes()
    # What the older kind has behind its entries is optional, and what ends a GGUF file is padding.
    optional = {"dat": {len(whole) - 5, len(whole) - 9}, "gguf": set(range(len(whole) - 31, len(whole)))}[format]
    for size in set(range(len(whole))) - optional:
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            load_imatrix(path)


ONES, ONE = np.ones((1, 4), np.float32), np.ones((1, 1), np.float32)


@pytest.mark.parametrize(
    ("tensors", "metadata", "match"),
    [
        ({"w": ONES}, {}, "not an importance matrix"),
        ({"w.in_sum2": ONES, "w.counts": ONE}, {"general.type": "model"}, "general.type is 'model'"),
        ({"w.in_sum2": ONES}, {}, "no 'w.counts'"),
        ({"w.in_sum2": ONES, "w.counts": ONES}, {}, "4 counts for 1"),
        ({"w.in_sum2": ONES.astype(np.float16), "w.counts": ONE}, {}, "must be F32"),
        ({"w.in_sum2": ONES * np.nan, "w.counts": ONE}, {}, "finite"),
        ({"w.in_sum2": -ONES, "w.counts": ONE}, {}, "not negative"),
        ({"w.in_sum2": ONES, "w.counts": -ONE}, {}, "counts of 'w'"),
        ({"w.in_sum2": ONES, "w.counts": ONE * np.inf}, {}, "counts of 'w'"),
        ({"w.in_sum2": ONES[:, :0], "w.counts": ONE}, {}, "is empty"),
        ({"w.in_sum2": ONES, "w.counts": ONE}, {"imatrix.datasets": 5}, "not a list of names"),
        ({"w.in_sum2": ONES, "w.counts": ONE}, {"imatrix.datasets": Value([1], "array", "i32")}, "not a list of names"),
        ({"w.in_sum2": ONES, "w.counts": ONE}, {"imatrix.chunk_count": "many"}, "must be whole"),
        ({"w.in_sum2": ONES, "w.counts": ONE}, {"imatrix.chunk_size": -1}, "must be whole"),
    ],
)
def test_gguf_files_that_are_no_importance_matrix_are_refused(
    tmp_path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, object], match: str
) -> None:
    path = tmp_path / "imatrix.gguf"
    write(path, tensors, metadata)
    refused(path, path.read_bytes(), match)
