"""GGUF files: what is written is read, by votive and by the gguf package, bit for bit."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import votive
from votive.io import FileFormatError
from votive.io.gguf import QUANTIZABLE, TYPES, GGUFFile, Value, dequantize, quantize, write

from .test_gguf_quants import weights

DATA = Path(__file__).parent / "data"
METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "golden",
    "v.u8": Value(200, "u8"),
    "v.i8": Value(-5, "i8"),
    "v.u16": Value(60000, "u16"),
    "v.i16": Value(-300, "i16"),
    "v.u32": 4000000000,
    "v.i32": -70000,
    "v.u64": 1 << 60,
    "v.i64": -(1 << 50),
    "v.f32": 0.1,
    "v.f64": Value(0.1, "f64"),
    "v.yes": True,
    "v.no": False,
    "v.text": "Ein Text — 日本語",
    "a.i32": [1, -2, 3],
    "a.f32": [0.5, 1.5],
    "a.text": ["a", "", "日本"],
    "a.bool": [True, False],
}


def plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """What reading gives back for METADATA."""
    out = {k: v.value if isinstance(v, Value) else v for k, v in metadata.items()}
    if "v.f32" in out:
        out["v.f32"] = float(np.float32(0.1))
    return out


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.gguf"


@pytest.mark.parametrize("name", ["little.gguf", "big.gguf"])
def test_metadata_of_stored_files_is_read(name: str) -> None:
    assert GGUFFile(DATA / name).metadata == plain(METADATA)


@pytest.mark.parametrize("name", ["little.gguf", "big.gguf"])
def test_plain_tensors_of_stored_files_are_read(name: str) -> None:
    file = GGUFFile(DATA / name)
    rng = np.random.default_rng(3)
    want = {
        "f32": rng.standard_normal((2, 3)).astype(np.float32),
        "f16": rng.standard_normal((2, 2, 5)).astype(np.float16),
        "f64": rng.standard_normal(4),
    }
    for bits in (8, 16, 32, 64):
        want[f"i{bits}"] = rng.integers(-100, 100, 7).astype(f"i{bits // 8}")
    for key, array in want.items():
        assert file.info(key).shape == array.shape
        got = file.tensor(key)
        assert got.dtype is file.info(key).dtype
        np.testing.assert_array_equal(got.numpy(), array)
        np.testing.assert_array_equal(file.slice(key, slice(1, 3)).numpy(), array[1:3])


def test_quantized_tensors_of_a_stored_file_are_read() -> None:
    file = GGUFFile(DATA / "little.gguf")
    for name in ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0"):
        assert file.info(name).stored == name.upper()
        assert file.info(name).dtype is votive.float32
        want = dequantize(quantize(weights(2, 64, 9), name), name)
        np.testing.assert_array_equal(file.tensor(name).numpy(), want)
    assert file.info("q6_k").shape == (2, 256)


def test_written_metadata_comes_back_with_its_types(path: Path) -> None:
    nested = Value([Value([1, 2], "array", "u8"), Value(["x"], "array", "string")], "array", "array")
    metadata = {
        **METADATA,
        "nested": nested,
        "deep": [[1], [2, 3]],
        "empty": Value([], "array", "f64"),
        "numpy": np.arange(3, dtype=np.uint16),
        "one": np.float64(0.1),
        "broken": "half \udce6 character",
    }
    write(path, {}, metadata)
    file = GGUFFile(path)
    got = file.metadata
    assert got.pop("nested") == [[1, 2], ["x"]]
    assert got.pop("deep") == [[1], [2, 3]]
    assert got.pop("empty") == []
    assert got.pop("numpy") == [0, 1, 2]
    assert got.pop("one") == 0.1
    assert got.pop("broken") == "half \udce6 character"
    assert got == plain(METADATA)
    kinds = file.typed_metadata()
    assert kinds["nested"] == nested
    assert kinds["numpy"].item == "u16"
    assert kinds["v.u32"].type == "u32"
    assert kinds["a.i32"].item == "i32"
    again = path.with_name("again.gguf")
    write(again, file, kinds)
    assert again.read_bytes() == path.read_bytes()


def test_a_stored_file_is_written_again_byte_for_byte(path: Path) -> None:
    file = GGUFFile(DATA / "little.gguf")
    write(path, file, file.typed_metadata())
    again = GGUFFile(path)
    for name in file:
        np.testing.assert_array_equal(again.raw(name), file.raw(name))
        assert again.info(name).stored == file.info(name).stored
    assert path.read_bytes() == (DATA / "little.gguf").read_bytes()


@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("alignment", [1, 32, 4096])
def test_tensors_of_every_dtype_come_back(path: Path, byteorder: str, alignment: int) -> None:
    rng = np.random.default_rng(0)
    tensors: dict[str, Any] = {
        dtype: votive.tensor(rng.integers(-90, 90, (3, 5)), dtype=getattr(votive, dtype))
        for dtype in ("float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64")
    }
    tensors |= {
        "scalar": votive.tensor(2.5),
        "empty": votive.zeros(0, 4),
        "view": votive.arange(12.0).reshape(3, 4).T,
        "array": np.arange(4, dtype=np.float32),
        "four": votive.ones(1, 2, 3, 4),
    }
    write(path, tensors, {}, alignment=alignment, byteorder=byteorder)
    file = GGUFFile(path)
    assert file.names() == list(tensors)
    for name, want in tensors.items():
        got = file.tensor(name)
        array = want.numpy() if hasattr(want, "numpy") else want
        assert got.numpy().dtype == array.dtype
        assert tuple(got.shape) == array.shape
        np.testing.assert_array_equal(got.numpy(), array)
    assert file.header.alignment == alignment
    assert file.header.start % alignment == 0


@pytest.mark.parametrize("name", ["Q4_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"])
def test_blocks_in_the_other_byte_order_mean_the_same(path: Path, name: str) -> None:
    write(path, {"w": weights(4, 512)}, {}, types=name)
    big = path.with_name("big.gguf")
    write(big, GGUFFile(path), {}, byteorder="big")
    little, other = GGUFFile(path), GGUFFile(big)
    np.testing.assert_array_equal(other.tensor("w").numpy(), little.tensor("w").numpy())
    assert not np.array_equal(other.raw("w"), little.raw("w"))
    back = path.with_name("back.gguf")
    write(back, other, {})
    assert back.read_bytes() == path.read_bytes()


INDICES: list[Any] = [
    3,
    -1,
    slice(1, 4),
    (slice(None, None, 2), slice(10, 40)),
    (2, slice(None)),
    (0, 1),
    (1, 1, 300),
    (Ellipsis, slice(250, 260)),
    (slice(None), 1, 7),
    (np.array([2, 0, 2]),),
    (np.array([2, 0]), slice(0, 2), slice(5)),
    (np.array([1, 2]), 0),
    (np.array([1, 2]), 0, 9),
    (None, 0),
    Ellipsis,
    (slice(0, 0),),
    (0, slice(None), np.array([1, 300])),
    ([0, 2], [1, 0]),
    (np.array([True, False, True, False]),),
    (slice(1, 2), slice(None), slice(3, 3)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("kind", ["Q4_K", "Q8_0", "F16"])
def test_a_slice_is_what_indexing_the_tensor_gives(path: Path, index: Any, kind: str) -> None:
    write(path, {"w": weights(8, 512).reshape(4, 2, 512)}, {}, types=kind)
    file = GGUFFile(path)
    got = file.slice("w", index)
    want = file.tensor("w").numpy()[index]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


def test_a_slice_decodes_only_the_blocks_it_needs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, {"w": weights(16, 1024)}, {}, types="Q4_K")
    file = GGUFFile(path)
    sizes: list[int] = []
    from votive.io.gguf import file as module

    real = module.decode_into
    monkeypatch.setattr(module, "decode_into", lambda out, *a, **k: (sizes.append(out.size), real(out, *a, **k)))
    file.slice("w", (slice(3, 5), slice(260, 500)))
    assert sizes == [2 * 256]


def test_indices_out_of_range_are_refused(path: Path) -> None:
    write(path, {"w": weights(4, 256)}, {}, types="Q4_0")
    file = GGUFFile(path)
    for index in (4, (0, 256), (0, 0, 0)):
        with pytest.raises(IndexError):
            file.slice("w", index)


def test_quantized_tensors_load_straight_to_the_dtype_asked_for(path: Path) -> None:
    write(path, {"w": weights(4, 256)}, {}, types="Q6_K")
    file = GGUFFile(path)
    want = file.tensor("w").numpy()
    for name in ("float16", "bfloat16", "float64"):
        got = file.tensor("w", dtype=name)
        assert got.dtype is getattr(votive, name)
        np.testing.assert_array_equal(got.numpy(), want.astype(got.numpy().dtype))
    assert file.tensor("w", dtype=votive.int32, device="cpu").dtype is votive.int32


def test_plain_tensors_are_mapped_and_writing_to_them_leaves_the_file_alone(path: Path) -> None:
    write(path, {"w": votive.ones(64, 64)}, {})
    file = GGUFFile(path)
    before = path.read_bytes()
    t = file.tensor("w")
    t.fill_(7)
    assert path.read_bytes() == before
    assert file.tensor("w").sum() == 64 * 64


def test_a_named_type_spares_vectors_and_rows_that_do_not_fit(path: Path) -> None:
    tensors = {
        "wide": votive.ones(2, 256),
        "narrow": votive.ones(2, 96),
        "odd": votive.ones(2, 7),
        "vector": votive.ones(256, dtype=votive.float16),
        "ids": votive.arange(4).reshape(2, 2),
    }
    write(path, tensors, {}, types="q4_k")
    stored = {i.name: i.stored for i in GGUFFile(path).tensors}
    assert stored == {"wide": "Q4_K", "narrow": "Q5_0", "odd": "F16", "vector": "F32", "ids": "I64"}


def test_a_function_chooses_types_and_is_taken_at_its_word(path: Path) -> None:
    seen: list[Any] = []

    def choose(name: str, shape: tuple[int, ...], dtype: Any) -> str | None:
        seen.append((name, shape, dtype))
        return {"a": "Q8_0", "b": "BF16"}.get(name)

    tensors = {"a": votive.ones(2, 32), "b": votive.ones(3), "c": votive.ones(3)}
    write(path, tensors, {}, types=choose)
    assert [i.stored for i in GGUFFile(path).tensors] == ["Q8_0", "BF16", "F32"]
    assert seen[0] == ("a", (2, 32), votive.float32)
    with pytest.raises(ValueError, match=r"'a' has shape \(2, 32\); Q4_K needs rows"):
        write(path, tensors, {}, types=lambda *_: "Q4_K")


def test_another_source_can_be_written(path: Path) -> None:
    source = votive.io.MemorySource({"x": votive.ones(2, 32)}).renamed({"x": "y"})
    write(path, source, {}, types="Q4_0")
    assert GGUFFile(path).info("y").stored == "Q4_0"


def test_open_weights_finds_the_format(path: Path) -> None:
    write(path, {"a.w": votive.ones(2, 32)}, {"k": 1}, types="Q4_0")
    with votive.io.open_weights(path) as source:
        assert isinstance(source, GGUFFile)
        assert source.metadata["k"] == 1
        assert source.prefixed("a").tensor("w").shape == (2, 32)
    with pytest.raises(ValueError, match="closed"):
        source.tensor("a.w")


def test_a_failed_write_leaves_the_old_file(path: Path) -> None:
    write(path, {"a": votive.ones(2)}, {})
    before = path.read_bytes()
    bad = np.full((1, 32), np.nan, np.float32)
    with pytest.raises(ValueError, match="'b': quantize: the data holds nan"):
        write(path, {"a": votive.ones(2), "b": bad}, {}, types="Q4_0")
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("tensors", "metadata", "match"),
    [
        ({"b": votive.ones(2) > 0}, {}, "'b' is votive.bool, which the format does not have"),
        ({"c": np.array(["x"])}, {}, "'c' is an array of <U1"),
        ({"d": votive.ones(1, 1, 1, 1, 1)}, {}, "allows 4 dimensions"),
        ({"e" * 65: votive.ones(1)}, {}, "1 to 64 bytes"),
        ({}, {"x": None}, "'x' is a NoneType"),
        ({}, {"x": []}, "list 'x' is empty"),
        ({}, {"x": [1, "a"]}, "mixes int, str"),
        ({}, {"x": Value(300, "u8")}, "outside the range of u8"),
        ({}, {"x": Value(1.5, "u8")}, "is to be u8 and holds float64"),
        ({}, {"x": Value(3, "string")}, "is to be text and holds int"),
        ({}, {"x": 1 << 70}, "more than 64 bits"),
        ({}, {"x": np.zeros((2, 2))}, "2 dimensions"),
        ({}, {3: 1}, "keys of metadata are text"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(path: Path, tensors: Any, metadata: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        write(path, tensors, metadata)
    assert not path.exists()


def test_wrong_options_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="power of two, got 24"):
        write(path, {}, {}, alignment=24)
    with pytest.raises(ValueError, match="'little' or 'big', got 'middle'"):
        write(path, {}, {}, byteorder="middle")
    with pytest.raises(ValueError, match="not a type of value"):
        Value(1, "int")


def test_an_unknown_type_names_the_tensor_and_what_is_known(path: Path) -> None:
    write(path, {"blk.0.w": np.zeros((1, 256), np.float32)}, {}, types="Q6_K")
    raw = bytearray(path.read_bytes())
    at = raw.index(b"blk.0.w") + 7 + 4 + 16
    assert struct.unpack_from("<I", raw, at) == (TYPES["Q6_K"].code,)
    struct.pack_into("<I", raw, at, TYPES["IQ3_S"].code)  # its blocks are smaller, so they fit
    path.write_bytes(raw)
    assert GGUFFile(path).info("blk.0.w").stored == "IQ3_S"
    assert GGUFFile(path).tensor("blk.0.w").shape == (1, 256)
    struct.pack_into("<I", raw, at, 777)
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match=r"'blk.0.w' has the unknown type 777; known are F32"):
        GGUFFile(path)


def test_an_unknown_name_suggests_similar_ones(path: Path) -> None:
    write(path, {"blk.0.attn_q.weight": votive.ones(2)}, {})
    with pytest.raises(KeyError, match=r"Did you mean 'blk\.0\.attn_q\.weight"):
        GGUFFile(path).tensor("blk.0.attn_k.weight")


def test_a_large_file_opens_by_its_header(path: Path) -> None:
    write(path, {"w": np.zeros((1, 1), np.float32)}, {})
    raw = bytearray(path.read_bytes())
    struct.pack_into("<QQ", raw, raw.index(b"w") + 1 + 4, 1 << 15, 1 << 16)
    with open(path, "wb") as f:
        f.write(raw)
        f.truncate(len(raw) + (8 << 30))  # a hole: it takes no room on the disk
    file = GGUFFile(path)
    assert file.info("w").nbytes == 8 << 30
    assert file.slice("w", (65535, slice(2))).tolist() == [0.0, 0.0]


def test_a_vocabulary_is_decoded_only_when_it_is_used(path: Path) -> None:
    tokens = [f"token {i} ü" for i in range(150_000)]
    write(path, {}, {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": [0.5] * 150_000})
    file = GGUFFile(path)
    assert "metadata" not in vars(file)
    assert file.metadata["tokenizer.ggml.tokens"] == tokens


@pytest.mark.parity
def test_the_gguf_package_reads_what_is_written(path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    known = gguf.GGMLQuantizationType.__members__
    quantized = [n for n in QUANTIZABLE if n not in ("TQ1_0", "TQ2_0", "MXFP4", "Q8_1", "Q8_K") and n in known]
    x = weights(4, 512)
    tensors = dict.fromkeys(quantized, x) | {
        "f16": x.astype(np.float16),
        "bf16": x.astype(ml_dtypes.bfloat16),
        "f64": x.astype("f8"),
        "i32": np.arange(6, dtype=np.int32).reshape(1, 2, 3),
    }
    types = lambda name, shape, dtype: name if name in TYPES else None
    write(path, tensors, METADATA, types=types)
    reader = gguf.GGUFReader(path)
    keys = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    assert keys == plain(METADATA)
    file = GGUFFile(path)
    assert [t.name for t in reader.tensors] == file.names()
    for t in reader.tensors:
        assert tuple(reversed(t.shape.tolist())) == file.info(t.name).shape
        assert t.tensor_type.name == file.info(t.name).stored
        assert t.data.tobytes() == file.raw(t.name).tobytes()
        if t.tensor_type.name not in ("F64", "I32", "Q1_0"):  # which the package cannot decode
            want = gguf.quants.dequantize(t.data, t.tensor_type)
            np.testing.assert_array_equal(file.tensor(t.name).to(votive.float32).numpy(), want)


@pytest.mark.parity
def test_a_big_endian_file_is_read_by_the_gguf_package(path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    write(path, {"w": np.arange(6, dtype=np.float32)}, METADATA, byteorder="big")
    reader = gguf.GGUFReader(path)
    assert reader.fields["v.text"].contents() == METADATA["v.text"]
    assert reader.fields["v.i64"].contents() == METADATA["v.i64"]
    np.testing.assert_array_equal(reader.tensors[0].data, np.arange(6))
