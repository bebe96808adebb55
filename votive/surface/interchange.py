"""Values from outside: Python lists, NumPy arrays, DLPack, buffers. Knows the CPU's arrays."""

from __future__ import annotations

import warnings
from functools import reduce
from typing import Any

import numpy as np

from .. import dispatch
from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.device import resolve
from ..core.dlpack import DEVICES
from ..core.promotion import promote_types
from ..ops.options import dtype_of, finish
from ..ops.registry import F, composite

_SEQUENCES = (list, tuple)
_WIDE = {dt.BOOL: np.bool_, dt.INT: np.int64, dt.FLOAT: np.float64, dt.COMPLEX: np.complex128}


def _is_sequence(data: Any) -> bool:
    if isinstance(data, _SEQUENCES):
        return True
    if isinstance(data, (str, bytes, dict, np.ndarray, np.generic)) or hasattr(data, "_spec"):
        return False
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def _plain(data: Any) -> Any:
    """Nested lists of numbers: other sequences copied, tensors of one element read."""
    if hasattr(data, "_spec"):
        if data._spec.numel != 1:
            raise ValueError("tensor: only one-element tensors can be mixed with numbers; use stack() or cat().")
        return data.item()
    if isinstance(data, np.ndarray):
        return data
    if _is_sequence(data):
        return [_plain(x) for x in data]
    return data


def _kinds(data: Any, found: set[Any]) -> None:
    """Collect the dtypes that the leaves of nested data ask for."""
    if not _is_sequence(data):
        found.add(_kind(data))
        return
    plain = True
    for kind in set(map(type, data)):
        if kind in (bool, int, float, complex):
            found.add(dt.of_scalar(kind()))
        else:
            plain = False
    if not plain:
        # torch takes text that comes first for one more dimension, and text after numbers for a wrong type.
        if isinstance(next(iter(data)), str):
            raise ValueError("tensor: numbers are needed, got a str.")
        for x in data:
            if type(x) not in (bool, int, float, complex):
                _kinds(x, found)


def _kind(value: Any) -> dt.dtype:
    if hasattr(value, "_spec"):
        return value.dtype
    if isinstance(value, (np.ndarray, np.generic)):
        return dt.from_numpy(value.dtype)
    if isinstance(value, str):
        raise TypeError("tensor: numbers are needed, got a str.")
    if not isinstance(value, (bool, int, float, complex)):
        raise RuntimeError(f"tensor: could not infer the dtype of {type(value).__name__}.")
    return dt.of_scalar(value)


def _check_shape(data: Any, shape: tuple[int, ...]) -> None:
    """Say which row of nested lists has the wrong length."""
    if not shape:
        if _is_sequence(data):
            raise TypeError("tensor: found a list where a number was expected.")
        return
    if not _is_sequence(data):
        raise TypeError("tensor: found a number where a list was expected.")
    if len(data) != shape[0]:
        raise ValueError(f"tensor: expected a list of length {shape[0]}, got {len(data)}.")
    for x in data:
        _check_shape(x, shape[1:])


def _nested(data: Any) -> tuple[int, ...]:
    """The shape that the first elements of nested lists suggest."""
    shape: list[int] = []
    while _is_sequence(data):
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    return tuple(shape)


def _from_sequence(data: Any, want: dt.dtype | None) -> tuple[np.ndarray[Any, Any], dt.dtype]:
    # Plain lists are most of what is given; what follows looks at every element several times.
    if data.__class__ in _SEQUENCES and set(map(type, data)) == {float} and (want is None or want.is_floating_point):
        d = want or dt.get_default_dtype()
        return np.array(data, dtype=np.float64).astype(d.np, copy=False), d
    kinds: set[Any] = set()
    _kinds(data, kinds)
    inferred = reduce(promote_types, kinds) if kinds else dt.get_default_dtype()
    d = want or inferred
    if inferred.is_complex and d.category in (dt.INT, dt.FLOAT):
        raise TypeError(f"tensor: complex numbers do not fit into {d}.")
    shape = _nested(data)
    data = _plain(data)
    try:
        if d.category == dt.INT:
            return _int_array(np.array(data), d), d
        wide = _WIDE[inferred.category if d is dt.bool_ else d.category]
        return np.array(data, dtype=wide).astype(d.np), d
    except OverflowError:
        raise ValueError("tensor: an integer is too large for int64.") from None
    except (ValueError, TypeError):
        _check_shape(data, shape)
        raise


