"""Which format a file has, and who reads it: one row per format. Knows names and first bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ..serialization.container import FileFormatError
from .source import WeightSource

_HEAD = 512


@dataclass(frozen=True)
class Format:
    """How a format is recognised, and the function or class that opens it.

    `matches(path, head, size)` gets the file's first bytes and its size; `opener` is named by
    module and attribute, so that a reader is imported when its first file is opened.
    """

    name: str
    matches: Callable[[Path, bytes, int], bool]
    module: str
    opener: str

    def open(self, path: Path) -> WeightSource:
        return getattr(import_module(self.module), self.opener)(path)


def _safetensors(path: Path, head: bytes, size: int) -> bool:
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size - 8


def _torch(path: Path, head: bytes, size: int) -> bool:
    if head[:4] == b"PK\x03\x04":
        return path.suffix != ".npz" and not _first_member(head).endswith(b".npy")
    # A pickle of protocol 2 or later; the oldest checkpoints are tar archives.
    return (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05") or head[257:262] == b"ustar"


def _npz(path: Path, head: bytes, size: int) -> bool:
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06") and not _torch(path, head, size)


def _npy(path: Path, head: bytes, size: int) -> bool:
    return head[:6] == b"\x93NUMPY"


def _gguf(path: Path, head: bytes, size: int) -> bool:
    return head[:4] == b"GGUF"


def _llama2c(path: Path, head: bytes, size: int) -> bool:
    if head[:4] == b"24ka":  # the magic of versions 1 and 2, "ak42" as a little-endian number
        return True
    if len(head) < 28:
        return False
    # The first version has no magic: seven numbers that must make sense together.
    dim, hidden, layers, heads, kv_heads, vocab, length = struct.unpack_from("<7i", head)
    sizes = (dim, hidden, layers, heads, kv_heads, abs(vocab), length)
    if not all(0 < n < 1 << 24 for n in sizes) or dim % heads or heads % kv_heads:
        return False
    return 28 + 4 * dim * abs(vocab) < size


def _ctranslate2(path: Path, head: bytes, size: int) -> bool:
    # A version below 256, then the name of a specification with its length and a closing zero.
    if len(head) < 12 or not 2 <= int.from_bytes(head[:4], "little") < 256:
        return False
    length = int.from_bytes(head[4:6], "little")
    name = head[6 : 6 + length]
    return 5 <= length < 256 and name[-5:] == b"Spec\0" and name[:-1].isalnum()


def _first_member(head: bytes) -> bytes:
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length]


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("safetensors", _safetensors, "votive.io.safetensors", "SafetensorsFile"),
        Format("gguf", _gguf, "votive.io.gguf", "open"),
        Format("npy", _npy, "votive.io.npy", "NpyFile"),
        Format("npz", _npz, "votive.io.npy", "NpzFile"),
        Format("torch", _torch, "votive.io.torch_file", "TorchFile"),
        Format("ctranslate2", _ctranslate2, "votive.io.ctranslate2", "open"),
        Format("llama2c", _llama2c, "votive.io.llama2c", "open"),
    )
}


def detect(path: str | os.PathLike[str]) -> Format | None:
    """The format of a file, judged by its first bytes, or None."""
    path = Path(path)
    with open(path, "rb") as f:
        head = f.read(_HEAD)
        size = os.fstat(f.fileno()).st_size
    return next((f for f in FORMATS.values() if f.matches(path, head, size)), None)


def open_weights(path: str | os.PathLike[str], format: str | None = None) -> WeightSource:
    """Open weights of any known format: a file, a folder, or the index of a sharded checkpoint.

    The format is judged by content; `format` names it instead ("safetensors", "gguf", "torch",
    "npy", "npz", "ctranslate2", "llama2c"), for a folder that holds several.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> votive.io.safetensors.save_file({"w": votive.ones(2)}, folder + "/model.safetensors")
    >>> with votive.io.open_weights(folder) as source:
    ...     print(source.tensor("w"))
    tensor([1., 1.])
    """
    if format is not None and format not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValueError(f"open_weights: unknown format {format!r}; known: {known}.")
    path = Path(path)
    if path.is_dir():
        from .folder import find

        path = find(path, format)
    elif not path.exists():
        raise FileNotFoundError(f"open_weights: there is no file or folder {str(path)!r}.")
    if path.name.endswith(".index.json"):
        from .folder import ShardedSource

        return ShardedSource(path)
    if format is not None:
        return FORMATS[format].open(path)
    found = detect(path)
    if found is None:
        raise FileFormatError(
            f"open_weights: {path.name} has none of the known formats ({', '.join(FORMATS)}); "
            "it is damaged, or holds no weights."
        )
    return found.open(path)
