"""Memory is given back when it is asked for: `Tensor.dispose` and `tidy`."""

from __future__ import annotations

from typing import Any

import pytest

import votive


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: votive.add(1, t),
        lambda t: t.shape,
        lambda t: t.view(3),
        lambda t: t[0],
        lambda t: votive.cat([t, t]),
        lambda t: t.add_(1),
        lambda t: t.tolist(),
        lambda t: votive.zeros(3).copy_(t),
        lambda t: t.device,
        lambda t: len(t),
    ],
)
def test_a_disposed_tensor_raises_when_used(use: Any) -> None:
    t = votive.ones(3)
    t.dispose()
    with pytest.raises(votive.DisposedError, match="was disposed of"):
        use(t)
    assert repr(t) == "tensor(disposed)"


def test_memory_goes_back_at_once_and_views_keep_theirs() -> None:
    x = votive.ones(4096)
    view = x[1:3]
    x.dispose()
    assert view.tolist() == [1.0, 1.0]
    before = votive.cpu.memory_stats()["allocated_bytes"]
    y = votive.ones(1 << 16)
    held = votive.cpu.memory_stats()["allocated_bytes"]
    y.dispose()
    assert held > before
    assert votive.cpu.memory_stats()["allocated_bytes"] == before


def test_tidy_disposes_of_what_only_variables_name() -> None:
    box: list[Any] = []
    outside = votive.ones(3)
    with votive.tidy() as keep:
        a = outside * 2
        view = a[1:]
        kept = keep(a.sum())
        box.append(a + 1)
        outside.mul_(2)
        loss = (a.requires_grad_() * 2).sum()
    for gone in (a, view, loss):
        with pytest.raises(votive.DisposedError):
            gone + 1
    assert kept.item() == 6
    assert box[0].tolist() == [3.0] * 3
    assert outside.tolist() == [2.0] * 3


def test_training_inside_tidy_keeps_states_and_gradients() -> None:
    def losses(tidy: bool) -> list[float]:
        votive.manual_seed(0)
        model = votive.nn.Linear(4, 2)
        optimizer = votive.optim.AdamW(model.parameters(), lr=0.1)
        x = votive.randn(8, 4)
        found = []
        for _ in range(3):
            if tidy:
                with votive.tidy():
                    loss = model(x).square().mean()
                    loss.backward()
                    optimizer.step()
                    found.append(loss.item())
            else:
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return found

    assert losses(True) == losses(False)