def _int_array(a: np.ndarray[Any, Any], d: dt.dtype) -> np.ndarray[Any, Any]:
    """Integers of type `d`: fractions cut off, negative numbers wrapped if `d` is unsigned."""
    if a.dtype == object or (a.dtype == np.uint64 and d is dt.int64):
        raise OverflowError
    if a.size:
        info = np.iinfo(d.np)
        low, high = a.min(), a.max()
        least = int(info.min) if d.is_signed else -int(info.max)
        if not (low >= least and high <= int(info.max)):
            raise RuntimeError(f"tensor: values {low}..{high} do not fit into {d}.")
    if a.dtype.kind == "f":
        a = a.astype(np.int64)
    return a.astype(d.np)


def _from_array(array: np.ndarray[Any, Any], want: dt.dtype | None) -> np.ndarray[Any, Any]:
    """A row-major copy of a NumPy array."""
    _check_array("tensor", array)
    if any(s < 0 for s in array.strides):
        raise ValueError("tensor: negative strides are not supported; pass array.copy().")
    return np.array(array, dtype=want.np if want else None, order="C")


def _check_array(op: str, array: np.ndarray[Any, Any]) -> None:
    if not array.dtype.isnative:
        raise ValueError(f"{op}: the byte order must be native; use array.astype().")
    dt.from_numpy(array.dtype)


def _own(array: np.ndarray[Any, Any], device: Any) -> Any:
    """A tensor that owns a fresh array, on the device asked for."""
    storage, data, spec, _ = BACKENDS["cpu"].wrap(array)
    t = dispatch.make(storage, data, spec)
    if dispatch.state.observers:
        dispatch.was_made(t)
    place = resolve(device)
    return t if place.type == "cpu" else F._to_device(t, place)


def _share(array: np.ndarray[Any, Any]) -> Any:
    """A tensor over somebody else's array; its memory cannot be resized."""
    # An array object of our own: theirs may get another shape or other flags later.
    storage, data, spec, offset = BACKENDS["cpu"].wrap(array.view(np.ndarray))
    storage.owned = False
    return dispatch.make(storage, data, spec, offset)


@composite(name="_from_data")
def from_data(data: Any, dtype: Any, device: Any) -> Any:
    """What `tensor(data)` makes."""
    if hasattr(data, "_spec"):
        warnings.warn("tensor(t) copies a tensor; write t.detach().clone() instead.", UserWarning, stacklevel=4)
        return data.detach().to(dtype=dtype, device=device, copy=True)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"tensor: numbers are needed, got {type(data).__name__}.")
    if isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array__"):
        return _own(_from_array(np.asarray(data), dtype), device)
    return _own(_from_sequence(data, dtype)[0], device)


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Any:
    """A tensor over the memory of a NumPy array: writes to one show in the other.

    >>> a = np.zeros(2)
    >>> t = votive.from_numpy(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=votive.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: expected np.ndarray, got {type(ndarray).__name__}.")
    _check_array("from_numpy", ndarray)
    if not ndarray.flags.writeable:
        warnings.warn(
            "from_numpy: the array is not writable, so writing into the tensor will raise an "
            "error; pass array.copy() to get one that can be written.",
            UserWarning,
            stacklevel=2,
        )
    return _share(ndarray)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of any object that speaks DLPack.

    >>> votive.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    kind = getattr(ext_tensor, "__dlpack_device__", lambda: (1, 0))()[0]
    if kind not in DEVICES:
        raise BufferError(f"from_dlpack: memory of DLPack's kind {kind} is not known.")
    t = _borrowed(BACKENDS[DEVICES[kind]].borrow(ext_tensor))
    place = t.device if device is None else resolve(device)
    if copy is False and place is not t.device:
        raise BufferError(f"from_dlpack: going from {t.device} to {place} needs a copy.")
    return F.to(t, place, copy=bool(copy)) if copy or place is not t.device else t


def _borrowed(parts: tuple[Any, ...]) -> Any:
    """A tensor over memory of another library, which cannot be resized."""
    storage, data, spec, offset = parts
    storage.owned = False
    return dispatch.make(storage, data, spec, offset)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor that shares memory with `data` when it can.

    >>> votive.as_tensor([1, 2])
    tensor([1, 2])
    """
    if hasattr(data, "__tensor__"):
        data = data.__tensor__()  # an array of votive.np: the tensor it holds, with its history
    if hasattr(data, "_spec"):
        return data.to(device=device, dtype=dtype)
    if hasattr(data, "__cuda_array_interface__"):
        t = _borrowed(BACKENDS["cuda"].look_at(data))
        return t.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray):
        _check_array("as_tensor", data)
        t = _share(data if data.flags.writeable else data.copy())
        return t.to(device=device, dtype=dtype)
    return F.tensor(data, dtype=dtype, device=device)


