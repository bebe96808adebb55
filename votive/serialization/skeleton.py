"""Nested values as JSON, with names where tensors stood. Knows types, not files.

Plain JSON values stand for themselves and lists for lists. Everything else is an object with one
member, named after its type: {"tuple": [...]}, {"dict": [[key, value], ...]}, {"tensor": {...}}.
Only the types below exist, so reading can build nothing else.
"""

from __future__ import annotations

import base64
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.affine import TYPES, qscheme, scheme
from ..core.device import device
from ..core.layout import Size
from ..surface.block_tensor import BlockTensor, from_blocks
from ..surface.quantized_tensor import QuantizedTensor, made_of
from ..tensor import Tensor
from .container import FileFormatError

_SEQUENCES: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset", Size: "size"}
# The factory of a defaultdict is code; what it has made so far is saved as a plain dict.
_MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered", Counter: "counter", defaultdict: "dict"}


def encode(value: object, tensor: Callable[[Any, str], Any]) -> Any:
    """JSON for `value`; `tensor(t, path)` gives that of a tensor or array found at `path`."""
    return _Encoder(tensor)(value, "")


class _Encoder:
    def __init__(self, tensor: Callable[[Any, str], Any]) -> None:
        self.tensor = tensor
        self.around: set[int] = set()

    def __call__(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, Tensor) and value.layout.name.startswith("sparse"):
            return self._sparse(value, path)
        if isinstance(value, BlockTensor):
            known = {"format": value._format.name, "flipped": value._flipped, "numbers": value.compute_dtype.name}
            return {"blocks": {**known, "bytes": self.tensor(value.blocks, path)}}
        if isinstance(value, QuantizedTensor):
            return self._quantized(value, path)
        if isinstance(value, (Tensor, np.ndarray, np.generic)):
            return self.tensor(value, path)
        if kind is complex:
            return {"complex": [self(value.real, path), self(value.imag, path)]}
        if kind in (bytes, bytearray):
            return {kind.__name__: base64.b64encode(value).decode()}
        if isinstance(value, dt.dtype):
            return {"dtype": value.name}
        if kind is qscheme:
            return {"qscheme": value.name}
        if kind is device:
            return {"device": str(value)}
        if kind is list or kind in _SEQUENCES or kind in _MAPPINGS:
            return self._container(value, kind, path)
        raise TypeError(
            f"save: {path or 'the object'} is a {kind.__module__}.{kind.__qualname__}, and loading "
            "one would run code; save its state_dict(), or numbers, text, lists, dicts and tensors."
        )

    def _quantized(self, value: QuantizedTensor, path: str) -> Any:
        dot = f"{path}." if path else ""
        parts = {"scale": value._scale, "zero_point": value._zero}
        known = {k: self(v, dot + k) for k, v in parts.items()}
        codes = self.tensor(value._codes, dot + "codes")
        return {"quantized": {"dtype": value._kind_of.name, "axis": value._axis, "codes": codes, **known}}

    def _sparse(self, value: Tensor, path: str) -> Any:
        from ..sparse.persistence import describe

        known, parts = describe(value)
        names = ("values", "indices", "compressed")[: len(parts)][::-1]
        dot = f"{path}." if path else ""
        known["parts"] = [self.tensor(p, dot + n) for n, p in zip(names, parts, strict=True)]
        return {"sparse": known}

    def _container(self, value: Any, kind: type, path: str) -> Any:
        if id(value) in self.around:
            raise ValueError(f"save: {path or 'the object'} contains itself.")
        self.around.add(id(value))
        dot = f"{path}." if path else ""
        if kind in _MAPPINGS:
            items = [[self(k, f"{dot}key {k!r}"), self(v, f"{dot}{k}")] for k, v in value.items()]
            out: Any = {_MAPPINGS[kind]: items}
        else:
            # The order of a set differs from run to run; equal values shall give equal files.
            items = sorted(value, key=repr) if kind in (set, frozenset) else value
            out = [self(v, f"{dot}{i}") for i, v in enumerate(items)]
            if kind is not list:
                out = {_SEQUENCES[kind]: out}
        self.around.discard(id(value))
        return out


