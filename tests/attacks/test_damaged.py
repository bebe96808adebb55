"""Damaged files of every kind the package reads are read or refused with a FileFormatError.

A few hundred seeded mutations per kind: bits flipped, bytes put in and cut out, numbers replaced
by huge ones, the end missing.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import json
import pickle
import random
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.io import FileFormatError
from votive.io.zip_records import Record, unpack

from .forge import read_all, valid

DATA = Path(__file__).parents[1] / "io" / "data"
MUTATIONS = 150
HUGE = (2**63 - 1, 2**64 - 1, 2**40, 2**32, 2**31, 1, 0)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Somewhat different bytes; headers and ends are hit more often than the middle."""
    if rng.random() < 0.15:
        return content[: rng.randrange(len(content))]
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        near = min(len(out) - 1, int(rng.expovariate(1 / 60)))
        at = rng.choice((rng.randrange(len(out)), near, len(out) - 1 - near))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.choice((0, 127, 128, 255))
        elif kind == 2:
            out[at : at + rng.randrange(8)] = b""
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 4:
            out[at : at + 8] = struct.pack("<Q", rng.choice(HUGE))
        else:
            out[at : at + 4] = struct.pack("<I", rng.choice((2**31 - 1, 2**32 - 1, 65536)))
        out = out or bytearray(1)
    return bytes(out)


def _weights(path: Path) -> None:
    read_all(path)
    vt.load(path)


def _tokenizer(name: str) -> Callable[[Path], None]:
    """Read the file under this name, beside a good vocabulary if it is not one itself."""

    def read(path: Path) -> None:
        folder = path.parent / "tokenizer"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        if name.endswith("config.json"):
            (folder / "vocab.txt").write_bytes(WORDS)
        (folder / name).write_bytes(path.read_bytes())
        vt.text.Tokenizer.from_pretrained(folder).encode("hello there")

    return read


def _sharded(path: Path) -> None:
    folder = path.parent / "sharded"
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors.index.json").write_bytes(path.read_bytes())
    (folder / "one.safetensors").write_bytes(valid()["safetensors"])
    read_all(folder)


def _pixels() -> Any:
    return vt.from_numpy(np.random.default_rng(0).integers(0, 255, (3, 9, 7)).astype(np.uint8))


def _picture(kind: str) -> bytes:
    from PIL import Image

    frames = [Image.fromarray(_pixels().permute(1, 2, 0).contiguous().numpy()) for _ in range(2)]
    file = io.BytesIO()
    more = {"save_all": True, "append_images": frames[1:]} if kind == "GIF" else {}
    frames[0].save(file, kind, **more)
    return file.getvalue()


def _sound(kind: str) -> bytes:
    file = io.BytesIO()
    vt.audio.save(file, vt.sin(vt.arange(600.0)).reshape(2, 300) * 0.1, 8000, format=kind)
    return file.getvalue()


def _sentencepiece() -> bytes:
    def part(number: int, wire: int, body: bytes) -> bytes:
        return bytes([number << 3 | wire]) + (bytes([len(body)]) if wire == 2 else b"") + body

    out = b""
    for i, (text, kind) in enumerate([("<unk>", 2), ("<s>", 3), ("</s>", 3), ("▁he", 1), ("l", 1)]):
        piece = part(1, 2, text.encode()) + part(2, 5, struct.pack("<f", -i))
        out += part(1, 2, piece + part(3, 0, bytes([kind])))
    return out + part(2, 2, part(3, 0, b"\x02"))


def _saved(save: Callable[[Path], Any]) -> Callable[[Path], bytes]:
    def content(folder: Path) -> bytes:
        save(folder / "made")
        return (folder / "made").read_bytes()

    return content


def _history(path: Path) -> None:
    history = vt.train.History()
    history.add(step=1, epoch=0, loss=2.0, lr=0.1)
    history.add_eval(1, {"loss": 1.0})
    history.save(path)


def _importance(format: str) -> Callable[[Path], None]:
    stacked = (np.ones((2, 6), np.float32), np.array([3, 4]))
    entries = {"blk.0.attn_q.weight": (np.arange(8, dtype=np.float32), 5), "blk.0.ffn_up_exps.weight": stacked}
    return lambda path: vt.quant.save_imatrix(path, entries, datasets=["words.txt"], format=format)


