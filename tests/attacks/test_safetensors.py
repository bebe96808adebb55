"""Hostile safetensors files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .forge import both, entry, safetensors

HUGE = 2**62
DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000
ATTACKS: dict[str, tuple[bytes, str]] = {
    "a header longer than the file": (safetensors({}, length=2**63), "none of the known"),
    "a header of 2^64 bytes": (b"\xff" * 8 + b"{}", "none of the known"),
    "a header of 100 MB that is not there": (safetensors({}, b"{" * 10, length=99_000_000), "none of the known"),
    "no object": (safetensors(b'["a"]'), "none of the known"),
    "broken JSON": (safetensors(b'{"a":'), "not valid JSON"),
    "deep JSON": (safetensors(DEEP), "not valid JSON"),
    "deep lists": (safetensors(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "not valid JSON"),
    "a number of a million digits": (safetensors(b'{"a":' + b"9" * 1_000_000 + b"}"), "not valid JSON"),
    "NaN": (safetensors(b'{"a":NaN}'), "NaN is not JSON"),
    "infinity": (safetensors(b'{"a":-Infinity}'), "not JSON"),
    "a name that is not UTF-8": (safetensors(b'{"\xff\xfe":1}'), "not valid JSON"),
    "UTF-16": (safetensors('{"a":1}'.encode("utf-16-le")), "not valid JSON"),
    "half a surrogate pair": (
        safetensors(b'{"\\ud800":' + json.dumps(entry()).encode() + b"}", bytes(8)),
        "not valid JSON",
    ),
    "a name twice": (safetensors(b'{"a":{"shape":[]},"a":{}}'), "a name occurs twice"),
    "an entry that is no object": (safetensors({"a": 3}), "expected dtype"),
    "no offsets": (safetensors({"a": {"dtype": "F32", "shape": []}}), "expected dtype"),
    "an unknown type": (safetensors({"a": entry("F7")}, bytes(8)), "unknown dtype 'F7'; known: F6"),
    "a type that is a list": (safetensors({"a": entry(["F32"])}, bytes(8)), "unknown dtype"),
    "a negative size": (safetensors({"a": entry(shape=(-2,))}, bytes(8)), "non-negative"),
    "a size that is a float": (safetensors({"a": entry(shape=(2.0,))}, bytes(8)), "non-negative"),
    "a size that is true": (safetensors({"a": entry(shape=(True,))}, bytes(4)), "non-negative"),
    "three offsets": (safetensors({"a": entry(offsets=(0, 8, 8))}, bytes(8)), "non-negative"),
    "offsets in reverse": (safetensors({"a": entry(offsets=(8, 0))}, bytes(8)), "does not fill"),
    "a product that overflows": (safetensors({"a": entry(shape=(HUGE, 4))}, bytes(8)), "shape is too large"),
    "a product that wraps to the right size": (
        safetensors({"a": entry(shape=(2**32, 2**32, 2))}, bytes(8)),
        "shape is too large",
    ),
    "an empty tensor with a huge side": (
        safetensors({"a": entry(shape=(0, HUGE, HUGE), offsets=(0, 0))}),
        "shape is too large",
    ),
    "a hundred dimensions": (
        safetensors({"a": entry(shape=[1] * 100, offsets=(0, 4))}, bytes(4)),
        "shape is too large",
    ),
    "data beyond the end": (
        safetensors({"a": entry(shape=(HUGE // 8,), offsets=(0, HUGE // 2))}, bytes(8)),
        "file is damaged",
    ),
    "tensors that overlap": (safetensors({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)), "overlaps another"),
    "the same bytes twice": (safetensors({f"t{i}": entry() for i in range(50)}, bytes(8)), "overlaps another"),
    "a gap": (safetensors({"a": entry(offsets=(4, 12))}, bytes(12)), "leaves a gap"),
    "bytes nobody owns": (safetensors({"a": entry()}, bytes(9)), "file is damaged"),
    "metadata that is no text": (safetensors({"__metadata__": {"k": 1}}), "must map names to text"),
    "metadata that is a list": (safetensors({"__metadata__": [1]}), "must map names to text"),
    "a million tensors that are not there": (
        safetensors({f"t{i}": entry("F32", (1,), (0, 4)) for i in range(5000)}, bytes(4)),
        "overlaps another",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused(name: str, tmp_path: Path) -> None:
    content, expected = ATTACKS[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    assert expected in both(path)
