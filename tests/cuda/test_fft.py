"""Fourier transforms: what cuFFT is asked for (a stand-in on host memory answers), and on a real
GPU what it gives.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import votive

from .device import EMULATED, LAYOUTS, agree, anywhere, cpu_fallbacks, normal, placed
from .libraries import TRANSFORMS, forget, transforms

RNG = np.random.default_rng(5)
# The emulated GPU copies slowly.
SHAPES = [(2, 3, 6)] if EMULATED else [(8,), (3, 5), (2, 3, 6), (2, 2, 4, 3)]
DIMS = ((0, 1), (3, 1), (2, 3, 4), (4, 0, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4), (4, 3, 2, 1))


@pytest.fixture
def library() -> Iterator[Any]:
    """The stand-in where the GPU is emulated, else the real library (None)."""
    with transforms() as found:
        yield found


def _signal(*shape: int, kind: str = "complex64") -> np.ndarray[Any, Any]:
    return normal(RNG, shape, kind)


def _same(name: str, x: np.ndarray[Any, Any], how: str = "", **options: Any) -> None:
    fn = getattr(votive.fft, name)
    theirs = fn(placed(x, how, "cpu"), **options)
    with cpu_fallbacks() as left:
        ours = fn(placed(x, how, "cuda"), **options)
    assert not left, f"{name} left the GPU: {left}"
    agree(ours, theirs, f"{name} {x.shape} {x.dtype} {how} {options}", 2e-5, scale=1.0)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("kind", ["complex64", "complex128", "float32", "float64"])
def test_transforms_of_one_dimension_agree_with_the_cpu(library: Any, kind: str, how: str) -> None:
    real = kind.startswith("float")
    names = ["fft", "ifft"] + (["rfft", "ihfft"] if real else ["irfft", "hfft"])
    norms = itertools.cycle([None, "ortho", "forward"])
    for name, shape in itertools.product(names, SHAPES):
        for dim in range(len(shape)):
            _same(name, _signal(*shape, kind=kind), how, dim=dim, norm=next(norms))


@pytest.mark.parametrize("how", LAYOUTS)
def test_transforms_of_several_dimensions_agree_with_the_cpu(library: Any, how: str) -> None:
    x, r = _signal(2, 3, 4, 2, 5, kind="complex128"), _signal(2, 3, 4, 2, 5, kind="float64")
    for dim in DIMS[LAYOUTS.index(how) :: 4] if EMULATED else DIMS:
        _same("fftn", x, how, dim=dim, norm="ortho")
        _same("ifftn", x, how, dim=dim)
        _same("rfftn", r, how, dim=dim)
        _same("irfftn", x, how, dim=dim)
        _same("hfftn", x, how, dim=dim)
        _same("ihfftn", r, how, dim=dim)


def test_sizes_are_cut_and_filled(library: Any) -> None:
    for n in (1, 2, 7, 12, 31):
        _same("fft", _signal(3, 8), n=n)
        _same("rfft", _signal(3, 8, kind="float32"), n=n)
        _same("irfft", _signal(3, 8), n=n)
    _same("irfft", _signal(3, 1), n=1)
    _same("rfft2", _signal(2, 6, 4, kind="float64"), s=(5, 9))


def test_nothing_is_transformed_to_nothing(library: Any) -> None:
    x = votive.zeros(0, 4, dtype=votive.complex64, device="cuda")
    assert votive.fft.fft(x).shape == (0, 4)
    assert votive.fft.irfft(x).shape == (0, 6)
    assert votive.fft.rfft(x.real).shape == (0, 3)


def test_gradients_of_transforms_agree_with_the_cpu(library: Any) -> None:
    for name, kind in (("fft", "complex64"), ("rfft", "float32"), ("irfft", "complex64")):
        given, results = _signal(3, 8, kind=kind), []
        for device in ("cpu", "cuda"):
            x = votive.from_numpy(given).to(device).requires_grad_()
            with cpu_fallbacks() as left:
                y = getattr(votive.fft, name)(x, dim=0, norm="ortho")
                (y.abs() ** 2).sum().backward()
            assert not left or device == "cpu"
            results.append(x.grad)
        agree(results[1], results[0], name, 2e-5, scale=1.0)


def test_spectrograms_stay_on_the_gpu(library: Any) -> None:
    sound = _signal(2, 400, kind="float32")
    window = votive.hann_window(64)
    results = []
    for device in ("cpu", "cuda"):
        x, w = votive.from_numpy(sound).to(device), window.to(device)
        with cpu_fallbacks() as left:
            s = votive.stft(x, 64, 16, window=w, return_complex=True)
            back = votive.istft(s, 64, 16, window=w, length=400)
        assert not left, f"left the GPU: {left}"
        results.append((s, back))
    for ours, theirs in zip(results[1], results[0], strict=True):
        agree(ours, theirs, "stft", 2e-5, scale=1.0)


def test_plans_are_kept_and_the_oldest_makes_room(library: Any) -> None:
    from votive.backends.cuda.libraries import cufft

    for n in range(1, cufft.KEPT + 9):
        votive.fft.fft(votive.ones(n, dtype=votive.complex64, device="cuda"))
    assert len(cufft.library.plans) == cufft.KEPT
    if library is not None:
        before = library.made
        assert library.ended == before - cufft.KEPT
        votive.fft.fft(votive.ones(n, dtype=votive.complex64, device="cuda"))
        assert library.made == before


def test_without_the_library_transforms_take_the_trip(library: Any) -> None:
    from votive.backends.cuda.libraries import cufft

    lib = cufft.library.lib
    cufft.library.lib, cufft.library.reason = None, "hidden"
    forget(TRANSFORMS)
    try:
        with cpu_fallbacks() as left:
            y = votive.fft.rfft(votive.ones(4, device="cuda"))
        assert left == {"_fft_r2c"}
        assert y.tolist() == [4, 0, 0]
    finally:
        cufft.library.lib, cufft.library.reason = lib, ""
        forget(TRANSFORMS)


@pytest.mark.skipif(EMULATED, reason="needs a real GPU")
def test_long_transforms_agree_with_the_cpu() -> None:
    for shape in ((1 << 20,), (64, 4093), (3, 1000, 1001)):
        _same("fft", _signal(*shape))
        _same("rfft", _signal(*shape, kind="float32"))
    _same("fft2", _signal(4, 512, 384))


@pytest.mark.skipif(EMULATED, reason="needs a real GPU: stand-ins are not recorded")
def test_a_graph_repeats_transforms() -> None:
    def smooth(x: Any) -> Any:
        spectrum = votive.fft.rfft(x)
        return votive.fft.irfft(spectrum * 2, n=60), votive.fft.fft(spectrum, dim=0)

    given = [votive.from_numpy(_signal(4, 60, kind="float32")).to("cuda") for _ in range(3)]
    graphed = votive.cuda.make_graphed(smooth, (given[0],))
    for x in given:
        for ours, theirs in zip(graphed(x), smooth(x.cpu()), strict=True):
            agree(ours, theirs, "graph", 2e-5, scale=1.0)


@anywhere
def test_libraries_are_looked_for_among_nvidias_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from votive.backends.cuda.libraries import cublas

    folder = tmp_path / "cufft" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcufft.so.12").write_bytes(b"not a library")
    package = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(cublas.importlib.util, "find_spec", lambda name: package)
    found = cublas.candidates(["libcufft.so.12", "libcufft.so.11"])
    # The loader's own path comes first.
    assert found[:2] == ["libcufft.so.12", "libcufft.so.11"]
    assert str(folder / "libcufft.so.12") in found
    # What cannot be loaded is passed over.
    assert cublas.opened(["libvotive-of-no-machine.so"]) is None
