"""Special functions on the GPU are those of the CPU, in all their regions and at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .device import EMULATED, cpu_fallbacks

_RNG = np.random.default_rng(0)
_EDGES = [0.0, -0.0, 1, 2, -1, -2, -3.5, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.5, 8, 10, 1e-300, 1e5]
X = np.concatenate([_RNG.uniform(-30, 30, 60), _RNG.uniform(0, 3, 60), np.exp(_RNG.uniform(-20, 10, 60)), _EDGES])
ONE = [
    "digamma",
    "i0e",
    "i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
    "airy_ai",
    "log_ndtr",
]
POLYNOMIALS = [
    *(f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]
each_type = pytest.mark.parametrize("dtype", ["float64", "float32"])


def hold(fn: Any, dtype: str, *arrays: np.ndarray[Any, Any], wave: bool = False) -> None:
    """The same values, infinities and NaN on both devices."""
    given = [votive.from_numpy(np.array(a)).to(getattr(votive, dtype)) for a in arrays]
    theirs = fn(*given).numpy().astype(np.float64)
    with cpu_fallbacks() as left:
        ours = fn(*(t.to("cuda") for t in given)).cpu().numpy().astype(np.float64)
    assert not left
    # A GPU fuses products and sums, which long recurrences amplify; the emulated one does not.
    exact = {"float64": 1e-14, "float32": 1.2e-7}
    rtol = (exact if EMULATED else {"float64": 2e-13, "float32": 3e-7})[dtype]
    # Near its zeros a wave is exact but for the size of the wave; all else is, but for rounding.
    atol = rtol if wave else rtol * 1e-2
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)


@each_type
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name: str, dtype: str) -> None:
    wave = name.startswith(("bessel", "airy", "spherical"))
    hold(getattr(votive.special, name), dtype, X, wave=wave)


@each_type
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_derivatives_of_digamma(n: int, dtype: str) -> None:
    hold(lambda x: votive.polygamma(n, x), dtype, X)


@each_type
def test_the_hurwitz_zeta_function(dtype: str) -> None:
    s = np.concatenate([np.arange(1.0, 21), _RNG.uniform(1.01, 20, 60), [1, 2, 3, 4, 0.5, 2, 3]])
    q = np.concatenate([_RNG.uniform(-5, 30, 20), np.exp(_RNG.uniform(-5, 9, 60)), [1, 0, -1, -2.5, 2, np.inf, -0.5]])
    hold(votive.special.zeta, dtype, s, q)
    hold(votive.special.zeta, dtype, s[:, None], q[:3])


@each_type
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions(name: str, dtype: str) -> None:
    a = np.exp(_RNG.uniform(-8, 8, 300))
    x = a * np.exp(_RNG.normal(0, 1, 300))
    near = _RNG.uniform(20, 500, 60)
    edges = [
        (0, 1),
        (1, 0),
        (np.inf, 1),
        (1, np.inf),
        (np.inf, np.inf),
        (-1, 1),
        (0, 0),
        (np.nan, 1),
        (1e-10, 0.3),
        (1e-3, 1),
        (5, 700),
        (3, 1e-30),
    ]
    first, second = np.array(edges, float).T
    hold(
        getattr(votive, name),
        dtype,
        np.concatenate([a, near, first]),
        np.concatenate([x, near * _RNG.uniform(0.6, 1.4, 60), second]),
    )


@each_type
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name: str, dtype: str) -> None:
    n = np.concatenate([np.arange(15.0), np.arange(15.0), [0, 1, 5, 20, 30, -1, 9, 9, 9, 9]])
    x = np.concatenate(
        [_RNG.uniform(-1, 1, 15), _RNG.uniform(-3, 3, 15), [0.5, 0.5, 2, 0.1, 1.5, 0.3, 1, -1, 0, np.nan]]
    )
    hold(getattr(votive.special, name), dtype, x, n, wave=True)


def test_single_numbers_have_no_block() -> None:
    x = votive.tensor(2.5, device="cuda")
    assert votive.igamma(x, x).item() == pytest.approx(0.584119813)
    assert votive.special.zeta(x, 2.0).item() == pytest.approx(0.341487257)
    assert votive.special.hermite_polynomial_h(x, x).item() == 23.0
