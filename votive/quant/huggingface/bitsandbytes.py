"""bitsandbytes: four-bit tables with a largest value per block, and rows of LLM.int8. Reads headers first.

nf4 and fp4: x = absmax values[q], the first of two elements in the high bits, blocks running over the flat weight;
absmax itself may be codes, absmax = offset + absmax2 map[q]. int8: x = (q SCB) / 127.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

import numpy as np

from ...backends.common.blocks.groups import FP4_VALUES, NF4_VALUES
from .packed import Array, Layer, Packed, Reader

_TABLES = {"nf4": NF4_VALUES, "fp4": FP4_VALUES}


def bitsandbytes(reader: Reader, _config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of a bitsandbytes file, of four or eight bits, as its tensors tell."""
    for name in sorted(reader.known):
        base, found, kind = name.partition(".quant_state.bitsandbytes__")
        if found:
            yield base, _four(reader, base, kind)
        elif name.endswith(".SCB"):
            weight = name.removesuffix("SCB") + "weight"
            yield weight, _eight(reader, weight, name)


def _eight(reader: Reader, weight: str, scale: str) -> Layer:
    rows, columns = reader.shape(weight, 2)
    reader.want(scale, (rows,))
    told = weight + "_format"

    def unpack() -> Packed:
        codes = reader.stored(weight, "int8").view(np.uint8)
        return Packed("absmax8", codes, reader.floats(scale)[:, None], None, np.zeros(columns, np.int64))

    return Layer((weight, scale, *([told] if told in reader.known else [])), (rows, columns), unpack)


def _four(reader: Reader, name: str, kind: str) -> Layer:
    state_name = f"{name}.quant_state.bitsandbytes__{kind}"
    if kind not in _TABLES:
        raise reader.fail(state_name, "is of an unknown kind; nf4 and fp4 are known")
    try:
        state = json.loads(reader.stored(state_name, "uint8").tobytes())
        rows, columns = (int(n) for n in state["shape"])
        block, nested_block = int(state["blocksize"]), int(state.get("nested_blocksize", 1))
        offset = np.float32(state.get("nested_offset", 0.0))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as e:
        raise reader.fail(state_name, f"cannot be read ({type(e).__name__}: {e})") from None
    if min(rows, columns, block, nested_block) < 1 or rows * columns % 2:
        raise reader.fail(state_name, f"states the shape {(rows, columns)} and blocks of {block}, which cannot be")
    count, size = math.ceil(rows * columns / block), rows * columns // 2
    reader.want(name, (size, 1), (1, size))
    reader.want(f"{name}.absmax", (count,))
    reader.want(f"{name}.quant_map", (16,))
    parts = [name, state_name, f"{name}.absmax", f"{name}.quant_map"]
    nested = f"{name}.nested_absmax" in reader.known
    if nested:
        reader.want(f"{name}.nested_absmax", (math.ceil(count / nested_block),))
        reader.want(f"{name}.nested_quant_map", (256,))
        parts += [f"{name}.nested_absmax", f"{name}.nested_quant_map"]

    def absmax() -> Array:
        if not nested:
            return reader.floats(f"{name}.absmax")
        levels = reader.floats(f"{name}.nested_quant_map")[reader.stored(f"{name}.absmax", "uint8")]
        return levels * np.repeat(reader.floats(f"{name}.nested_absmax"), nested_block)[:count] + offset

    def unpack() -> Packed:
        if not np.allclose(reader.floats(f"{name}.quant_map"), _TABLES[kind], rtol=0, atol=1e-4):
            raise reader.fail(f"{name}.quant_map", f"is not the table of {kind}")
        data = reader.stored(name, "uint8").reshape(-1)
        codes = np.stack([data >> 4, data & 15], axis=1).reshape(rows, columns)
        # Blocks may cross the ends of rows: a group is what rows and blocks both are multiples of.
        step = math.gcd(columns, block)
        starts = np.arange(0, rows * columns, step) // block
        return Packed(kind, codes, absmax()[starts].reshape(rows, -1), None, np.arange(columns) // step)

    return Layer(tuple(parts), (rows, columns), unpack)
