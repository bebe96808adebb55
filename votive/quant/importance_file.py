"""Importance matrices in files: votive's own are safetensors files with one vector for each weight. Knows no model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import received
from ..io import open_weights
from ..io.safetensors import save_file
from ..serialization.container import FileFormatError
from ..surface.interchange import _own
from .calibration import Importance
from .imatrix_file import load_imatrix

_COUNTS = "votive.importance"
# Larger headers are no importance matrix.
_MOST = 1 << 20


def save_importance(path: str | os.PathLike[str], importance: Mapping[str, Any]) -> None:
    """Write what `importance` gave as a safetensors file, which `read_importance` and `votive quantize` read.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/importance.safetensors"
    >>> votive.quant.save_importance(path, {"w": (np.ones(2, np.float32), 5)})
    >>> votive.quant.read_importance(path)
    {'w': (array([1., 1.], dtype=float32), 5)}
    """
    values, counts = {}, {}
    for name, value in importance.items():
        array, count = value if isinstance(value, tuple) else (value, 1)
        array = np.ascontiguousarray(np.asarray(array, np.float32).reshape(-1))
        values[name], counts[name] = _own(array.copy(), "cpu"), int(count)
    if not values:
        raise ValueError(f"save_importance: there is nothing to write, got {received(importance)}.")
    save_file(values, path, {_COUNTS: json.dumps(counts)})


def read_importance(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """An importance matrix from a file: one that `save_importance` wrote, a safetensors file of vectors, or one of
    llama.cpp's.
    """
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"{where}: there is no such file.")
    with open(where, "rb") as f:
        head = f.read(9)
    if head[:4] == b"GGUF" or head[8:9] != b"{":
        return load_imatrix(where)
    with open_weights(where) as source:
        counts = _counts(where, source.metadata)
        out: Importance = {}
        for name in source.names():
            info = source.info(name)
            if len(info.shape) != 1 or not info.dtype.is_floating_point:
                raise FileFormatError(f"{where}: {name!r} is {info.stored} {info.shape}, not a vector of importance.")
            out[name] = np.asarray(source.tensor(name, dtype="float32").numpy()), counts.get(name, 1)
    if not out:
        raise FileFormatError(f"{where} holds no importance.")
    return out


def _counts(where: Path, metadata: Mapping[str, Any]) -> dict[str, int]:
    text = metadata.get(_COUNTS, "{}")
    try:
        found = json.loads(text) if len(text) <= _MOST else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(type(c) is int and c >= 0 for c in found.values()):
        raise FileFormatError(f"{where}: the counts of the importance matrix cannot be read.")
    return found
