"""How a product of tensors is computed: which kernel or library call, what is copied first, how
batches are walked. Knows specs, not operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec
from ... import precision
from ...libraries import cublas
from ...programs.layouts import contiguous
from ...programs.types import Ints
from ...runtime.autotune import Autotuned
from ...runtime.views import View
from .epilogue import Activation
from .kernels import FewRows, Plain, Side, Whole
from .tiles import Tiles, tiles

# The own kernel reads weights at the speed of memory for so many rows of this many bytes a number;
# beyond, its sums take longer than reading, and the library's tensor cores do not.
FEW = {2: 1, 4: 3}
FEW_AT_ALL = 8  # rows that it takes where the library is missing, or the work is next to none
NEXT_TO_NONE = 1 << 22  # products of numbers: below, starting the library costs more
OUTER = 32  # calls that one product may take before operands are copied together
_WITH_BIAS = {"": cublas.BIAS, "relu": cublas.RELU_BIAS, "gelu_tanh": cublas.GELU_BIAS}
_WITHOUT = {"": cublas.PLAIN, "relu": cublas.RELU, "gelu_tanh": cublas.GELU}


class Library:
    """Any product by cuBLASLt."""

    def __init__(self, a: Side, b: Side, out: Side, count: int = 1, **options: Any) -> None:
        compute = {dt.float64: "f64", dt.int32: "i32"}.get(out.dtype.to_real(), "f32")
        if a.dtype is dt.float32 and precision.matmul.allow_tf32:
            compute = "tf32"
        # In columns: the right operand comes first.
        self.product = cublas.Product(
            _transposed(b, count), _transposed(a, count), _result(out, count), compute=compute, **options
        )

    def __call__(self, a: int, b: int, out: int, **how: Any) -> None:
        self.product(b, a, out, **how)


def _transposed(s: Side, count: int) -> cublas.Matrix:
    """The transpose of an operand in the library's terms."""
    if s.col == 1 or s.cols == 1:
        return cublas.Matrix(s.dtype, s.cols, s.rows, s.row if s.rows > 1 else s.cols, False, count, s.batch)
    return cublas.Matrix(s.dtype, s.rows, s.cols, s.col, True, count, s.batch)


def _result(s: Side, count: int) -> cublas.Matrix:
    return cublas.Matrix(s.dtype, s.cols, s.rows, s.row if s.rows > 1 else s.cols, False, count, s.batch)


def unit(s: Side) -> bool:
    """Whether the library can read an operand where it lies."""
    if s.col == 1 or s.cols == 1:
        return s.rows == 1 or s.row >= s.cols
    return (s.row == 1 or s.rows == 1) and s.col >= s.rows


def fused(dtype: dt.dtype, activation: str, bias: bool) -> int | None:
    """The library's epilogue; its GELU is the one by tanh, to the digits of a half type."""
    if activation and dtype not in dt.HALF and (activation, dtype) != ("relu", dt.float32):
        return None
    return (_WITH_BIAS if bias else _WITHOUT).get(activation)


def _nothing(*args: Any, **how: Any) -> None:
    """An empty product."""


def _few(a: Side, b: Side) -> bool:
    """Whether the own kernel for a few rows serves, and faster than the library."""
    if a.rows > FEW_AT_ALL or not a.cols or b.cols < 256 or a.dtype is not b.dtype:
        return False
    if a.dtype not in (dt.float32, *dt.HALF) or a.col != 1 or b.row != 1 or b.col < b.rows:
        return False
    small = a.rows * b.rows * b.cols <= NEXT_TO_NONE
    return small or a.rows <= FEW[a.dtype.itemsize] or not cublas.library.load()


