"""Convolutions and their gradients as products whose matrices are never laid out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.lines import shared_program
from ...programs.program import pointer
from ...programs.types import Ints, wide
from ...runtime.views import View, empty
from .staging import flat_step, staged, staged_weight
from .taps import add_parts, convolve_taps
from .tiles import Tile, multiplying, tiles, weight_tiles
from .weight_taps import join_weights, weigh_taps

MOST_PHASES = 64


def three(values: Any, fill: int) -> Ints:
    """Three dimensions, those that are not there in front."""
    return (fill,) * (3 - len(values)) + tuple(values)


@dataclass(frozen=True)
class Convolve:
    """What a convolution, or its transpose, is asked for. `size`: the places of the result."""

    x: Slot
    weight: Slot
    bias: bool
    size: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int
    transposed: bool

    @property
    def columns(self) -> int:
        """Channels of the result, of one group."""
        return self.weight.shape[1] if self.transposed else self.weight.shape[0] // self.groups

    @property
    def apart(self) -> bool:
        """Whether no input serves more than a few channels: nothing for a product of matrices."""
        return self.x.shape[1] == self.groups and self.columns <= 4

    @property
    def work(self) -> int:
        """Multiplications and additions."""
        places = math.prod(self.x.shape[2:] if self.transposed else self.size)
        return 2 * self.x.shape[0] * places * self.weight.numel


def divider(n: int) -> int:
    """A factor and a shift that divide by n (Granlund & Montgomery 1994), for `taps.quotient`."""
    shift = (n - 1).bit_length()
    return (2**32 * (2**shift - n) // n + 1) | shift << 32


def _inverse(a: int, n: int) -> int:
    return pow(a, -1, n) if n > 1 else 0


def _dense(x: Spec, last: bool) -> bool:
    """Whether a tensor lies dense with its channels last, or in front of its places."""
    places = math.prod(x.shape[2:])
    inner = tuple(math.prod(x.shape[d + 1 :]) for d in range(2, x.ndim))
    channels = x.shape[1]
    wanted = (places * channels, 1, *(s * channels for s in inner)) if last else (places * channels, places, *inner)
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.strides, wanted, strict=True))


def _filled(run: int, taps: int, half: bool) -> int:
    """How many terms are multiplied, those that fill tiles up included."""
    return min(taps * -(-run // bk) * bk * (1 + 8 // bk) for bk in ((64, 32, 16) if half else (32, 16)))


def implicit(p: Convolve, out: Spec, count: int) -> list[Callable[..., None]]:
    """`run(out, x, weight, bias)` in a few ways, the most promising first; none where sizes are
    beyond what a kernel counts in.
    """
    x = p.x
    if x.dtype is dt.float64:
        return []
    source, weights = staged(x, p.groups), staged_weight(p.weight, p.groups, p.transposed)
    vec, kind = source.vec, pointer(x.dtype)
    kernel = three(p.weight.shape[2:], 1)
    stride, padding, dilation = three(p.stride, 1), three(p.padding, 0), three(p.dilation, 1)
    size, given = three(p.size, 1), three(x.shape[2:], 1)
    common = tuple(math.gcd(s, d) for s, d in zip(stride, dilation, strict=True))
    inverse = tuple(_inverse(d // g, s // g) for s, d, g in zip(stride, dilation, common, strict=True))
    phases = math.prod(stride) if p.transposed else 1
    if phases > MOST_PHASES:
        return []
    places = tuple(-(-o // s) for o, s in zip(size, stride, strict=True)) if p.transposed else size
    step = three(source.place, 0)
    channels, taps = source.channels, math.prod(kernel)
    half = x.dtype in dt.HALF
    # A row of the window lies dense where pixels do.
    alike = not p.transposed and p.groups == 1 and dilation[2] == 1 and step[2] == channels and kernel[2] > 1
    by_row = _filled(kernel[2] * channels * vec, taps // kernel[2], half)
    row = alike and not weights.columns and by_row * 1.1 < _filled(channels * vec, taps, half)
    tap = weights.tap
    if row:
        channels, taps, tap = kernel[2] * channels, taps // kernel[2], kernel[2] * tap
        kernel = (*kernel[:2], 1)
    rows, columns = x.shape[0] * math.prod(places), p.columns
    steps = tuple(abs(s) for s in (*out.strides[1:], *step))
    reach = max(
        sum((n + 2 * q + abs(d) * k) * s for n, q, d, k, s in zip(given, padding, dilation, kernel, step, strict=True)),
        *(i + 2 * q + d * k for i, q, d, k in zip(size, padding, dilation, kernel, strict=True)),
        p.groups * columns * taps * channels,
        p.weight.numel // vec,
        x.shape[0] * source.outer,
        math.prod(out.shape),
        *stride,
        *(n * s for n, s in zip((p.groups * columns, *size), steps, strict=False)),
        *steps,
    )
    if rows >= 2**30 or reach * vec >= 2**31 or x.numel >= 2**30 or p.groups * phases > 65535:
        return []
    last = _dense(out, True)
    placing = (*places, *size)
    dividers = tuple(divider(n) for n in places)
    whole_channels = 16 // x.dtype.itemsize
    cvec = whole_channels if columns % whole_channels == 0 else 2 if columns % 2 == 0 else 1
    numbers = (
        *placing,
        *given,
        *kernel,
        *stride,
        *padding,
        *dilation,
        *common,
        *inverse,
        source.outer,
        source.group,
        *step,
        weights.outer,
        tap,
    )
    target = (out.strides[0], out.strides[1], *three(out.strides[2:], 0))
    if last:  # also of dimensions of size 1, where strides say nothing
        pixel = p.groups * columns // cvec
        target = (pixel * math.prod(size), 1, pixel * size[1] * size[2], pixel * size[2], pixel)
    linear = phases == 1 and (last or _dense(out, False))
    fixed = {"TRANSPOSED": p.transposed, "BIAS": p.bias, "LAST": last, "LINEAR": linear, "CVEC": cvec}
    fixed["WIDE"] = wide(x.dtype)
    more = {
        "ROW": row,
        "PADDED": p.transposed or any(padding),
        "COLUMNS": weights.columns,
        "VEC": vec,
        "PRECISION": multiplying(x.dtype),
    }

    def made(tile: Tile) -> Callable[..., None]:
        split = tile.parts > 1
        constants = {**fixed, **more, "SPLIT": split, "BM": tile.bm, "BN": tile.bn, "BK": tile.bk}
        types = [kind, "*fp32", kind, kind, kind, *["i32"] * 44, *["i64"] * 3]
        program = shared_program(
            convolve_taps,
            types,
            constants,
            warps=tile.warps(multiplying(x.dtype)),
            stages=tile.stages(x.dtype.itemsize),
        )
        across = -(-columns // tile.bn)
        grid = (-(-rows // tile.bm), across, p.groups * tile.parts * phases)
        whole = (rows, columns // cvec, channels, *numbers, *target, p.groups, tile.parts, *dividers)
        if not split:

            def run(out: View, x: View, w: View, bias: View | None) -> None:
                x, w = source.get(x), weights.get(w)
                b = w if bias is None else bias
                program(grid, out.ptr, out.ptr, x.ptr, w.ptr, b.ptr, *whole)

            return run
        every = p.groups * columns
        sums = Spec(Layout((phases * tile.parts * rows * every,)), dt.float32, out.device)
        bm, bn = (32, 32) if not last else (16, 64)
        add = shared_program(
            add_parts, [kind, "*fp32", kind, *["i32"] * 18, *["i64"] * 3], {**fixed, "BM": bm, "BN": bn}
        )
        to = (-(-rows // bm), -(-every // bn), phases)
        after = (rows, every // cvec, *placing, *stride, *target, 1, tile.parts, *dividers)

        def run_parts(out: View, x: View, w: View, bias: View | None) -> None:
            x, w, made = source.get(x), weights.get(w), empty(sums)
            b = w if bias is None else bias
            program(grid, out.ptr, made.ptr, x.ptr, w.ptr, b.ptr, *whole)
            add(to, out.ptr, made.ptr, b.ptr, *after)

        return run_parts

    chosen = tiles(x.dtype, rows, columns, channels * vec, -(-taps // phases), p.groups * phases, count)
    return [labelled(made(tile), tile) for tile in chosen]


def labelled(run: Callable[..., None], tile: Tile) -> Callable[..., None]:
    """The same with its tile's sizes as a name, for whoever looks at what was timed."""
    run.__name__ = f"{tile.bm}x{tile.bn}x{tile.bk}/{tile.parts}"
    return run


