"""Folders with weights, and the index files of checkpoints in several parts.

An index is JSON: {"metadata": {...}, "weight_map": {"name of tensor": "name of file"}}. Knows names
of files, not what is in them.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from ..serialization.container import FileFormatError, parse_json
from .source import NestedSource, WeightSource

# In the order of preference; `{}` stands for names that differ between libraries.
_PATTERNS = {
    "safetensors": ("model.safetensors.index.json", "model.safetensors", "*.safetensors.index.json", "*.safetensors"),
    "gguf": ("*.gguf",),
    "torch": ("pytorch_model.bin.index.json", "pytorch_model.bin", "*.bin.index.json", "*.pt", "*.pth"),
    "npz": ("*.npz",),
    "npy": ("*.npy",),
    "ctranslate2": ("model.bin",),
    "llama2c": ("*.bin",),
}
# An index of 10,000 tensors has about a megabyte.
_MAX_INDEX = 100_000_000


def find(folder: Path, format: str | None) -> Path:
    """The file in `folder` that holds the weights, or the index of the files that do."""
    patterns = [p for ps in _PATTERNS.values() for p in ps] if format is None else _PATTERNS[format]
    for pattern in patterns:
        found = sorted(p for p in folder.glob(pattern) if p.is_file())
        if pattern == "*.gguf" and len(found) > 1:
            from .gguf.split import first_parts

            found = first_parts(found)
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(p.name for p in found[:5])
            more = ", …" if len(found) > 5 else ""
            raise FileFormatError(
                f"open_weights: {folder.name} holds {len(found)} files that may be meant ({names}"
                f"{more}) and no index; open one of them."
            )
    what = f"{format} weights" if format else "weights in a known format"
    raise FileNotFoundError(
        f"open_weights: the folder {str(folder)!r} holds no {what}; looked for {', '.join(dict.fromkeys(patterns))}."
    )


class ShardedSource(NestedSource[str]):
    """A checkpoint in several files, which are opened when one of their tensors is asked for."""

    def __init__(self, index: Path) -> None:
        self.index = index
        size = index.stat().st_size
        if size > _MAX_INDEX:
            raise FileFormatError(f"load: {index.name}: {size:,} bytes are too many for an index.")
        content = parse_json(index.read_bytes())
        if not isinstance(content, dict) or not isinstance(content.get("weight_map"), dict):
            raise FileFormatError(f"load: {index.name}: an index must have a 'weight_map'.")
        metadata = content.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise FileFormatError(f"load: {index.name}: 'metadata' must map names to values.")
        self.metadata: dict[str, Any] = metadata
        self.entries: dict[str, str] = content["weight_map"]
        for name in dict.fromkeys(map(_checked, self.entries.values())):
            if not (index.parent / name).is_file():
                raise FileFormatError(
                    f"load: {index.name}: the index names a file {name!r} that is not beside it; "
                    "the checkpoint is incomplete."
                )
        self._open: dict[str, WeightSource] = {}

    def _inner(self, name: str) -> tuple[WeightSource, str]:
        file = self._entry(name)
        if file not in self._open:
            from .formats import open_weights

            if file.endswith(".index.json"):
                raise FileFormatError(f"load: {self.index.name}: {file!r} is an index, not a part.")
            self._open[file] = open_weights(self.index.parent / file)
        shard = self._open[file]
        if name not in shard:
            raise FileFormatError(f"load: {self.index.name}: {file} does not hold {name!r}.")
        return shard, name

    def close(self) -> None:
        for shard in self._open.values():
            shard.close()


def _checked(name: object) -> str:
    """The name of a shard, which must lead to a file in or below the index's folder."""
    if not isinstance(name, str) or not name or "\x00" in name:
        raise FileFormatError(f"load: index: {name!r} is not the name of a file.")
    for path in (PurePosixPath(name), PureWindowsPath(name)):
        if path.is_absolute() or path.drive or path.root or ".." in path.parts:
            raise FileFormatError(f"load: index: the part {name!r} lies outside the folder of the index; refused.")
    return name
