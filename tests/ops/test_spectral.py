"""Fourier transforms, stft and windows beyond the catalog: precision, warnings, round trips."""

from __future__ import annotations

import numpy as np
import pytest

import votive as vt

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_single_precision_stays_single(name: str) -> None:
    x = vt.from_numpy(RNG.normal(size=64).astype(np.float32))
    y = getattr(vt.fft, name)(x)
    wide = getattr(vt.fft, name)(x.double())
    assert y.dtype is (vt.float32 if name in ("irfft", "hfft") else vt.complex64)
    np.testing.assert_allclose(y.numpy(), wide.numpy(), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_an_empty_batch_gives_an_empty_spectrum(name: str) -> None:
    x = vt.zeros(0, 4)
    y = getattr(vt.fft, name)(x)
    size = {"rfft": 3, "ihfft": 3, "irfft": 6, "hfft": 6}.get(name, 4)
    assert tuple(y.shape) == (0, size)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_inverses_undo_transforms(n: int, norm: str) -> None:
    x = vt.from_numpy(RNG.normal(size=(2, n)))
    z = vt.complex(x, vt.from_numpy(RNG.normal(size=(2, n))))
    f = vt.fft
    pairs = [
        (f.ifft(f.fft(z, norm=norm), norm=norm), z),
        (f.irfft(f.rfft(x, norm=norm), n, norm=norm), x),
        (f.hfft(f.ihfft(x, norm=norm), n, norm=norm), x),
        (f.ifftn(f.fftn(z, norm=norm), norm=norm), z),
        (f.irfftn(f.rfftn(x, norm=norm), (2, n), norm=norm), x),
        (f.hfftn(f.ihfftn(x, norm=norm), (2, n), norm=norm), x),
    ]
    for got, want in pairs:
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)


def test_the_third_derivative_of_a_spectrum_is_exact() -> None:
    # sum |rfft(x)|^4 is quartic, so its third derivative along v is linear in x.
    x = vt.from_numpy(RNG.normal(size=5)).requires_grad_()
    v = vt.from_numpy(RNG.normal(size=5))

    def third(x: vt.Tensor) -> float:
        y = (vt.fft.rfft(x, 6).abs() ** 4).sum()
        for _ in range(3):
            (g,) = vt.autograd.grad(y, x, create_graph=True)
            y = (g * v).sum()
        return float(y)

    half = (x.detach() / 2).requires_grad_()
    assert third(x) == pytest.approx(2 * third(half), rel=1e-10)
    assert abs(third(x)) > 1


def test_istft_undoes_stft() -> None:
    x = vt.from_numpy(RNG.normal(size=(2, 50)))
    w = vt.hann_window(16, dtype=vt.float64)
    for normalized in (False, True):
        for onesided in (False, True):
            s = vt.stft(x, 16, 4, window=w, normalized=normalized, onesided=onesided, return_complex=True)
            y = vt.istft(s, 16, 4, None, w, True, normalized, onesided, 50)
            np.testing.assert_allclose(y.numpy(), x.numpy(), atol=1e-12)


def test_stft_and_istft_warn_as_torch_does() -> None:
    x, w = vt.arange(16.0), vt.hann_window(8)
    with pytest.warns(UserWarning, match="rectangular"):
        plain = vt.stft(x, 8, return_complex=True)
    ones = vt.stft(x, 8, window=vt.ones(8), return_complex=True)
    np.testing.assert_array_equal(plain.numpy(), ones.numpy())
    with pytest.warns(UserWarning, match="deprecated"):
        pairs = vt.stft(x, 8, window=w, return_complex=False)
    s = vt.stft(x, 8, window=w, return_complex=True)
    np.testing.assert_array_equal(pairs.numpy(), vt.view_as_real(s).numpy())
    with pytest.warns(UserWarning, match="rectangular"):
        vt.istft(ones, 8)
    with pytest.warns(UserWarning, match="zeros fill the rest"):
        long = vt.istft(s, 8, window=w, length=30)
    assert long.shape == (30,)
    assert not long[-8:].numpy().any()


def test_a_window_with_less_overlap_than_torch_needs_is_refused_by_name() -> None:
    s = vt.stft(vt.arange(16.0), 8, 8, window=vt.hann_window(8), return_complex=True)
    with pytest.raises(RuntimeError, match=r"istft: .*add up to zero"):
        vt.istft(s, 8, 8, window=vt.hann_window(8))


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("dtype", [vt.float16, vt.bfloat16, vt.float32])
def test_windows_are_the_rounded_float64_ones(name: str, dtype: vt.dtype) -> None:
    make = getattr(vt, f"{name}_window")
    narrow, wide = make(33, dtype=dtype), make(33, dtype=vt.float64)
    assert narrow.dtype is dtype
    np.testing.assert_array_equal(narrow.float().numpy(), wide.to(dtype).float().numpy())


def test_the_kaiser_window_does_not_overflow() -> None:
    w = vt.kaiser_window(9, False, 5000.0)
    assert bool(vt.isfinite(w).all())
    assert float(w[4]) == 1.0
