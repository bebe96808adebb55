"""Writing a checkpoint in several files. Knows names, sizes and the order of steps, not bytes."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from ..serialization.atomic import replacing, settle
from ..serialization.container import write
from ..tensor import Tensor
from .block_entries import as_bytes, only
from .source import Values
from .writing import checked, text_only, without_twins

_INDEX = "model.safetensors.index.json"
_UNITS = {
    "": 1,
    "B": 1,
    **{f"{u}B": 1000**i for i, u in enumerate("KMGT", 1)},
    **{f"{u}IB": 1024**i for i, u in enumerate("KMGT", 1)},
}


def write_shards(
    tensors: Mapping[str, Values], folder: Path, max_shard_size: int | str, metadata: Mapping[str, str] | None
) -> Path:
    """What `votive.io.safetensors.save_sharded` does."""
    limit = parse_size(max_shard_size)
    tensors, told = as_bytes(tensors)
    text = text_only("save_sharded", metadata)
    tensors, dropped = without_twins("save_sharded", tensors)
    for kept, names in dropped.items():
        text.update(dict.fromkeys(names, kept))
    sizes = {n: _nbytes("save_sharded", n, t) for n, t in tensors.items()}

    def write_some(f: IO[bytes], names: list[str]) -> None:
        write(f, {n: checked("save_sharded", n, tensors[n]) for n in names}, text | only(told, names))

    return write_parts(folder, sizes, limit, text, write_some)


def write_parts(
    folder: Path,
    sizes: Mapping[str, int],
    limit: int,
    metadata: Mapping[str, str],
    write_some: Callable[[IO[bytes], list[str]], None],
) -> Path:
    """Files of at most `limit` bytes, each written by `write_some`, and their index; what `open_weights` takes."""
    shards = split(sizes, limit)
    folder.mkdir(parents=True, exist_ok=True)
    count = len(shards)
    files = ["model.safetensors"]
    if count > 1:
        files = [f"model-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]
    # Contexts end in reverse: nothing takes its name before all is written, and the index is the
    # last to do so.
    with contextlib.ExitStack() as stack:
        if count > 1:
            index = {
                "metadata": {"total_size": sum(sizes.values()), **metadata},
                "weight_map": {n: file for file, names in zip(files, shards) for n in names},
            }
            f = stack.enter_context(replacing(folder / _INDEX))
            f.write(json.dumps(index, indent=2, ensure_ascii=False).encode() + b"\n")
            settle(f)
        for file, names in zip(files, shards, strict=True):
            f = stack.enter_context(replacing(folder / file))
            write_some(f, names)
            settle(f)  # or a full disk would be noticed when other shards have their names already
    _clear(folder, {*files, _INDEX} if count > 1 else set(files))
    return folder / (_INDEX if count > 1 else files[0])


def parse_size(size: int | str) -> int:
    """Bytes from a number or a text such as "5GB" or "200MiB"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(size).strip())
    unit = found and _UNITS.get(found[2].upper())
    if not found or not unit or float(found[1]) * unit < 1:
        raise ValueError(f"save_sharded: {size!r} is not a size; use bytes or text such as '5GB'.")
    return int(float(found[1]) * unit)


def split(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    """Names in order, in runs whose sizes stay within the limit where single ones do."""
    shards: list[list[str]] = [[]]
    used = 0
    for name, size in sizes.items():
        if shards[-1] and used + size > limit:
            shards.append([])
            used = 0
        shards[-1].append(name)
        used += size
    return shards


def _nbytes(op: str, name: str, value: object) -> int:
    if isinstance(value, Tensor):
        return value.numel() * value.dtype.itemsize
    if isinstance(value, np.ndarray):
        return value.nbytes
    raise ValueError(f"{op}: {name!r} must be a Tensor or an array, got {type(value).__name__}.")


def _clear(folder: Path, keep: set[str]) -> None:
    """Remove what an earlier save left under these names, or the folder would be ambiguous."""
    for path in folder.iterdir():
        ours = re.fullmatch(r"model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?", path.name)
        if ours and path.name not in keep:
            os.unlink(path)
