"""Long lines, sorted by their digits: the order of every dtype, of equals, and of permutations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.ops.registry import OPS

from .device import EMULATED, cpu_fallbacks, placed

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS]
# Ragged lines, one that fills tiles, many lines.
SIZES = [(200,)] if EMULATED else [(1 << 20,), (1_000_003,), (3, 70_001), (50, 8192)]
LONGEST = 200 if EMULATED else 1 << 20


@pytest.fixture(autouse=True)
def always_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are sorted by digits whatever that costs; on the emulated GPU tiles are small."""
    from votive.backends.cuda.kernels.sort import radix
    from votive.backends.cuda.kernels.sort import sorts as sort

    monkeypatch.setattr(sort, "MERGE", 1e9)
    monkeypatch.setattr(sort, "RANKED", 0)
    monkeypatch.setattr(sort, "selects", lambda *how: False)
    for name in ("_sort", "_topk", "_kthvalue", "_median", "_unique"):
        OPS[name].forget()
    if EMULATED:
        monkeypatch.setattr(sort, "most", lambda dtype: 2)
        monkeypatch.setattr(sort, "SHORT", 2)
        for name, size in {"THREADS": 8, "COUNTED": 32, "WINDOW": 2}.items():
            monkeypatch.setattr(radix, name, size)


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Numbers of all sizes, with equals; floats with zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)
    if dtype == "bool":
        return votive.from_numpy(a > 0)
    if dtype in ("int32", "int64"):
        span = np.iinfo(dtype)
        a = rng.integers(span.min, span.max, shape) >> rng.integers(0, span.bits - 1, shape)
        a[..., :2] = span.min, span.max
        return votive.from_numpy(a.astype(dtype))
    if dtype not in FLOATS:
        return votive.from_numpy(np.abs(a * 10) % 120 - 50 * (dtype[0] == "i")).to(getattr(votive, dtype))
    x = votive.from_numpy(a).to(getattr(votive, dtype))
    for k, value in enumerate([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.0, -0.0]):
        x[..., k :: 29 + k] = value
    return x


def same(ours: Any, theirs: Any) -> None:
    p, q = ours.cpu().double().numpy(), theirs.double().numpy()
    np.testing.assert_array_equal(p, q)
    np.testing.assert_array_equal(np.signbit(p[p == 0]), np.signbit(q[q == 0]))


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_digits_order_as_the_cpu_does(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    y = x.to("cuda")
    with cpu_fallbacks() as left:
        for descending in (dtype in FLOATS,) if EMULATED else (False, True):
            ours = y.sort(-1, descending=descending, stable=True)
            theirs = x.sort(-1, descending=descending, stable=True)
            same(ours.indices, theirs.indices)
            same(ours.values, theirs.values)
    assert not left


@pytest.mark.parametrize("how", ["permuted", "sliced", "shifted", "expanded"])
@pytest.mark.parametrize("dim", [0, 1])
def test_digits_are_found_in_any_layout(how: str, dim: int) -> None:
    shape, dtype = ((2, 70)[:: 2 * dim - 1], "int8") if EMULATED else ((40, 9000), "float32")
    a = numbers(shape, dtype, seed=dim).numpy()
    x, y = placed(a, how, "cpu"), placed(a, how, "cuda")
    same(y.argsort(dim, stable=True), x.argsort(dim, stable=True))
    if not EMULATED:
        same(y.msort(), x.msort())


@pytest.mark.parametrize("dtype", ["int64"] if EMULATED else ["int32", "int64", "float64"])
def test_digits_that_are_all_the_same_are_left_out(dtype: str) -> None:
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 7, LONGEST), rng.integers(-2, 2, LONGEST) << 30, np.full(LONGEST, 5)]
    x = votive.from_numpy(np.stack(rows)).to(getattr(votive, dtype))
    for each in (x,) if EMULATED else (x, x[:1], x[1:2], x[2:]):
        ours, theirs = each.to("cuda").sort(1, stable=True), each.sort(1, stable=True)
        same(ours.indices, theirs.indices)
        same(ours.values, theirs.values)


@pytest.mark.parametrize("dtype", ["float16"] if EMULATED else ["float32", "int64", "float16"])
def test_what_follows_from_sorting_agrees_with_the_cpu(dtype: str) -> None:
    x = numbers((2, LONGEST), dtype, seed=3)
    y = x.to("cuda")
    with cpu_fallbacks() as left:
        for k in (1, 20, LONGEST // 2):
            same(y.topk(k, 1).indices, x.topk(k, 1).indices)
            same(y.kthvalue(k, 1).indices, x.kthvalue(k, 1).indices)
        same(y.median(1).indices, x.median(1).indices)
        whole = votive.where(x == x, x, votive.zeros_like(x))
        for ours, theirs in zip(
            whole.to("cuda").unique(return_inverse=True, return_counts=True),
            whole.unique(return_inverse=True, return_counts=True),
            strict=True,
        ):
            same(ours, theirs)
    assert not left


@pytest.mark.parametrize("n", [2, 33, LONGEST] if EMULATED else [2000, 70_001, 1 << 20, 1 << 22])
@pytest.mark.parametrize("dtype", ["int64"] if EMULATED else ["int64", "int32", "float64"])
def test_permutations_are_those_of_the_cpu(n: int, dtype: str) -> None:
    drawn = []
    for device in ("cpu", "cuda"):
        votive.manual_seed(n)
        drawn.append(votive.randperm(n, dtype=getattr(votive, dtype), device=device))
    same(drawn[1], drawn[0])


def test_keys_with_equal_first_bits_are_settled_by_the_rest() -> None:
    from votive.backends.cuda.kernels.random import choice as random_choice
    from votive.backends.cuda.programs.program import Program

    rng = np.random.default_rng(0)
    n, above = 300, 44
    # Few first bits: long runs of equals.
    keys = rng.integers(0, 5, n) << above | rng.integers(0, 1 << 40, n)
    keys[50:60] = keys[50]
    first = np.argsort(keys >> above, kind="stable")
    words = votive.from_numpy((keys[first] >> 32) << 32 | first).to("cuda")
    there, o = (votive.from_numpy(keys).to("cuda"), votive.empty(n, dtype=votive.int64, device="cuda"))
    types, constants = ["*i64", "*i64", "*i64", "i64"], {"SHIFT": above, "BLOCK": 64}
    settle = Program(random_choice._settled, types, constants)
    settle((-(-n // 64),), *(t.data_ptr() for t in (o, words, there)), n)
    np.testing.assert_array_equal(o.cpu().numpy(), np.argsort(keys, kind="stable"))


def test_a_graph_sorts_what_lies_there_now() -> None:
    x, graph = numbers((LONGEST,), "float32").to("cuda"), votive.cuda.CUDAGraph()
    x.sort(stable=True)
    with votive.cuda.graph(graph):
        found = x.sort(stable=True)
    for seed in (5, 6):
        now = numbers((LONGEST,), "float32", seed)
        x.copy_(now)
        graph.replay()
        same(found.indices, now.sort(stable=True).indices)
