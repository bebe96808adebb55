"""The constructors of old programs, `torch.FloatTensor` and kin: sizes or data to a tensor of one dtype and device."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import votive

from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.device import device as Device
from ..core.layout import Size
from ..tensor import Tensor
from .storage import UntypedStorage
from .typed_storage import TypedStorage

# The dtypes that have a class of their own, which is fewer than there are.
NAMES = {
    "Float": dt.float32,
    "Double": dt.float64,
    "Half": dt.float16,
    "BFloat16": dt.bfloat16,
    "Byte": dt.uint8,
    "Char": dt.int8,
    "Short": dt.int16,
    "Int": dt.int32,
    "Long": dt.int64,
    "Bool": dt.bool_,
}


def from_storage(source: UntypedStorage | TypedStorage, dtype: dt.dtype) -> Tensor:
    """A flat tensor over a whole storage."""
    whole = source.untyped()._bytes
    if isinstance(source, TypedStorage) and source.dtype is not dtype:
        raise TypeError(f"expected a storage of {dtype}, got one of {source.dtype}.")
    return whole[: len(whole) // dtype.itemsize * dtype.itemsize].view(dtype)


def construct(dtype: dt.dtype, where: str, args: tuple[Any, ...], device: DeviceLike = None) -> Tensor:
    """What a legacy constructor makes: sizes leave memory as it is, data is copied and cast, tensors are shared."""
    place = Device(where if device is None else device)
    if place.type != where:
        raise RuntimeError(f"legacy constructor expects device type {where}, but device type {place.type} was passed.")
    if not args:
        return votive.empty(0, dtype=dtype, device=place)
    first = args[0]
    if len(args) == 1 and not _is_size(first):
        if isinstance(first, Size):
            return votive.empty(first, dtype=dtype, device=place)
        if isinstance(first, Tensor):
            if first.dtype is not dtype or first.device.type != where:
                raise TypeError(f"expected a tensor of {dtype} on {where}, got {first.dtype} on {first.device}.")
            return first.detach()
        if isinstance(first, UntypedStorage | TypedStorage):
            return from_storage(first, dtype)
        if first is None or not hasattr(first, "__len__") or (hasattr(first, "ndim") and first.ndim == 0):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        return votive.tensor(first, dtype=dtype, device=place)
    if all(_is_size(a) for a in args):
        return votive.empty(tuple(int(a) for a in args), dtype=dtype, device=place)
    raise TypeError(f"new(): takes sizes, or data as one sequence; got {', '.join(type(a).__name__ for a in args)}.")


def _is_size(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class tensortype(type):
    """The class of legacy constructors: they are no base classes, but `isinstance` asks for dtype and device."""

    dtype: dt.dtype
    _where: str
    is_sparse = False
    layout = votive.strided

    @property
    def is_cuda(cls) -> bool:
        return cls._where == "cuda"

    def __call__(cls, *args: Any, device: DeviceLike = None) -> Any:
        return construct(cls.dtype, cls._where, args, device)

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, Tensor) or instance.layout is not votive.strided:
            return False
        return instance.dtype is cls.dtype and instance.device.type == cls._where

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def tensor_type(name: str, where: str = "cpu") -> tensortype:
    """The class `torch.FloatTensor`, or `torch.cuda.FloatTensor`."""
    module = "torch" if where == "cpu" else f"torch.{where}"
    return tensortype(f"{name}Tensor", (), {"dtype": NAMES[name], "_where": where, "__module__": module})


def new(self: Tensor, *args: Any, device: DeviceLike = None) -> Tensor:
    """A tensor of this one's dtype and device from sizes or data, as legacy constructors make them."""
    return construct(self.dtype, self.device.type, args, self.device if device is None else device)


def set_default_tensor_type(t: tensortype | str, /) -> None:
    """Let floating-point tensors have the dtype and device of a legacy type by default."""
    text = t if isinstance(t, str) else f"{t.__module__}.{getattr(t, '__name__', '')}"
    parts = text.split(".")
    kind = NAMES.get(parts[-1].removesuffix("Tensor")) if isinstance(t, str | tensortype) else None
    if parts[0] != "torch" or kind is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not kind.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    where = parts[1] if len(parts) == 3 else "cpu"
    if where == "cuda" and not votive.cuda.is_available():
        raise TypeError(f"type {text} not available: there is no GPU here.")
    warnings.warn("set_default_tensor_type is deprecated; use set_default_dtype and set_default_device.", stacklevel=2)
    votive.set_default_dtype(kind)
    votive.set_default_device(where)
