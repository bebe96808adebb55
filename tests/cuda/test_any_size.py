"""Sizes that no block divides and layouts of any order give what the CPU gives: elementwise kernels, reductions,
softmax and joins.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
import votive.nn.functional as F

from .device import EMULATED, cpu_fallbacks

SEEDS = range(5 if EMULATED else 40)
MOST = 900 if EMULATED else 500_000
TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}
DTYPES = list(TOLERANCE)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulated GPU small tensors have several blocks, and rows several steps and parts."""
    if EMULATED:
        from votive.backends.cuda.kernels.softmax import rows, strided
        from votive.backends.cuda.programs import join, pointwise, walk

        for module, sizes in (
            (pointwise, {"BLOCK": 128}),
            (rows, {"WHOLE": 256, "LONG": 128}),
            (walk, {"TILE": 64, "LARGE": 128, "ALONE": 256, "WIDE_TILE": {2: 64, 4: 64, 8: 64}, "WIDE": 8}),
            (join, {"TILE": 128}),
            (strided, {"HELD": 256}),
        ):
            for name, value in sizes.items():
                monkeypatch.setattr(module, name, value)


def drawn(rng: random.Random, dims: int, most: int = MOST) -> tuple[int, ...]:
    """A shape of about `most` elements or fewer, with sizes of all kinds."""
    left, out = rng.uniform(2, most), []
    for d in range(dims, 1, -1):
        n = max(1, int(left ** rng.uniform(0.3 / d, 1.6 / d)))
        out.append(n)
        left /= n
    return (*out, max(1, int(left)))


def laid(rng: random.Random, shape: tuple[int, ...], dtype: str) -> tuple[Any, Any]:
    """The same numbers on both devices, in memory of any order; now and then beginning at an odd address."""
    order = list(range(len(shape)))
    rng.shuffle(order)
    memory = tuple(shape[d] for d in order)
    a = np.random.default_rng(rng.randrange(1 << 30)).normal(size=memory) + 1.5
    back = [order.index(d) for d in range(len(shape))]
    x = votive.from_numpy(np.asarray(a)).to(getattr(votive, dtype))
    y = x.to("cuda")
    if rng.random() < 0.3:
        room = votive.zeros(x.numel() + 3, dtype=x.dtype, device="cuda")
        y = room[3:].view(memory).copy_(y)
    return x.permute(back), y.permute(back)


def same(ours: Any, theirs: Any, dtype: str) -> None:
    if isinstance(theirs, tuple | list):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, dtype)
        return
    assert ours.shape == theirs.shape
    assert ours.dtype is theirs.dtype
    a, b = ours.cpu().double().numpy(), theirs.double().numpy()
    np.testing.assert_allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * (np.abs(b).max(initial=0) + 1))


def agree(fn: Callable[..., Any], pairs: list[tuple[Any, Any]], dtype: str) -> None:
    with cpu_fallbacks() as left:
        ours = fn(*[y for _, y in pairs])
    assert not left
    same(ours, fn(*[x for x, _ in pairs]), dtype)


each_seed = pytest.mark.parametrize("seed", SEEDS)


@each_seed
def test_elementwise_kernels(seed: int) -> None:
    rng = random.Random(seed)
    for dtype in DTYPES:
        shape = drawn(rng, rng.randint(1, 4))
        pairs = [laid(rng, shape, dtype), laid(rng, shape, dtype)]
        agree(lambda x, y: (x.exp(), x * y, x > y, x.abs().sqrt()), pairs, dtype)
        some = tuple(n if rng.random() < 0.5 else 1 for n in shape)
        agree(lambda x, y: x / (y.abs() + 1), [pairs[0], laid(rng, some, dtype)], dtype)
        agree(lambda x: (x.float(), x.clone(), x.contiguous(), x.bfloat16()), pairs[:1], dtype)


@each_seed
def test_reductions_over_any_dimensions(seed: int) -> None:
    rng = random.Random(seed)
    for dtype in DTYPES:
        dims = rng.randint(1, 4)
        shape = drawn(rng, dims)
        pair = laid(rng, shape, dtype)
        over = tuple(rng.sample(range(dims), rng.randint(1, dims)))
        agree(lambda x, d=over: (x.sum(d), x.mean(d), x.amax(d), votive.linalg.vector_norm(x, dim=d)), [pair], dtype)
        agree(lambda x, d=over: (x.logsumexp(d), (x > 1).any(), (x > -9).all()), [pair], dtype)
        if np.prod([shape[d] for d in over]) > 1:
            agree(lambda x, d=over: (x.var(d), x.std(d), x.var(d, correction=0)), [pair], dtype)


@each_seed
def test_extremes_name_the_first_of_equals_wherever_lines_lie(seed: int) -> None:
    rng = random.Random(seed)
    for dtype in (*DTYPES, "int64", "uint8"):
        dims = rng.randint(1, 4)
        shape, dim = drawn(rng, dims), rng.randrange(dims)
        x, y = laid(rng, shape, "float32")
        x = (x * 3).round().clamp(0, 9).to(getattr(votive, dtype))
        y = (y * 3).round().clamp(0, 9).to(getattr(votive, dtype))
        for fn in (lambda t, d: t.max(d), lambda t, d: t.min(d), lambda t, d: t.argmax(d), lambda t, d: t.argmin()):
            ours, theirs = fn(y, dim), fn(x, dim)
            pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
            for a, b in pairs:
                assert np.array_equal(a.cpu().double().numpy(), b.double().numpy())


