"""torchao in safetensors: parts of tensor subclasses, whose classes stand in the file's metadata. Reads headers first.

x = s (q - z) for codes in bytes, x = s values[q] for fp8. Parts of `a.weight` are called `a._weight_qdata` and so on.
Layouts that are made for one kernel of a GPU are refused by their class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...io.source import NestedSource
from .packed import Array, Layer, Packed, Reader

_REFUSED = (
    "Use Int8WeightOnlyConfig, IntxWeightOnlyConfig or Float8WeightOnlyConfig when quantizing, unquantized weights, or "
    "a GGUF file."
)


def torchao(reader: Reader, config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of a torchao file: int8, intx unpacked to int8, and float8 tensors."""
    described = _described(reader)
    if not described:
        raise ValueError(
            f"{reader.scheme}: the file does not describe its tensors (quant_type={config.get('quant_type')!r}); "
            "pickled files hold objects of torchao's classes, which votive does not make. Save as safetensors with a "
            f"torchao that writes them. {_REFUSED}"
        )
    for name in sorted(described):
        try:
            told = json.loads(described[name])
            kind, data = told["_type"], told.get("_data", {})
            if not isinstance(kind, str) or not isinstance(data, dict):
                raise TypeError("no class and its data")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
            raise reader.fail(name, f"has a description that cannot be read ({type(e).__name__}: {e})") from None
        if kind == "Tensor":
            continue
        if kind not in _READ:
            raise ValueError(f"{reader.scheme}: {name} is stored as {kind}, which is not supported. {_REFUSED}")
        module, _, last = name.rpartition(".")
        prefix = f"{module}._{last}_" if module else f"_{last}_"
        if f"{prefix}act_pre_scale" in reader.known:
            raise ValueError(f"{reader.scheme}: {name} scales its inputs, which is not supported. {_REFUSED}")
        yield name, _READ[kind](reader, prefix)


def _described(reader: Reader) -> dict[str, str]:
    """The descriptions of tensors in the metadata of the file, or of all files that hold parts."""
    found = [reader.source.metadata]
    if isinstance(reader.source, NestedSource):
        found += [reader.source._inner(n)[0].metadata for n in sorted(reader.known) if n.endswith("_qdata")]
    return {n: t for told in found for n, t in told.items() if isinstance(t, str) and t.startswith('{"_type"')}


def _grid(reader: Reader, name: str, shape: tuple[int, int]) -> tuple[int, int]:
    """How many scales there are along rows and columns; they divide the weight evenly."""
    found = tuple(reader.source.info(name).shape) if name in reader.known else reader.shape(name, 2)
    if len(found) == 1:
        found = (found[0], 1)
    rows, columns = found if len(found) == 2 else (1, 1) if not found else (0, 0)
    if min(rows, columns) < 1 or shape[0] % rows or shape[1] % columns:
        raise reader.fail(name, f"of shape {found} does not divide a weight of shape {shape}")
    return rows, columns


def _spread(values: Array, grid: tuple[int, int], rows: int) -> Array:
    """One row of scales for each row of the weight."""
    return np.repeat(values.reshape(grid), rows // grid[0], axis=0)


def _parts(reader: Reader, prefix: str) -> tuple[str, ...]:
    return tuple(sorted(n for n in reader.known if n.startswith(prefix)))


def _bytes(reader: Reader, prefix: str) -> Layer:
    weight, scale, zero = (f"{prefix}{part}" for part in ("qdata", "scale", "zero_point"))
    rows, columns = reader.shape(weight, 2)
    grid = _grid(reader, scale, (rows, columns))
    if zero in reader.known and math.prod(reader.source.info(zero).shape) != math.prod(grid):
        raise reader.fail(zero, f"must have the shape of {scale}")

    def unpack() -> Packed:
        codes = reader.stored(weight, "int8").view(np.uint8) ^ np.uint8(128)
        zeros = np.zeros(grid, np.float32)
        if zero in reader.known:
            zeros = np.ascontiguousarray(reader.source.tensor(zero).numpy()).astype(np.float32).reshape(grid)
        index = np.arange(columns) // (columns // grid[1])
        s, z = _spread(reader.floats(scale), grid, rows), _spread(zeros + 128, grid, rows)
        return Packed("int8", codes, s, z, index)

    return Layer(_parts(reader, prefix), (rows, columns), unpack)


def _float8(reader: Reader, prefix: str) -> Layer:
    weight, scale = f"{prefix}qdata", f"{prefix}scale"
    rows, columns = reader.shape(weight, 2)
    grid = _grid(reader, scale, (rows, columns))

    def unpack() -> Packed:
        codes = reader.stored(weight, "float8_e4m3fn").view(np.uint8)
        index = np.arange(columns) // (columns // grid[1])
        return Packed("fp8", codes, _spread(reader.floats(scale), grid, rows), None, index)

    return Layer(_parts(reader, prefix), (rows, columns), unpack)


_READ: dict[str, Callable[[Reader, str], Layer]] = {
    "Int8Tensor": _bytes,
    "IntxUnpackedToInt8Tensor": _bytes,
    "Float8Tensor": _float8,
}
