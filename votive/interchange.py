"""Values from outside: Python lists, NumPy arrays, DLPack. Sits beside Tensor; knows the CPU's arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import dispatch
from .backends.base import BACKENDS
from .core import dtype as dt
from .core.device import resolve
from .ops.registry import F, composite

_NUMBERS = (bool, int, float, complex, np.generic)


def _has_tensor(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_tensor(x) for x in data)
    return hasattr(data, "_spec")


def _plain(data: Any) -> Any:
    """Nested data with 0-d tensors replaced by numbers, larger ones by lists."""
    if hasattr(data, "_spec"):
        return data.item() if data.ndim == 0 else data.tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(x) for x in data]
    return data


def _scalar_kinds(data: Any, found: set[Any]) -> None:
    if isinstance(data, (list, tuple)):
        for x in data:
            _scalar_kinds(x, found)
    elif hasattr(data, "_spec"):
        found.add(data.dtype)
    elif isinstance(data, np.ndarray):
        found.add(dt.from_numpy(data.dtype))
    elif isinstance(data, np.generic):
        found.add(dt.of_scalar(data.item()))
    else:
        found.add(dt.of_scalar(data))


def _inferred(data: Any) -> dt.dtype:
    """The dtype that nested Python numbers ask for."""
    kinds: set[Any] = set()
    _scalar_kinds(data, kinds)
    if not kinds:
        return dt.get_default_dtype()
    from .core.promotion import promote_types

    out = None
    for k in kinds:
        out = k if out is None else promote_types(out, k)
    assert out is not None
    return out


def _to_array(data: Any, want: dt.dtype | None) -> tuple[np.ndarray[Any, Any], dt.dtype]:
    if isinstance(data, np.ndarray):
        if data.dtype == object:
            raise TypeError("can't convert np.ndarray of type numpy.object_.")
        d = want or dt.from_numpy(data.dtype)
        return data.astype(d.np), d
    if isinstance(data, np.generic):
        d = want or dt.from_numpy(data.dtype)
        return np.array(data).astype(d.np), d
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if _has_tensor(data):
        if want is None:
            want = _inferred(data)
        data = _plain(data)
    d = want or _inferred(data)
    wide = {dt.BOOL: np.bool_, dt.INT: np.int64, dt.FLOAT: np.float64, dt.COMPLEX: np.complex128}
    try:
        if d.category == dt.INT and want is not None and d is not dt.uint64:
            a = _int_array(data, d)
        else:
            a = np.array(data, dtype=d.np if d is dt.uint64 else wide[d.category])
    except OverflowError:
        raise RuntimeError(
            "tensor: overflow when unpacking a number for an integer type."
        ) from None
    except (ValueError, TypeError) as e:
        if "inhomogeneous" in str(e) or "sequence" in str(e):
            raise ValueError(
                "tensor: expected a nested list where every row has the same length."
            ) from None
        raise TypeError(f"tensor: cannot convert this data: {e}") from None
    return a.astype(d.np), d


def _int_array(data: Any, d: dt.dtype) -> np.ndarray[Any, Any]:
    a = np.array(data)
    if a.dtype.kind in "fc":
        return a.real.astype(np.int64)
    if a.dtype == object:
        raise OverflowError
    if a.size and a.dtype.kind in "iu":
        info = np.iinfo(d.np)
        if a.min() < info.min or a.max() > info.max:
            raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")
    return a


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Any:
    """A tensor over the memory of a NumPy array: writes to one show in the other.

    >>> a = np.zeros(2)
    >>> t = votive.from_numpy(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=votive.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray, got {type(ndarray).__name__}.")
    if not ndarray.dtype.isnative:
        raise ValueError("from_numpy: the byte order must be native; use array.astype().")
    if not ndarray.flags.writeable:
        warnings.warn(
            "from_numpy: the array is not writable, so writing to the tensor will fail; "
            "copy it first.",
            UserWarning,
            stacklevel=2,
        )
    storage, data, spec, offset = BACKENDS["cpu"].wrap(ndarray)
    return dispatch.make(storage, data, spec, offset)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of any object that speaks DLPack.

    >>> votive.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    array = np.from_dlpack(ext_tensor)
    if copy:
        array = array.copy()
    storage, data, spec, offset = BACKENDS["cpu"].wrap(array)
    return dispatch.make(storage, data, spec, offset)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor that shares memory with `data` when it can.

    >>> votive.as_tensor([1, 2])
    tensor([1, 2])
    """
    if hasattr(data, "_spec"):
        return data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray):
        t = from_numpy(data if data.flags.writeable else data.copy())
        return t.to(device=device, dtype=dtype)
    return F.tensor(data, dtype=dtype, device=device)


@composite(name="_from_data", method=False, namespaces=())
def from_data(data: Any, dtype: Any, device: Any) -> Any:
    """What `tensor(data)` makes."""
    if dtype is not None:
        dtype = dispatch.as_dtype("tensor", dtype)
    if hasattr(data, "_spec"):
        warnings.warn(
            "tensor(t) copies a tensor; write t.detach().clone() instead.",
            UserWarning,
            stacklevel=4,
        )
        return data.detach().to(dtype=dtype, device=device, copy=True)
    if not isinstance(data, (list, tuple, np.ndarray, *_NUMBERS)):
        if hasattr(data, "__array__") or hasattr(data, "__dlpack__"):
            data = np.asarray(data)
        elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
            data = list(data)
        else:
            raise TypeError(f"tensor: could not infer dtype of {type(data).__name__}.")
    array, d = _to_array(data, dtype)
    storage, data_, spec, _ = BACKENDS["cpu"].wrap(np.ascontiguousarray(array).reshape(array.shape))
    t = dispatch.make(storage, data_, spec)
    want = resolve(device)
    return t if want.type == "cpu" else F._to_device(t, want)
