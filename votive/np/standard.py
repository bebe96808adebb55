"""The array-API standard 2024.12: what a namespace says about itself."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ..backends.base import BACKENDS
from ..core.device import device as device_type
from ..core.device import get_default_device
from .element_types import isdtype

__array_api_version__ = "2024.12"
_KNOWN = ("2021.12", "2022.12", "2023.12", "2024.12")
_NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def checked_version(api_version: str | None) -> None:
    """Refuse versions of the standard that are not known."""
    if api_version is not None and api_version not in _KNOWN:
        raise ValueError(f"array-API version {api_version!r} is not supported; known: {', '.join(_KNOWN)}.")


def namespace(api_version: str | None = None) -> Any:
    """`votive.np`, for arrays of this package."""
    checked_version(api_version)
    return sys.modules[__package__]


class Info:
    """Answers to `__array_namespace_info__()`: dtypes, devices and capabilities."""

    def __init__(self, dtype_of: Any = numpy.dtype) -> None:
        self._dtype_of = dtype_of

    def capabilities(self) -> dict[str, Any]:
        """What optional parts of the standard are there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> device_type:
        """Where new arrays are made."""
        return get_default_device()

    def devices(self) -> list[device_type]:
        """The devices that are there."""
        found = [device_type("cpu")]
        if "cuda" in BACKENDS:
            from .. import cuda

            found += [device_type("cuda", i) for i in range(cuda.device_count())] if cuda.is_available() else []
        return found

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes that arrays get when none is asked for."""
        self._known(device)
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {k: self._dtype_of(v) for k, v in names.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, by name."""
        self._known(device)
        return {n: self._dtype_of(n) for n in _NAMES if kind is None or isdtype(n, kind)}

    def _known(self, device: Any) -> None:
        if device is not None:
            from .creation import resolved

            resolved(device)


def __array_namespace_info__() -> Info:
    """Dtypes, devices and capabilities of this namespace."""
    return Info()
