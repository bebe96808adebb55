"""Pruning: the masks, names and errors of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive import nn
from votive.nn.utils import prune, pruning

DOCS = docstrings.examples([prune, pruning])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def layers(lib: Any) -> Any:
    rng = np.random.default_rng(0)
    net = lib.nn.Sequential(lib.nn.Linear(5, 4), lib.nn.Conv1d(4, 3, 3))
    for p in net.parameters():
        p.data = lib.tensor(rng.standard_normal(tuple(p.shape)).astype("f4"))
    return net


def _global(p: Any, net: Any, **given: Any) -> None:
    p.global_unstructured([(net[0], "weight"), (net[1], "weight"), (net[0], "bias")], p.L1Unstructured, **given)


def _scores(p: Any, net: Any, lib: Any) -> None:
    scores = lib.tensor(np.arange(20.0, dtype="f4").reshape(4, 5)[:, ::-1].copy())
    p.l1_unstructured(net[0], "weight", 6, importance_scores=scores)
    p.ln_structured(net[0], "weight", 1, 2, 0, importance_scores=scores)


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "smallest": lambda p, net, lib: p.l1_unstructured(net[0], "weight", 0.3),
    "twice": lambda p, net, lib: [p.l1_unstructured(net[0], "weight", n) for n in (3, 0.5)],
    "structured": lambda p, net, lib: p.ln_structured(net[1], "weight", 1, 2, 0),
    "structured after": lambda p, net, lib: [
        p.ln_structured(net[1], "weight", 1, float("inf"), 1),
        p.ln_structured(net[1], "weight", 0.5, 1, -2),
        p.l1_unstructured(net[1], "weight", 4),
    ],
    "global": lambda p, net, lib: _global(p, net, amount=10),
    "global twice": lambda p, net, lib: [_global(p, net, amount=0.2) for _ in range(2)],
    "mask": lambda p, net, lib: p.custom_from_mask(net[0], "bias", lib.tensor([1, 0, 1, 0])),
    "identity": lambda p, net, lib: p.identity(net[0], "bias"),
    "scores": _scores,
    "removed": lambda p, net, lib: p.remove(p.l1_unstructured(net[0], "weight", 3), "weight"),
    "too many": lambda p, net, lib: p.l1_unstructured(net[0], "weight", 100),
    "negative": lambda p, net, lib: p.l1_unstructured(net[0], "weight", -1),
    "share": lambda p, net, lib: p.l1_unstructured(net[0], "weight", 1.5),
    "no number": lambda p, net, lib: p.l1_unstructured(net[0], "weight", "half"),
    "vector": lambda p, net, lib: p.ln_structured(net[0], "bias", 1, 2, 0),
    "dim": lambda p, net, lib: p.ln_structured(net[0], "weight", 1, 2, 5),
    "not pruned": lambda p, net, lib: p.remove(net[0], "weight"),
    "wrong mask": lambda p, net, lib: p.custom_from_mask(net[0], "bias", lib.ones(3)),
}


def outcome(lib: Any, p: Any, program: Callable[[Any, Any, Any], Any]) -> Any:
    net = layers(lib)
    try:
        program(p, net, lib)
    except (ValueError, TypeError, IndexError, AssertionError) as e:
        return type(e).__name__, str(e).replace("votive", "torch")
    x = lib.ones(2, 4, 5, requires_grad=True)
    out = net(x)
    out.sum().backward()
    state = {k: v.numpy() for k, v in net.state_dict().items()}
    grads = {k: v.grad.numpy() for k, v in net.named_parameters()}
    return [state, grads, {"out": out.detach().numpy()}, p.is_pruned(net)]


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_prune_as_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.nn.utils.prune")
    mine, other = outcome(votive, prune, PROGRAMS[name]), outcome(torch, theirs, PROGRAMS[name])
    if isinstance(mine, tuple):
        assert mine == other
        return
    for a, b in zip(mine[:3], other[:3], strict=True):
        assert list(a) == list(b)
        for key in a:
            np.testing.assert_allclose(a[key], b[key], rtol=1e-5, atol=1e-5)
    assert mine[3] == other[3]


def test_a_pruned_module_survives_saving() -> None:
    layer = prune.random_structured(nn.Linear(4, 3), "weight", 1, dim=0)
    x = votive.ones(2, 4)
    fresh = prune.identity(nn.Linear(4, 3), "weight")
    fresh.load_state_dict(layer.state_dict())
    assert (fresh(x) == layer(x)).all()


def test_what_cannot_be_pruned_is_left_as_it_was() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="smaller than"):
        prune.l1_unstructured(layer, "weight", 9)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    prune.l1_unstructured(layer, "weight", 1)
