"""Lines longer than a block, cut into parts, and many lines: scans, extremes and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .device import EMULATED, cpu_fallbacks

LONG = 150 if EMULATED else 100_000
SHAPES = [((2, LONG), 1), ((LONG, 2), 0), ((3, 5, 2) if EMULATED else (40, 50, 7), 1)]
DTYPES = ["float32", "int64"] if EMULATED else ["float32", "float64", "int64", "bfloat16"]
each_shape = pytest.mark.parametrize(("shape", "dim"), SHAPES)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulated GPU a hundred elements are a long line."""
    if EMULATED:
        from votive.backends.cuda.kernels.scan import scans as scan
        from votive.backends.cuda.kernels.scan import single_pass as scan_once

        for module, sizes in ((scan, {"PART": 60, "BLOCK": 32}), (scan_once, {"TILE": 32, "LOOK": 2})):
            for name, value in sizes.items():
                monkeypatch.setattr(module, name, value)


def pair(shape: tuple[int, ...], dtype: str, seed: int = 0) -> tuple[Any, Any]:
    """The same numbers on both devices; integers with many equals."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-9, 9, shape) if dtype.startswith("int") else rng.standard_normal(shape)
    x = votive.from_numpy(np.asarray(a)).to(getattr(votive, dtype))
    return x, x.to("cuda")


def same(ours: Any, theirs: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    if isinstance(theirs, tuple):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, rtol, atol)
        return
    a, b = ours.cpu().numpy().astype(np.float64), theirs.numpy().astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@each_shape
@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_running_sums_and_extremes_agree_with_the_cpu(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x, y = pair(shape, dtype)
    with cpu_fallbacks() as left:
        # Sums in another order: the error grows with the size of what was added.
        same(y.cumsum(dim), x.cumsum(dim), 1e-4, 1e-6 * x.shape[dim])
        same(y.cummax(dim), x.cummax(dim))
        same(y.cummin(dim), x.cummin(dim))
        if dtype != "int64":
            same(y.logcumsumexp(dim), x.logcumsumexp(dim), 1e-5, 1e-5)
            near = 1 + 0.01 * x
            same((1 + 0.01 * y).cumprod(dim), near.cumprod(dim), 1e-3)
    assert not left


def test_sums_of_long_lines_are_the_same_every_time() -> None:
    _, y = pair((LONG,), "float32")
    first = y.cumsum(0)
    for _ in range(1 if EMULATED else 20):
        same(y.cumsum(0), first.cpu())
    graph = votive.cuda.CUDAGraph()
    with votive.cuda.graph(graph):
        again = y.cumsum(0)
    for _ in range(2):
        graph.replay()
        same(again, first.cpu())


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "bfloat16", "float64"])
def test_long_lines_are_summed_and_multiplied_in_every_dtype(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = votive.from_numpy(rng.integers(0, 3, LONG + 1)).to(getattr(votive, dtype))[1:]
    y = x.to("cuda")
    sums = x.double().cumsum(0).to(x.dtype) if x.is_floating_point() else x.cumsum(0)
    rtol = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 0.0)
    same(y.cumsum(0, dtype=votive.int64 if dtype == "uint8" else None), sums, rtol)
    wide = votive.float64 if rtol else None
    same(y.cumprod(0, dtype=wide), x.cumprod(0, dtype=wide))


@each_shape
@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_name_the_first_of_equals(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x, y = pair(shape, dtype)
    with cpu_fallbacks() as left:
        same(tuple(y.max(dim)), tuple(x.max(dim)))
        same(tuple(y.min(dim)), tuple(x.min(dim)))
        same(y.argmax(), x.argmax())
        same(y.argmin(), x.argmin())
        same(y.amax(dim), x.amax(dim))
    assert not left


@pytest.mark.parametrize("place", [0, LONG - 1])
def test_nan_wins_wherever_it_stands(place: int) -> None:
    x, _ = pair((2, LONG), "float32")
    x[1, place] = float("nan")
    y = x.to("cuda")
    same(y.max(1).indices, x.max(1).indices)
    same(y.min(1).indices, x.min(1).indices)
    assert y.max(1).values[1].isnan().item()
    assert y.amin(1)[1].isnan().item()


@each_shape
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(shape: tuple[int, ...], dim: int, dtype: str, descending: bool) -> None:
    x, y = pair(shape, dtype)
    with cpu_fallbacks() as left:
        ours = votive.sort(y, dim=dim, descending=descending, stable=True)
    assert not left
    same(tuple(ours), tuple(votive.sort(x, dim=dim, descending=descending, stable=True)))


@pytest.mark.parametrize("k", [1, 100])
@pytest.mark.parametrize("largest", [True, False])
def test_the_largest_few_agree_with_the_cpu(k: int, largest: bool) -> None:
    x, y = pair((3, LONG), "float32", seed=4)
    with cpu_fallbacks() as left:
        ours = y.topk(k, 1, largest=largest)
    assert not left
    same(tuple(ours), tuple(x.topk(k, 1, largest=largest)))


def test_nan_is_sorted_last_and_medians_see_it() -> None:
    x, _ = pair((3, 301), "float32")
    x[0, 5] = x[0, 200] = x[2, 0] = float("nan")
    y = x.to("cuda")
    same(tuple(y.sort(1)), tuple(x.sort(1)))
    same(tuple(y.sort(1, descending=True)), tuple(x.sort(1, descending=True)))
    same(tuple(y.median(1)), tuple(x.median(1)))
    same(tuple(y.nanmedian(1)), tuple(x.nanmedian(1)))
    same(y.nanmedian(), x.nanmedian())
    same(tuple(y.kthvalue(7, 1)), tuple(x.kthvalue(7, 1)))


def test_masks_longer_than_a_block_choose_the_same() -> None:
    n = 5000
    x, y = pair((n,), "float32")
    mask = (x > 0.5) | (x < -1)
    on = mask.to("cuda")
    same(y[on], x[mask])
    same(on.reshape(50, 100).nonzero(), mask.reshape(50, 100).nonzero())
    source = votive.arange(float(n))
    same(y.masked_scatter(on, source.to("cuda")), x.masked_scatter(mask, source))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_many_tensors_are_joined_in_one_launch(dtype: str, dim: int) -> None:
    rng = np.random.default_rng(dim)
    shapes = [(2, 3, 5)[:dim] + (n,) + (2, 3, 5)[dim + 1 :] for n in (1, 4, 0, 7, 2, 900)]
    parts = [votive.from_numpy(rng.integers(0, 2, s)).to(getattr(votive, dtype)) for s in shapes]
    there = [p.to("cuda") for p in parts]
    same(votive.cat(there, dim), votive.cat(parts, dim))
    same(votive.stack(there[:1] * 5, dim), votive.stack(parts[:1] * 5, dim))
    turned = [p.transpose(0, 2).contiguous().transpose(0, 2) for p in there]
    same(votive.cat(turned, dim), votive.cat(parts, dim))
    room = votive.zeros(3 * parts[-1].numel() + 1, dtype=parts[0].dtype, device="cuda")
    odd = room[1 : 1 + parts[-1].numel()].view(parts[-1].shape).copy_(there[-1])
    same(votive.cat([odd] * 4, dim), votive.cat(parts[-1:] * 4, dim))


@pytest.mark.parametrize("shape", [(5, 3), (700, 40), (64, 300), (3000, 2), (1, 9)])
def test_sums_of_columns_agree_with_the_cpu(shape: tuple[int, ...]) -> None:
    x, y = pair(shape, "float32")
    same(y.sum(0), x.sum(0), 1e-5, 1e-4)
    same(y.double().mean(0), x.double().mean(0), 1e-12, 1e-12)
    same(y.amax(0), x.amax(0))
    same((y > 0).any(0), (x > 0).any(0))