@dataclass(frozen=True)
class Weigh:
    """What a weight gradient is asked for."""

    x: Slot
    grad: Slot
    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int

    @property
    def apart(self) -> bool:
        """Whether each channel of the input is a group."""
        return self.x.shape[1] == self.groups

    @property
    def work(self) -> int:
        """Multiplications and additions."""
        per = self.x.shape[1] // self.groups
        return 2 * self.grad.numel * per * math.prod(self.kernel)


def implicit_weight(p: Weigh, out: Spec, count: int) -> list[Callable[..., None]]:
    """`run(out, x, grad)` in a few ways, the most promising first."""
    x, y = p.x, p.grad
    if x.dtype is dt.float64:
        return []
    source, grads = staged(x, p.groups), staged(y, p.groups)
    vec, yvec, kind = source.vec, grads.vec, pointer(x.dtype)
    kernel, size, given = three(p.kernel, 1), three(y.shape[2:], 1), three(x.shape[2:], 1)
    stride, padding, dilation = three(p.stride, 1), three(p.padding, 0), three(p.dilation, 1)
    step = three(source.place, 0)
    places = math.prod(size)
    # Positions of the gradient are counted in one number.
    line = flat_step((y.shape[0], *y.shape[2:]), (grads.outer, *grads.place))
    if line is None:
        return []
    positions, channels, taps = y.shape[0] * places, source.channels, math.prod(kernel)
    rows, per = y.shape[1] // p.groups, x.shape[1] // p.groups
    alike = p.groups == 1 and dilation[2] == 1 and step[2] == channels and kernel[2] > 1
    runs, width = taps, channels
    if alike and _wasted(kernel[2] * channels * vec) * 1.1 < _wasted(channels * vec):
        runs, width = taps // kernel[2], kernel[2] * channels
    filled = grads.channels * yvec
    reach = max(
        sum((n + 2 * q + d * k) * s for n, q, d, k, s in zip(given, padding, dilation, kernel, step, strict=True)),
        *stride,
        *dilation,
        *padding,
        x.shape[0] * source.outer,
        math.prod(out.shape),
        p.groups * filled * taps * channels,
    )
    if positions >= 2**30 or reach * vec >= 2**31 or positions * line * yvec >= 2**31:
        return []
    flat = flat_step(tuple(out.shape[2:]), tuple(out.strides[2:]))
    if flat is None:
        return []
    windows = (kernel[1], kernel[2] if runs == taps else 1)
    numbers = (*size, *given, *windows, *stride, *padding, *dilation, source.outer, source.group, *step)
    numbers += (grads.group, line, runs, p.groups, *(divider(n) for n in size))
    fixed = {
        "ROW": runs != taps,
        "PADDED": any(padding),
        "VEC": vec,
        "YVEC": yvec,
        "PRECISION": multiplying(x.dtype),
        "WIDE": wide(x.dtype),
    }
    join = shared_program(
        join_weights, [kind, "*fp32", *["i32"] * 6, *["i64"] * 4, "i32"], {"WIDE": wide(x.dtype), "BLOCK": 256}
    )
    whole = p.groups * filled * taps * channels * vec

    def made(tile: Tile) -> Callable[..., None]:
        part = -(-positions // tile.parts)
        part += -part % tile.bk
        parts = -(-positions // part)
        program = shared_program(
            weigh_taps,
            ["*fp32", kind, kind, *["i32"] * 29, *["i64"] * 3, "i32"],
            {**fixed, "BM": tile.bm, "BN": tile.bn, "BK": tile.bk},
            warps=tile.warps(multiplying(x.dtype)),
            stages=tile.stages(x.dtype.itemsize),
        )
        grid = (-(-rows // tile.bm), runs * -(-width * vec // tile.bn), p.groups * parts)
        sums = Spec(Layout((parts * whole,)), dt.float32, out.device)
        n = math.prod(out.shape)
        after = (n, per, taps, channels * vec, rows, filled, out.strides[0], out.strides[1], flat, whole, parts)

        def run(out: View, x: View, y: View) -> None:
            x, y, made = source.get(x), grads.get(y), empty(sums)
            program(grid, made.ptr, x.ptr, y.ptr, positions, grads.channels, width, *numbers, part)
            join((-(-n // 256),), out.ptr, made.ptr, *after)

        return run

    chosen = weight_tiles(x.dtype, rows, width * vec, positions, runs * p.groups, count)
    return [labelled(made(tile), tile) for tile in chosen]


def _wasted(width: int) -> float:
    """What filling tiles of at least 32 channels up costs."""
    return -(-width // 32) * 32 / width
