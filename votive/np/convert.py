"""Values to tensors and tensors to arrays. Knows where memory is shared, and how NumPy computes for votive."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..core import dtype as dt
from ..core.device import device as device_type
from ..core.device import get_default_device, resolve
from ..ops.registry import F
from ..surface.interchange import from_numpy
from ..tensor import Tensor
from .array import ndarray, wrap
from .element_types import UINT64, as_dtype, promoted, to_votive

__all__ = ["Tensor", "cast", "holds_tensors", "host", "ndarray", "place_of", "result", "tensors", "to_tensor", "wrap"]


def result(t: Tensor) -> ndarray:
    """An array for a computed value; without dimensions it behaves as NumPy's scalars do: immutable, hashable."""
    out = wrap(t)
    out._scalar = t.ndim == 0
    return out


def holds_tensors(data: Any) -> bool:
    """Whether nested lists contain arrays whose memory or history must not pass through Python numbers."""
    if isinstance(data, (ndarray, Tensor)):
        return True
    return isinstance(data, (list, tuple)) and any(holds_tensors(x) for x in data)


def place_of(*values: Any) -> Any:
    """The device of the first array among values; numbers and lists go there, too."""
    for v in values:
        if isinstance(v, ndarray):
            return v.tensor.device
        if isinstance(v, Tensor):
            return v.device
        if isinstance(v, (list, tuple)) and holds_tensors(v):
            return place_of(*v)
    return get_default_device()


def to_tensor(x: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor over the memory of `x` where there is one to share; otherwise a new one with NumPy's default dtype."""
    if isinstance(x, ndarray):
        t = x.tensor
    elif isinstance(x, Tensor):
        t = x
    elif isinstance(x, (list, tuple)) and holds_tensors(x):
        t = _stacked(x, device)
    else:
        wanted = None if dtype is None else as_dtype(dtype)
        if isinstance(x, (numpy.ndarray, numpy.generic)):
            source: Any = numpy.asarray(x)
        else:
            source = numpy.asarray(x, wanted)
        t = _from_host(source)
        if device is None:
            device = get_default_device()
    return cast(t, dtype) if device is None else cast(t.to(resolve(device)), dtype)


def _from_host(a: Any) -> Tensor:
    as_dtype(a.dtype)  # refuses text, objects and dates
    if a.dtype.byteorder not in "=|" and not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    if not a.flags.writeable or any(s < 0 or s % a.itemsize for s in a.strides):
        a = a.copy()
    t: Tensor = from_numpy(a)
    return t


def _stacked(data: Sequence[Any], device: Any) -> Tensor:
    place = place_of(data) if device is None else device
    parts = [to_tensor(x, device=place) for x in data]
    meet = promoted(*parts)
    if len({tuple(p.shape) for p in parts}) > 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape: "
            f"{[tuple(p.shape) for p in parts]}."
        )
    t: Tensor = F.stack([cast(p, meet) for p in parts])
    return t


def cast(t: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype; itself where nothing changes."""
    if dtype is None:
        return t
    wanted = to_votive(dtype)
    if t.dtype is wanted:
        return t
    if t.dtype.is_complex and not wanted.is_complex:
        if wanted is not dt.bool_:
            text = "Casting complex values to real discards the imaginary part"
            warnings.warn(text, numpy.exceptions.ComplexWarning, stacklevel=3)
        t = F.ne(t, 0) if wanted is dt.bool_ else F.real(t)
    if wanted is dt.uint64 and t.dtype.is_floating_point and t.device.type == "cpu" and not t.requires_grad:
        with numpy.errstate(all="ignore"):
            return from_numpy(t.numpy().astype(UINT64))
    out: Tensor = t.to(wanted)
    return out


def truth(t: Tensor) -> Tensor:
    """Where values are not zero."""
    if t.dtype is dt.bool_:
        return t
    # The same bits as a signed number: votive compares no wide unsigned ones.
    wide = t.dtype in dt.BAREBONES
    return F.ne(t.to(dt.int64) if wide else t, 0)


def tensors(*values: Any, dtype: Any = None) -> list[Tensor]:
    """Values as tensors of one device and one dtype: the promoted one, unless another is given."""
    place = place_of(*values)
    meet = promoted(*[v if not isinstance(v, (list, tuple)) else to_tensor(v, device=place) for v in values])
    wanted = as_dtype(dtype) if dtype is not None else meet
    return [to_tensor(v, wanted, place) for v in values]


def host(name: str, fn: Callable[..., Any], *args: Any, dtype: Any = None) -> Any:
    """Compute with NumPy on the CPU what votive has no operator for, and bring the results back to the device."""
    place = place_of(*args)
    for a in args:
        t = getattr(a, "tensor", a)
        if isinstance(t, Tensor) and t.requires_grad:
            raise NotImplementedError(f"{name} has no gradient; detach its arguments first: array.detach().")
    with numpy.errstate(all="ignore"):
        out = fn(*[_host_value(a) for a in args])
    if isinstance(out, tuple):
        return tuple(_back(o, place, dtype) for o in out)
    return _back(out, place, dtype)


def _host_value(a: Any) -> Any:
    if isinstance(a, (ndarray, Tensor)):
        return to_tensor(a).detach().cpu().numpy()
    if isinstance(a, (list, tuple)) and holds_tensors(a):
        return type(a)(_host_value(x) for x in a)
    return a


def _back(a: Any, place: device_type, dtype: Any) -> Any:
    return cast(_from_host(numpy.asarray(a)).to(place), dtype)


def detached(x: Any) -> Any:
    """A NumPy array of the values on the CPU, for what is read and not computed with."""
    return to_tensor(x).detach().cpu().numpy()
