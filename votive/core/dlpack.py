"""DLPack: memory of other libraries in, ours out, as capsules. Knows the C structure, not devices'
memory.
"""

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any

from . import dtype as dt

if TYPE_CHECKING:
    from .layout import Spec

CPU, CUDA, PINNED = 1, 2, 3
# Which of our devices memory of DLPack's kinds belongs to.
DEVICES = {CPU: "cpu", CUDA: "cuda", PINNED: "cpu"}
_CODES = {
    dt.int8: (0, 8),
    dt.int16: (0, 16),
    dt.int32: (0, 32),
    dt.int64: (0, 64),
    dt.uint8: (1, 8),
    dt.uint16: (1, 16),
    dt.uint32: (1, 32),
    dt.uint64: (1, 64),
    dt.float16: (2, 16),
    dt.float32: (2, 32),
    dt.float64: (2, 64),
    dt.bfloat16: (4, 16),
    dt.complex64: (5, 64),
    dt.complex128: (5, 128),
    dt.bool_: (6, 8),
    dt.float8_e4m3fn: (10, 8),
    dt.float8_e5m2: (12, 8),
}
_DTYPES = {code: d for d, code in _CODES.items()}


class _Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device_type", c.c_int32),
        ("device_id", c.c_int32),
        ("ndim", c.c_int32),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class _Managed(c.Structure):
    pass


_DELETER = c.CFUNCTYPE(None, c.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", c.c_void_p), ("deleter", _DELETER)]


class _Versioned(c.Structure):
    pass


_VERSIONED_DELETER = c.CFUNCTYPE(None, c.POINTER(_Versioned))
_Versioned._fields_ = [
    ("major", c.c_uint32),
    ("minor", c.c_uint32),
    ("context", c.c_void_p),
    ("deleter", _VERSIONED_DELETER),
    ("flags", c.c_uint64),
    ("tensor", _Tensor),
]
_READ_ONLY = 1

_api = c.pythonapi
_api.PyCapsule_GetPointer.restype, _api.PyCapsule_GetPointer.argtypes = (c.c_void_p, [c.py_object, c.c_char_p])
_api.PyCapsule_SetName.restype, _api.PyCapsule_SetName.argtypes = c.c_int, [c.py_object, c.c_char_p]
# For a capsule that is being destroyed: it must not become a Python object again.
_is_valid = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", _api))
_get_pointer = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", _api))
_DESTRUCTOR = c.CFUNCTYPE(None, c.c_void_p)
_api.PyCapsule_New.restype = c.py_object
_api.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, _DESTRUCTOR]
_FRESH, _USED = b"dltensor", b"used_dltensor"
_FRESH_VERSIONED, _USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"
_exported: dict[int, Any] = {}


def capsule_of(source: object, **options: object) -> Any:
    """An object's capsule, of the version that says whether memory may be written if it can."""
    if not hasattr(source, "__dlpack__"):
        return source  # a capsule itself
    try:
        return source.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # from before versions
        return source.__dlpack__(**options)


class Borrowed:
    """Somebody else's memory; tells them when it is no longer needed."""

    managed: Any

    def __init__(self, capsule: object) -> None:
        self.readonly = False
        if _is_valid(id(capsule), _FRESH_VERSIONED):
            address = _api.PyCapsule_GetPointer(capsule, _FRESH_VERSIONED)
            self.managed = c.cast(address, c.POINTER(_Versioned))
            if self.managed.contents.major != 1:
                version, self.managed = self.managed.contents.major, None
                raise BufferError(f"from_dlpack: version {version} of DLPack is not known.")
            self.readonly = bool(self.managed.contents.flags & _READ_ONLY)
            _api.PyCapsule_SetName(capsule, _USED_VERSIONED)
        else:
            address = _api.PyCapsule_GetPointer(capsule, _FRESH)
            self.managed = c.cast(address, c.POINTER(_Managed))
            _api.PyCapsule_SetName(capsule, _USED)
        t = self.managed.contents.tensor
        key = (t.code, t.bits)
        if t.lanes != 1 or key not in _DTYPES:
            raise BufferError(f"from_dlpack: no dtype for code {t.code} with {t.bits} bits.")
        self.dtype = _DTYPES[key]
        self.shape = tuple(t.shape[i] for i in range(t.ndim))
        self.strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
        self.ptr = (t.data or 0) + t.byte_offset
        self.device_type, self.device_id = t.device_type, t.device_id

    def __del__(self) -> None:
        managed = getattr(self, "managed", None)
        if managed is not None and managed.contents.deleter:
            managed.contents.deleter(managed)


def _forget(managed: Any) -> None:
    _exported.pop(c.addressof(managed.contents), None)


_release = _DELETER(_forget)


def _unused(capsule: int) -> None:
    """A capsule that nobody took is dropped: so is what it holds."""
    if _is_valid(capsule, _FRESH):
        _exported.pop(_get_pointer(capsule, _FRESH), None)


_drop = _DESTRUCTOR(_unused)


def export(address: int, spec: Spec, kind: int, index: int, owner: object) -> Any:
    """A capsule over memory, whose owner stays alive until the capsule's user is done."""
    n = max(spec.ndim, 1)
    shape, strides = (c.c_int64 * n)(*spec.shape), (c.c_int64 * n)(*spec.strides)
    if spec.dtype not in _CODES:
        raise BufferError(f"__dlpack__: DLPack has no code for {spec.dtype}.")
    code, bits = _CODES[spec.dtype]
    managed = _Managed()
    managed.tensor = _Tensor(
        address,
        kind,
        index,
        spec.ndim,
        code,
        bits,
        1,
        c.cast(shape, c.POINTER(c.c_int64)),
        c.cast(strides, c.POINTER(c.c_int64)),
        0,
    )
    managed.deleter = _release
    place = c.addressof(managed)
    _exported[place] = (managed, shape, strides, owner)
    return _api.PyCapsule_New(place, _FRESH, _drop)
