"""QR factors of small matrices: the factors, their signs as LAPACK chooses them, and what is not finite."""

import numpy as np
import pytest

import votive


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (7, 3), (3, 7), (5, 1), (1, 5), (2, 3, 11, 11), (40, 33), (0, 3, 3)])
def test_factors_are_those_of_lapack(dtype: str, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    near = 1e-4 if dtype == "float32" else 1e-11
    for x in (votive.from_numpy(a), votive.from_numpy(np.ascontiguousarray(a.swapaxes(-2, -1))).transpose(-2, -1)):
        for mode in ("reduced", "complete", "r"):
            q, r = votive.linalg.qr(x, mode=mode)
            want = np.linalg.qr(a, mode=mode)
            want_r = want if mode == "r" else want[1]
            np.testing.assert_allclose(r.numpy(), want_r, rtol=near, atol=near)
            if mode != "r":
                np.testing.assert_allclose(q.numpy(), want[0], rtol=near, atol=near)


def test_scales_zeros_and_what_is_not_finite() -> None:
    a = np.random.default_rng(2).standard_normal((4, 4))
    for scale in (1e-200, 1e200):
        q, r = votive.linalg.qr(votive.from_numpy(a * scale))
        np.testing.assert_allclose((q @ r).numpy(), a * scale, rtol=1e-10, atol=1e-12 * scale)
    q, r = votive.linalg.qr(votive.zeros(3, 3))
    assert q.tolist() == votive.eye(3).tolist()
    assert not r.any()
    upper = votive.tensor([[-1.0, 2.0], [0.0, 3.0]])
    assert votive.linalg.qr(upper)[1].tolist() == upper.tolist()
    a[2, 1] = np.nan
    assert votive.linalg.qr(votive.from_numpy(a))[1].isnan().any()
