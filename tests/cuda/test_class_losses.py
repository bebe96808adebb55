"""Cross entropy and likelihoods of few and many classes, in any layout of the logits, agree with the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
import votive.nn.functional as F

from .device import EMULATED, LAYOUTS, cpu_fallbacks, placed

SHAPES = [(37, 1), (5, 2), (3, 4, 2, 9), (2, 17, 3), (3, 150), (2, 3, 2, 3, 2), (2, 2, 3, 2, 2, 3), (6,)]
WAYS = [(0.0, False, "mean"), (0.1, True, "sum"), (0.0, True, "none")]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulated GPU few rows are several tiles, and few classes several steps."""
    if EMULATED:
        from votive.backends.cuda.kernels.cross_entropy import rows

        for name, value in {"TILE": 64, "LONGEST": 64, "ACROSS": 4, "MOST": 16, "PROGRAMS": 3}.items():
            monkeypatch.setattr(rows, name, value)


def gradient(fn: Any, x: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    x = x.detach().requires_grad_()
    y = fn(x, *args, **options)
    (y * 1.7).sum().backward()
    return y, x.grad


@pytest.mark.parametrize("how", LAYOUTS[:4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_losses_of_classes_agree_with_the_cpu_in_every_layout(shape: tuple[int, ...], how: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float32)
    dim = 1 if len(shape) > 1 else 0
    t = np.asarray(rng.integers(0, shape[dim], shape[:dim] + shape[dim + 1 :]))
    t.reshape(-1)[1:2] = -100
    weight = votive.from_numpy(rng.uniform(0.1, 1.0, shape[dim]).astype(np.float32))
    target = votive.from_numpy(t)
    with cpu_fallbacks() as left:
        for smoothing, weighted, reduction in WAYS:
            for fn, options in ((F.cross_entropy, {"label_smoothing": smoothing}), (F.nll_loss, {})):
                given: dict[str, Any] = {"reduction": reduction, **options}
                w = weight if weighted else None
                want = gradient(fn, votive.from_numpy(x), target, weight=w, **given)
                w = weight.to("cuda") if weighted else None
                got = gradient(fn, placed(x, how, "cuda"), target.to("cuda"), weight=w, **given)
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert not left
