"""Hostile GGUF files: a clear error and bounded memory, whatever the bytes say."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from votive.io import FileFormatError
from votive.io.gguf import GGUFFile, Value, write

DATA = Path(__file__).parent.parent / "io" / "data"
HUGE = [1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def text(s: bytes) -> bytes:
    return struct.pack("<Q", len(s)) + s


def value(key: bytes, kind: int, body: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + body


def tensor(name: bytes, dims: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    head = text(name) + struct.pack("<I", len(dims))
    return head + struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset)


def header(tensors: int, values: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, values)


def file_of(*tensors: bytes, values: tuple[bytes, ...] = (), data: int = 256) -> bytes:
    out = header(len(tensors), len(values)) + b"".join(values) + b"".join(tensors)
    return out + bytes(-len(out) % 32) + bytes(data)


def everything(path: Path) -> None:
    """Read all that can be read."""
    with GGUFFile(path) as file:
        assert isinstance(file.metadata, dict)
        file.typed_metadata()
        for name in file:
            file.raw(name)
            if file.info(name).numel < 1 << 20:
                file.tensor(name)


def refused(path: Path, content: bytes, match: str) -> None:
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=match) as caught:
            everything(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert path.name in str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hostile.gguf"


def test_the_building_blocks_make_a_good_file(path: Path) -> None:
    path.write_bytes(file_of(tensor(b"a", (4, 2)), values=(value(b"k", 4, struct.pack("<I", 7)),)))
    file = GGUFFile(path)
    assert file.metadata == {"k": 7}
    assert file.tensor("a").shape == (2, 4)


def test_a_file_cut_off_at_any_byte_is_refused(path: Path) -> None:
    whole = (DATA / "little.gguf").read_bytes()
    path.write_bytes(whole)
    entries = GGUFFile(path).header.entries.values()
    end = max(e.begin + e.nbytes for e in entries)  # what follows is padding
    for size in range(end):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            everything(path)


@pytest.mark.parametrize("magic", [b"", b"GGU", b"GGML", b"FUGG", b"PK\x03\x04", b"\x00" * 64])
def test_other_files_are_refused(path: Path, magic: bytes) -> None:
    refused(path, magic, "not with GGUF")


@pytest.mark.parametrize("version", [0, 1, 4, 1 << 16, 0xFFFFFFFF, 1 << 24])
def test_other_versions_are_refused(path: Path, version: int) -> None:
    refused(path, header(0, 0, version), "version .* versions 2 and 3 can be read")


@pytest.mark.parametrize("count", HUGE)
def test_huge_counts_are_refused_before_anything_is_allocated(path: Path, count: int) -> None:
    refused(path, header(count, 0) + bytes(999), "tensors are announced")
    refused(path, header(0, count) + bytes(999), "values are announced")


@pytest.mark.parametrize("length", HUGE)
def test_huge_lengths_of_text_are_refused(path: Path, length: int) -> None:
    n = struct.pack("<Q", length)
    refused(path, header(0, 1) + n + b"x" * 64, "a key of .* bytes is announced")
    refused(path, header(1, 0) + n + b"x" * 64, "a name of a tensor of .* is announced")
    refused(path, header(0, 1) + value(b"k", 8, n) + b"x" * 64, "text for 'k' is expected")
    many = struct.pack("<IQ", 8, 3) + text(b"ok") + n + b"x" * 64
    refused(path, header(0, 1) + value(b"k", 9, many), "text for 'k' is expected")


@pytest.mark.parametrize("count", HUGE)
@pytest.mark.parametrize("kind", [0, 4, 7, 8, 9, 12])
def test_huge_arrays_are_refused(path: Path, count: int, kind: int) -> None:
    body = struct.pack("<IQ", kind, count) + bytes(64)
    refused(path, header(0, 1) + value(b"k", 9, body), "array of .* items for 'k' is announced")


def test_deep_nesting_is_refused(path: Path) -> None:
    body = struct.pack("<IQ", 9, 1) * 50_000 + struct.pack("<IQ", 0, 0)
    refused(path, header(0, 1) + value(b"k", 9, body), "nested over 8 deep")


def test_wide_nesting_takes_memory_in_proportion(path: Path) -> None:
    inner = struct.pack("<IQ", 0, 0)
    body = struct.pack("<IQ", 9, 10_000) + inner * 10_000
    path.write_bytes(header(0, 1) + value(b"k", 9, body))
    assert GGUFFile(path).metadata == {"k": [[]] * 10_000}


@pytest.mark.parametrize("kind", [13, 99, 0xFFFFFFFF])
def test_unknown_types_of_values_are_refused(path: Path, kind: int) -> None:
    refused(path, header(0, 1) + value(b"k", kind, bytes(64)), f"'k' has the unknown type {kind}")
    body = struct.pack("<IQ", kind, 1) + bytes(64)
    refused(path, header(0, 1) + value(b"k", 9, body), f"'k' has the unknown type {kind}")


def test_names_that_occur_twice_are_refused(path: Path) -> None:
    one = value(b"k", 0, b"\x01")
    refused(path, file_of(values=(one, one)), "key 'k' occurs twice")
    twice = (tensor(b"a", (4,)), tensor(b"a", (4,), offset=32))
    refused(path, file_of(*twice), "two tensors are called 'a'")


def test_names_that_are_no_text_are_refused(path: Path) -> None:
    refused(path, file_of(values=(value(b"\xff\xfe", 0, b"\x01"),)), "key .* not UTF-8")
    refused(path, file_of(tensor(b"\xff", (4,))), "name of a tensor .* not UTF-8")


@pytest.mark.parametrize(
    ("dims", "match"),
    [
        ((1 << 40,), "cut off"),
        ((1 << 32, 1 << 32), "cut off"),
        (((1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1), "cut off"),
        ((1 << 63, 2), "cut off"),
        ((0, 1 << 63), "impossible shape"),
        ((0, 1 << 30, 1 << 30), "impossible shape"),
        ((1, 1, 1, 1, 1), "5 dimensions"),
    ],
)
def test_impossible_shapes_are_refused(path: Path, dims: tuple[int, ...], match: str) -> None:
    refused(path, file_of(tensor(b"a", dims)), match)


def test_too_many_dimensions_are_not_even_read(path: Path) -> None:
    head = header(1, 0) + text(b"a") + struct.pack("<I", 0xFFFFFFFF) + bytes(64)
    refused(path, head, "4294967295 dimensions")


@pytest.mark.parametrize("kind", [4, 5, 31, 36, 43, 0xFFFFFFFF])
def test_unknown_types_of_tensors_are_refused(path: Path, kind: int) -> None:
    refused(path, file_of(tensor(b"a", (32,), kind)), f"'a' has the unknown type {kind}; known are")


def test_rows_that_fill_no_blocks_are_refused(path: Path) -> None:
    refused(path, file_of(tensor(b"a", (33, 2), 2)), "rows that are not a multiple of 32")
    refused(path, file_of(tensor(b"a", (), 2)), "rows that are not a multiple of 32")


@pytest.mark.parametrize("offset", [256, 1 << 40, (1 << 64) - 32])
def test_offsets_beyond_the_file_are_refused(path: Path, offset: int) -> None:
    refused(path, file_of(tensor(b"a", (4,), offset=offset)), "'a' takes bytes .* cut off")


def test_offsets_off_the_alignment_are_refused(path: Path) -> None:
    refused(path, file_of(tensor(b"a", (4,), offset=4)), "begins at 4, not a multiple of 32")


def test_overlapping_tensors_are_refused(path: Path) -> None:
    pair = (tensor(b"a", (16,)), tensor(b"b", (4,), offset=32))
    refused(path, file_of(*pair), "'a' and 'b' overlap")
    # Many names for the same bytes would multiply the memory that a small file asks for.
    same = [tensor(b"%d" % i, (64,)) for i in range(100)]
    refused(path, file_of(*same), "overlap")


@pytest.mark.parametrize("alignment", [0, 3, 33, (1 << 32) - 1])
def test_wrong_alignments_are_refused(path: Path, alignment: int) -> None:
    key = value(b"general.alignment", 4, struct.pack("<I", alignment))
    refused(path, file_of(tensor(b"a", (4,)), values=(key,)), "is a power of two of type u32")


def test_alignment_of_another_type_is_refused(path: Path) -> None:
    for key in (
        value(b"general.alignment", 8, text(b"32")),
        value(b"general.alignment", 10, struct.pack("<Q", 32)),
        value(b"general.alignment", 9, struct.pack("<IQI", 4, 1, 32)),
    ):
        refused(path, file_of(tensor(b"a", (4,)), values=(key,)), "is a power of two of type u32")


def test_a_huge_alignment_moves_the_data_out_of_the_file(path: Path) -> None:
    key = value(b"general.alignment", 4, struct.pack("<I", 1 << 31))
    refused(path, file_of(tensor(b"a", (4,)), values=(key,)), "cut off")


def mutated(change: Callable[[bytearray], None], path: Path) -> None:
    raw = bytearray((DATA / "little.gguf").read_bytes())
    change(raw)
    path.write_bytes(raw)
    with contextlib.suppress(FileFormatError):
        everything(path)


FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 2815), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_values_or_a_format_error(path: Path, changes: list[tuple[int, int]]) -> None:
    def change(raw: bytearray) -> None:
        for at, byte in changes:
            raw[at] = byte

    mutated(change, path)


@FUZZ
@given(st.integers(0, 2807), st.sampled_from([0, 1, *HUGE]))
def test_changed_numbers_give_values_or_a_format_error(path: Path, at: int, number: int) -> None:
    mutated(lambda raw: struct.pack_into("<Q", raw, at, number), path)


@FUZZ
@given(st.binary(max_size=200))
def test_arbitrary_bytes_behind_the_magic_give_a_format_error_or_nothing(path: Path, rest: bytes) -> None:
    for head in (b"GGUF\x03\x00\x00\x00", b"GGUF\x00\x00\x00\x03"):
        path.write_bytes(head + rest)
        with contextlib.suppress(FileFormatError):
            everything(path)


def test_reading_takes_memory_for_one_tensor_and_little_more(path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4096, 1024)).astype(np.float32)  # 16 MiB
    write(path, {"w": x}, {"k": Value(["a"] * 1000, "array", "string")}, types="Q8_0")
    file = GGUFFile(path)
    tracemalloc.start()
    try:
        file.slice("w", (slice(8), slice(None)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.reset_peak()
        file.tensor("w")
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
