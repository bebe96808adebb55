"""Norms that learn their width late, and a loss with its own projection, agree with torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import nn


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parity
@pytest.mark.parametrize(
    "options", [{}, {"affine": False}, {"track_running_stats": False}, {"bias": False}, {"momentum": 0.3}], ids=str
)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_lazy_instance_norm_becomes_torchs(dims: int, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(0).normal(size=(4, 3, *(5,) * dims))
    sides = []
    for library, lib_nn in ((votive, nn), (torch, torch.nn)):
        norm = getattr(lib_nn, f"LazyInstanceNorm{dims}d")(**options, dtype=library.float64)
        before = repr(norm)
        x = library.from_numpy(data.copy()).requires_grad_()
        y = norm(x)
        (y * library.from_numpy(data.copy()) ** 2).sum().backward()
        sides.append((before, norm, x, y))
    (text, ours, x, got), (their_text, theirs, b, want) = sides
    assert (text, repr(ours)) == (their_text, repr(theirs))
    assert type(ours) is getattr(nn, f"InstanceNorm{dims}d")
    close(got, want)
    close(x.grad, b.grad)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for p, q in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        close(p, q)
    ours.eval(), theirs.eval()
    close(ours(x), theirs(b))


LOSSES: list[tuple[dict[str, Any], tuple[int, ...] | str]] = [
    ({}, (6,)),
    ({"bias": True}, (6,)),
    ({"reduction": "sum", "label_smoothing": 0.1}, (6,)),
    ({"ignore_index": 1, "reduction": "none"}, (6,)),
    ({"out_features": (2, 3)}, (6, 2, 3)),
    ({"out_features": (2,), "bias": True}, (6, 2)),
    ({"weight": True}, (6,)),
    ({"label_smoothing": 0.2}, "probabilities"),
]


@pytest.mark.parity
@pytest.mark.parametrize("options, target", LOSSES, ids=str)
def test_a_loss_with_its_projection_agrees_with_torch(options: dict[str, Any], target: Any) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    data, spread = rng.normal(size=(6, 4)), rng.uniform(0.5, 2.0, 5)
    if target == "probabilities":
        wanted = rng.dirichlet(np.ones(5), 6)
    else:
        wanted = rng.integers(0, 5, target)
    sides = []
    for library, lib_nn in ((votive, nn), (torch, torch.nn)):
        made = dict(options)
        if "weight" in made:
            made["weight"] = library.from_numpy(spread.copy())
        loss = lib_nn.LinearCrossEntropyLoss(4, 5, **made, dtype=library.float64)
        sides.append((library, loss, library.from_numpy(data.copy()).requires_grad_()))
    (_, ours, x), (_, theirs, y) = sides
    assert repr(ours) == repr(theirs)
    state = {k: votive.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    got = ours(x, votive.from_numpy(wanted.copy()))
    want = theirs(y, torch.from_numpy(wanted.copy()))
    close(got, want)
    got.sum().backward()
    want.sum().backward()
    close(x.grad, y.grad)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad)


@pytest.mark.parity
@pytest.mark.parametrize(
    "run",
    [
        lambda t, nn: nn.LinearCrossEntropyLoss(4, 5, weight=t.ones(4)),
        lambda t, nn: nn.LinearCrossEntropyLoss(4, 5, label_smoothing=1.5),
    ],
)
def test_the_loss_refuses_in_torchs_words(run: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as theirs:
        run(torch, torch.nn)
    with pytest.raises(RuntimeError) as ours:
        run(votive, nn)
    assert str(ours.value) == str(theirs.value)
