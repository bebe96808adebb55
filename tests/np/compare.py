"""The same expression with NumPy and with votive.np: values, dtypes, shapes and types of errors must agree."""

from __future__ import annotations

import warnings
from typing import Any

import numpy

import votive

xp = votive.np
_rng = numpy.random.default_rng(5)
NAN, INF = numpy.nan, numpy.inf
VARIABLES: dict[str, Any] = {
    "f": _rng.standard_normal((3, 4)),
    "g": _rng.standard_normal((3, 4)),
    "v": _rng.standard_normal(4),
    "w": _rng.standard_normal(7),
    "sq": _rng.standard_normal((3, 3)) + 3 * numpy.eye(3),
    "sym": (lambda a: a @ a.T + numpy.eye(3))(_rng.standard_normal((3, 3))),
    "st": _rng.standard_normal((2, 3, 3)) + 3 * numpy.eye(3),
    "p": _rng.random((3, 4)) + 0.1,
    "k": _rng.integers(-9, 9, (3, 4)),
    "n": _rng.integers(0, 5, 6),
    "s": _rng.standard_normal((3, 4)).astype("float32"),
    "h": _rng.standard_normal((3, 4)).astype("float16"),
    "c": _rng.standard_normal((3, 4)) + 1j * _rng.standard_normal((3, 4)),
    "cs": (_rng.standard_normal(4) + 1j * _rng.standard_normal(4)).astype("complex64"),
    "b": _rng.random((3, 4)) < 0.5,
    "i8": _rng.integers(-100, 100, (3, 4)).astype("int8"),
    "i32": _rng.integers(-100, 100, (3, 4)).astype("int32"),
    "u8": _rng.integers(0, 200, (3, 4)).astype("uint8"),
    "u16": _rng.integers(0, 60000, (3, 4)).astype("uint16"),
    "u32": _rng.integers(0, 2**32, (3, 4)).astype("uint32"),
    "u64": _rng.integers(0, 2**63, (3, 4)).astype("uint64") * 2,
    "q": numpy.array([1.0, NAN, -2.0, INF, -INF, 0.0, -0.0, 3.0]),
    "qq": numpy.array([[1.0, NAN, 3.0], [4.0, 5.0, NAN], [7.0, 8.0, 9.0]]),
    "e": numpy.zeros((0, 3)),
    "z": numpy.array(2.5),
    "zi": numpy.array(3),
    "t3": _rng.standard_normal((2, 3, 4)),
}


def variables(convert: Any) -> dict[str, Any]:
    return {k: convert(v.copy()) for k, v in VARIABLES.items()}


def run(text: str, module: Any, convert: Any) -> Any:
    """The value of an expression, or of the name `out` after statements; errors are values, too."""
    scope = {"np": module, "nan": NAN, "inf": INF, **variables(convert)}
    try:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if ";" in text:
                exec(text, scope)
                return scope["out"]
            return eval(text, scope)
    except Exception as problem:
        return problem


def outcome(text: str) -> tuple[Any, Any]:
    return run(text, numpy, lambda a: a), run(text, xp, lambda a: xp.asarray(a))


def tolerance(dtype: Any) -> float:
    return {"float16": 2e-3, "float32": 2e-5, "complex64": 2e-5}.get(str(dtype), 1e-9)


def same(want: Any, got: Any) -> str | None:
    """What differs, or None."""
    if isinstance(want, Exception) or isinstance(got, Exception):
        if not isinstance(got, Exception):
            return f"no error; NumPy raises {want!r}"
        if not isinstance(want, Exception):
            return f"raises {got!r}; NumPy gives {want!r}"
        related = isinstance(got, type(want)) or isinstance(want, type(got))
        return None if related else f"raises {got!r}; NumPy raises {want!r}"
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return f"gives {got!r}; NumPy gives {want!r}"
        return next((d for d in map(same, want, got) if d), None)
    if isinstance(want, (str, type, numpy.dtype, bytes, slice)) or want is None:
        return None if want == got else f"gives {got!r}; NumPy gives {want!r}"
    if isinstance(want, (numpy.ndarray, numpy.generic)):
        if not isinstance(got, xp.ndarray):
            return f"gives a {type(got).__name__}, not an array"
        if got.dtype != want.dtype:
            return f"has dtype {got.dtype}; NumPy's has {want.dtype}"
        if got.shape != want.shape:
            return f"has shape {got.shape}; NumPy's has {want.shape}"
        found = numpy.asarray(got.detach())
    else:
        found = numpy.asarray(got.detach() if isinstance(got, xp.ndarray) else got)
        if found.shape != numpy.shape(want):
            return f"gives {got!r}; NumPy gives {want!r}"
    reference = numpy.asarray(want)
    if reference.dtype.kind in "fc":
        limit = tolerance(reference.dtype)
        scale = numpy.nanmax(numpy.abs(reference[numpy.isfinite(reference)]), initial=0)
        good = numpy.allclose(found, reference, rtol=limit, atol=limit * min(scale, 1), equal_nan=True)
    else:
        good = bool((found == reference).all())
    return None if good else f"gives {found!r}; NumPy gives {reference!r}"


def difference(text: str) -> str | None:
    want, got = outcome(text)
    found = same(want, got)
    return f"{text}: {found}" if found else None
