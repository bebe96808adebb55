"""Shape and stride arithmetic. Pure functions and interned values; no tensors, no memory.

A `Layout` is a shape with strides; a `Spec` adds dtype and device. Both exist once per value, so
plans are looked up by identity. The storage offset is deliberately not part of either: no plan
depends on it, and a loop over `x[i]` must not make a new plan per row.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, SupportsIndex
from weakref import WeakValueDictionary

from . import spelled
from .device import device as Device
from .dtype import complex32
from .dtype import dtype as Dtype
from .errors import ShapeError, SizeError, UnsupportedError, caller, dim_range, size_text
from .remembered import symbolic

Shape = tuple[int, ...]


def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides; a size of 0 counts as 1, as in torch."""
    strides = [0] * len(shape)
    step = 1
    for i in range(len(shape) - 1, -1, -1):
        strides[i] = step
        step *= shape[i] if shape[i] > 1 else 1
    return tuple(strides)


def permuted_strides(shape: Shape, order: Sequence[int]) -> Shape:
    """Dense strides for dimensions laid out in `order`, outermost first."""
    strides = [0] * len(shape)
    step = 1
    for d in reversed(order):
        strides[d] = step
        step *= shape[d] if shape[d] > 1 else 1
    return tuple(strides)


def channels_last_strides(shape: Shape) -> Shape:
    """NHWC or NDHWC order for a 4-d or 5-d shape."""
    return permuted_strides(shape, (0, *range(2, len(shape)), 1))


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Whether elements lie in row-major order; dimensions of size 1 may have any stride."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return 0 in shape
            step *= size
    return True


def is_channels_last(shape: Shape, strides: Shape) -> bool:
    """Whether elements of a 4-d or 5-d shape lie in channels-last order."""
    if len(shape) not in (4, 5):
        return False
    step = 1
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0:
            return True
        if shape[d] != 1:
            if strides[d] != step:
                return 0 in shape
            step *= shape[d]
    return True


def is_dense(shape: Shape, strides: Shape) -> bool:
    """Whether the elements fill one block of memory without gaps or overlaps, in some order."""
    if 0 in shape:
        return True
    step = 1
    for stride, size in sorted((st, sz) for sz, st in zip(shape, strides, strict=True) if sz != 1):
        if stride != step:
            return False
        step *= size
    return True


