"""How far the native scalar functions are from the true values, in units in the last place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.cpu import native

from .compare import needs_native

pytestmark = needs_native

WIDE = np.longdouble
needs_wide = pytest.mark.skipif(np.finfo(WIDE).nmant < 63, reason="no wider type to compare with")


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _by_element(name: str) -> Any:
    """From Python's function for float32, from mpmath in 40 digits for float64."""

    def run(x: Any) -> Any:
        if x.dtype == np.float32:
            return np.array([getattr(math, name)(v) for v in x.tolist()], WIDE)
        mpmath = pytest.importorskip("mpmath")
        out = np.empty(x.shape, WIDE)
        with mpmath.workdps(40):
            for i, v in enumerate(x.tolist()):
                # Past 60 they are constant, and mpmath takes long.
                y = getattr(mpmath, name)(mpmath.mpf(max(-60.0, min(60.0, v)))) if v == v else v
                head = float(y)
                out[i] = WIDE(head) + WIDE(float(y - head) if v == v else 0.0)
        return out

    return run


# Name: largest error for float32 and float64 (as in the table of vt/math.h), reference, where the
# function is interesting, and that for float64 where it differs.
ONE: dict[str, tuple[float, float, Any, tuple[float, float], tuple[float, float] | None]] = {
    "exp": (1.1, 1.0, np.exp, (-110, 90), (-760, 720)),
    "exp2": (1.0, 1.0, np.exp2, (-155, 130), (-1080, 1030)),
    "expm1": (1.7, 1.9, np.expm1, (-30, 90), (-40, 720)),
    "log": (1.0, 1.0, np.log, (0, 10), None),
    "log2": (1.1, 0.8, np.log2, (0, 10), None),
    "log10": (1.1, 0.8, np.log10, (0, 1000), None),
    "log1p": (1.5, 1.5, np.log1p, (-1, 10), None),
    "sigmoid": (2.3, 2.4, _sigmoid, (-110, 110), (-760, 100)),
    "sin": (1.6, 1.0, np.sin, (-100, 100), None),
    "cos": (1.6, 1.0, np.cos, (-100, 100), None),
    "tan": (3.5, 2.5, np.tan, (-100, 100), None),
    "asin": (1.7, 1.7, np.arcsin, (-1, 1), None),
    "acos": (1.2, 1.3, np.arccos, (-1, 1), None),
    "atan": (2.0, 2.0, np.arctan, (-10, 10), None),
    "sinh": (1.8, 1.8, np.sinh, (-90, 90), (-712, 712)),
    "cosh": (1.6, 1.6, np.cosh, (-90, 90), (-712, 712)),
    "tanh": (1.6, 1.6, np.tanh, (-10, 10), (-20, 20)),
    "asinh": (2.0, 2.0, np.arcsinh, (-100, 100), None),
    "acosh": (2.5, 2.5, np.arccosh, (1, 100), None),
    "atanh": (2.5, 2.5, np.arctanh, (-1, 1), None),
    "erf": (2.8, 1.8, _by_element("erf"), (-5, 5), (-7, 7)),
    "erfc": (4.0, 4.0, _by_element("erfc"), (-6, 11), (-6, 28)),
}
TWO: dict[str, tuple[float, float, Any]] = {
    "pow": (0.6, 1.0, np.power),
    "atan2": (2.4, 2.4, np.arctan2),
    "hypot": (0.6, 1.4, np.hypot),
}
FLOATS = [np.float32, np.float64]


def _ulps(got: Any, want: Any) -> Any:
    """The distance of `got` from `want` (wider) in units in the last place of got's type."""
    info = np.finfo(got.dtype)
    size = np.abs(want)
    size = np.where((size > 0) & np.isfinite(size), size, 1)
    exponent = np.maximum(np.floor(np.log2(size)), info.minexp)
    with np.errstate(all="ignore"):
        unit = np.ldexp(WIDE(1), (exponent - info.nmant).astype(int))
        distance = np.abs(got.astype(WIDE) - want) / unit
        same = (got == want.astype(got.dtype)) | (np.isnan(got) & np.isnan(want))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def _special(dtype: Any) -> list[float]:
    info = np.finfo(dtype)
    tiny, least, eps = float(info.tiny), float(info.smallest_subnormal), float(info.eps)
    top = float(info.max)
    positive = [
        0.0, math.inf, 1.0, 0.5, 2.0, 3.0, 0.25, 10.0, 1000.0, top, tiny, tiny * (1 - eps), least,
        3 * least, eps, 1 + eps, 1 - eps / 2, 88.72, 88.73, 87.3, 103.9, 104.1, 709.78, 709.79,
        745.1, 745.2, 127.999, 128.0, 149.0, 150.0, 1023.9, 1024.0, 1074.0, 1075.0, math.pi / 4,
        math.pi / 2, math.pi, 2.0**20, 2.0**20 + 1, 1e7, 1e22, 2.0**60, 0.55, 9.1, 27.3, 10.1,
    ]  # fmt: skip
    return [*positive, *(-v for v in positive), math.nan]


