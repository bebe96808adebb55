"""The catalog: one record per public operator, and how its sample inputs are made. Knows no
operator.

Records live in `records/<family>.py`, one list `RECORDS` each; `test_catalog.py` loops over all of
them.
"""

from __future__ import annotations

import importlib
import operator
import pkgutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from . import records as _records

NP = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.bool_,
    "complex128": np.complex128,
    "complex64": np.complex64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
KINDS = {
    "b": ("bool",),
    "i": ("int64", "int32", "uint8"),
    "f": ("float64", "float32", "float16", "bfloat16"),
    "c": ("complex128", "complex64"),
    "w": ("float64", "float32"),  # wide floats: what LAPACK takes
}
# Relative and absolute tolerance against a float64 reference.
TOLERANCE = {
    "float64": (1e-10, 1e-11),
    "float32": (1e-5, 1e-6),
    "float16": (2e-3, 2e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "complex128": (1e-10, 1e-11),
    "complex64": (1e-5, 1e-5),
}


@dataclass(frozen=True)
class S:
    """A random tensor argument: shape, range of values, fixed dtype, whether it is
    differentiated.
    """

    shape: tuple[int, ...]
    low: float | None
    high: float | None
    dtype: str | None
    grad: bool
    values: Any

    def __init__(
        self,
        *shape: int,
        low: float | None = None,
        high: float | None = None,
        dtype: str | None = None,
        grad: bool = True,
        values: Any = None,
    ) -> None:
        for name, value in (
            ("shape", shape),
            ("low", low),
            ("high", high),
            ("dtype", dtype),
            ("grad", grad),
            ("values", values),
        ):
            object.__setattr__(self, name, value)

    def make(self, rng: np.random.Generator, dtype: str, domain: Any, kinks: Any = ()) -> Any:
        """A random array; floats stay away from `kinks`."""
        dtype = self.dtype or dtype
        if self.values is not None:
            return np.array(self.values).astype(NP[dtype])
        low = domain[0] if self.low is None else self.low
        high = domain[1] if self.high is None else self.high
        kind = np.dtype(NP[dtype]).kind
        if dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if kind in "iu":
            lo, hi = int(np.ceil(low)), int(np.floor(high))
            if kind == "u":
                lo = max(lo, 0)
            # Integer domains are half-open; a domain narrower than one integer holds that integer.
            return np.asarray(rng.integers(lo, max(hi, lo + 1), self.shape)).astype(NP[dtype])
        x = rng.uniform(low, high, self.shape)
        for kink in kinks:
            near = np.abs(x - kink) < 0.05
            x = np.where(near, x + np.where(x >= kink, 0.1, -0.1), x)
        if kind == "c":
            x = x + 1j * rng.uniform(low, high, self.shape)
        return np.asarray(x).astype(NP[dtype])


@dataclass(frozen=True)
class Record:
    """What the tests know of one operator."""

    name: str
    samples: list[tuple[Any, ...]]
    reference: Callable[..., Any] | None = None
    dtypes: str = "f"
    grad: Any = True
    gradgrad: bool = True
    domain: tuple[float, float] = (-2.0, 2.0)
    kinks: tuple[float, ...] = ()
    errors: list[Any] = field(default_factory=list)
    tol: dict[str, tuple[float, float]] = field(default_factory=dict)
    torch: Any = None
    torch_dtypes: str | None = None
    random: bool = False
    inplace: bool = True
    out: bool = True
    layouts: bool = True

    def resolve(self, package: Any) -> Callable[..., Any]:
        """The function of this name in votive or torch."""
        return operator.attrgetter(self.name)(package)  # type: ignore[no-any-return]

    def split(self, sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of a sample."""
        sample = sample if isinstance(sample, tuple) else (sample,)
        if sample and isinstance(sample[-1], dict):
            return sample[:-1], sample[-1]
        return sample, {}

    def seed(self, extra: str = "") -> int:
        return zlib.crc32(f"{self.name}{extra}".encode())


def op(name: str, samples: list[Any], **options: Any) -> Record:
    """Declare a record."""
    return Record(name, samples, **options)


def transform(x: Any, fn: Callable[[Any], Any], kind: type = S) -> Any:
    """Replace every value of `kind` inside nested arguments."""
    if isinstance(x, kind):
        return fn(x)
    if isinstance(x, (tuple, list)):
        return type(x)(transform(v, fn, kind) for v in x)
    if isinstance(x, dict):
        return {k: transform(v, fn, kind) for k, v in x.items()}
    return x


def arrays(record: Record, sample: Any, dtype: str, away: bool = False) -> tuple[Any, Any]:
    """A sample with NumPy arrays in place of descriptions."""
    rng = np.random.default_rng(record.seed(dtype + repr(sample)))
    args, kwargs = record.split(sample)
    kinks = record.kinks if away else ()
    make = lambda s: s.make(rng, dtype, record.domain, kinks)
    return transform(args, make), transform(kwargs, make)


def load() -> list[Record]:
    """Every record of every family."""
    found: list[Record] = []
    for info in pkgutil.iter_modules(_records.__path__):
        found.extend(importlib.import_module(f"{_records.__name__}.{info.name}").RECORDS)
    return found