@composite(method=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """A 1-d tensor over the memory of an object with the buffer protocol.

    >>> votive.frombuffer(bytearray([1, 2, 3]), dtype=votive.uint8)
    tensor([1, 2, 3], dtype=votive.uint8)
    """
    wanted = dtype_of("frombuffer", dtype)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError(f"frombuffer: {type(buffer).__name__} does not have the buffer protocol.") from None
    have, size = view.nbytes, wanted.itemsize
    if have == 0 or count == 0:
        raise ValueError(f"frombuffer: the buffer has {have} bytes, count is {count}; use others.")
    if not 0 <= offset < have:
        raise ValueError(f"frombuffer: offset {offset} is outside of a buffer of {have} bytes.")
    if count < 0 and (have - offset) % size:
        raise ValueError(f"frombuffer: {have - offset} bytes are not a whole number of {wanted} elements.")
    if count > 0 and offset + count * size > have:
        raise ValueError(f"frombuffer: {count} elements of {wanted} from byte {offset} on exceed {have} bytes.")
    array = np.frombuffer(view, wanted.np, count, offset)
    if not array.flags.writeable:
        warnings.warn(
            "frombuffer: the buffer is not writable, so writing into the tensor will raise an "
            "error; pass a bytearray, or clone() the tensor, to get one that can be written.",
            UserWarning,
            stacklevel=2,
        )
    return finish(_share(array), {"requires_grad": requires_grad})


@composite(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Any:
    """A tensor that shares memory with `obj` if it can; `copy` demands or forbids a copy. A tensor stays a part of its
    graph unless `requires_grad=False`.

    >>> votive.asarray([1, 2])
    tensor([1, 2])
    """
    wanted = None if dtype is None else dtype_of("asarray", dtype)
    source = _shared_view(obj, wanted)
    if source is None:
        if copy is False:
            raise ValueError(f"asarray: cannot share the memory of {type(obj).__name__}; copy it.")
        return finish(F.tensor(obj, dtype=wanted, device=device), {"requires_grad": bool(requires_grad)})
    changes = wanted not in (None, source.dtype)
    if copy is False and changes:
        raise ValueError(f"asarray: {source.dtype} cannot be shared as {wanted}; allow a copy.")
    t = source.to(dtype=wanted, device=device, copy=bool(copy))
    if t._rg and requires_grad is False:
        t = t.detach()
    return t if t._rg else finish(t, {"requires_grad": bool(requires_grad)})


def _shared_view(obj: Any, dtype: dt.dtype | None) -> Any:
    """A tensor over the memory of `obj`, or None where there is none to share."""
    if hasattr(obj, "__tensor__"):
        return obj.__tensor__()
    if hasattr(obj, "_spec"):
        return obj
    if isinstance(obj, np.ndarray):
        _check_array("asarray", obj)
        return _share(obj)
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.generic):
        return from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return frombuffer(obj, dtype=dtype or dt.get_default_dtype())
    return None
