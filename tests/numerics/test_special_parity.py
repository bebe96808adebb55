"""The special functions against SciPy and torch on the grids of `special_cases`.

test_special.py holds us to a few ulp of the exact values on these very grids, so what a tolerance
here grants beyond that is the other library's own error.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.numerics.special_cases import DTYPES, REGIONS, SPECIAL, assert_within, rounded, run

pytestmark = pytest.mark.parity

EACH_REGION = pytest.mark.parametrize("row", range(len(REGIONS)), ids=lambda i: f"{REGIONS[i][0]}-{i}")

SCIPY_NAMES = {
    "lgamma": "gammaln",
    "bessel_j0": "j0",
    "bessel_j1": "j1",
    "bessel_y0": "y0",
    "bessel_y1": "y1",
    "modified_bessel_k0": "k0",
    "modified_bessel_k1": "k1",
    "scaled_modified_bessel_k0": "k0e",
    "scaled_modified_bessel_k1": "k1e",
}
SCIPY_RTOL = {
    "airy_ai": 2e-14,
    "bessel_y0": 6e-15,
    "digamma": 3e-14,
    "gammainc": 6e-14,
    "gammaincc": 3e-14,
    "log_ndtr": 3e-13,
    "ndtr": 3e-13,
}

# (float64, float32). Cancellation in torch's formula, or coefficients of single precision.
TORCH_RTOL = {
    **{f"bessel_{n}": (8e-6, 8e-6) for n in ("j0", "j1", "y0", "y1")},
    "airy_ai": (2e-5, 2e-5),
    "digamma": (3e-14, 1.5e-6),
    "erfcx": (2e-15, 5e-6),
    "gammainc": (1e-13, 4e-5),
    "gammaincc": (1e-13, 4e-5),
    "i1e": (2.5e-15, 1.5e-6),
    "log_ndtr": (3e-13, 2e-5),
    "polygamma": (4e-15, 1e-6),
    "trigamma": (1e-9, 3e-4),
}

# torch's ndtr is (1 + erf)/2, which has no left tail.
TORCH_FLOOR = {"ndtr": 1.0}

# Where torch's own arithmetic breaks down we give the limit instead: a pole that its sine misses,
# infinity less infinity, zero times infinity.
TORCH_BREAKS: dict[str, set[Any]] = {
    "trigamma": {-1.0, -2.0, -30.0, -1e17},
    "polygamma": {(1, -1.0)},
    "modified_bessel_k1": {5e-324},
    "scaled_modified_bessel_k1": {5e-324},
    "zeta": {(math.inf, 2.0), (1e300, 2.0)},
}


def scipy_function(special: Any, name: str) -> Callable[..., Any]:
    composed = {
        "trigamma": lambda x: special.polygamma(1, x),
        "spherical_bessel_j0": lambda x: special.spherical_jn(0, x),
        "airy_ai": lambda x: special.airy(x)[0],
    }
    return composed.get(name) or getattr(special, SCIPY_NAMES.get(name, name))


@EACH_REGION
def test_float64_agrees_with_scipy(row: int) -> None:
    special = pytest.importorskip("scipy.special")
    name, args, floor = REGIONS[row]
    args = rounded(args)
    want = scipy_function(special, name)(*args)
    assert_within(run(name, *args), want, SCIPY_RTOL.get(name, 2.5e-15), floor)


def torch_function(torch: Any, name: str) -> Callable[..., Any]:
    if name == "trigamma":
        return lambda x: torch.special.polygamma(1, x)
    if name == "polygamma":
        return lambda n, x: torch.special.polygamma(int(n), x)
    return getattr(torch.special, {"lgamma": "gammaln"}.get(name, name))


@EACH_REGION
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_dtypes_agree_with_torch(row: int, dtype: type) -> None:
    torch = pytest.importorskip("torch")
    name, args, floor = REGIONS[row]
    args = rounded(args)
    with np.errstate(all="ignore"):
        inputs = [torch.from_numpy(a.astype(dtype)) for a in args]
    want = torch_function(torch, name)(*inputs).numpy()
    rtol = TORCH_RTOL.get(name, (2e-15, 5e-7))[dtype is np.float32]
    # torch rounds subnormal results to zero in places.
    floor = max(floor, TORCH_FLOOR.get(name, 0), float(np.finfo(dtype).tiny) / rtol)
    assert_within(run(name, *args, dtype=dtype), want, rtol, floor)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    fn = torch_function(torch, name)
    for args, want in SPECIAL[name]:
        point = args if isinstance(args, tuple) else (args,)
        if args in TORCH_BREAKS.get(name, ()):
            continue
        got = fn(*(torch.tensor(a, dtype=torch.float64) for a in point)).item()
        np.testing.assert_array_equal(got, want, err_msg=f"{name}{args}")
        same_sign = math.copysign(1, got) == math.copysign(1, want)
        assert same_sign or math.isnan(want), f"{name}{args} = {got}"
