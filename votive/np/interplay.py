"""NumPy's own functions on arrays of votive: they lead to the functions of the same name here."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ..tensor import Tensor
from .array import ndarray
from .convert import host, result, to_tensor, wrap

_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def call_ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """`numpy.sin(x)`, `numpy.add.reduce(x)`: computed by votive, so the result is an array of votive."""
    ours = getattr(sys.modules[__package__], ufunc.__name__, None)
    if ours is None:
        return _foreign(ufunc, method, inputs, kwargs)
    out = kwargs.get("out")
    if isinstance(out, tuple):
        if any(isinstance(o, numpy.ndarray) for o in out):
            return _into_numpy(ufunc, method, inputs, kwargs)
        if len(out) == 1:
            kwargs = {**kwargs, "out": out[0]}
    if method == "__call__":
        return ours(*inputs, **kwargs)
    if method not in _METHODS:
        return NotImplemented
    if method == "at" and not isinstance(inputs[0], ndarray):
        return _into_numpy(ufunc, method, inputs, kwargs)
    return getattr(ours, method)(*inputs, **kwargs)


def _foreign(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """A ufunc of another library, such as SciPy's: it computes on the CPU, and the results come back as arrays."""
    if kwargs.get("out") is not None or any(isinstance(v, ndarray) for v in kwargs.values()):
        return NotImplemented

    def run(*values: Any) -> Any:
        return getattr(ufunc, method)(*values, **kwargs)

    found = host(ufunc.__name__, run, *inputs)
    return tuple(result(f) for f in found) if isinstance(found, tuple) else result(found)


def _into_numpy(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """A NumPy array is the target: NumPy computes, on values that are read."""
    return getattr(ufunc, method)(*[_read(i) for i in inputs], **kwargs)


def _read(x: Any) -> Any:
    return numpy.asarray(x) if isinstance(x, ndarray) else x


_FOREIGN = {"numpy": "", "numpy.linalg": "linalg", "numpy.fft": "fft"}


def call_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """`numpy.concatenate([x, y])`, `numpy.linalg.inv(x)`: the function of the same name here."""
    where = _FOREIGN.get(func.__module__)
    target: Any = sys.modules[__package__]
    if where is None:
        return NotImplemented
    if where:
        target = getattr(target, where)
    ours = getattr(target, func.__name__, None)
    if ours is None:
        return NotImplemented
    return ours(*args, **kwargs)


def from_tensor(x: Any) -> Any:
    """A tensor as an array; other values as they are."""
    return wrap(to_tensor(x)) if isinstance(x, Tensor) else x