def engine(a: Side, b: Side, out: Side, count: int, bias: dt.dtype | None, add: bool, activation: str) -> Any:
    """The way to compute one product (or a batch of them); None when none ends so."""
    if a.dtype.is_complex and not cublas.library.load():
        from ..complex.products import Four

        return Four(a, b, out, count)
    if not a.dtype.is_inexact:
        return Whole(a, b, out, count, bias is not None, add, activation)
    if count == 1 and not add and _few(a, b):
        w = Side(b.dtype, b.cols, b.rows, b.col, 1, 0)
        return FewRows(a, w, out, bias, activation)
    if a.cols and cublas.library.load():
        epilogue = fused(out.dtype, activation, bias is not None)
        if epilogue is None:
            return None
        return Library(a, b, out, count, bias=bias, epilogue=epilogue)
    return Plain(a, b, out, count, bias, add, activation)


@dataclass
class _Batch:
    """How the matrices of a batch are walked: an inner distance, and outer steps one by one."""

    count: int
    inner: Ints  # distances of a, b, out within a call
    outer: list[Ints]  # offsets of a, b, out, a call each


def _batches(shape: Ints, strides: list[Ints]) -> _Batch:
    sizes: list[int] = []
    steps: list[list[int]] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        mine = [s[d] for s in strides]
        if sizes and all(p == m * n for p, m in zip(steps[-1], mine, strict=True)):
            sizes[-1] *= n
            steps[-1] = mine
        else:
            sizes.append(n)
            steps.append(mine)
    if not sizes:
        return _Batch(1, (0,) * len(strides), [(0,) * len(strides)])
    outer = [(0,) * len(strides)]
    for n, step in zip(sizes[:-1], steps[:-1], strict=True):
        outer = [tuple(o + k * s for o, s in zip(at, step, strict=True)) for at in outer for k in range(n)]
    return _Batch(sizes[-1], tuple(steps[-1]), outer)


def _matrix(spec: Spec, left: bool) -> tuple[Ints, Ints, int, int, int, int]:
    """(batch shape, batch strides, rows, cols, row stride, column stride), vectors as matrices."""
    if spec.ndim == 1:
        n, s = spec.shape[0], spec.strides[0]
        return ((), (), 1, n, n, s) if left else ((), (), n, 1, s, 1)
    (rows, cols), (row, col) = spec.shape[-2:], spec.strides[-2:]
    return spec.shape[:-2], spec.strides[:-2], rows, cols, row, col


def _broadcast(shape: Ints, strides: Ints, to: Ints) -> Ints:
    pad = len(to) - len(shape)
    out = [0] * pad
    for n, s in zip(shape, strides, strict=True):
        out.append(0 if n == 1 else s)
    return tuple(out)


class Planned:
    """A product of two tensors: which operands are copied first, and the calls that follow.

    `engine` is None when the library cannot end the product with the activation.
    """

    def __init__(
        self, a: Spec, b: Spec, out: Spec, bias: dt.dtype | None = None, add: bool = False, activation: str = ""
    ) -> None:
        self.copies = [False, False]
        specs = [a, b]
        for which in (0, 1):
            _, _, rows, cols, row, col = _matrix(specs[which], which == 0)
            if not unit(Side(a.dtype, rows, cols, row, col, 0)):
                specs[which] = specs[which].like(specs[which].shape)
                self.copies[which] = True
        found = self._plan(specs[0], specs[1], out)
        if len(found[3].outer) > OUTER:
            for which in (0, 1):
                if specs[which].ndim > 2 and not specs[which].contiguous:
                    specs[which] = specs[which].like(specs[which].shape)
                    self.copies[which] = True
            found = self._plan(specs[0], specs[1], out)
        left, right, result, batch = found
        item, to = a.dtype.itemsize, out.dtype.itemsize
        self.outer = [(i * item, j * item, k * to) for i, j, k in batch.outer]
        self.engine: Any = _nothing
        if left.rows and right.cols and batch.count:
            self.engine = engine(left, right, result, batch.count, bias, add, activation)
        # The usual: one call of the library on what lies as it is.
        plain = isinstance(self.engine, Library) and self.outer == [(0, 0, 0)]
        self.product = self.engine.product if plain and not any(self.copies) else None
        self.work = 2 * left.rows * left.cols * right.cols * batch.count * len(batch.outer)

    def _plan(self, a: Spec, b: Spec, out: Spec) -> Any:
        ashape, astrides, m, k, am, ak = _matrix(a, True)
        bshape, bstrides, _, n, bk, bn = _matrix(b, False)
        ndim = max(len(ashape), len(bshape))
        shape = tuple(
            max(x, y) if 0 not in (x, y) else 0
            for x, y in zip((1,) * (ndim - len(ashape)) + ashape, (1,) * (ndim - len(bshape)) + bshape, strict=True)
        )
        ostrides = [0] * len(shape)
        step = m * n
        for d in range(len(shape) - 1, -1, -1):
            ostrides[d] = step
            step *= shape[d]
        batch = _batches(
            shape, [_broadcast(ashape, astrides, shape), _broadcast(bshape, bstrides, shape), tuple(ostrides)]
        )
        if batch.count > 1 and batch.inner[1] == 0 and len(batch.outer) == 1 and batch.inner[0] == am * m and ak == 1:
            # One right matrix for all: the rows of the batch are rows of one product.
            m, batch = m * batch.count, _Batch(1, (0, 0, 0), batch.outer)
        left = Side(a.dtype, m, k, am, ak, batch.inner[0])
        right = Side(b.dtype, k, n, bk, bn, batch.inner[1])
        result = Side(out.dtype, m, n, n, 1, batch.inner[2])
        return left, right, result, batch

    def __call__(self, out: View, a: View, b: View, **how: Any) -> None:
        if self.product is not None:
            self.product(b.ptr, a.ptr, out.ptr, **how)
            return
        if self.copies[0]:
            a = contiguous(a)
        if self.copies[1]:
            b = contiguous(b)
        add = how.pop("add", 0)
        for i, j, k in self.outer:
            self.engine(a.ptr + i, b.ptr + j, out.ptr + k, add=add + k if add else 0, **how)


