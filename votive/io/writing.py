"""What may be written into a safetensors file, and which tensors share memory. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..serialization.container import NAMES
from ..serialization.sharing import span
from ..tensor import Tensor
from .source import Values


def text_only(op: str, metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Metadata in the only form the format has."""
    out = dict(metadata or {})
    for key, value in out.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{op}: metadata must map text to text, got {key!r}: {value!r}.")
    return out


def checked(op: str, name: str, value: object) -> np.ndarray:
    """The array to write for one value."""
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"{op}: {name!r} cannot be the name of a tensor.")
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{op}: {name!r} must be a Tensor or a NumPy array, got {type(value).__name__}.")
    try:
        known = dt.from_numpy(array.dtype)
    except TypeError:
        known = None
    if known is None or known not in NAMES:
        raise TypeError(
            f"{op}: {name!r} has the type {array.dtype}, which safetensors files cannot hold"
            + ("; save view_as_real() of it." if known is dt.complex128 else ".")
        )
    return array.astype(known.np, copy=False)  # the file's byte order


def shared(tensors: Mapping[str, Values]) -> list[list[str]]:
    """Names in groups: tensors of one group overlap in memory."""
    extents = []
    for name, value in tensors.items():
        if isinstance(value, Tensor):
            if value.numel() == 0 or not value.is_cpu:
                continue
            begin = value.data_ptr()
            size = span(value.shape, value.stride()) * value.dtype.itemsize
            extents.append((begin, begin + size, name))
        elif value.size:
            low, high = np.lib.array_utils.byte_bounds(value)
            extents.append((low, high, name))
    groups: list[list[str]] = []
    reach = -1
    for begin, end, name in sorted(extents):
        if begin < reach:
            groups[-1].append(name)
        else:
            groups.append([name])
        reach = max(reach, end)
    return groups


def without_twins(op: str, tensors: Mapping[str, Values]) -> tuple[dict[str, Values], dict[str, list[str]]]:
    """Tied tensors only once: kept under the name that comes first."""
    order = {name: i for i, name in enumerate(tensors)}
    dropped: dict[str, list[str]] = {}
    for group in shared(tensors):
        if len(group) < 2:
            continue
        first, *rest = sorted(group, key=order.__getitem__)
        if any(_window(tensors[n]) != _window(tensors[first]) for n in rest):
            raise RuntimeError(
                f"{op}: {sorted(group)} overlap in memory without being the same tensor; clone() them first."
            )
        dropped[first] = rest
    gone = {n for names in dropped.values() for n in names}
    return {n: t for n, t in tensors.items() if n not in gone}, dropped


def _window(value: Values) -> tuple[Any, ...]:
    if isinstance(value, Tensor):
        return value.data_ptr(), tuple(value.shape), tuple(value.stride()), value.dtype.name
    return value.ctypes.data, value.shape, value.strides, value.dtype.str
