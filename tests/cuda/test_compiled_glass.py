"""Captures and edits inside of compiled modules on a GPU, where rules join more calls and graphs are replayed."""

from __future__ import annotations

from typing import Any

import pytest

import votive as vt
from votive import nn

glass: Any = pytest.importorskip("votive.glass", exc_type=ImportError)  # it needs greenlet


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm(x)))))


def _model(training: bool) -> Any:
    vt.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.LayerNorm(8), nn.Linear(8, 2)).to("cuda").train(training)


def _close(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) is (b is None)
        if a is not None:
            assert vt.allclose(a.detach(), b.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_captured_values_and_their_gradients_are_those_without_compiling(training: bool) -> None:
    model = _model(training)
    compiled = vt.compile(model)
    x = vt.randn(4, 5, 8, device="cuda")
    for i in range(6):
        found: list[list[Any]] = []
        for f in (model, compiled):
            model.zero_grad()
            vt.manual_seed(i)
            with glass.capture(f, "**") as seen:
                y = f(x)
            seen["0"].retain_grad()
            # At the end a captured value is part of the loss, too.
            (y.square().sum() + (seen["1"].sin().sum() if i > 3 else 0)).backward()
            found.append([y, *(seen[a] for a in seen), seen["0"].grad, *(p.grad for p in model.parameters())])
        _close(*found)
    (version,) = vt.compiler.explain(compiled).versions
    assert version.runs == 5


def test_captures_without_gradients_leave_what_rules_join_joined() -> None:
    model = _model(False)
    compiled = vt.compile(model)
    x = vt.randn(4, 5, 8, device="cuda")
    for i in range(5):
        with vt.no_grad(), glass.capture(compiled, "*") as seen:
            y = compiled(x + i)
        with vt.no_grad(), glass.capture(model, "*") as wanted:
            z = model(x + i)
        _close([y, *(seen[a] for a in seen)], [z, *(wanted[a] for a in wanted)])
    (version,) = vt.compiler.explain(compiled).versions
    assert version.rules["norm of a sum"] >= 2


def test_edits_are_made_in_replays() -> None:
    model = _model(False)
    compiled = vt.compile(model)
    x, direction = vt.randn(4, 5, 8, device="cuda"), vt.linspace(-1, 1, 8, device="cuda")
    edits = {"0": lambda v: v + 2 * direction, "1.up": 0.5}
    for i in range(6):
        direction.fill_(i)
        with vt.no_grad():
            with glass.patch(compiled, edits, measure=False) as receipt:
                y = compiled(x)
            with glass.patch(model, edits):
                _close([y], [model(x)])
        assert receipt.fired == 2
    (version,) = vt.compiler.explain(compiled).versions
    assert version.runs == 5
    assert version.cuda_graph == "recorded 1 times"
