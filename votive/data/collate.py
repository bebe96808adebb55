"""From samples to a batch: stack what can be stacked, keep the containers around it.

Knows containers and tensors; knows no dataset.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..ops.registry import F
from ..surface.interchange import as_tensor
from ..tensor import Tensor

CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

# NumPy kinds without numbers in them: byte strings, text, Python objects.
_NO_NUMBERS = "SUO"


def default_convert(data: object) -> Any:
    """NumPy arrays inside `data` become tensors; everything else stays.

    >>> votive.utils.data.default_convert({"a": np.array([1, 2]), "b": "text"})
    {'a': tensor([1, 2]), 'b': 'text'}
    """
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in _NO_NUMBERS else as_tensor(data)
    if isinstance(data, np.generic):
        return data if isinstance(data, (np.str_, np.bytes_)) else as_tensor(data)
    return mapped(default_convert, data)


def mapped(fn: Callable[[Any], Any], data: object) -> Any:
    """`data` with `fn` applied to the members of its outermost container.

    Anything that is no container, or text, stays. Tuples become lists, as in torch.
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: fn(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(fn(x) for x in data))
    if isinstance(data, tuple):
        return [fn(x) for x in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [fn(x) for x in data])
    return data


def _mapping_like(like: Any, items: dict[Any, Any]) -> Any:
    """A mapping of the same type, with its other attributes kept where it can be copied."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(items)
            return clone
        return type(like)(items)
    except TypeError:
        return items


def _sequence_like(like: Any, items: list[Any]) -> Any:
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(like)(items)
    except TypeError:
        return items


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collate with a table of functions by type of element: first the exact type, then its bases.

    >>> from votive.utils.data.collate import collate
    >>> collate([1, 2], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
    3
    """
    first = batch[0]
    for kind, fn in (collate_fn_map or {}).items():
        if type(first) is kind:
            return fn(batch, collate_fn_map=collate_fn_map)
    for kind, fn in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return fn(batch, collate_fn_map=collate_fn_map)

    def inner(members: Sequence[Any]) -> Any:
        return collate(members, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        columns = {key: inner([sample[key] for sample in batch]) for key in first}
        return _mapping_like(first, columns)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(inner(column) for column in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        items = [inner(column) for column in zip(*batch)]
        return items if isinstance(first, tuple) else _sequence_like(first, items)
    raise TypeError(_refusal(type(first)))


def _refusal(found: object) -> str:
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}"


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack tensors along a new first dimension.

    >>> votive.utils.data.collate.collate_tensor_fn([votive.zeros(2), votive.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return F.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack NumPy arrays into a tensor.

    >>> collate = votive.utils.data.collate
    >>> collate.collate_numpy_array_fn([np.zeros(1)], collate_fn_map=collate.default_collate_fn_map)
    tensor([[0.]], dtype=votive.float64)
    """
    if batch[0].dtype.kind in _NO_NUMBERS:
        raise TypeError(_refusal(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy numbers as one tensor.

    >>> votive.utils.data.collate.collate_numpy_scalar_fn([np.int32(1), np.int32(2)])
    tensor([1, 2], dtype=votive.int32)
    """
    return as_tensor(batch)


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Python floats as a float64 tensor.

    >>> votive.utils.data.collate.collate_float_fn([0.5])
    tensor([0.5000], dtype=votive.float64)
    """
    return F.tensor(batch, dtype=dt.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Python integers or booleans as a tensor.

    >>> votive.utils.data.collate.collate_int_fn([1, 2])
    tensor([1, 2])
    """
    return F.tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text stays as it is.

    >>> votive.utils.data.collate.collate_str_fn(["a"])
    ['a']
    """
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch from a list of samples: numbers and arrays are stacked, containers are kept.

    >>> votive.utils.data.default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def pinned(data: object) -> Any:
    """`data` with everything that has a `pin_memory` method in page-locked memory."""
    pin = getattr(data, "pin_memory", None)
    if pin is not None:
        return pin()
    if isinstance(data, tuple) and not hasattr(data, "_fields"):
        return type(data)(pinned(x) for x in data)
    return mapped(pinned, data)