def _arguments(dtype: Any, low: float, high: float, count: int) -> Any:
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    any_size = 2.0 ** rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, count)
    moderate = 2.0 ** rng.uniform(-30, 10, count)
    return np.concatenate(
        [
            rng.uniform(low, high, 2 * count),
            any_size,
            -any_size,
            moderate,
            -moderate,
            1 + rng.uniform(-0.01, 0.01, count),
            rng.uniform(-3, 3, count),
            _special(dtype),
        ]
    ).astype(dtype)


# The baseline level has no fused multiply-add, which costs these a little.
WITHOUT_FMA = {
    ("exp2", "float32"): 1.1,
    ("exp2", "float64"): 1.1,
    ("log2", "float32"): 2.0,
    ("log10", "float32"): 1.7,
    ("pow", "float64"): 1.1,
}


def _hold(name: str, limit: float, got: Any, want: Any, *args: Any) -> None:
    errors = _ulps(got, want)
    k = int(np.argmax(errors))
    at = ", ".join(repr(a[k]) for a in args)
    if native.module.level == "baseline":
        limit = WITHOUT_FMA.get((name, str(got.dtype)), limit)
    assert errors[k] <= limit, f"{name}({at}) = {got[k]!r}, not {want[k]!r}: {errors[k]:.2f} ulp"


@needs_wide
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str, dtype: Any) -> None:
    single, double, reference, span, wide_span = ONE[name]
    low, high = span if dtype == np.float32 or wide_span is None else wide_span
    slow = dtype == np.float64 and name in ("erf", "erfc")
    x = _arguments(dtype, low, high, 500 if slow else 20_000)
    got = getattr(votive, name)(votive.tensor(x)).numpy()
    with np.errstate(all="ignore"):
        want = reference(x if name in ("erf", "erfc") else x.astype(WIDE))
    _hold(name, single if dtype == np.float32 else double, got, want, x)
    # Odd functions keep the sign of a zero.
    zero = (x == 0) & (got == 0)
    if name not in ("erfc", "acos"):
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(x[zero]))


@needs_wide
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str, dtype: Any) -> None:
    single, double, reference = TWO[name]
    rng = np.random.default_rng(1)
    info = np.finfo(dtype)
    n = 20_000
    special = np.array([*_special(dtype), 2.5, -2.5, 8388607.0, 16777215.0, 2.0**52 + 1, 2.0**53])
    x, y = (v.ravel() for v in np.meshgrid(special, special))
    any_size = 2.0 ** rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, (2, n))
    x = np.concatenate([x, rng.uniform(0, 10, n), 1 + rng.uniform(-0.01, 0.01, n), any_size[0]])
    y = np.concatenate([y, rng.uniform(-30, 30, n), rng.uniform(-3000, 3000, n)])
    if name == "pow":
        y = np.concatenate([y, rng.uniform(-2, 2, n)])
    else:
        y = np.concatenate([y, -any_size[1]])
    x, y = x.astype(dtype), y.astype(dtype)
    got = getattr(votive, name)(votive.tensor(x), votive.tensor(y)).numpy()
    with np.errstate(all="ignore"):
        want = reference(x.astype(WIDE), y.astype(WIDE))
    _hold(name, single if dtype == np.float32 else double, got, want, x, y)
    zero = (got == 0) & (want == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logarithms_of_powers_are_whole(dtype: Any) -> None:
    tens = np.array([10.0**k for k in range(11)], dtype)
    twos = np.array([2.0**k for k in range(-140, 120)], dtype)
    assert votive.log10(votive.tensor(tens)).tolist() == list(range(11))
    assert votive.log2(votive.tensor(twos)).tolist() == list(range(-140, 120))
    assert votive.exp2(votive.tensor(np.arange(-140, 120).astype(dtype))).tolist() == twos.tolist()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_one_huge_argument_does_not_change_the_others(name: str) -> None:
    x = np.linspace(-20, 20, 3000, dtype=np.float32)
    alone = getattr(votive, name)(votive.tensor(x)).numpy()
    x[1500] = 3e30
    beside = getattr(votive, name)(votive.tensor(x)).numpy()
    np.testing.assert_array_equal(np.delete(beside, 1500), np.delete(alone, 1500))
    np.testing.assert_allclose(beside[1500], getattr(np, name)(np.float64(x[1500])), rtol=1e-6)
