"""fp8 of several libraries, and compressed-tensors: a weight beside its scales. Reads headers first.

fp8 (E4M3): x = s values[q], s for the tensor, the row, or tiles such as 128 x 128. Integers: x = s (q - z).
Scales of activations are passed over: here only weights are quantized.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from .packed import Array, Layer, Packed, Reader, even, whole

_ACTIVATIONS = ("input_scale", "activation_scale", "input_scale_ub", "input_zero_point", "output_scale")


def _passed_over(reader: Reader, base: str) -> tuple[str, ...]:
    return tuple(f"{base}.{part}" for part in _ACTIVATIONS if f"{base}.{part}" in reader.known)


def fp8(reader: Reader, config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of an fp8 file: `weight_scale_inv` (DeepSeek, Qwen) or `weight_scale` beside a float8 weight."""
    tile = config.get("weight_block_size")
    if tile is not None and not (
        isinstance(tile, (list, tuple)) and len(tile) == 2 and all(type(n) is int and n > 0 for n in tile)
    ):
        raise ValueError(f"{reader.scheme}: weight_block_size must be two whole numbers, got {tile!r}.")
    for name in sorted(reader.known):
        for ending in (".weight_scale_inv", ".weight_scale"):
            if name.endswith(ending):
                base = name.removesuffix(ending)
                yield f"{base}.weight", _fp8_layer(reader, base, name, tuple(tile) if tile else None)


def _fp8_layer(reader: Reader, base: str, scale: str, tile: tuple[int, ...] | None) -> Layer:
    rows, columns = reader.shape(f"{base}.weight", 2)
    if tile is None:
        reader.want(scale, (), (1,), (1, 1), (rows,), (rows, 1))
    else:
        reader.want(scale, (math.ceil(rows / tile[0]), math.ceil(columns / tile[1])))

    def unpack() -> Packed:
        codes = reader.stored(f"{base}.weight", "float8_e4m3fn").view(np.uint8)
        s = reader.floats(scale)
        if tile is None:
            spread = np.broadcast_to(s.reshape(-1, 1), (rows, 1))
            return Packed("fp8", codes, spread, None, np.zeros(columns, np.int64))
        return Packed("fp8", codes, s[np.arange(rows) // tile[0]], None, np.arange(columns) // tile[1])

    return Layer((f"{base}.weight", scale, *_passed_over(reader, base)), (rows, columns), unpack)


def compressed_tensors(reader: Reader, config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of a compressed-tensors file: packed or plain integers, or fp8."""
    for key in ("sparsity_config", "transform_config"):
        if config.get(key):
            raise ValueError(
                f"{reader.scheme}: {key}={config[key]!r} is not supported; use dense, untransformed weights."
            )
    weights = _weights(reader, config)
    bits, kind = weights.get("num_bits"), weights.get("type", "int")
    if kind == "float":
        whole(bits, reader.scheme, "num_bits", (8,))
        block = weights.get("block_structure") if weights.get("strategy") == "block" else None
        yield from fp8(reader, {"weight_block_size": block})
        return
    number = whole(bits, reader.scheme, "num_bits", (2, 4, 8))
    for name in sorted(reader.known):
        if name.endswith(".weight_packed"):
            yield _integers(reader, name.removesuffix(".weight_packed"), number, True)
        elif name.endswith(".weight_scale") and f"{name.removesuffix('_scale')}_packed" not in reader.known:
            whole(bits, reader.scheme, "num_bits of plain integers", (8,))
            yield _integers(reader, name.removesuffix(".weight_scale"), 8, False)


def _weights(reader: Reader, config: Mapping[str, object]) -> Mapping[str, object]:
    groups = config.get("config_groups")
    found = [g.get("weights") for g in groups.values() if isinstance(g, dict)] if isinstance(groups, dict) else []
    if not found or not all(isinstance(w, dict) for w in found) or any(w != found[0] for w in found):
        raise ValueError(f"{reader.scheme}: one rule for all weights is supported, got config_groups={groups!r}.")
    first: Mapping[str, object] = found[0] or {}
    return first


def _integers(reader: Reader, base: str, bits: int, packed: bool) -> tuple[str, Layer]:
    weight, scale, zero = (
        f"{base}.weight{'_packed' if packed else ''}",
        f"{base}.weight_scale",
        f"{base}.weight_zero_point",
    )
    told, order = f"{base}.weight_shape", f"{base}.weight_g_idx"
    rows, columns = reader.shape(weight, 2)
    parts = [weight, scale, *(n for n in (zero, told, order) if n in reader.known), *_passed_over(reader, base)]
    if packed:
        reader.want(told, (2,))
        shape = [int(n) for n in np.asarray(reader.source.tensor(told).numpy())]
        if shape[0] != rows or shape[1] < 1 or math.ceil(shape[1] * bits / 32) != columns:
            raise reader.fail(told, f"tells {tuple(shape)}, which {weight} of shape {(rows, columns)} does not hold")
        columns = shape[1]
    shape_of = tuple(reader.source.info(scale).shape) if scale in reader.known else ()
    groups = shape_of[1] if len(shape_of) == 2 else 1
    reader.want(scale, (rows, groups), *([(), (1,), (rows,)] if groups == 1 else []))
    if not groups or (columns % groups and order not in reader.known):
        raise reader.fail(scale, f"has {groups} groups, which do not divide {columns} columns")
    if order in reader.known:
        reader.want(order, (columns,))
    if zero in reader.known:
        reader.want(zero, (math.ceil(rows * bits / 32), groups) if packed else (rows, groups))

    def zeros() -> Array:
        half = 1 << (bits - 1)
        if zero not in reader.known:
            return np.full((rows, groups), half, np.float32)
        if not packed:
            return reader.stored(zero, "int8").astype(np.float32) + half
        fields = reader.words(zero, bits).transpose(0, 2, 1).reshape(-1, groups)
        return fields[:rows].astype(np.float32)

    def unpack() -> Packed:
        if packed:
            codes = np.ascontiguousarray(reader.words(weight, bits).reshape(rows, -1)[:, :columns])
        else:
            codes = reader.stored(weight, "int8").view(np.uint8) ^ np.uint8(128)
        s = np.broadcast_to(reader.floats(scale).reshape(-1, groups), (rows, groups))
        index = even(columns, groups)
        if order in reader.known:
            index = reader.stored(order, "int32").astype(np.int64)
            if index.min() < 0 or index.max() >= groups:
                raise reader.fail(order, f"names groups from {index.min()} to {index.max()}, but there are {groups}")
        return Packed(f"int{bits}", codes, s, zeros(), index)

    return f"{base}.weight", Layer(tuple(parts), (rows, columns), unpack)
