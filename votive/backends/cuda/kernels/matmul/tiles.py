"""Products by tensor cores whose tiles pass through an activation, or its slope, before they are
stored: for activations that the library has not, or is slower with. Knows addresses and sizes.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE, Program
from ...runtime.autotune import WORTH_TIMING
from ...runtime.views import empty
from .epilogue import KINDS, _join, activate, slope

# Rows, columns and inner size of a tile, warps and stages.
TILES = ((128, 128, 64, 8, 3), (128, 256, 64, 16, 3))
GROUP = 8  # rows of tiles that share columns while those are in the cache


@triton.jit
def place(M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """The tile of a program: programs that run together share rows and columns."""
    rows = tl.cdiv(M, BM)
    cols = tl.cdiv(N, BN)
    at = tl.program_id(0)
    first = at // (GROUP * cols) * GROUP
    count = tl.minimum(rows - first, GROUP)
    inside = at % (GROUP * cols)
    return first + inside % count, inside // count


@triton.jit
def _passed(
    o,
    kept,
    a,
    b,
    bias,
    sums,
    M,
    N,
    K,
    am,
    bs,
    KIND: tl.constexpr,
    BACK: tl.constexpr,
    KEEP: tl.constexpr,
    BIAS: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Forward: `kept = a @ b + bias`, stored with KEEP, and `o = activation(kept)`. BACK:
    `o = (a @ b) * slope(kept)` and the sums of the tile's columns. TRANSPOSED: columns of b are dense,
    not rows. N and K are multiples of BN and BK.
    """
    row, col = place(M, N, BM, BN, GROUP)
    i = row * BM + tl.arange(0, BM)
    j = col * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    # Beyond the end the last row is read once more, and nothing is stored.
    left = tl.minimum(i, M - 1)[:, None] * am + k[None, :]
    if TRANSPOSED:
        right = j[None, :] * bs + k[:, None]
        step = BK
    else:
        right = k[:, None] * bs + j[None, :]
        step = BK * bs
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(a + left)
        y = tl.load(b + right)
        total = tl.dot(x, y, total)
        a += BK
        b += step

    kind = o.dtype.element_ty
    inside = i[:, None] < M
    at = i[:, None] * N + j[None, :]
    if BACK:
        z = tl.load(kept + at, mask=inside, other=0.0).to(tl.float32)
        y = (total.to(kind).to(tl.float32) * slope(z, KIND, True)).to(kind)
        tl.store(o + at, y, mask=inside)
        part = tl.sum(tl.where(inside, y.to(tl.float32), 0.0), 0)
        tl.store(sums + row * N + j, part)
    else:
        if BIAS:
            total += tl.load(bias + j).to(tl.float32)[None, :]
        z = total.to(kind)
        if KEEP:
            tl.store(kept + at, z, mask=inside)
        tl.store(o + at, activate(z.to(tl.float32), KIND, True).to(kind), mask=inside)


def tiles(a: Spec, b: Spec) -> list[Any]:
    """The tiles that divide a product of two matrices of a half type, where those lie so that
    tiles of them are read as they are, and it is large enough to be worth compiling for.
    """
    (m, k), n, far = a.shape, b.shape[1], max(b.strides)
    if a.dtype not in dt.HALF or a.strides[1] != 1 or min(b.strides) != 1:
        return []
    # Sixteen bytes at a time, and places counted in 32 bits.
    if a.strides[0] % 8 or far % 8 or max(m * a.strides[0], m * n, far * max(k, n)) >= 1 << 31:
        return []
    if 2 * m * k * n < WORTH_TIMING:
        return []
    # Rows of b as they lie take more registers than the wider tile leaves.
    known = TILES if b.strides[0] == 1 else TILES[:1]
    return [t for t in known if k and not k % t[2] and not n % t[1] and m >= t[0]]


class Tiles:
    """`kept = a @ b + bias` and `o = activation(kept)`; with `back`, `o = (a @ b) * slope(kept)`
    and the sums of its columns.
    """

    def __init__(
        self,
        a: Spec,
        b: Spec,
        tile: Any,
        activation: str,
        *,
        back: bool,
        keep: bool = True,
        bias: dt.dtype | None = None,
    ) -> None:
        (m, k), n = a.shape, b.shape[1]
        bm, bn, bk, warps, stages = tile
        transposed = b.strides[0] == 1
        kind = "*" + TYPE[a.dtype]
        types = [kind] * 4 + ["*" + TYPE[bias or a.dtype], "*fp32"] + ["i32"] * 5
        self.numbers = (m, n, k, a.strides[0], b.strides[1] if transposed else b.strides[0])
        self.program = Program(
            _passed,
            types,
            {
                "KIND": KINDS[activation],
                "BACK": back,
                "KEEP": keep,
                "BIAS": bias is not None,
                "TRANSPOSED": transposed,
                "BM": bm,
                "BN": bn,
                "BK": bk,
                "GROUP": GROUP,
            },
            warps=warps,
            stages=stages,
        )
        self.program.divisible = tuple(6 + i for i, v in enumerate(self.numbers) if v % 16 == 0)
        parts = -(-m // bm)
        self.grid, self.parts, self.cols = (parts * -(-n // bn),), parts, n
        self.partial = Spec(Layout((parts, n)), dt.float32, a.device)
        self.join = Program(_join, [kind, "*fp32", "i32", "i32"], {"COUNT": next_power_of_two(parts), "BN": 32})

    def forward(self, o: int, kept: int, a: int, b: int, bias: int) -> None:
        self.program(self.grid, o, kept, a, b, bias, 0, *self.numbers)

    def back(self, o: int, sums: int, kept: int, a: int, b: int) -> None:
        partial = empty(self.partial)
        self.program(self.grid, o, kept, a, b, 0, partial.ptr, *self.numbers)
        self.join((-(-self.cols // 32),), sums, partial.ptr, self.parts, self.cols)
