"""Edits of models that checkpoint: backward computes again what was edited, or says it cannot."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit
from votive.utils.checkpoint import checkpoint


class Net(nn.Module):
    """Two calls of one block, checkpointed or not."""

    def __init__(self, reentrant: bool | None = None, *, kept: bool = False) -> None:
        super().__init__()
        votive.manual_seed(0)
        self.a = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        self.reentrant, self.kept = reentrant, kept

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            if self.kept:
                x = self.a(x)
            else:
                x = checkpoint(self.a, x, use_reentrant=self.reentrant)
        return x.square().sum()


def given() -> Any:
    return votive.tensor([[0.5, -1.0, 2.0]], requires_grad=True)


def grads(net: Any, edits: Any, runs: int = 1, *, inside: bool = True) -> tuple[Any, Any]:
    x = given()
    with glass.patch(net, edits) as receipt:
        losses = [net(x) for _ in range(runs)]
        if inside:
            sum(losses).backward()
    if not inside:
        sum(losses).backward()
    found = [x.grad, *[p.grad for p in net.parameters()]]
    return found, {a: s.times for a, s in receipt.sites.items()}


EDITS = {
    "module": [Edit("a.0", "scale", 3.0)],
    "second call": [Edit("a.0#1", "scale", 3.0)],
    "first call": [Edit("a.1#0", "zero", features=[0])],
    "operator": [Edit("a.1#1/tanh", "scale", 2.0)],
    "operator of both": [Edit("a.0/linear:in", "add", 1.0)],
    "swap": [Edit("a.1#1", "swap", nn.Sigmoid())],
    "skip": [Edit("a.1#1", "skip")],
    "whole region": [Edit("a#1", "scale", 0.5), Edit("a#0:in", "scale", 2.0)],
}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_backward_repeats_edits(edits: Any, reentrant: bool) -> None:
    want, result = grads(Net(kept=True), edits)
    found, told_here = grads(Net(reentrant), edits)
    assert result == told_here
    for a, b in zip(want, found, strict=True):
        assert votive.allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("run", [1, 2])
def test_backward_repeats_the_edits_of_a_run(run: int, reentrant: bool) -> None:
    edits = [Edit("a.0", "scale", 3.0, runs=[run])]
    want, result = grads(Net(kept=True), edits, runs=2)
    found, told_here = grads(Net(reentrant), edits, runs=2)
    assert result == told_here
    for a, b in zip(want, found, strict=True):
        assert votive.allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_recomputation_is_no_run(reentrant: bool) -> None:
    net, x = Net(reentrant), given()
    patch = glass.patch(net, [Edit("a.0#1", "scale", 3.0)])
    with patch as receipt:
        net(x).backward()
        assert patch.runs == 1
        net(x).backward()
        assert patch.runs == 2
    assert receipt.fired == 2


@pytest.mark.parametrize("reentrant", [False, True])
def test_edits_whose_block_has_ended_are_refused(reentrant: bool) -> None:
    with pytest.raises(RuntimeError, match=r"a\.0#1.*block has ended.*inside the `with` block"):
        grads(Net(reentrant), EDITS["second call"], inside=False)


@pytest.mark.parametrize("reentrant", [False, True])
def test_edits_that_were_made_elsewhere_do_not_matter(reentrant: bool) -> None:
    net, other, x = Net(reentrant), Net(kept=True), given()
    with glass.patch(other, {"a.0": 0.0}):
        other(x)
        y = net(x)
    y.backward()
    want = given()
    Net(kept=True)(want).backward()
    assert votive.allclose(x.grad, want.grad)


@pytest.mark.parametrize("reentrant", [False, True])
def test_edits_that_came_later_are_not_made(reentrant: bool) -> None:
    net, x, want = Net(reentrant), given(), given()
    y = net(x)
    with glass.patch(net, [Edit("a.0", "scale", 3.0)]) as receipt:
        y.backward()
    Net(kept=True)(want).backward()
    assert votive.allclose(x.grad, want.grad)
    assert not receipt.fired


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_regions_in_regions(outer: bool, inner: bool) -> None:
    class Outer(nn.Module):
        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.net, self.kept = Net(inner, kept=kept), kept

        def forward(self, x: Any) -> Any:
            if self.kept:
                return self.net(x)
            return checkpoint(self.net, x, use_reentrant=outer)

    edits = [Edit("net.a.0#1", "scale", 3.0)]
    want, result = grads(Outer(True), edits)
    found, told_here = grads(Outer(False), edits)
    assert result == told_here
    for a, b in zip(want, found, strict=True):
        assert votive.allclose(a, b, rtol=1e-5, atol=1e-6)


def test_an_edit_that_is_not_repeated_is_refused() -> None:
    net, x = Net(False), given()
    due = iter([True, True])  # asked before the call and after it
    patch = glass.patch(net, {lambda f: str(f.address) == "a.0" and next(due, False): 0.0})
    with pytest.raises(RuntimeError, match=r"checkpoint: edits were made at a\.0"), patch:
        net(x).backward()
