"""Native products with weights in blocks, rows of such tables, and blocks as numbers."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.blocks import block_dtype, by_name
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .loader import module
from .rows import OUT, native


def _codes() -> dict[str, int]:
    """The numbers by which the native module knows formats: it tells them itself, with the shapes of blocks."""
    told: list[tuple[str, int, int]] = getattr(module, "block_formats", list)()
    for name, size, nbytes in told:
        known = by_name(name)
        if (known.block_size, known.block_bytes) != (size, nbytes):
            raise ImportError(
                f"the native module has blocks of {size} elements in {nbytes} bytes for {known.name}, not "
                f"{known.block_size} in {known.block_bytes}. Install votive again (pip install -e .)."
            )
    return {name.lower(): code for code, (name, _, _) in enumerate(told)}


CODES = _codes()
OUTPUTS = (dt.float32, *dt.HALF)


def takes(x: Spec, *others: Spec) -> bool:
    """Products in double precision are left to the reference."""
    return x.dtype in OUTPUTS


@native("_block_decode", "block_decode", optional=True)
def block_decode(data: Slot, format: block_dtype, dtype: dt.dtype) -> Args | None:
    return (OUT, data, CODES[format.name]) if format.name in CODES and dtype in OUTPUTS else None


@native("_block_embedding", "block_embedding", optional=True)
def block_embedding(indices: Slot, data: Slot, format: block_dtype, dtype: dt.dtype) -> Args | None:
    return (OUT, data, indices, CODES[format.name]) if format.name in CODES and dtype in OUTPUTS else None


@native("_block_linear", "block_linear", accepts=takes, optional=True)
def block_linear(x: Slot, data: Slot, bias: Slot | None, format: block_dtype, exact: bool) -> Args | None:
    return (x, data, bias, OUT, CODES[format.name], int(exact)) if format.name in CODES else None


@native("_block_matmul", "block_matmul", accepts=takes, optional=True)
def block_matmul(x: Slot, data: Slot, format: block_dtype) -> Args | None:
    return (x, data, OUT, CODES[format.name]) if format.name in CODES else None
