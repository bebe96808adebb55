"""A checker of the array-API standard 2024.12: names, signatures, dtypes, shapes, values and special cases.

`python -m tests.np.array_api_check [np | tensor | numpy]` prints a table. The reference is `array-api-strict`.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import numpy

import votive

from .array_api_expressions import EXPRESSIONS

KINDS = {
    "bool": ["bool"],
    "integer": ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    "real": ["float32", "float64"],
    "complex": ["complex64", "complex128"],
}
FLOAT = KINDS["real"] + KINDS["complex"]
REAL = KINDS["integer"] + KINDS["real"]
NUMERIC = KINDS["integer"] + FLOAT
ALL = KINDS["bool"] + NUMERIC
INTEGRAL = KINDS["bool"] + KINDS["integer"]


UNARY: dict[str, list[str]] = {}
BINARY: dict[str, list[str]] = {}
for _table, _names, _dtypes in (
    (UNARY, "abs negative positive sign square isfinite isinf isnan round conj real", NUMERIC),
    (UNARY, "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt", FLOAT),
    (UNARY, "tan tanh", FLOAT),
    (UNARY, "ceil floor trunc", REAL),
    (UNARY, "bitwise_invert", INTEGRAL),
    (UNARY, "logical_not", KINDS["bool"]),
    (UNARY, "signbit", KINDS["real"]),
    (UNARY, "imag", KINDS["complex"]),
    (BINARY, "add subtract multiply pow", NUMERIC),
    (BINARY, "divide", FLOAT),
    (BINARY, "floor_divide remainder maximum minimum less less_equal greater greater_equal", REAL),
    (BINARY, "equal not_equal", ALL),
    (BINARY, "atan2 copysign hypot logaddexp nextafter", KINDS["real"]),
    (BINARY, "bitwise_and bitwise_or bitwise_xor", INTEGRAL),
    (BINARY, "bitwise_left_shift bitwise_right_shift", KINDS["integer"]),
    (BINARY, "logical_and logical_or logical_xor", KINDS["bool"]),
):
    _table.update(dict.fromkeys(_names.split(), _dtypes))
OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "pow": "**",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>",
}  # fmt: skip
SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (3, 1, 4)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.5, numpy.inf, -numpy.inf, numpy.nan]


def values(dtype: str, shape: tuple[int, ...], seed: int = 0, small: bool = False) -> Any:
    rng = numpy.random.default_rng([seed, len(shape), *map(ord, dtype)])
    kind = numpy.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" or small else -6, 7, shape).astype(dtype)
    a = rng.uniform(-4, 4, shape)
    return (a + 1j * rng.uniform(-4, 4, shape) if kind == "c" else a).astype(dtype)


def namespaces(which: str) -> tuple[Any, Any]:
    """The namespace under test, and how a NumPy array becomes one of its arrays."""
    if which == "numpy":
        return numpy, lambda a: a
    if which == "tensor":
        return votive.ones(1).__array_namespace__(), lambda a: votive.from_numpy(numpy.array(a))
    return votive.np, lambda a: votive.np.asarray(numpy.array(a))


def strict_array(a: Any) -> Any:
    return strict.asarray(a, copy=True)


def outcome(fn: Any) -> Any:
    try:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return fn()
    except Exception as problem:
        return problem


def plain(x: Any) -> Any:
    if isinstance(x, votive.np.ndarray):
        return x.tensor.numpy()
    if isinstance(x, votive.Tensor):
        return x.numpy()
    return numpy.asarray(x) if not isinstance(x, (tuple, list)) else x


def dtype_name(x: Any) -> str:
    name = getattr(x, "name", None) or getattr(getattr(x, "_np_dtype", None), "name", None) or str(x)
    return str(name).rsplit(".", 1)[-1]


def differs(want: Any, got: Any, special: bool = False) -> str | None:
    if isinstance(want, Exception):
        return None  # what the standard leaves open
    if isinstance(got, Exception):
        return f"raises {got!r}"
    if isinstance(want, (tuple, list)) and not isinstance(want, str):
        if len(want) != len(got):
            return f"gives {len(got)} results, not {len(want)}"
        return next((d for d in (differs(w, g) for w, g in zip(want, got, strict=True)) if d), None)
    if type(want).__module__.startswith("array_api_strict") and hasattr(want, "_np_dtype"):
        return None if dtype_name(want) == dtype_name(got) else f"gives {got}, not {want}"
    if hasattr(want, "_array"):
        w, g = want._array, plain(got)
        if not hasattr(got, "dtype"):
            return f"gives {type(got).__name__}, not an array"
        if w.dtype != g.dtype:
            return f"has dtype {g.dtype}, not {w.dtype}"
        if w.shape != g.shape:
            return f"has shape {g.shape}, not {w.shape}"
        if w.dtype.kind not in "fc":
            return None if (w == g).all() else f"gives {g}, not {w}"
        limit = 1e-4 if w.dtype.itemsize // (2 if w.dtype.kind == "c" else 1) == 4 else 1e-9
        if not numpy.allclose(w, g, limit, limit, equal_nan=True):
            return f"gives {g}, not {w}"
        if special and w.dtype.kind == "f" and ((w == 0) & (g == 0) & (numpy.signbit(w) != numpy.signbit(g))).any():
            return "has zeros of the wrong sign"
        return None
    if isinstance(want, (bool, int, float, complex)):
        if callable(got):
            return "is a method"
        return None if abs(complex(want) - complex(got)) <= 1e-9 * abs(want) else f"gives {got}, not {want}"
    return None if isinstance(got, type(want)) or want == got else f"gives {got!r}, not {want!r}"


def check_names(xp: Any) -> Iterator[tuple[str, str, str | None]]:
    """Every function is there and takes the standard's arguments by the standard's names."""
    for part in ("", "linalg", "fft"):
        theirs = getattr(strict, part) if part else strict
        ours = getattr(xp, part, None) if part else xp
        for name in theirs.__all__:
            fn = getattr(theirs, name)
            if name.startswith("__") or name[0].isupper() or "flags" in name or not callable(fn) or inspect.isclass(fn):
                continue
            if name == "broadcast_shapes":
                continue  # of a later version
            yield "names", f"{part}.{name}".strip("."), _signature(fn, getattr(ours, name, None))


def _signature(want: Any, got: Any) -> str | None:
    if got is None:
        return "is missing"
    try:
        ours = list(inspect.signature(got).parameters.values())
    except ValueError:
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in ours) and any(p.kind is p.VAR_KEYWORD for p in ours):
        return None
    named = {p.name: p for p in ours}
    for i, p in enumerate(inspect.signature(want).parameters.values()):
        if p.name in ("newshape",):
            continue
        if p.kind is p.KEYWORD_ONLY:
            if p.name not in named or named[p.name].kind is p.POSITIONAL_ONLY:
                return f"does not take {p.name}="
        elif p.kind is p.POSITIONAL_OR_KEYWORD:
            if i >= len(ours) or ours[i].name != p.name:
                return f"argument {i} is not called {p.name}"
        elif p.kind is p.VAR_POSITIONAL and ours[i].kind is not p.kind:
            return f"does not take *{p.name}"
        elif i >= len(ours):
            return f"does not take {p.name}"
    return None


def check_elementwise(xp: Any, make: Any) -> Iterator[tuple[str, str, str | None]]:
    for name, dtypes in UNARY.items():
        for d, shape in itertools.product(dtypes, SHAPES):
            a = values(d, shape)
            want = outcome(lambda n=name, a=a: getattr(strict, n)(strict_array(a)))
            got = outcome(lambda n=name, a=a: getattr(xp, n)(make(a)))
            yield "elementwise", f"{name}({d}{shape})", differs(want, got)
    for name, dtypes in BINARY.items():
        for d1, d2 in itertools.product(dtypes, dtypes):
            if numpy.dtype(d1).kind != numpy.dtype(d2).kind and not {d1, d2} <= set(KINDS["integer"]):
                if {numpy.dtype(d1).kind, numpy.dtype(d2).kind} != {"f", "c"}:
                    continue
            for one, two in (((2, 3), (3,)), ((), (4,)), ((), ()), ((0,), (1,)), ((2, 1), (1, 3))):
                a, b = values(d1, one, 1), values(d2, two, 2, small=name in ("pow", *_SHIFTS))
                want = outcome(lambda n=name, a=a, b=b: getattr(strict, n)(strict_array(a), strict_array(b)))
                got = outcome(lambda n=name, a=a, b=b: getattr(xp, n)(make(a), make(b)))
                yield "elementwise", f"{name}({d1}{one}, {d2}{two})", differs(want, got)
                if name in OPERATORS:
                    text = f"x {OPERATORS[name]} y"
                    want = outcome(lambda t=text, a=a, b=b: eval(t, {"x": strict_array(a), "y": strict_array(b)}))
                    got = outcome(lambda t=text, a=a, b=b: eval(t, {"x": make(a), "y": make(b)}))
                    yield "operators", f"{text}: {d1}{one}, {d2}{two}", differs(want, got)


_SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")


def check_special(xp: Any, make: Any) -> Iterator[tuple[str, str, str | None]]:
    """Signed zeros, infinities and NaN, real and complex."""
    line = numpy.array(SPECIAL)
    grid = numpy.empty(len(line) ** 2, complex)
    grid.real, grid.imag = numpy.repeat(line, len(line)), numpy.tile(line, len(line))
    for name, dtypes in UNARY.items():
        for d in dtypes:
            if numpy.dtype(d).kind not in "fc" or (name in ("reciprocal", "sign") and "complex" in d):
                continue
            a = (grid if "complex" in d else line).astype(d)
            want = outcome(lambda n=name, a=a: getattr(strict, n)(strict_array(a)))
            got = outcome(lambda n=name, a=a: getattr(xp, n)(make(a)))
            yield "special cases", f"{name}({d})", differs(want, got, True)
    for name, dtypes in BINARY.items():
        for d in [d for d in dtypes if d in KINDS["real"]]:
            a, b = line.astype(d)[:, None], line.astype(d)[None, :]
            want = outcome(lambda n=name, a=a, b=b: getattr(strict, n)(strict_array(a), strict_array(b)))
            got = outcome(lambda n=name, a=a, b=b: getattr(xp, n)(make(a), make(b)))
            yield "special cases", f"{name}({d})", differs(want, got, True)


def variables(make: Any) -> dict[str, Any]:
    m = values("float64", (2, 3, 3), 3) + 9 * numpy.eye(3)
    s = values("float64", (3, 3), 4)
    given = {
        "A": values("float64", (3, 4)),
        "B": values("float32", (4,)),
        "I": values("int32", (3, 4)),
        "U": values("uint8", (6,)),
        "M": m,
        "S": s @ s.T + numpy.eye(3),
        "C": values("complex128", (3, 4)),
        "T": values("bool", (3, 4)),
        "E": numpy.zeros((0, 3)),
        "Z": numpy.asarray(2.5),
        "R": values("float64", (5,), 7),
        "D": numpy.array([5, 3, 9, 1, 7]),
    }
    return {k: make(v) for k, v in given.items()}


def check_others(xp: Any, make: Any) -> Iterator[tuple[str, str, str | None]]:
    for family, lines in EXPRESSIONS.items():
        for text in lines:
            want = outcome(lambda t=text: eval(t, {"xp": strict, **variables(strict_array)}))
            got = outcome(lambda t=text: eval(t, {"xp": xp, **variables(make)}))
            if isinstance(want, Exception) and "copy=False" not in text:
                raise AssertionError(f"{text}: the reference raises {want!r}")
            if "unique_values" in text:
                want, got = outcome(lambda w=want: strict.sort(w)), outcome(lambda g=got: xp.sort(g))
            yield family, text, differs(want, got)


def check(which: str = "np") -> dict[str, list[tuple[str, str | None]]]:
    """All checks: family, then (what, difference or None)."""
    xp, make = namespaces(which)
    strict.set_array_api_strict_flags(api_version="2024.12")
    out: dict[str, list[tuple[str, str | None]]] = {}
    parts = (check_names(xp), check_elementwise(xp, make), check_special(xp, make), check_others(xp, make))
    for family, what, problem in itertools.chain(*parts):
        out.setdefault(family, []).append((what, problem))
    strict.reset_array_api_strict_flags()
    return out


if __name__ == "__main__":
    table = check(sys.argv[1] if len(sys.argv) > 1 else "np")
    for family, rows in table.items():
        good = sum(p is None for _, p in rows)
        print(f"{family:16} {good:6} of {len(rows):6}")
        for what, problem in [r for r in rows if r[1]][: int(sys.argv[2]) if len(sys.argv) > 2 else 12]:
            print("   ", what, (problem or "").replace("\n", " ")[:200])
    every = [p for rows in table.values() for _, p in rows]
    print(f"{100 * sum(p is None for p in every) / len(every):.2f} % of {len(every)}")
