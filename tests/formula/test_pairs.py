"""Complex formulas as pairs of reals have the complex values of NumPy, also on branch cuts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from votive.backends.common.primitives import FUNCTIONS
from votive.core.words import words
from votive.formula import Expr, apply, const, to_numpy, to_triton, var
from votive.formula.pairs import NoPair, parts

UNARY = words(
    "exp expm1 exp2 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
    "sigmoid neg reciprocal sgn sinc square conj abs angle real imag isnan isinf isfinite isposinf isneginf"
)
BINARY = ["add", "sub", "mul", "div", "pow", "logaddexp", "eq", "ne", "lt", "le", "gt", "ge", "ldexp"]
# Those whose values at infinity have a direction.
CALM = (
    "log",
    "log2",
    "log10",
    "sqrt",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "neg",
    "square",
    "conj",
    "abs",
    "angle",
    "real",
    "imag",
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 20.5, 1e-3)
GRID = np.array([complex(x, y) for x in _SPECIAL for y in _SPECIAL])
FAR = np.array([complex(x, y) for x in (math.inf, -math.inf, 1.0) for y in (math.inf, -math.inf, 1)])


def value(e: Expr, **given: Any) -> Any:
    scope = dict(FUNCTIONS)
    exec(to_numpy(e, "_f", list(given)), scope)
    shape = np.broadcast_shapes(*(np.shape(v) for v in given.values()))
    with np.errstate(all="ignore"):
        return np.broadcast_to(scope["_f"](*given.values()), shape)


def held(body: Expr, what: str, **numbers: Any) -> None:
    """A formula of complex numbers, and the pair of formulas of their parts."""
    given, parted = {}, {}
    for n, z in numbers.items():
        given[n] = (var(f"{n}_re"), var(f"{n}_im"))
        parted |= {f"{n}_re": z.real.copy(), f"{n}_im": z.imag.copy()}
    re, im = parts(body, given)
    theirs = value(body, **numbers)
    ours = value(re, **parted)
    if im is not None:
        ours = ours + 1j * 0
        ours = np.array(ours, complex)
        ours.real, ours.imag = value(re, **parted), value(im, **parted)
    if theirs.dtype == bool:
        np.testing.assert_array_equal(ours, theirs, err_msg=what)
        return
    for part in (np.real, np.imag):
        a, b = part(ours), part(theirs)
        size = np.abs(theirs)
        with np.errstate(invalid="ignore"):
            away = np.abs(a - b)
        bad = ~((away <= 1e-12 * np.where(np.isfinite(size), size, 0) + 1e-300) | (a == b))
        bad &= ~(np.isnan(a) & np.isnan(b))
        assert not bad.any(), f"{what}: {a[bad][:3]} for {b[bad][:3]}"


@pytest.mark.parametrize("name", UNARY)
def test_functions_have_the_values_of_numpy(name: str) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=500) + 1j * rng.normal(size=500)
    # NumPy's log1p is the logarithm of a rounded sum.
    near = z * np.exp(3 * rng.normal(size=500)) if name != "log1p" else z
    for numbers in (z, near, GRID):
        held(apply(name, var("z")), name, z=numbers)
    if name in CALM:
        held(apply(name, var("z")), name, z=FAR)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_have_the_values_of_numpy(name: str) -> None:
    rng = np.random.default_rng(4)
    z, w = (rng.normal(size=300) + 1j * rng.normal(size=300) for _ in range(2))
    held(apply(name, var("z"), var("w")), name, z=z, w=w)
    held(apply(name, var("z"), var("w")), name, z=z, w=z)
    if name not in ("pow", "logaddexp", "ldexp"):
        a, b = (g.ravel() for g in np.meshgrid(GRID[::3], GRID[::5]))
        held(apply(name, var("z"), var("w")), name, z=a, w=b)


def test_whole_powers_are_products() -> None:
    z = np.random.default_rng(5).normal(size=100) * (1 + 2j)
    for n in (-3, -1, 0, 3, 7):
        held(Expr("pow", (var("z"), const(n))), f"power {n}", z=z)


def test_selection_and_real_factors_stay_in_step() -> None:
    z = GRID
    size = apply("abs", var("z"))
    body = apply("where", size > 1.0, var("z") / size, var("z") * 2.0) + const(0.5j)
    held(body, "where", z=z)
    held(apply("make_complex", apply("imag", var("z")), apply("real", var("z"))), "make", z=z)
    held(apply("logical_and", var("z"), apply("imag", var("z"))), "and", z=z)


def test_a_primitive_without_complex_values_is_refused() -> None:
    with pytest.raises(NoPair, match="erf"):
        parts(apply("erf", var("z")), {"z": (var("a"), var("b"))})


def test_pairs_print_as_one_function_of_shared_steps() -> None:
    re, im = parts(apply("exp", var("z")), {"z": (var("a"), var("b"))})
    assert im is not None
    text = to_triton((re, im), "f", ["a", "b"])
    assert text.count("m.f_exp") == 1
    assert text.rstrip().splitlines()[-1].startswith("    return ")
