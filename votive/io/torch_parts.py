"""The names that may stand in a torch checkpoint, and what each becomes. Knows no files.

Nothing named here is ever imported or called: a name leads to a function of this file, which makes
a description (a storage, a tensor over it, an array) out of plain values, or to an error.
"""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ..core import dtype as dt
from ..core.device import device as Device
from ..core.layout import Size
from ..io.mapped import Index
from ..serialization.container import FileFormatError
from ..serialization.sharing import span
from .pickle_stack import Maker, Part, UnsafeFileError, key

_MAX_DIMS, _MAX_BYTES = 64, 2**63 - 1


@dataclass(frozen=True)
class StorageType:
    """The element type that a storage class stands for; None for bytes."""

    dtype: dt.dtype | None


@dataclass(frozen=True, eq=False)
class StorageRef:
    """A block of elements in the file; `skip` elements of the block `key` come before it."""

    key: str
    dtype: dt.dtype | None
    numel: int
    location: str
    skip: int = 0

    @property
    def nbytes(self) -> int:
        return self.numel * (self.dtype.itemsize if self.dtype else 1)


@dataclass(frozen=True, eq=False)
class TensorRef:
    """A tensor before it is read: a window on a storage."""

    storage: StorageRef
    dtype: dt.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool = False
    parameter: bool = False
    conj: bool = False
    neg: bool = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class SparseRef:
    """A sparse tensor before it is read: its layout, the tensors it is made of, its size."""

    layout: str
    parts: tuple[TensorRef, ...]
    shape: tuple[int, ...]
    coalesced: bool = False


class JitObject(Part):
    """A scripted module's values: what its attributes were."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}

    @property
    def held(self) -> tuple[Any, ...]:
        return (self.attributes,)

    def set_state(self, state: object) -> None:
        if not isinstance(state, dict):
            raise FileFormatError(
                "torchscript: a module's state is not a set of attributes; it may be a packed "
                "quantized layer, which is not supported."
            )
        self.attributes = state


class ArrayType(Part):
    """NumPy's dtype; its byte order comes second."""

    def __init__(self, code: object, *rest: object) -> None:
        known = r"[<>|=]?(b1|\?|[iu][1248]|f[248]|c8|c16)"
        if not isinstance(code, str) or not re.fullmatch(known, code):
            raise FileFormatError(f"numpy.dtype({code!r}): only numbers are read.")
        self.dtype = np.dtype(code)

    def set_state(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "=", "|"):
            raise FileFormatError("numpy.dtype: its state is wrong.")
        self.dtype = self.dtype.newbyteorder(state[1])


