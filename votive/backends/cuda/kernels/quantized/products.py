"""Products with weights in blocks: which launch a shape takes, and what is copied first. Knows specs, not formats."""

from __future__ import annotations

from collections.abc import Callable

from .....core import dtype as dt
from .....core.blocks import block_dtype
from .....core.layout import Spec
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.layouts import contiguous, row_stride, sizes
from ...programs.types import FLOATS, Run
from ...rows import cuda
from ...runtime.autotune import Autotuned
from ...runtime.views import View, zero
from ..matmul.plan import stretched
from .blocks import FORMATS, Format
from .kernels import Few, Tiles
from .plane_products import BY_PLANES, Decoded, Planes, by_planes
from .rounded import Rounded, rounds, ways
from .tables import aligned, layout, readable
from .words import BY_PIECES, Words, fits, serves

FEW = 4  # rows whose sums take no longer than reading the weight
SOME = 8  # rows up to which that may be so by words
MANY = 64  # rows from which decoding the weight first is likely to pay
# Features and elements of a tile, and warps; the first call takes the fastest.
BY_ROWS = ((4, 512, 4), (2, 1024, 4), (1, 2048, 8))
# Features, inner size, warps, and rows at most. Few rows want wide tiles of the weight, many share what was decoded.
BY_TILES = ((64, 64, 4, 64), (128, 64, 8, 128), (64, 128, 8, 64))
WORTH_TIMING = 1 << 24  # multiplications: one row of a layer of a large model is worth it

Launch = Callable[[View, int, int, int], None]


def _ways(
    x: Spec, sx: int, rows: int, format: Format, n: int, k: int, stride: int, along: bool, bias: bool, exact: bool
) -> list[Launch]:
    if along and not exact and rounds(x.dtype, format, rows):
        # None but these: what is rounded must not depend on what was timed.
        return [Rounded(x, sx, rows, format, n, k, stride, bias, _in_fours(x, sx), way) for way in ways(format)]
    found: list[Launch] = []
    if along and rows <= SOME and serves(x, format):
        fitting = [way for way in BY_PIECES if fits(x, format, rows, way)]
        found += [Words(x, sx, rows, format, n, k, stride, bias, _in_fours(x, sx), way) for way in fitting]
    elif along and rows <= FEW:
        found += [Few(x, sx, rows, format, n, k, stride, bias, way) for way in BY_ROWS]
    if rows <= (FEW if along and x.dtype not in dt.HALF else 1) and found:
        return found
    decoded = lambda: Decoded(x, sx, rows, format, n, k, stride, along, bias)
    if along and by_planes(x.dtype, format):
        found += [decoded()] if rows > MANY else []
        found += [Planes(x, sx, rows, format, n, k, stride, bias, way) for way in BY_PLANES]
        return [*found, decoded()] if SOME < rows <= MANY else found
    if rows <= FEW and found:
        return found
    found += [Tiles(x, sx, rows, format, n, k, stride, along, bias, way) for way in BY_TILES]
    return [*found, decoded()]


def _in_fours(x: Spec, sx: int) -> bool:
    """Whether four half numbers of a row can be read at once, if the first row begins at a multiple of eight."""
    return x.dtype in dt.HALF and sx % 4 == 0


class _Product:
    """x of any leading dimensions times the weight: planned once for its specs."""

    def __init__(self, x: Spec, data: Spec, format: Format, n: int, along: bool, bias: bool, exact: bool) -> None:
        rows, k = sizes(x)
        sx = row_stride(x)
        self.packed, self.format = sx is None, format
        self.copy, stride = layout(data, format)
        across = k if sx is None else sx
        read = serves(x, format) or rounds(x.dtype, format, rows)
        self.in_fours = along and rows <= SOME and read and _in_fours(x, across)
        found = _ways(x, across, rows, format, n, k, stride, along, bias, exact)
        self.launch = Autotuned(list(found), rows * n * k, WORTH_TIMING)

    def __call__(self, out: View, x: View, data: View, bias: View | None) -> None:
        if self.packed:
            x = contiguous(x)
        if self.in_fours:
            x = aligned(x, 8)
        data = readable(data, self.copy, self.format)
        added = None if bias is None else contiguous(bias)
        self.launch(out, x.ptr, data.ptr, 0 if added is None else added.ptr)


@cuda("_block_linear")
def block_linear(x: Slot, data: Slot, bias: Slot | None, format: block_dtype, exact: bool) -> Run:
    known = FORMATS.get(format.name)
    if known is None or x.dtype not in FLOATS:
        return None
    if not x.numel or not data.numel:
        return _sums_of_nothing
    product = _Product(x.spec, data.spec, known, data.shape[0], True, bias is not None, exact)
    return lambda outs, x, data, bias: product(outs[0], x, data, bias)


def _sums_of_nothing(outs: list[View], x: View, data: View, bias: View | None) -> None:
    if bias is None:
        zero(outs[0])
    else:
        copy_view(outs[0], stretched(bias, outs[0].spec))


@cuda("_block_matmul")
def block_matmul(x: Slot, data: Slot, format: block_dtype) -> Run:
    known = FORMATS.get(format.name)
    if known is None or x.dtype not in FLOATS:
        return None
    if not x.numel or not data.numel:
        return lambda outs, x, data: zero(outs[0])
    product = _Product(x.spec, data.spec, known, format.row_elements(data.shape[1]), False, False, True)
    return lambda outs, x, data: product(outs[0], x, data, None)
