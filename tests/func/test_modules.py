"""Modules under vmap, per-sample gradients and tangents: the same as one example after the other."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.func import functional_call, grad, grad_and_value, jvp, vmap

B = 3
CASES: dict[str, Any] = {
    "encoder": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), votive.randn(B, 4, 8)),
    "attention": lambda: (nn.MultiheadAttention(8, 2, batch_first=True), (votive.randn(B, 2, 4, 8),) * 3),
    "lstm": lambda: (nn.LSTM(4, 5, batch_first=True), votive.randn(B, 2, 6, 4)),
    "network": lambda: (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4, track_running_stats=False),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 3),
        ),
        votive.randn(B, 2, 2, 6, 6),
    ),
    "eval": lambda: (nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4)).eval(), votive.randn(B, 2, 2, 6)),
    "transposed": lambda: (nn.ConvTranspose2d(2, 4, 3, stride=2, groups=2), votive.randn(B, 2, 2, 4, 4)),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(9, 4, padding_idx=0), nn.RMSNorm(4)),
        votive.randint(0, 9, (B, 5)),
    ),
    "instance": lambda: (nn.InstanceNorm2d(3, affine=True), votive.randn(B, 2, 3, 4, 4)),
    "bilinear": lambda: (nn.Bilinear(3, 4, 2), (votive.randn(B, 5, 3), votive.randn(B, 5, 4))),
}


def first(out: Any) -> Any:
    return out if isinstance(out, votive.Tensor) else first(out[0])


@pytest.mark.parametrize("name", CASES)
def test_a_module_of_a_batch_is_the_module_of_each_example(name: str) -> None:
    votive.manual_seed(0)
    module, xs = CASES[name]()
    xs = xs if isinstance(xs, tuple) else (xs,)
    params = {n: p.detach() for n, p in module.named_parameters()}
    buffers = dict(module.named_buffers())

    def run(p: Any, *x: Any) -> Any:
        return first(functional_call(module, (p, buffers), x))

    loss = lambda p, *x: run(p, *x).square().sum()
    rows = [tuple(x[i] for x in xs) for i in range(B)]
    got = vmap(run, in_dims=(None, *[0] * len(xs)))(params, *xs)
    assert votive.allclose(got, votive.stack([run(params, *row) for row in rows]), atol=1e-5)
    grads = vmap(grad(loss), in_dims=(None, *[0] * len(xs)))(params, *xs)
    want = [grad(loss)(params, *row) for row in rows]
    for n, g in grads.items():
        assert votive.allclose(g, votive.stack([w[n] for w in want]), rtol=1e-4, atol=1e-4), n
    tangents = {n: votive.randn_like(p) for n, p in params.items()}
    _, moved = jvp(lambda p: loss(p, *rows[0]), (params,), (tangents,))
    slope = sum((want[0][n] * t).sum().item() for n, t in tangents.items())
    assert moved.item() == pytest.approx(slope, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_the_gradient_of_a_draw_repeats_it(randomness: str) -> None:
    f = lambda v: nn.functional.dropout(v, 0.5).sum()
    grads, values = vmap(grad_and_value(f), randomness=randomness)(votive.ones(4, 32))
    assert votive.equal(grads.sum(1), values)


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 5, 3)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_classes_per_example(shape: tuple[int, ...], reduction: str) -> None:
    x = votive.randn(B, *shape)
    targets = votive.randint(0, 5, (B, *shape[:1], *shape[2:]) if len(shape) > 1 else (B,))
    if len(shape) > 1:
        targets.flatten()[::3] = 1  # the one that is left out
    weight = votive.rand(5) + 0.5
    for options in ({}, {"weight": weight, "ignore_index": 1}, {"label_smoothing": 0.1}):
        run = lambda a, t, o=options: nn.functional.cross_entropy(a, t, reduction=reduction, **o)
        want = votive.stack([run(a, t) for a, t in zip(x, targets, strict=True)])
        assert votive.allclose(vmap(run)(x, targets), want, atol=1e-5, equal_nan=True)
    logs = x.log_softmax(1 if len(shape) == 1 else 2)
    run = lambda a, t: nn.functional.nll_loss(a, t, weight, reduction=reduction)
    want = votive.stack([run(a, t) for a, t in zip(logs, targets, strict=True)])
    assert votive.allclose(vmap(run)(logs, targets), want, atol=1e-5, equal_nan=True)