class Array(Part):
    """A NumPy array; its content comes second."""

    value: Any = None

    def set_state(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise FileFormatError("numpy.ndarray: its state is wrong.")
        _, shape, kind, fortran, raw = state
        self.value = array(raw, kind, shape, "F" if fortran else "C")


def array(raw: object, kind: object, shape: object, order: object = "C") -> np.ndarray:
    """An array of its own from bytes, a type, a shape and the order of its elements."""
    if not isinstance(raw, (bytes, bytearray)) or not isinstance(kind, ArrayType):
        raise FileFormatError("numpy: an array must have bytes and a type.")
    if not isinstance(shape, tuple) or order not in ("C", "F"):
        raise FileFormatError("numpy: the shape or order of an array is wrong.")
    _check_sizes("numpy.ndarray", shape, kind.dtype.itemsize)
    if math.prod(shape) * kind.dtype.itemsize != len(raw):
        raise FileFormatError(f"numpy: {len(raw):,} bytes do not fill the shape {shape}.")
    flat = np.frombuffer(raw, kind.dtype).astype(kind.dtype.newbyteorder("="))
    return flat.reshape(shape, order=order)


def _frombuffer(raw: object, kind: object, shape: object, order: object, *rest: object) -> object:
    out = Array()
    out.value = array(raw, kind, shape, order)
    return out


def _scalar(kind: object, raw: object = b"") -> object:
    return array(raw, kind, ())[()]


def _check_sizes(what: str, sizes: tuple[Any, ...], itemsize: int) -> None:
    if any(type(n) is not int or n < 0 for n in sizes):
        raise FileFormatError(f"{what}: sizes and strides must be integers of at least 0.")
    if len(sizes) > _MAX_DIMS or math.prod(n or 1 for n in sizes) * itemsize > _MAX_BYTES:
        raise FileFormatError(f"{what}: the shape is too large: {str(sizes)[:200]}.")


def _tensor(
    storage: object,
    offset: object,
    size: object,
    stride: object,
    requires_grad: object = False,
    hooks: object = None,
    metadata: object = None,
) -> TensorRef:
    if not isinstance(storage, StorageRef) or storage.dtype is None:
        raise FileFormatError("tensor: there is no typed storage under it.")
    return _window(storage, storage.dtype, offset, size, stride, requires_grad, metadata)


def _tensor_v3(
    storage: object,
    offset: object,
    size: object,
    stride: object,
    requires_grad: object,
    hooks: object,
    dtype: object,
    metadata: object = None,
) -> TensorRef:
    if not isinstance(storage, StorageRef) or not isinstance(dtype, dt.dtype):
        raise FileFormatError("tensor: there is no storage under it, or no type.")
    return _window(storage, dtype, offset, size, stride, requires_grad, metadata)


def _window(
    storage: StorageRef, dtype: dt.dtype, offset: object, size: object, stride: object, grad: object, meta: object
) -> TensorRef:
    if not isinstance(size, tuple) or not isinstance(stride, tuple) or len(size) != len(stride):
        raise FileFormatError("tensor: its shape and strides do not belong together.")
    _check_sizes("tensor", size, dtype.itemsize)
    if not isinstance(offset, int) or any(type(n) is not int or n < 0 for n in (offset, *stride)):
        raise FileFormatError("tensor: offset and strides must be integers of at least 0.")
    last = offset + (span(size, stride) if 0 not in size else 0)
    if last * dtype.itemsize > storage.nbytes:
        raise FileFormatError(
            f"tensor: shape {size} with strides {stride} from {offset} on reaches beyond the "
            f"{storage.nbytes:,} bytes of its storage."
        )
    conj, neg = (isinstance(meta, dict) and bool(meta.get(flag)) for flag in ("conj", "neg"))
    return TensorRef(storage, dtype, offset, tuple(size), tuple(stride), bool(grad), conj=conj, neg=neg)


def _sparse(layout: object, data: object) -> SparseRef:
    name = layout.removeprefix("torch.") if isinstance(layout, str) else ""
    count = {"sparse_coo": 2, "sparse_csr": 3, "sparse_csc": 3, "sparse_bsr": 3, "sparse_bsc": 3}.get(name, 0)
    if not count or not isinstance(data, tuple) or len(data) not in (count + 1, count + 2):
        raise FileFormatError(f"sparse tensor: layout {layout!r} with other parts than it has.")
    parts, size = data[:count], data[count]
    if not all(isinstance(p, TensorRef) for p in parts) or not isinstance(size, tuple):
        raise FileFormatError("sparse tensor: its parts must be tensors, and its size a list of numbers.")
    _check_sizes("sparse tensor", tuple(size), 1)
    return SparseRef(name, parts, tuple(size), count == 2 and len(data) == 4 and data[3] is True)


def _parameter(data: object, requires_grad: object = True, *rest: object) -> TensorRef:
    if not isinstance(data, TensorRef):
        raise FileFormatError("parameter: there is no tensor in it.")
    return replace(data, requires_grad=bool(requires_grad), parameter=True)


def _from_type(function: object, kind: object, args: object, state: object) -> object:
    """Tensors with attributes of their own: the tensor is what counts."""
    if not isinstance(function, Maker) or not isinstance(args, tuple):
        raise FileFormatError("tensor: it is not made from a storage.")
    if not isinstance(kind, Maker) or kind.name not in ("torch.Tensor", _PARAMETER):
        raise UnsafeFileError("tensor: only plain tensors and parameters are read.")
    return function.make(*args)


def _mapping(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(items: Any = ()) -> object:
        pairs = items.items() if isinstance(items, dict) else items
        return kind([(key(k), v) for k, v in pairs])

    return make


def _defaultdict(factory: object = None, items: object = ()) -> object:
    return _mapping(dict)(items)  # the factory is code


def _encode(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(encoding, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        raise FileFormatError(f"_codecs.encode: {encoding!r} is not supported.")
    if not isinstance(text, str):
        raise FileFormatError(f"_codecs.encode: text is encoded, not {type(text).__name__}.")
    return text.encode(encoding)


def _bytearray(content: object = b"", encoding: object = "latin1") -> bytearray:
    if isinstance(content, str):
        content = _encode(content, encoding)
    if not isinstance(content, bytes):  # an integer would ask for that many bytes
        raise FileFormatError("bytearray: its content must be bytes.")
    return bytearray(content)


def _bytes(content: object = b"", encoding: object = "latin1") -> bytes:
    return bytes(_bytearray(content, encoding))


def _size(sizes: Any = ()) -> Size:
    _check_sizes("torch.Size", tuple(sizes), 1)
    return Size(sizes)


def _device(kind: object, index: Index = None) -> object:
    text = kind if index is None else f"{kind}:{index}"
    try:
        return Device(text)
    except (TypeError, ValueError, RuntimeError):
        return text  # one that votive does not have, kept by name


def _set(kind: type) -> Callable[..., Any]:
    return lambda items=(): kind(map(key, items))


def _number(kind: type) -> Callable[..., Any]:
    def make(*values: object) -> object:
        if not all(isinstance(v, (bool, int, float)) for v in values):
            raise FileFormatError(f"{kind.__name__}: it is made of numbers only.")
        return kind(*values)

    return make


def _same(value: object, *rest: object) -> object:
    return value


def _version(text: object) -> str:
    if not isinstance(text, str):
        raise FileFormatError("TorchVersion: it must be a string.")
    return text


def _refuser(name: str, why: str) -> Callable[..., NoReturn]:
    def refuse(*args: object) -> NoReturn:
        raise UnsafeFileError(f"the file holds {why} ({name}), which is not supported.")

    return refuse


_PARAMETER = "torch.nn.parameter.Parameter"
_STORAGES: dict[str, dt.dtype | None] = {
    "DoubleStorage": dt.float64,
    "FloatStorage": dt.float32,
    "HalfStorage": dt.float16,
    "BFloat16Storage": dt.bfloat16,
    "LongStorage": dt.int64,
    "IntStorage": dt.int32,
    "ShortStorage": dt.int16,
    "CharStorage": dt.int8,
    "ByteStorage": dt.uint8,
    "BoolStorage": dt.bool_,
    "ComplexFloatStorage": dt.complex64,
    "ComplexDoubleStorage": dt.complex128,
    "UntypedStorage": None,
    "_UntypedStorage": None,
}
_MAKERS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _mapping(OrderedDict),
    "collections.Counter": _mapping(lambda pairs: Counter(dict(pairs))),
    "collections.defaultdict": _defaultdict,
    "builtins.set": _set(set),
    "builtins.frozenset": _set(frozenset),
    "builtins.list": lambda items=(): list(items) if isinstance(items, (list, tuple)) else [],
    "builtins.tuple": lambda items=(): tuple(items) if isinstance(items, (list, tuple)) else (),
    "builtins.dict": _mapping(dict),
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytearray,
    "builtins.complex": _number(complex),
    "builtins.slice": lambda *parts: slice(*map(key, parts)),
    "_codecs.encode": _encode,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    _PARAMETER: _parameter,
    "torch.nn.Parameter": _parameter,
    "torch.Tensor": _refuser("torch.Tensor", "a tensor made by hand"),
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _same,
    "torch.torch_version.TorchVersion": _version,
    "torch._utils._rebuild_qtensor": _refuser("torch._utils._rebuild_qtensor", "quantized tensors"),
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_nested_tensor": _refuser("torch._utils._rebuild_nested_tensor", "nested tensors"),
    "numpy.dtype": ArrayType,
    "numpy.ndarray": _refuser("numpy.ndarray", "an array made by hand"),
}
for _core in ("numpy.core", "numpy._core"):
    _MAKERS |= {
        f"{_core}.multiarray._reconstruct": lambda *rest: Array(),
        f"{_core}.multiarray.scalar": _scalar,
        f"{_core}.numeric._frombuffer": _frombuffer,
    }
_JIT = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist", "restore_type_tag")


def find(module: str, name: str, jit: bool = False) -> object:
    """What a global name of a checkpoint stands for, or an error that names it."""
    module = "builtins" if module == "__builtin__" else module
    full = f"{module}.{name}"
    if full in _MAKERS:
        return Maker(full, _MAKERS[full])
    if module in ("torch", "torch.cuda", "torch.storage") and name in _STORAGES:
        return StorageType(_STORAGES[name])
    if module == "torch" and name in {d.name for d in dt.ALL}:
        return dt.by_name(name)
    if jit and module == "torch.jit._pickle" and name in _JIT:
        return Maker(full, _same)
    if jit and full.startswith("__torch__."):
        if full.startswith("__torch__.torch.classes."):
            raise UnsafeFileError(f"the file holds an object of C++ ({full}); refused.")
        return Maker(full, JitObject)
    if module == "torch" and re.match("q(u)?int|Q(U)?Int", name):
        raise UnsafeFileError(f"the file holds quantized tensors ({full}); they are not supported.")
    if module == "torch" and name in _OTHER_TYPES:
        raise UnsafeFileError(f"the file holds tensors of {full}, a type that is not supported.")
    raise UnsafeFileError(
        f"the file asks for {full!r}, which is not data; it was refused, and nothing was run. Only "
        "tensors, numbers, text, lists, dicts and NumPy arrays are read: save the state_dict()."
    )


_OTHER_TYPES = {
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
    "complex32",
    "ComplexHalfStorage",
    "bits8",
    "bits16",
}


def storage(identity: object) -> StorageRef:
    """What a checkpoint's reference to a storage stands for."""
    if not isinstance(identity, tuple) or len(identity) not in (5, 6) or identity[0] != "storage":
        raise UnsafeFileError("the file refers to something outside of it that is not a storage.")
    _, kind, name, location, numel, *view = identity
    if not isinstance(kind, StorageType) or not isinstance(name, (str, int)):
        raise FileFormatError("storage: its type or name is wrong.")
    itemsize = kind.dtype.itemsize if kind.dtype else 1
    if type(numel) is not int or not 0 <= numel * itemsize <= _MAX_BYTES:
        raise FileFormatError(f"storage: {str(numel)[:40]} elements cannot be a size.")
    out = StorageRef(str(name), kind.dtype, numel, str(location))
    if view and view[0] is not None:
        part = view[0]
        if not isinstance(part, tuple) or len(part) != 3:
            raise FileFormatError("storage: a part of it is described wrongly.")
        _, skip, count = part
        if any(type(n) is not int or n < 0 for n in (skip, count)) or skip + count > numel:
            raise FileFormatError("storage: a part of it reaches beyond it.")
        return replace(out, skip=skip, numel=count)
    return out
