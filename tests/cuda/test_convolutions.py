"""Convolutions on the GPU in every way that may be chosen: tiles of any size, sums in parts, small
groups, pixels, cuDNN. All agree with float64 on the CPU.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import votive
from votive.nn import functional as F

from .device import EMULATED

TOLERANCE = {"float64": 1e-11, "float32": 3e-5, "bfloat16": 2e-2, "float16": 4e-3}
# Every tile is compiled where there is a GPU: a few are enough there, each with all it is made of.
SIZES = [(32, 32, 16, 1), (64, 16, 32, 3), (16, 64, 16, 2)] if EMULATED else [(64, 16, 32, 3)]
KINDS = ["float32", "bfloat16", "float16"] if EMULATED else ["float32", "bfloat16"]
OPERATORS = ("_convolution", "_convolution_transpose", "_convolution_weight")


@dataclass
class Drawn:
    """A convolution: shapes, keywords, and whether its tensors have their channels last."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    how: dict[str, Any]
    last: bool
    bias: bool


def draw(rng: random.Random, groups: tuple[int, ...], channels: tuple[int, ...], kernels: tuple[int, ...]) -> Drawn:
    while True:
        n, g = rng.choice([1, 2, 2, 2, 3]), rng.choice(groups)
        per, rows = rng.choice(channels), rng.choice(channels)
        size = tuple(rng.choice([1, 4, 7] if n < 3 else [2, 4]) for _ in range(n))
        kernel = tuple(rng.choice(kernels) for _ in range(n))
        how = {
            "stride": tuple(rng.choice([1, 1, 2, 3]) for _ in range(n)),
            "padding": tuple(rng.choice([0, 1, 2]) for _ in range(n)),
            "dilation": tuple(rng.choice([1, 1, 2]) for _ in range(n)),
            "groups": g,
        }
        window = zip(size, kernel, how["padding"], how["dilation"], strict=True)
        if all(i + 2 * p - d * (k - 1) >= 1 for i, k, p, d in window):
            x, w = (rng.choice([1, 2, 3]), g * per, *size), (g * rows, per, *kernel)
            return Drawn(x, w, how, n > 1 and rng.random() < 0.5, rng.random() < 0.5)


def results(drawn: Drawn, dtype: str, device: str, seed: int) -> list[Any]:
    """The result and the gradients of all tensors, as float64 arrays."""
    numbers = np.random.default_rng(seed)
    given = []
    for shape in (drawn.x, drawn.w, *([drawn.w[:1]] if drawn.bias else [])):
        # What a half type can hold, so that both devices get the same numbers.
        t = votive.tensor(numbers.integers(-8, 9, shape) / 8).to(getattr(votive, dtype))
        t = t.to(votive.float64 if device == "cpu" else t.dtype).to(device)
        if drawn.last and t.ndim > 3:
            t = t.to(memory_format=votive.channels_last if t.ndim == 4 else votive.channels_last_3d)
        given.append(t.requires_grad_())
    y = getattr(F, f"conv{len(drawn.x) - 2}d")(*given, **drawn.how)
    y.backward(votive.tensor(numbers.integers(-8, 9, tuple(y.shape)) / 8).to(y.dtype).to(device))
    return [t.detach().cpu().to(votive.float64).numpy() for t in (y, *(t.grad for t in given))]


def agree(drawn: Drawn, dtype: str, seed: int) -> None:
    for which, (got, wanted) in enumerate(
        zip(results(drawn, dtype, "cuda", seed), results(drawn, dtype, "cpu", seed), strict=True)
    ):
        scale = max(1.0, float(np.abs(wanted).max()))
        error = float(np.abs(got - wanted).max()) / scale
        assert error <= TOLERANCE[dtype], f"result {which} of {drawn}, {dtype}: {error:.1e}"


def forget() -> None:
    from votive.ops.registry import OPS

    for name in OPERATORS:
        OPS[name].forget()


