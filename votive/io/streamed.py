"""Writing a weight source as safetensors or .npz while holding a part of one tensor at a time.

Knows sources and two file layouts; knows no module.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..core import dtype as dt
from ..serialization.atomic import replacing
from ..serialization.container import NAMES, raw_bytes
from ..tensor import Tensor
from .block_entries import KEY, only
from .mapped import Index
from .sharded import parse_size, write_parts
from .source import TensorInfo, WeightSource, as_dtype

__all__ = ["write_npz", "write_safetensors"]

# Elements read at a time.
PART = 1 << 22
Report = Callable[[str, int], None]


def indices(shape: tuple[int, ...], limit: int = PART) -> Iterator[Index]:
    """Indices that cut a shape into parts of at most `limit` elements, in memory order.

    >>> from votive.io.streamed import indices
    >>> list(indices((4, 3), limit=6))
    [(slice(0, 2, None),), (slice(2, 4, None),)]
    >>> list(indices((2, 3), limit=2))[:2]
    [(0, slice(0, 2, None)), (0, slice(2, 3, None))]
    """
    if 0 in shape:
        return
    if math.prod(shape) <= limit:
        yield (...,)
        return
    inner = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    cut = next(d for d, n in enumerate(inner) if n <= limit)
    step = max(1, limit // inner[cut])
    for outer in itertools.product(*(range(n) for n in shape[:cut])):
        for start in range(0, shape[cut], step):
            yield (*outer, slice(start, min(start + step, shape[cut])))


def parts(source: WeightSource, name: str, limit: int = PART) -> Iterator[Tensor]:
    """A tensor as parts of at most `limit` elements, one after the other in memory order."""
    shape = tuple(source.info(name).shape)
    for index in indices(shape, limit):
        # Slices give the memory of the file back, which whole tensors would keep.
        yield source.slice(name, index) if shape else source.tensor(name)


def write_safetensors(
    source: WeightSource,
    path: str | os.PathLike[str],
    *,
    dtype: dt.dtype | str | None = None,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    report: Report | None = None,
) -> Path:
    """Write a source as a safetensors file, or with `max_shard_size` as a folder of them.

    Floating-point tensors become `dtype`. `report(name, nbytes)` is told what has been written.

    >>> import tempfile
    >>> from votive.io.streamed import write_safetensors
    >>> source = votive.io.MemorySource({"w": votive.ones(2), "n": votive.tensor([3])})
    >>> path = write_safetensors(source, tempfile.mkdtemp() + "/w.safetensors", dtype="bfloat16")
    >>> dict(votive.io.open_weights(path).items())
    {'n': tensor([3]), 'w': tensor([1., 1.], dtype=votive.bfloat16)}
    """
    path = Path(path)
    target = {n: _target(source.info(n), dtype) for n in source.names()}
    text = {str(k): str(v) for k, v in (metadata or {}).items()}
    if max_shard_size is None:
        with replacing(path) as f:
            _write(f, source, source.names(), target, text, report)
        return path
    sizes = {n: source.info(n).numel * d.itemsize for n, d in target.items()}

    def write_some(f: IO[bytes], names: list[str]) -> None:
        _write(f, source, names, target, text, report)

    return write_parts(path, sizes, parse_size(max_shard_size), {}, write_some)


def write_npz(
    source: WeightSource,
    path: str | os.PathLike[str],
    *,
    dtype: dt.dtype | str | None = None,
    report: Report | None = None,
) -> Path:
    """Write a source as an .npz archive; types that NumPy has no name for become float32.

    >>> import tempfile
    >>> from votive.io.streamed import write_npz
    >>> source = votive.io.MemorySource({"w": votive.ones(2, dtype=votive.bfloat16)})
    >>> np.load(write_npz(source, tempfile.mkdtemp() + "/w.npz"))["w"]
    array([1., 1.], dtype=float32)
    """
    path = Path(path)
    # As NumPy does: no compression, so that members can be mapped.
    with replacing(path) as f, zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        for name in source.names():
            info = source.info(name)
            to = _target(info, dtype)
            to = dt.float32 if to.np.kind == "V" or to in _NAMELESS else to
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                head = {
                    "descr": np.lib.format.dtype_to_descr(to.np),
                    "fortran_order": False,
                    "shape": tuple(info.shape),
                }
                np.lib.format.write_array_header_1_0(member, head)
                for part in parts(source, name):
                    member.write(raw_bytes(part.to(to).numpy()))
            if report is not None:
                report(name, info.nbytes)
    return path


_NAMELESS = (dt.bfloat16, dt.float8_e4m3fn, dt.float8_e5m2)


def _target(info: TensorInfo, dtype: dt.dtype | str | None) -> dt.dtype:
    if dtype is None or not info.dtype.is_floating_point:
        return info.dtype
    return as_dtype(dtype)


def _write(
    f: IO[bytes],
    source: WeightSource,
    names: list[str],
    target: Mapping[str, dt.dtype],
    metadata: Mapping[str, str],
    report: Report | None,
) -> None:
    # Widest first keeps every tensor aligned to its element size without any padding.
    order = sorted(names, key=lambda n: (-target[n].itemsize, n))
    blocks = only(metadata, names)
    metadata = {k: v for k, v in metadata.items() if k != KEY} | blocks
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name in order:
        if target[name] not in NAMES:
            raise TypeError(f"write_safetensors: {name!r} is {target[name]}, which the format cannot hold.")
        info = source.info(name)
        begin, end = end, end + info.numel * target[name].itemsize
        header[name] = {"dtype": NAMES[target[name]], "shape": list(info.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    f.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        for part in parts(source, name):
            f.write(raw_bytes(part.to(target[name]).numpy()))
        if report is not None:
            report(name, source.info(name).nbytes)