def test_extremes_of_the_lowest_numbers_are_found() -> None:
    for value in (-(2**63), 2**63 - 1):
        x = votive.full((3, 5), value, dtype=votive.int64, device="cuda")
        for dim in (0, 1):
            assert not x.argmax(dim).any()
            assert not x.argmin(dim).any()
    low = votive.full((3, 5), -float("inf"), device="cuda")
    assert low.max(1).indices.tolist() == [0, 0, 0]
    nan = votive.tensor([[1.0, float("nan"), 3.0, float("nan")]], device="cuda")
    assert nan.argmax(1).tolist() == nan.argmin(1).tolist() == [1]


def test_variances_around_a_far_mean_keep_their_digits() -> None:
    a = np.random.default_rng(0).normal(size=(3, 1000 if EMULATED else 300_000)).astype(np.float32) + 1000
    a[:, 0] = -4000  # a first element far from the others
    x = votive.from_numpy(a).to("cuda")
    for ours in (x.var(1), x.t().contiguous().var(0)):
        np.testing.assert_allclose(ours.cpu().numpy(), a.astype(np.float64).var(1, ddof=1), rtol=2e-4)


def both(x: Any, g: Any, dim: int) -> Any:
    """Both kinds of softmax and their gradients."""
    out = []
    for fn in (F.softmax, F.log_softmax):
        leaf = x.detach().requires_grad_()
        y = fn(leaf, dim)
        (by_x,) = votive.autograd.grad(y, leaf, g)
        out += [y.detach(), by_x]
    return out


def test_softmax_of_a_few_long_rows() -> None:
    for dtype in DTYPES:
        for shape in ((2, 901), (1, 1024)) if EMULATED else ((54, 93_517), (3, 65_536), (1, 1_000_001)):
            pairs = [plain(random.Random(k), shape) for k in range(2)]
            kind = getattr(votive, dtype)
            given = [(x.to(kind), y.to(kind)) for x, y in pairs]
            agree(lambda x, g: both(x, g, 1), given, dtype)
            columns = [(x.t().contiguous(), y.t().contiguous()) for x, y in given]
            agree(lambda x, g: both(x, g, 0), columns, dtype)


def test_softmax_of_long_rows_with_infinities() -> None:
    x = votive.zeros(3, 901 if EMULATED else 70_001)
    x[0, 5], x[1] = float("inf"), -float("inf")
    ours, theirs = x.to("cuda").softmax(1).cpu().numpy(), x.softmax(1).numpy()
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5)


@each_seed
def test_softmax_along_any_dimension(seed: int) -> None:
    rng = random.Random(seed)
    for dtype in DTYPES:
        dims = rng.randint(1, 4)
        shape, dim = drawn(rng, dims), rng.randrange(dims)
        pairs = [laid(rng, shape, dtype), laid(rng, shape, dtype)]
        agree(lambda x, g, d=dim: both(x, g, d), pairs, dtype)


@each_seed
def test_joins_of_any_number_of_tensors(seed: int) -> None:
    rng = random.Random(seed)
    for dtype in (*DTYPES, "uint8", "complex64"):
        dims, count = rng.randint(1, 3), rng.choice([1, 2, 3, 7, 20, 27, 28, 40, 60])
        shape, dim = drawn(rng, dims, MOST // count), rng.randrange(dims)
        given = []
        for _ in range(count):
            size = (*shape[:dim], rng.randint(0 if dims == 1 else 1, 2 * shape[dim]), *shape[dim + 1 :])
            given.append(laid(rng, size, "float32") if rng.random() < 0.3 else plain(rng, size))
        kind = getattr(votive, dtype)
        ours = votive.cat([(y * 20).to(kind) for _, y in given], dim)
        theirs = votive.cat([(x * 20).to(kind) for x, _ in given], dim)
        assert np.array_equal(ours.cpu().to(votive.complex64).numpy(), theirs.to(votive.complex64).numpy())
        alike = [laid(rng, shape, "float32") if rng.random() < 0.3 else plain(rng, shape) for _ in range(count)]
        at = rng.randint(0, dims)
        ours, theirs = votive.stack([y for _, y in alike], at), votive.stack([x for x, _ in alike], at)
        assert np.array_equal(ours.cpu().numpy(), theirs.numpy())


def plain(rng: random.Random, shape: tuple[int, ...]) -> tuple[Any, Any]:
    x = votive.from_numpy(np.random.default_rng(rng.randrange(1 << 30)).normal(size=shape).astype(np.float32))
    return x, x.to("cuda")


def test_values_over_memory_that_no_block_divides() -> None:
    for n in (1, 15, 1023, 1025, 2049 if EMULATED else 1_234_567):
        assert (votive.full((n,), 2.5, device="cuda") == 2.5).all()
        assert (votive.arange(n, device="cuda").cpu().numpy() == np.arange(n)).all()
        kept = F.dropout(votive.ones(n, device="cuda"), 0.5)
        assert set(kept.cpu().unique().tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize(("dtype", "step"), [("bfloat16", 8), ("float16", 11)])
def test_doubles_become_half_types_by_way_of_float32(dtype: str, step: int) -> None:
    # Just above the middle of two numbers; float32 has it in the middle, and ties go to the even one.
    x = votive.tensor([1 + 2.0**-step + 2.0**-40] * 33, dtype=votive.float64)
    half = getattr(votive, dtype)
    assert x.to(half).tolist() == x.cuda().to(half).tolist() == [1.0] * 33