@contextmanager
def changed(**names: Any) -> Iterator[None]:
    """Other names in the module that lays tiles out, for new plans, which take no other way."""
    from votive.backends.cuda.kernels.convolution import convolve, implicit

    tiled = [replace(w, few=_none, little=_none) for w in (convolve.FORWARD, convolve.WEIGHT)]
    forget()
    with patch.multiple(implicit, **names), patch.multiple(convolve, FORWARD=tiled[0], WEIGHT=tiled[1]):
        yield
    forget()


def _none(p: Any, out: Any, *count: int) -> list[Any]:
    return []


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_every_tile_gives_the_same(size: tuple[int, ...], dtype: str) -> None:
    from votive.backends.cuda.kernels.convolution.tiles import Tile

    def one(*args: Any) -> tuple[Tile, ...]:
        return (Tile(*size),)

    rng = random.Random(f"{size} {dtype}")
    with changed(tiles=one, weight_tiles=one):
        for turn in range(3 if EMULATED else 1):
            agree(draw(rng, (1, 1, 2), (1, 3, 6, 8, 17), (1, 2, 3)), dtype, turn)


@pytest.mark.parametrize("size", [(1,), (1, 1), (5, 1), (1, 5)])
def test_sizes_of_1_whose_strides_say_nothing(size: tuple[int, ...]) -> None:
    how = {"padding": 1, "groups": 2}
    agree(Drawn((2, 16, *size), (16, 8, *(2 for _ in size)), how, False, True), "bfloat16", 0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_groups_of_few_channels(dtype: str) -> None:
    rng = random.Random(f"groups {dtype}")
    for turn in range(5 if EMULATED else 1):
        agree(draw(rng, (2, 3, 8), (1, 1, 2, 3), (1, 2, 3, 5)), dtype, turn)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("way", ["few", "little"])
def test_one_launch_reads_everything_where_it_lies(way: str, dtype: str) -> None:
    from votive.backends.cuda.kernels.convolution import convolve

    make = getattr(convolve.FORWARD, way)
    rng = random.Random(f"{way} {dtype}")
    with only(make, lambda p, out: None) as used:
        for turn in range(4 if EMULATED else 2):
            agree(draw(rng, (1, 1, 2, 3), (1, 2, 5, 9), (1, 2, 3)), dtype, turn)
        assert used.count("forward") >= (3 if EMULATED else 1)


def test_few_terms_and_little_work_take_one_launch() -> None:
    from votive.backends.cuda.kernels.convolution import convolve

    taken: list[str] = []
    made = convolve.Ways.candidates

    def candidates(self: Any, p: Any, out: Any) -> Any:
        found = made(self, p, out)
        taken.append(found.candidates[0].__name__)
        return found

    forget()
    with patch.object(convolve.Ways, "candidates", candidates):
        for x, w in (((2, 3, 9), (8, 3, 3)), ((1, 40, 4, 4), (8, 40, 3, 3)), ((1, 1000, 3, 3), (8, 1000, 3, 3))):
            getattr(F, f"conv{len(x) - 2}d")(votive.ones(x, device="cuda"), votive.ones(w, device="cuda"))
    forget()
    assert taken[:2] == ["direct", "long sums"]
    assert "x" in taken[2]


def test_what_is_not_finite_stays_out_of_the_padding_in_every_part() -> None:
    from votive.backends.cuda.kernels.convolution.tiles import Tile

    x, w = votive.ones(1, 8, 6, 6), votive.ones(4, 8, 3, 3)
    w[1, 2, 0, 0], w[2, 3, 2, 1] = float("inf"), float("nan")
    wanted = F.conv2d(x, w, padding=1).numpy()
    assert np.isfinite(wanted[0, 1, 0]).all()

    def check() -> None:
        for last in (False, True):
            order = votive.channels_last if last else votive.contiguous_format
            got = F.conv2d(x.to("cuda").to(memory_format=order), w.to("cuda"), padding=1)
            np.testing.assert_allclose(got.cpu().numpy(), wanted, rtol=1e-5)

    check()
    for parts in (1, 4):
        with changed(tiles=lambda *_, parts=parts: (Tile(32, 16, 16, parts),)):
            check()


def test_an_empty_batch() -> None:
    x, w = votive.ones(0, 8, 6, 6, device="cuda", requires_grad=True), votive.ones(4, 8, 3, 3, device="cuda")
    w.requires_grad_()
    y = F.conv2d(x, w, padding=1)
    assert y.shape == (0, 4, 6, 6)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert float(w.grad.abs().sum()) == 0


def test_divisions_by_products_are_exact() -> None:
    from votive.backends.cuda.kernels.convolution.implicit import divider

    numbers = np.concatenate([np.arange(2000), 2**31 - 1 - np.arange(2000), 2 ** np.arange(31)]).astype(np.uint64)
    for n in (1, 2, 3, 5, 7, 28, 56, 57, 224, 1000, 65535, 65536, 65537, 10**6 + 3, 2**30 - 1):
        by = divider(n)
        factor, shift = by & (2**32 - 1), by >> 32
        np.testing.assert_array_equal(((numbers * factor >> np.uint64(32)) + numbers) >> np.uint64(shift), numbers // n)


@contextmanager
def cudnn() -> Iterator[Any]:
    """cuDNN, or a stand-in."""
    from votive.backends.cuda.libraries import cudnn as module

    if not EMULATED:
        if not module.library.load():
            pytest.skip(module.library.reason)
        yield None
        return
    from .fake_cudnn import FakeCudnn

    for made in (module.tensor_descriptor, module.filter_descriptor):
        made.cache_clear()
    with patch.object(module, "library", module._Library()) as library:
        library.lib = FakeCudnn()
        yield library.lib
    for made in (module.tensor_descriptor, module.filter_descriptor):
        made.cache_clear()


@contextmanager
def only(forward: Callable[..., Any], weight: Callable[..., Any]) -> Iterator[list[str]]:
    """Compute by nothing else where these can; the list names what they computed."""
    from votive.backends.cuda.kernels.convolution import convolve

    used: list[str] = []

    def first(make: Callable[..., Any], name: str) -> Callable[..., Any]:
        def some(p: Any, out: Any, *count: int) -> list[Any]:
            found = convolve._asked(make, p, out)
            if found and isinstance(found[0], list):
                found = found[0]
            used.extend([name] * len(found))
            return found

        return some

    ways = [
        convolve.Ways(first(make, name), _none, _none, last, ())
        for make, name, last in ((forward, "forward", convolve.gathered), (weight, "weight", convolve.gathered_weight))
    ]
    forget()
    with patch.multiple(convolve, FORWARD=ways[0], WEIGHT=ways[1]):
        yield used
    forget()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_library_is_given_what_it_needs(dtype: str) -> None:
    from votive.backends.cuda.kernels.convolution.library import by_library, weight_by_library

    rng = random.Random(f"library {dtype}")
    with cudnn() as fake, only(by_library, weight_by_library) as used:
        for turn in range(4):
            agree(draw(rng, (1, 2), (1, 3, 4), (1, 2, 3)), dtype, turn)
        if EMULATED:
            assert (used.count("forward"), used.count("weight")) == (8, 4)
        if fake is not None and dtype == "float32":
            assert fake.math == 3, "float32 would be cut to TF32"


def test_single_pixels_are_products() -> None:
    from votive.backends.cuda.kernels.convolution import pixels
    from votive.backends.cuda.kernels.matmul.kernels import Plain

    rng = random.Random("pixels")
    stand_in = [
        patch.object(pixels.cublas.library, "load", lambda: True),
        patch.object(pixels, "Library", lambda a, b, o, n=1, bias=None, epilogue=1: Plain(a, b, o, n, bias)),
    ]
    with only(pixels.pixels, pixels.weight_of_pixels) as used:
        for one in stand_in if EMULATED else ():
            one.start()
        try:
            for turn in range(4):
                drawn = draw(rng, (1,), (1, 3, 8), (1,))
                drawn.how |= {"stride": 1, "padding": 0}
                agree(drawn, "float32", turn)
        finally:
            for one in stand_in if EMULATED else ():
                one.stop()
        assert "forward" in used
        assert "weight" in used