def has_overlap(shape: Shape, strides: Shape) -> bool:
    """Whether two indices may reach one element (exact for expanded dims, cautious otherwise)."""
    if math.prod(shape) <= 1:
        return False
    reach = 0
    for stride, size in sorted((st, sz) for sz, st in zip(shape, strides, strict=True) if sz != 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def extent(shape: Shape, strides: Shape) -> int:
    """How many elements of storage a layout spans, counted from its first element."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """The common shape, aligned at the last dimension; sizes of 1 stretch."""
    first = shapes[0]
    if all(len(s) == len(first) and s == first for s in shapes[1:]):
        return first
    n = max(len(s) for s in shapes)
    out = [1] * n
    for s in shapes:
        for i, size in enumerate(s, n - len(s)):
            if size != 1:
                if out[i] not in (1, size):
                    joined = " and ".join(str(tuple(x)) for x in shapes)
                    raise ShapeError(
                        f"{op}: shapes {joined} do not broadcast: size {out[i]} does not match "
                        f"{size} at dimension {i - n}."
                    )
                out[i] = size
    return tuple(out)


def broadcast_strides(shape: Shape, strides: Shape, to: Shape) -> Shape:
    """Strides that read `shape` as `to`; stretched dimensions get stride 0."""
    lead = len(to) - len(shape)
    return (0,) * lead + tuple(
        0 if size == 1 and want != 1 else stride for size, stride, want in zip(shape, strides, to[lead:], strict=True)
    )


def view_strides(shape: Shape, strides: Shape, to: Shape) -> Shape | None:
    """Strides that read the same memory in shape `to`, or None when a copy is needed."""
    if 0 in shape:
        return strides if shape == to else contiguous_strides(to)
    out = [0] * len(to)
    j = len(to) - 1
    # Runs of source dimensions that are contiguous among themselves can be cut anywhere.
    i = len(shape) - 1
    if i < 0:
        return tuple(1 for _ in to)
    base = strides[i]
    run = 1
    for i in range(len(shape) - 1, -1, -1):
        run *= shape[i]
        last = i == 0
        if not last:
            if shape[i - 1] == 1 or strides[i - 1] == run * base:
                continue
        filled = 1
        while j >= 0 and (filled < run or to[j] == 1):
            out[j] = filled * base
            filled *= to[j]
            j -= 1
        if filled != run:
            return None
        if not last:
            base = strides[i - 1]
            run = 1
    return tuple(out) if j == -1 else None


def infer_size(op: str, shape: Sequence[int], numel: int) -> Shape:
    """Replace one -1 in a requested shape by what the number of elements implies."""
    out = [s.__index__() for s in shape]
    holes = [i for i, s in enumerate(out) if s == -1]
    if any(s < -1 for s in out):
        raise ShapeError(f"{op}: invalid size in shape {tuple(out)}; sizes are >= 0, or -1 once.")
    if len(holes) > 1:
        raise ShapeError(f"{op}: only one size can be inferred, got shape {tuple(out)}.")
    known = math.prod(s for s in out if s != -1)
    if holes:
        if known == 0:
            raise ShapeError(f"{op}: cannot infer -1 in {tuple(out)} because the other sizes hold 0 elements.")
        if numel % known == 0:
            out[holes[0]] = numel // known
            return tuple(out)
    if known != numel or holes:
        raise ShapeError(f"{op}: shape {tuple(shape)} is invalid for input of size {numel}.")
    return tuple(out)


def wrap_dim(op: str, dim: int, ndim: int, shape: Shape | None = None) -> int:
    """A dimension counted from the front; 0-d values accept 0 and -1."""
    n = ndim if ndim > 0 else 1
    if not -n <= dim < n:
        dim_range(op, dim, ndim, shape)
    return dim + n if dim < 0 else dim


def slice_bounds(start: int | None, stop: int | None, size: int) -> tuple[int, int]:
    """Where a slice of a dimension begins and ends, as `slice.indices` says, in comparisons that others may see."""
    try:
        begin = 0 if start is None else _clipped(start.__index__(), size)
        return begin, size if stop is None else _clipped(stop.__index__(), size)
    except AttributeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _clipped(at: int, size: int) -> int:
    if at < 0:
        at += size
    return 0 if at < 0 else size if at > size else at


def wrap_dims(op: str, dims: int | Sequence[int] | None, ndim: int, *, empty_is_all: bool = True) -> Shape:
    """Sorted dimensions of a reduction: None (and an empty list) mean all of them."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    if len(dims) == 0 and empty_is_all:
        return tuple(range(ndim))
    out = [wrap_dim(op, d, ndim) for d in dims]
    if len(set(out)) != len(out):
        raise ShapeError(f"{op}: a dimension appears twice in dim={tuple(dims)}.")
    return tuple(sorted(out)) if ndim else ()


def reduced_shape(shape: Shape, dims: Shape, keepdim: bool) -> Shape:
    """What is left of a shape after reducing `dims`."""
    if keepdim:
        return tuple(1 if i in dims else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in dims)


class Size(tuple[int, ...]):
    """A shape as users see it.

    >>> votive.zeros(2, 3).shape
    votive.Size([2, 3])
    """

    __slots__ = ()

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self) -> str:
        return f"{spelled.package}.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, i: Any) -> Any:
        got = tuple.__getitem__(self, i)
        return Size(got) if isinstance(i, slice) else got

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Iterable[int]) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        return (Size, (tuple(self),))


class Layout:
    """A shape with strides, interned: equal layouts are one object."""

    __slots__ = ("__weakref__", "_overlaps", "contiguous", "ndim", "numel", "shape", "size", "strides")
    # Weak: forgotten with the last tensor or plan that has it, so new shapes never pile up.
    _table: WeakValueDictionary[tuple[Shape, Shape], Layout] = WeakValueDictionary()
    shape: Shape
    size: Size
    strides: Shape
    numel: int
    ndim: int
    contiguous: bool
    _overlaps: bool | None

    def __new__(cls, shape: Shape, strides: Shape | None = None) -> Layout:
        if strides is None:
            strides = contiguous_strides(shape)
        key = sizes = (tuple(shape), tuple(strides))
        if symbolic.key is not None:
            key = symbolic.key(sizes)
        found = cls._table.get(key)
        if found is None:
            found = object.__new__(cls)
            found.shape, found.strides = sizes
            found.size = Size(shape)
            found.numel, found.ndim = math.prod(shape), len(shape)
            found.contiguous = is_contiguous(shape, strides)
            found._overlaps = None
            cls._table[key] = found
        return found

    @property
    def overlaps(self) -> bool:
        """Whether two indices may reach one element."""
        if self._overlaps is None:
            self._overlaps = not self.contiguous and has_overlap(self.shape, self.strides)
        return self._overlaps

    def __repr__(self) -> str:
        return f"Layout(shape={self.shape}, strides={self.strides})"


# Bytes, sizes and strides are signed 64-bit numbers to every kernel and to NumPy.
_MOST = 2**63 - 1


