"""Cross entropy and likelihoods on native kernels agree with the reference."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import OPS

from .compare import TOLERANCE, agree, layouts, needs_native, reference_only, served_by_native

pytestmark = needs_native

F = votive.nn.functional
DTYPES = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
SHAPES = [
    (7,),
    (5, 3),
    (64, 10),
    (33, 65),
    (3, 1000),
    (2, 4, 3),
    (3, 21, 5, 7),
    (300, 70),
    (1, 1),
    (300, 6),
    (2, 3, 9, 11),
]


def made(shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any, Any]:
    """Logits, targets of which some are ignored, weights."""
    rng = np.random.default_rng(0)
    x = votive.tensor(rng.standard_normal(shape) * 3).to(dtype)
    classes = shape[min(1, len(shape) - 1)]
    rest = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    t = rng.integers(0, classes, rest)
    t = np.where(rng.uniform(size=rest) < 0.2, -1, t) if rest else t
    return x, votive.tensor(t), votive.tensor(rng.uniform(0.5, 2, classes)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_agrees_in_every_layout(
    dtype: Any, shape: tuple[int, ...], smoothing: float, weighted: bool
) -> None:
    x, t, w = made(shape, dtype)
    w = w if weighted else None
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    g = votive.tensor(np.random.default_rng(1).standard_normal(t.shape)).to(dtype)
    for form in layouts(x):
        agree(lambda a: OPS["_cross_entropy"](a, t, w, -1, smoothing, dtype), form, **near)
        for by in (g, g.sum().expand(g.shape)):
            fn = OPS["_cross_entropy_backward"]
            agree(lambda h, a, f=fn: f(h, a, t, w, -1, smoothing), by, form, **near)
        for mean in (False, True):
            fn = OPS["_cross_entropy_reduced"]
            _, total, kept = agree(lambda a, f=fn, m=mean: f(a, t, w, -1, smoothing, m), form)
            back = OPS["_cross_entropy_reduced_backward"]
            one = votive.tensor(1.5).to(dtype)
            agree(lambda a, f=back, n=total, k=kept, m=mean, g=one: f(g, a, t, w, n, k, -1, smoothing, m), form, **near)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_likelihoods_agree_in_every_layout(dtype: Any, shape: tuple[int, ...], reduction: str) -> None:
    x, t, w = made(shape, dtype)

    def both(a: Any, weight: Any) -> Any:
        a = a.detach().requires_grad_()
        y = F.nll_loss(a, t, weight, ignore_index=-1, reduction=reduction)
        (g,) = votive.autograd.grad(y.sum() * 2, a)
        return y, g

    for form in layouts(x):
        for weight in (None, w):
            agree(lambda a, v=weight: both(a, v), form)


def test_a_wrong_target_reads_the_same() -> None:
    x = votive.zeros(3, 4)
    t = votive.tensor([0, 7, 9])
    for loss in (F.cross_entropy, F.nll_loss):
        told = []
        for way in (nullcontext, reference_only):
            with way(), pytest.raises(IndexError) as caught:
                loss(x, t)
            told.append(str(caught.value))
        assert told[0] == told[1]


def test_uint8_targets_and_targets_with_gaps() -> None:
    x, t, _ = made((40, 6), dt.float32)
    whole = t.clamp(min=0)
    wide = votive.zeros(80, dtype=dt.int64)
    wide[::2] = whole
    want = F.cross_entropy(x, whole)
    assert float(F.cross_entropy(x, whole.to(dt.uint8))) == float(want)
    assert float(F.cross_entropy(x, wide[::2])) == float(want)


def test_rows_are_native() -> None:
    x, t, _ = made((6, 5), dt.float32)
    x.requires_grad_()
    t = t.clamp(min=0)
    assert served_by_native("_cross_entropy_reduced", lambda: F.cross_entropy(x, t))
    op = "_cross_entropy_reduced_backward"
    assert served_by_native(op, lambda: F.cross_entropy(x, t).backward())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["mean", "sum", "none"])
def test_few_classes_that_lie_last_in_memory(dtype: Any, kind: str) -> None:
    x, t, _ = made((2, 3, 9, 11), dtype)
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    for loss in (F.cross_entropy, F.nll_loss):

        def both(x: Any, loss: Any = loss) -> Any:
            x = x.detach().requires_grad_()
            y = loss(x, t, ignore_index=-1, reduction=kind)
            y.sum().backward()
            return y.detach(), x.grad

        for a, b in zip(agree(both, last, **near), both(x), strict=True):
            np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), **near)