def decode(json: object, tensor: Callable[[Any], Any]) -> Any:
    """The value that `encode` described; `tensor` gives back what it gave for tensors."""
    try:
        return _decode(json, tensor)
    except FileFormatError:
        raise
    except (TypeError, ValueError, KeyError, RecursionError, RuntimeError) as e:
        raise FileFormatError(f"load: the description of the saved object is wrong: {e}") from e


def _decode(json: object, tensor: Callable[[Any], Any]) -> Any:
    if json is None or isinstance(json, (bool, int, float, str)):
        return json
    if isinstance(json, list):
        return [_decode(x, tensor) for x in json]
    if not isinstance(json, dict) or len(json) != 1:
        raise FileFormatError("load: the description of the saved object is wrong.")
    ((kind, content),) = json.items()
    if kind in _BUILD_SEQUENCE:
        return _BUILD_SEQUENCE[kind](_decode(content, tensor))
    if kind in _BUILD_MAPPING:
        pairs = [(_decode(k, tensor), _decode(v, tensor)) for k, v in content]
        return _BUILD_MAPPING[kind](pairs)
    if kind in ("tensor", "numpy"):
        return tensor(json)
    if kind == "sparse":
        from ..sparse.persistence import restore

        parts = [_decode(p, tensor) for p in content["parts"]]
        how = (content["layout"], content["shape"], parts, content.get("coalesced"), content.get("grad"))
        return restore(*how)
    if kind == "blocks":
        numbers = dt.by_name(content["numbers"])
        if type(content["flipped"]) is not bool or not numbers.is_floating_point:
            raise FileFormatError("load: the description of a tensor in blocks is wrong.")
        data = _decode(content["bytes"], tensor)
        return from_blocks(data, content["format"], flipped=content["flipped"], compute_dtype=numbers)
    if kind == "quantized":
        return _quantized(content, tensor)
    if kind in _BUILD_TEXT and isinstance(content, str):
        return _BUILD_TEXT[kind](content)
    if kind == "complex":
        real, imag = (_decode(x, tensor) for x in content)
        return complex(real, imag)
    raise FileFormatError(f"load: the file holds an unknown kind of value, {kind!r}.")


def _quantized(content: dict[str, Any], tensor: Callable[[Any], Any]) -> Any:
    axis, name = content["axis"], content["dtype"]
    if name not in TYPES or not (axis is None or type(axis) is int):
        raise FileFormatError("load: the description of a quantized tensor is wrong.")
    scale, zero = (_decode(content[k], tensor) for k in ("scale", "zero_point"))
    one = type(scale) is float and type(zero) is int
    if one != (axis is None):
        raise FileFormatError("load: a quantized tensor has a scale and a zero point, or some along an axis.")
    return made_of(_decode(content["codes"], tensor), TYPES[name], scale, zero, axis)


def _float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise FileFormatError(f"load: {text!r} is not a number.")
    return float(text)


def _size(sizes: list[Any]) -> Size:
    if not all(type(n) is int for n in sizes):
        raise FileFormatError("load: a shape must consist of integers.")
    return Size(sizes)


_BUILD_SEQUENCE: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "size": _size,
}
_BUILD_MAPPING: dict[str, Callable[[list[Any]], Any]] = {
    "dict": dict,
    "ordered": OrderedDict,
    "counter": lambda pairs: Counter(dict(pairs)),
}
_BUILD_TEXT: dict[str, Callable[[str], Any]] = {
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "bytearray": lambda text: bytearray(base64.b64decode(text, validate=True)),
    "dtype": dt.by_name,
    "device": device,
    "qscheme": scheme,
    "float": _float,
}
