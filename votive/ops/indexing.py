"""`x[index]` and `x[index] = value`: basic indexes are views, tensors read and write by position.

Knows the grammar of indexes and the shapes they give; what reads the values is below.
"""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtype as dt
from ..core.errors import DeviceError, DimError, fail, foreign_array, received
from ..core.layout import Shape, Spec, slice_bounds
from .index_put import as_tensor_index, check_mask, indexed_shape, is_mask, positions
from .registry import OPS, F, Op, composite, view
from .strided import from_window

if TYPE_CHECKING:
    from .types import Ints, Tensor

_WHOLE = slice(None)
_GRAMMAR = "only integers, slices (`:`), ellipsis (`...`), None and int64, int32 or bool tensors are valid indices"

# --- basic indexes: one view, whatever their number -----------------------------------------------


def _infer_window(x: Spec, index: tuple[Any, ...]) -> tuple[Spec, int]:
    """`index` holds an int or a slice's triple per dimension, and None for each new one."""
    shape, strides, shift, d = [], [], 0, 0
    for entry in index:
        if entry is None:
            shape.append(1)
            strides.append(x.shape[d] * x.strides[d] if d < x.ndim else 1)
            continue
        if entry.__class__ is not tuple:
            shift += entry * x.strides[d]
        else:
            begin, end, step = entry
            shift += begin * x.strides[d]
            shape.append((end - begin + step - 1) // step)
            strides.append(x.strides[d] * step)
        d += 1
    return x.like(tuple(shape), strides=tuple(strides)), shift


view(
    "_window(Tensor input, any index)",
    placement="window",
    infer=_infer_window,
    grad={"input": lambda c, g: from_window(g, c.shape("input"), "_window", c.index)},
    doc="Several integers, slices and new dimensions at once.",
)


def _slice_of(entry: slice, size: int) -> tuple[int, int, int]:
    step = 1 if entry.step is None else operator.index(entry.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero; use flip() to reverse.")
    begin, end = slice_bounds(entry.start, entry.stop, size)
    return begin, max(begin, end), step


# --- reading the grammar --------------------------------------------------------------------------


def _entries(index: Any) -> tuple[Any, ...]:
    """The parts of an index; lists that hold more than numbers stand for a tuple, as in torch."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and any(
        part is None or part is ... or isinstance(part, (slice, list, tuple, np.ndarray)) or hasattr(part, "_spec")
        for part in index
    ):
        warnings.warn(
            "a list is taken for a tuple of indices because it holds more than numbers; "
            "write x[tuple(index)], or x[votive.tensor(index)] for positions.",
            stacklevel=4,
        )
        return tuple(index)
    return (index,)


def _as_index(input: Tensor, part: Any) -> Any:
    """One part as an int, a bool, a slice, None, Ellipsis or a tensor with dimensions."""
    if part.__class__ in (int, slice, bool) or part is None or part is ...:
        return part
    if not hasattr(part, "_spec"):
        if isinstance(part, np.bool_):
            return bool(part)
        if isinstance(part, (list, tuple, range, np.ndarray)):
            array = np.asarray(part)
            if array.dtype.kind not in "biuf":
                raise TypeError(f"{_GRAMMAR}, got {type(part).__name__} of {array.dtype}.")
            if array.ndim == 0:
                return _as_index(input, array.item())
            if array.dtype.kind != "b":
                array = array.astype(np.int64)
            return F._from_data(array, None, input.device)
        if hasattr(part, "__index__") and not foreign_array(part):
            return part.__index__()
        kind = TypeError if isinstance(part, str) else IndexError
        raise kind(f"{_GRAMMAR}, got {received(part)}.")
    part = as_tensor_index(part)
    if part.ndim == 0:
        return part.item()
    return part


def _flag(input: Any, value: bool) -> Any:
    """A bool as an index of a dimension of size 1: it is kept or not."""
    return F.zeros((int(value),), dtype=dt.int64, device=input.device)


def _brought(input: Tensor, index: Tensor) -> Tensor:
    """An index where the input is: one on the CPU serves every device."""
    here, there = input._spec.device, index._spec.device
    if here == there:
        return index
    if there.type != "cpu":
        fail(
            DeviceError,
            "indexing",
            "indices should be either on cpu or on the same device as the indexed tensor "
            f"({here}), got one on {there}.",
        )
    return index.to(here)


def _parse(input: Tensor, index: Any) -> tuple[tuple[Any, ...], list[tuple[int, Any]]]:
    """Split an index into a window on the input, and tensors at dimensions of that window."""
    shape = input._spec.shape
    parts = [_as_index(input, part) for part in _entries(index)]
    used = 0
    for part in parts:
        if is_mask(part):
            used += part.ndim
        elif part is not None and part is not ... and part.__class__ is not bool:
            used += 1
    if used > len(shape):
        fail(DimError, "indexing", f"too many indices for tensor of dimension {len(shape)}.")
    window: list[Any] = []
    tensors: list[tuple[int, Any]] = []
    d = out = 0  # the next dimension of the input, and of the window
    open_dims = len(shape) - used
    for part in parts:
        if part is None:
            window.append(None)
            out += 1
        elif part is ...:
            window.extend((0, n, 1) for n in shape[d : d + open_dims])
            d, out, open_dims = d + open_dims, out + open_dims, 0
        elif _is_int(part):
            size = shape[d]
            if not -size <= part < size:
                fail(DimError, "indexing", f"index {part} is out of bounds for dimension {d} with size {size}.")
            window.append(part + size if part < 0 else part)
            d += 1
        elif part.__class__ is slice:
            window.append(_slice_of(part, shape[d]))
            d, out = d + 1, out + 1
        elif part.__class__ is bool:
            window.append(None)
            tensors.append((out, _flag(input, part)))
            out += 1
        else:
            wide = 1
            if is_mask(part):
                check_mask(part, shape, d)
                wide = part.ndim
            tensors.append((out, _brought(input, part)))
            window.extend((0, n, 1) for n in shape[d : d + wide])
            d, out = d + wide, out + wide
    window.extend((0, n, 1) for n in shape[d:])
    return tuple(window), tensors


def _is_int(part: Any) -> bool:
    """An integer, which may be more than an int, see compiler/symbols.py; True is none."""
    return isinstance(part, int) and part.__class__ is not bool


def _is_whole(window: tuple[Any, ...], shape: Shape) -> bool:
    return len(window) == len(shape) and all(e == (0, n, 1) for e, n in zip(window, shape, strict=True))


def _plain(have: Spec, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...]] | None:
    """Tensors and their dimensions, where an index is made of int64 tensors and whole dimensions only."""
    if len(index) > have.ndim:
        return None
    found: list[Any] = []
    dims: list[int] = []
    for d, part in enumerate(index):
        if part.__class__ is slice and part == _WHOLE:
            continue
        spec = getattr(part, "_spec", None)
        if spec is None or spec.dtype is not dt.int64 or not spec.ndim or spec.device is not have.device:
            return None
        found.append(part)
        dims.append(d)
    return (tuple(found), tuple(dims)) if found else None


# --- what Tensor calls ----------------------------------------------------------------------------


@composite(name="_getitem", indexes=True)
def getitem(input: Tensor, index: Any) -> Tensor:
    """`input[index]`."""
    if _is_int(index) and input.ndim:
        return F.select(input, 0, index)
    if index.__class__ is slice and input.ndim:
        return F._slice(input, 0, *_slice_of(index, input._spec.shape[0]))
    if hasattr(index, "_spec"):
        have, given = input._spec, index._spec
        if given.device is not have.device:
            index = _brought(input, index)
        if given.dtype is dt.int64 and given.ndim and have.ndim:
            return F._index(input, (index,), (0,))
        if given.dtype is dt.bool_ and given.ndim and given.shape == have.shape:
            return F._masked_select(input, index)
    if index.__class__ is tuple:
        plain = _plain(input._spec, index)
        if plain is not None:
            return F._index(input, *plain)
    window, tensors = _parse(input, index)
    if not tensors:
        return F._window(input, window)
    if not _is_whole(window, input._spec.shape):
        input = F._window(input, window)
    if len(tensors) == 1 and is_mask(tensors[0][1]) and tensors[0][1].ndim == input.ndim:
        return F._masked_select(input, tensors[0][1])
    return F._index(input, *positions(tensors))


def _check_number(input: Tensor, value: int) -> None:
    """What is not a tensor must be a number that the type of the tensor can hold."""
    if not isinstance(value, (int, float, complex, np.number, np.bool_)):
        raise TypeError(
            f"can't assign to a tensor of {input.dtype}: expected a Tensor or a number, got {received(value)}."
        )
    if isinstance(value, complex) and not input.dtype.is_complex:
        fail(RuntimeError, "indexing", f"a complex value does not fit into {input.dtype}.")


def _trim(value: Any, ndim: int) -> Any:
    """Drop leading dimensions of size 1 that the target does not have."""
    shape = value._spec.shape
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return value if len(shape) == value.ndim else F.reshape(value, shape)


def _is_basic(index: Any) -> bool:
    """Whether an index surely gives a view."""
    if index.__class__ is tuple:
        return all(_is_int(p) or p.__class__ is slice or p is None or p is ... for p in index)
    return index.__class__ is slice or _is_int(index)


@composite(name="_setitem")
def setitem(input: Tensor, index: Any, value: Any) -> None:
    """`input[index] = value`, in place and recorded."""
    number = not hasattr(value, "_spec")
    if number:
        _check_number(input, value)
    if _is_basic(index):
        target = input[index]
        if number:
            target.fill_(value)
        else:
            target.copy_(_trim(value, target.ndim))
        return
    window, tensors = _parse(input, index)
    target = input if _is_whole(window, input._spec.shape) else F._window(input, window)
    if number:
        if not tensors:
            target.fill_(value)
            return
        value = F.zeros((), dtype=input.dtype, device=input.device).fill_(value)
    elif not tensors:
        target.copy_(_trim(value, target.ndim))
        return
    d, first = tensors[0]
    if len(tensors) == 1 and is_mask(first) and value._spec.numel == 1:
        tail = (1,) * (target.ndim - d - first.ndim)
        target.masked_fill_(F.reshape(first, *first.shape, *tail), F.reshape(value, ()))
        return
    indices, dims = positions(tensors)
    shape = indexed_shape("indexing", target._spec.shape, tuple(i._spec for i in indices), dims)
    Op.write(OPS["_index_put"], (target, indices, dims, _trim(value, len(shape)), False))


@composite(method=False)
def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """Positions in a flat tensor as one index per dimension of `shape`.

    >>> votive.unravel_index(votive.tensor([5, 3]), (2, 3))
    (tensor([1, 1]), tensor([2, 0]))
    """
    op = "unravel_index"
    if indices.dtype.category != dt.INT:
        raise TypeError(f"{op}: indices must be integers, got {indices.dtype}.")
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(n, int) for n in sizes):
        raise TypeError(f"{op}: shape must be an int or a sequence of ints, got {shape!r}.")
    if any(n < 0 for n in sizes):
        raise ValueError(f"{op}: shape must not hold negative sizes, got {tuple(sizes)}.")
    found: list[Any] = []
    rest = indices.to(dt.int64)
    for n in reversed(sizes):
        found.append(rest % n)
        rest = F.floor_divide(rest, n)
    return tuple(reversed(found))
