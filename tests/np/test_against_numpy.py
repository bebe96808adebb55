"""votive.np gives what NumPy gives: values, dtypes, shapes, and errors of the same type."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy
import pytest

from votive.np.ufunc_table import UFUNCS

from .compare import difference, same, xp
from .expressions import EXPRESSIONS

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()  # noqa: SIM905
)


@pytest.mark.parametrize("family", EXPRESSIONS)
def test_expressions_agree_with_numpy(family: str) -> None:
    found = [d for d in map(difference, EXPRESSIONS[family]) if d]
    assert not found, "\n".join(found)


def edge_values(dtype: str) -> Any:
    kind = numpy.dtype(dtype).kind
    base = numpy.array([0, 1, 2, 3, 5, 7, 100, -1, -2, -100, 127])
    if kind == "b":
        return base % 2 == 1
    if kind in "iu":
        limits = numpy.iinfo(dtype)
        small = abs(base[:9]) if kind == "u" else base[:9]
        return numpy.array([*small.tolist(), limits.max, limits.min], dtype)
    with numpy.errstate(all="ignore"):
        if kind == "f":
            return numpy.array([0.0, -0.0, 1, 2.5, -3.5, numpy.inf, -numpy.inf, numpy.nan, 1e-3, 100, -7]).astype(dtype)
        a = numpy.array([0, 1, 2.5, -3.5, 1e-3, 3, -7, 0.5, 2, -1, 0.25])
        return (a + 1j * a[::-1]).astype(dtype)


def arguments(name: str, dtypes: tuple[str, ...]) -> list[Any]:
    args = [edge_values(d) for d in dtypes]
    if len(args) == 2:
        args = [args[0][:, None], args[1][None, :]]
    if name in ("power", "float_power") and args[1].dtype.kind in "iuf":
        # What overflows is left to the processor; exponents stay small.
        args[1] = (numpy.abs(args[1]) % 6).astype(dtypes[1])
    if name == "ldexp" and args[1].dtype.kind in "iu":
        args[1] = args[1] % 11
    return args


@pytest.mark.parametrize("name", sorted({u.__name__ for u in UFUNCS.values()}))
def test_ufuncs_agree_with_numpy_for_all_dtypes(name: str) -> None:
    ours, theirs = UFUNCS[name], getattr(numpy, name)
    problems = []
    for dtypes in itertools.product(DTYPES, repeat=ours.nin):
        if name == "spacing" and dtypes[0] in ("int8", "float16"):
            continue  # NumPy's half floats have spacings of either sign
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            args = arguments(name, dtypes)
            results: list[Any] = []
            for fn, given in ((theirs, args), (ours, [xp.asarray(a.copy()) for a in args])):
                try:
                    results.append(fn(*given))
                except Exception as problem:
                    results.append(problem)
            found = same(*results)
        if found:
            problems.append(f"{name}{dtypes}: {found}")
    assert not problems, "\n".join(problems[:5])