def _too_large(spec: Spec) -> NoReturn:
    takes = f"{spec.dtype} takes {size_text(spec.nbytes)}"
    if spec.nbytes <= _MOST:
        takes = f"strides {spec.strides} reaches further"
    raise SizeError(
        f"{caller.name()}: a tensor of shape {spec.shape} and {takes}, more than 64 bits can "
        "address; use smaller sizes."
    )


class Spec:
    """All that a plan needs to know of a tensor: layout, dtype, device. Interned."""

    __slots__ = (
        "__weakref__",
        "byte_strides",
        "device",
        "dtype",
        "layout",
        "nbytes",
        "ndim",
        "numel",
        "shape",
        "strides",
    )
    _table: WeakValueDictionary[tuple[Layout, Dtype, Device], Spec] = WeakValueDictionary()
    # The latest are kept a while: results whose size depends on the data would make theirs anew at every call.
    _recent: deque[Spec] = deque(maxlen=64)
    layout: Layout
    dtype: Dtype
    device: Device
    shape: Shape
    strides: Shape
    byte_strides: Shape
    numel: int
    ndim: int
    nbytes: int

    def __new__(cls, layout: Layout, dtype: Dtype, device: Device) -> Spec:
        key = (layout, dtype, device)
        found = cls._table.get(key)
        if found is None:
            if dtype is complex32 or dtype.category < 0:
                ways = ".chalf() or .to(votive.complex32)" if dtype is complex32 else f".to(votive.{dtype.name})"
                if hasattr(dtype, "codes"):
                    ways = "quantize_per_tensor()"
                raise UnsupportedError(
                    f"{caller.name()}: tensors of {dtype.name} are made from other tensors, with {ways}."
                )
            found = object.__new__(cls)
            found.layout, found.dtype, found.device = key
            found.shape, found.strides = layout.shape, layout.strides
            found.numel, found.ndim = layout.numel, layout.ndim
            found.byte_strides = tuple(s * dtype.itemsize for s in layout.strides)
            found.nbytes = layout.numel * dtype.itemsize
            if found.nbytes > _MOST or any(n > _MOST for n in (*found.shape, *found.byte_strides)):
                _too_large(found)
            cls._table[key] = found
            cls._recent.append(found)
        return found

    def like(
        self,
        shape: Shape | None = None,
        dtype: Dtype | None = None,
        strides: Shape | None = None,
        device: Device | None = None,
    ) -> Spec:
        """This spec with another shape (row-major unless strides are given), dtype or device."""
        if shape is None:
            layout = self.layout if strides is None else Layout(self.shape, strides)
        else:
            layout = Layout(shape, strides)
        return Spec(layout, dtype or self.dtype, device or self.device)

    @property
    def contiguous(self) -> bool:
        return self.layout.contiguous

    def dense_like(self, dtype: Dtype | None = None) -> Spec:
        """What `empty_like` makes: the same dense order of dimensions, else row-major."""
        if is_dense(self.shape, self.strides):
            return self.like(dtype=dtype)
        return self.like(self.shape, dtype=dtype, strides=elementwise_strides(self.shape, [self]))

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.strides}, {self.dtype}, {str(self.device)!r})"


def elementwise_strides(shape: Shape, inputs: Sequence[Spec]) -> Shape:
    """Strides of an elementwise result: the order of dimensions that the inputs agree on.

    Same rule as torch: dimensions are sorted by stride, the first input decides, stretched
    dimensions do not vote, equal strides fall back on size.
    """
    if all(s.layout.contiguous or s.ndim == 0 for s in inputs):
        return contiguous_strides(shape)
    full = [s for s in inputs if s.shape == shape]
    if len(full) == len([s for s in inputs if s.ndim]) and full:
        first = full[0].strides
        if all(s.strides == first for s in full) and is_dense(shape, first):
            return first
    operands = [broadcast_strides(s.shape, s.strides, shape) for s in inputs if s.ndim]
    n = len(shape)
    order = list(range(n - 1, -1, -1))  # innermost first

    def compare(d0: int, d1: int) -> int:
        for strides in operands:
            s0, s1 = strides[d0], strides[d1]
            if s0 == 0 or s1 == 0:
                continue
            if s0 != s1:
                return -1 if s0 < s1 else 1
            if shape[d0] > shape[d1]:
                return 1
        return 0

    for i in range(1, n):
        d1 = i
        for d0 in range(i - 1, -1, -1):
            c = compare(order[d0], order[d1])
            if c > 0:
                order[d0], order[d1] = order[d1], order[d0]
                d1 = d0
            elif c < 0:
                break
    return permuted_strides(shape, order[::-1])
