"""The special functions against exact values, mpmath, SciPy and torch, in both dtypes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.numerics.special_cases import (
    BINARY,
    DTYPES,
    GOLDEN,
    NAN,
    REGIONS,
    SPECIAL,
    UNARY,
    assert_within,
    rounded,
    run,
)
from votive.backends.common import special
from votive.backends.common.special.approx import BLOCK

Array = np.ndarray[Any, Any]
GOLDEN_ROWS = [(name, *row) for name, rows in GOLDEN.items() for row in rows]


def test_every_function_has_golden_and_special_rows() -> None:
    assert set(GOLDEN) == set(special.__all__) == set(SPECIAL)


# More than 6 ulp only where the argument's own last bit moves the result by more.
GOLDEN_RTOL = {"airy_ai": 5e-15, "gammainc": 6e-15, "gammaincc": 6e-15}


@pytest.mark.parametrize("name, args, want", GOLDEN_ROWS)
def test_float64_is_within_a_few_ulp_of_the_exact_value(name: str, args: tuple[float, ...], want: float) -> None:
    assert_within(run(name, *args), want, GOLDEN_RTOL.get(name, 1.4e-15))


@pytest.mark.parametrize("name, args, want", GOLDEN_ROWS)
def test_float32_is_within_one_ulp_of_the_exact_value(name: str, args: tuple[float, ...], want: float) -> None:
    got = run(name, *args, dtype=np.float32)
    assert got.dtype == np.float32
    with np.errstate(over="ignore", under="ignore"):
        nearest = np.float32(want)
    if np.isinf(nearest):
        assert got == nearest
    else:
        assert abs(float(got) - want) <= float(np.spacing(np.abs(nearest)))


@pytest.mark.parametrize("name", special.__all__)
def test_special_values_are_exact_down_to_the_sign_of_zero(name: str) -> None:
    for args, want in SPECIAL[name] + ([(NAN, NAN)] if name in UNARY else []):
        got = run(name, *(args if isinstance(args, tuple) else (args,)))
        np.testing.assert_array_equal(got, want, err_msg=f"{name}{args}")
        assert math.isnan(want) or np.signbit(got) == np.signbit(want), f"{name}{args} = {got}"


def test_smallest_and_largest_float64_keep_their_accuracy() -> None:
    tiny, huge = 5e-324, 1e308
    log_tiny = -1074 * math.log(2)
    assert_within(run("lgamma", [tiny, -tiny]), -log_tiny, 1e-15)
    assert_within(run("modified_bessel_k0", tiny), math.log(2) - np.euler_gamma - log_tiny, 1e-15)
    assert_within(run("i0e", huge), 1 / math.sqrt(2 * math.pi) / math.sqrt(huge), 1e-15)
    assert_within(run("erfcx", huge), 1 / math.sqrt(math.pi) / huge, 1e-15)
    assert_within(run("zeta", 2.0, 1e300), 1e-300, 1e-15)
    # exp(-746) is zero, 746^9 exp(-746) / 9! is not.
    assert_within(run("gammaincc", 10.0, 746.0), 2.0723689557461676666e-304, 1e-13)
    assert_within(run("gammaincc", 1e-300, 1.0), 2.1938393439552027368e-301, 2e-15)
    # Roots of log Φ(y) = log p, by mpmath with 50 digits; so are the two values below.
    roots = [-38.467405617144346251, -37.663060331949523732]
    assert_within(run("ndtri", [tiny, 1e-310]), roots, 1e-15)
    # exp(710) overflows where I0(710) does not; cos(1e300) needs hundreds of digits of π.
    assert_within(run("i0", 710.0), 3.3453345586196559683e306, 1e-15)
    assert_within(run("bessel_j0", 1e300), -7.8606730627240932834e-151, 1.4e-15)


def sample(name: str, size: int = 400) -> tuple[Array, ...]:
    """Arguments across every branch of `name`, poles included."""
    x = np.concatenate([np.linspace(-12.0, 12.0, size // 2), np.geomspace(1e-6, 40.0, size // 2)])
    if name == "polygamma":
        return (np.asarray(3), x)
    return (np.abs(np.roll(x, 7)), x) if name in BINARY else (x,)


@pytest.mark.parametrize("name", special.__all__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_shape_strides_and_block_length_do_not_matter(name: str, dtype: type) -> None:
    *first, x = (a.astype(dtype) if a.ndim else a for a in sample(name))
    fn = getattr(special, name)
    args = [int(a) if a.ndim == 0 else a for a in first]
    want = fn(*args, x)
    assert (want.shape, want.dtype) == (x.shape, dtype)

    def check(view: Callable[[Array], Array]) -> None:
        got = fn(*(view(a) if isinstance(a, np.ndarray) else a for a in args), view(x))
        assert got.dtype == dtype
        # The same arithmetic, but NumPy's vector and remainder loops may differ in the last bit.
        np.testing.assert_allclose(got, view(want), rtol=8 * np.finfo(dtype).eps, atol=1e-14)

    check(lambda a: a.reshape(20, 20).T)
    check(lambda a: a[::-3])
    check(lambda a: a.reshape(4, 1, 100)[:, :, ::7])
    check(lambda a: np.broadcast_to(a[:5, None], (5, 3)))
    check(lambda a: a[17:18].reshape(()))
    check(lambda a: a[:0].reshape(0, 3))
    check(lambda a: np.resize(a, 2 * BLOCK + 3))
    assert isinstance(fn(*(a if isinstance(a, int) else a[0] for a in args), x[0]), np.ndarray)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_two_arguments_broadcast_against_each_other(name: str) -> None:
    fn = getattr(special, name)
    a, x = np.linspace(1.5, 30, 7), np.linspace(0.5, 40, 11)
    want = fn(np.repeat(a, 11), np.tile(x, 7)).reshape(7, 11)
    np.testing.assert_array_equal(fn(a[:, None], x), want)
    # A plain number beside a float32 array is a number, not a reason to widen.
    assert fn(np.asarray(2), x.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("name", special.__all__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_floating_point_error_escapes(name: str, dtype: type) -> None:
    edges = [0.0, 5e-324, 1e-300, 1e-40, 0.5, 1.0, 2.5, 30.0, 1e3, 1e17, 3e38, 1e300, 1e308]
    with np.errstate(all="ignore"):
        x = np.array([s * e for e in [*edges, np.inf, np.nan] for s in (1, -1)]).astype(dtype)
    with np.errstate(all="raise"):
        if name == "polygamma":
            for n in (0, 1, 2, 3, 50, 200):
                special.polygamma(n, x)
        elif name in BINARY:
            getattr(special, name)(x[:, None], x)
        else:
            getattr(special, name)(x)


def test_integers_complex_numbers_and_negative_orders_are_refused() -> None:
    with pytest.raises(TypeError, match=r"lgamma: needs a real floating dtype, got int64"):
        special.lgamma(np.arange(3))
    with pytest.raises(TypeError, match=r"zeta: needs a real floating dtype, got float64, complex"):
        special.zeta(np.ones(2), np.ones(2, complex))
    with pytest.raises(ValueError, match=r"polygamma: n must not be negative, got -1"):
        special.polygamma(-1, np.ones(2))


def exact_functions(mp: Any) -> dict[str, Callable[..., Any]]:
    """The same functions in mpmath."""

    def normal(x: Any) -> Any:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    def quantile(p: Any) -> Any:
        # Newton from the float64 answer: quadratic, so two steps pass 30 digits from any 8.
        y = mp.mpf(float(run("ndtri", float(p))))
        for _ in range(3):
            y -= (normal(y) - p) / mp.npdf(y)
        return y

    bessel = {"i": mp.besseli, "k": mp.besselk, "j": mp.besselj, "y": mp.bessely}
    table = {
        "erf": mp.erf,
        "erfc": mp.erfc,
        "erfinv": mp.erfinv,
        "airy_ai": mp.airyai,
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "entr": lambda x: -x * mp.log(x),
        "ndtr": normal,
        "ndtri": quantile,
        "log_ndtr": lambda x: mp.log(normal(x)) if x < 0 else mp.log1p(-normal(-x)),
        "lgamma": lambda x: mp.log(abs(mp.gamma(x))) if x < 1e3 else mp.loggamma(x),
        "digamma": mp.digamma,
        "trigamma": lambda x: mp.psi(1, x),
        "polygamma": lambda n, x: mp.psi(int(n), x),
        "zeta": mp.zeta,
        "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        "spherical_bessel_j0": mp.sinc,
        **{f"i{n}e": lambda x, n=n: mp.besseli(n, x) * mp.exp(-abs(x)) for n in (0, 1)},
        **{f"i{n}": lambda x, n=n: mp.besseli(n, x) for n in (0, 1)},
        **{f"scaled_modified_bessel_k{n}": lambda x, n=n: mp.besselk(n, x) * mp.exp(x) for n in (0, 1)},
        **{f"modified_bessel_k{n}": lambda x, n=n: mp.besselk(n, x) for n in (0, 1)},
        **{f"bessel_{k}{n}": lambda x, k=k, n=n: bessel[k](n, x) for k in "jy" for n in (0, 1)},
    }
    return table


# A few ulp, and what the argument's last bit alone can do: |a - x| ulp for P and Q, ζ ulp for Ai.
EXACT_RTOL = {"airy_ai": 5e-15, "gammainc": 2e-14, "gammaincc": 2e-14}


@pytest.mark.parametrize("row", range(len(REGIONS)), ids=lambda i: f"{REGIONS[i][0]}-{i}")
def test_both_dtypes_agree_with_mpmath(row: int) -> None:
    mp = pytest.importorskip("mpmath")
    name, args, floor = REGIONS[row]
    args = rounded(args)
    # zeta loses digits for large q: mpmath evaluates it to absolute accuracy.
    with mp.workdps(60 if name == "zeta" else 32):
        fn = exact_functions(mp)[name]
        columns = np.broadcast_arrays(*args)
        exact = [mp.re(fn(*map(mp.mpf, map(float, point)))) for point in zip(*columns)]
        want = np.array([float(v) for v in exact])
    assert_within(run(name, *args), want, EXACT_RTOL.get(name, 1.4e-15), floor)
    with np.errstate(over="ignore", under="ignore"):
        near, *narrow = (a.astype(np.float32) for a in (want, *columns))
    fits = np.logical_and.reduce([n == c for n, c in zip(narrow, columns)])
    assert fits.sum() > 10
    first = args[0] if name == "polygamma" else columns[0][fits]
    got = run(name, first, *(c[fits] for c in columns[1:]), dtype=np.float32)
    near, want = near[fits], want[fits]
    with np.errstate(invalid="ignore"):
        ok = (got == near) | (np.abs(got - want) <= np.spacing(np.abs(near)))
    assert ok.all(), (got[~ok], want[~ok])