IDX = bytes([0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 5]) + bytes(range(100))
WORDS = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hel", "##lo", "there"]).encode()
RANKS = b"\n".join(base64.b64encode(bytes([i])) + b" %d" % i for i in range(256))
CONFIG = {
    "bos_token": "[CLS]",
    "eos_token": {"content": "[SEP]", "lstrip": False},
    "added_tokens_decoder": {"0": {"content": "[PAD]", "special": True}},
    "padding_side": "left",
    "model_max_length": 512,
    "chat_template": "{{ messages }}",
    "tokenizer_class": "BertTokenizer",
}
INDEX = {"metadata": {"total_size": 11}, "weight_map": dict.fromkeys("ab", "one.safetensors")}
CIFAR = {b"data": np.zeros((2, 8), np.uint8), b"labels": [1, 2]}


def _cifar(path: Path) -> None:
    vt.vision.datasets.cifar.read_batch(path)


def _tokens(path: Path) -> None:
    vt.data.TokenFile(path)[:]


Content = bytes | Callable[[Path], bytes]
# Kind -> (what a good file holds, its ending, how it is read, the packages needed).
KINDS: dict[str, tuple[Content, str, Callable[[Path], Any], str]] = {
    **{k: (c, ".npz" if "npz" in k else "", _weights, "") for k, c in valid().items()},
    "torch's own": (lambda _: (DATA / "zip.pt").read_bytes(), ".pt", _weights, ""),
    "votive.save": (_saved(lambda p: vt.save({"w": vt.ones(3)}, p)), "", _weights, ""),
    "gguf": (lambda _: (DATA / "little.gguf").read_bytes(), ".gguf", read_all, ""),
    "gguf, big-endian": (lambda _: (DATA / "big.gguf").read_bytes(), ".gguf", read_all, ""),
    "imatrix.gguf": (_saved(_importance("gguf")), ".gguf", vt.quant.load_imatrix, ""),
    "imatrix.dat": (_saved(_importance("dat")), ".dat", vt.quant.load_imatrix, ""),
    "llama2.c": (lambda _: (DATA / "stories260K.bin").read_bytes(), ".bin", read_all, ""),
    "sharded index": (json.dumps(INDEX).encode(), ".json", _sharded, ""),
    "idx": (IDX, "", vt.vision.datasets.read_idx, ""),
    "idx, packed": (gzip.compress(IDX), ".gz", vt.vision.datasets.read_idx, ""),
    "cifar": (pickle.dumps(CIFAR, 2), "", _cifar, ""),
    "token file": (_saved(lambda p: vt.data.TokenFile.write(p, [5, 6, 7])), "", _tokens, ""),
    "history": (_saved(_history), ".json", vt.train.History.load, ""),
    "vocab.txt": (WORDS, "", _tokenizer("vocab.txt"), "tokenizers"),
    "tokenizer_config": (json.dumps(CONFIG).encode(), "", _tokenizer("tokenizer_config.json"), "tokenizers"),
    "sentencepiece": (lambda _: _sentencepiece(), "", _tokenizer("tokenizer.model"), "tokenizers"),
    "tiktoken": (RANKS, "", vt.speech.from_tiktoken, "tokenizers"),
    **{
        kind: (lambda _, kind=kind: _picture(kind), "", vt.vision.io.read_image, "PIL")
        for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP")
    },
    **{kind: (lambda _, kind=kind: _sound(kind), f".{kind}", vt.audio.load, "soundfile") for kind in ("wav", "flac")},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused_as_such(kind: str, tmp_path: Path) -> None:
    content, ending, read, package = KINDS[kind]
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    good = content if isinstance(content, bytes) else content(tmp_path)
    path = tmp_path / f"file{ending}"
    path.write_bytes(good)
    read(path)
    rng = random.Random(kind)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of decoders
        for _ in range(MUTATIONS):
            path.write_bytes(mutated(good, rng))
            try:
                read(path)
            except FileFormatError:
                refused += 1
    assert refused > 10  # the mutations do damage


@pytest.mark.parametrize("kind", [k for k, v in KINDS.items() if isinstance(v[0], bytes)])
def test_a_file_of_nothing_or_of_zeros_is_refused(kind: str, tmp_path: Path) -> None:
    content, ending, read, package = KINDS[kind]
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    path = tmp_path / f"file{ending}"
    for raw in (b"", bytes(len(content))):
        path.write_bytes(raw)
        with pytest.raises(FileFormatError):
            read(path)


def test_damage_in_the_tail_of_a_zip_record_is_no_error_of_zlib() -> None:
    """All bytes that were announced are unpacked; one more follows, and then no valid block."""
    values = bytes(range(256))
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    raw = engine.compress(values + b"!") + engine.flush(zlib.Z_FULL_FLUSH) + b"\x07\x00"
    record = Record("a", 0, len(raw), len(values), 8, zlib.crc32(values))
    with pytest.raises(FileFormatError, match="'a' is damaged"):
        unpack(np.frombuffer(raw, np.uint8), record)