def rows_of(spec: Spec) -> Spec | None:
    """All but the last dimension as one, where memory allows."""
    if spec.ndim == 2:
        return spec
    if not spec.contiguous or spec.ndim < 2:
        return None
    return spec.like((spec.numel // max(spec.shape[-1], 1), spec.shape[-1]))


class Activated:
    """A product and the activation of its sums: as one call, or as two when that is faster."""

    def __init__(self, a: Spec, b: Spec, out: Spec, bias: dt.dtype | None, activation: str, add: bool = False) -> None:
        fused = Planned(a, b, out, bias, add, activation)
        candidates: list[Any] = [] if fused.engine is None else [fused]
        if fused.engine is None or isinstance(fused.engine, Library):
            self.plain = Planned(a, b, out, bias, add)
            self.pass_ = Activation(out.dtype, out.numel, activation)
            candidates.append(self._apart)
        rows = None if add or b.ndim != 2 else rows_of(a)
        if rows is not None:
            for tile in tiles(rows, b):
                made = Tiles(rows, b, tile, activation, back=False, keep=False, bias=bias)
                candidates.append(_passing(made))
        # What is added lies where the result goes: a second run would add to the first one's.
        self.run = Autotuned(candidates[:1] if add else candidates, fused.work)

    def _apart(self, out: View, a: View, b: View, **how: Any) -> None:
        self.plain(out, a, b, **how)
        self.pass_(out.ptr, out.ptr)

    def __call__(self, out: View, a: View, b: View, **how: Any) -> None:
        self.run(out, a, b, **how)


def _passing(product: Tiles) -> Any:
    def by_tiles(out: View, a: View, b: View, bias: int = 0) -> None:
        product.forward(out.ptr, out.ptr, a.ptr, b.ptr, bias)

    return by_tiles


def transposed(spec: Spec) -> Spec:
    """A weight as the right operand: features in, features out."""
    if spec.ndim == 1:
        return spec
    return spec.like(spec.shape[::-1], strides=spec.strides[::-1])


def stretched(x: View, to: Spec) -> View:
    """A view broadcast to a shape."""
    pad = to.ndim - x.spec.ndim
    strides = (0,) * pad + tuple(0 if n == 1 else s for n, s in zip(x.spec.shape, x.spec.strides, strict=True))
    return View(x.ptr, x.spec.like(to.shape, strides=strides), x.storage)
