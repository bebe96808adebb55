"""Sparse gradients of tables, and the optimizers that take them, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .compare import dense

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
TABLE = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)


def both(run: Any) -> list[Any]:
    """What a function of the library gives with torch and with votive."""
    return [run(library) for library in (torch, votive)]


def test_rows_have_a_sparse_gradient() -> None:
    def run(t: Any, padding: int | None) -> Any:
        weight = t.tensor(TABLE, requires_grad=True)
        at = t.tensor([[1, 2, 1], [5, 2, 0]])
        rows = t.nn.functional.embedding(at, weight, padding_idx=padding, sparse=True)
        (rows * rows).sum().backward()
        return weight.grad

    for padding in (None, 2):
        theirs, ours = both(lambda t, padding=padding: run(t, padding))
        assert ours.is_sparse
        assert ours._nnz() == theirs._nnz()
        assert ours.is_coalesced() == theirs.is_coalesced()
        np.testing.assert_allclose(dense(ours), dense(theirs), rtol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_have_a_sparse_gradient(mode: str) -> None:
    def run(t: Any, padding: int | None, weighted: bool) -> list[Any]:
        weight = t.tensor(TABLE, requires_grad=True)
        factors = t.tensor([0.5, 2.0, 1.0, 3.0, 1.5], requires_grad=True) if weighted else None
        at, offsets = t.tensor([1, 2, 1, 5, 0]), t.tensor([0, 2, 2])
        out = t.nn.functional.embedding_bag(
            at, weight, offsets, mode=mode, sparse=True, per_sample_weights=factors, padding_idx=padding
        )
        (out * out).sum().backward()
        return [out, weight.grad, *([factors.grad] if weighted else [])]

    for padding in (None, 2):
        for weighted in (False, True) if mode == "sum" else (False,):
            theirs, ours = both(lambda t, padding=padding, weighted=weighted: run(t, padding, weighted))
            assert ours[1].is_sparse
            for a, b in zip(theirs, ours, strict=True):
                np.testing.assert_allclose(dense(b), dense(a), rtol=1e-5, atol=1e-6)


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda t, p: t.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "SGD nesterov": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adagrad": lambda t, p: t.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "SparseAdam": lambda t, p: t.optim.SparseAdam(p, lr=0.1),
    "SparseAdam maximize": lambda t, p: t.optim.SparseAdam(p, lr=0.1, betas=(0.8, 0.9), maximize=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_on_sparse_gradients_as_torch_does(name: str) -> None:
    def run(t: Any) -> Any:
        table = t.nn.Embedding(7, 3, sparse=True)
        with t.no_grad():
            table.weight.copy_(t.tensor(TABLE))
        optimizer = OPTIMIZERS[name](t, list(table.parameters()))
        for at in ([1, 2, 1], [2, 5], [0, 1]):
            optimizer.zero_grad()
            (table(t.tensor(at)) ** 2).sum().backward()
            optimizer.step()
        return table.weight

    theirs, ours = both(run)
    np.testing.assert_allclose(dense(ours), dense(theirs), rtol=1e-4, atol=1e-6)


def test_optimizers_that_take_no_sparse_gradients_say_so() -> None:
    table = votive.nn.Embedding(3, 2, sparse=True)
    table(votive.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam"):
        votive.optim.Adam(table.parameters()).step()
    with pytest.raises(RuntimeError, match="weight_decay"):
        votive.optim.SGD(table.parameters(), weight_decay=0.1).step()
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        votive.nn.functional.embedding(votive.tensor([1]), table.weight, scale_grad_by_freq=True, sparse=True)


def test_a_scaler_divides_sparse_gradients() -> None:
    table = votive.nn.Embedding(5, 2, sparse=True)
    scaler = votive.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = votive.optim.SGD(table.parameters(), lr=1.0)
    before = table.weight.detach().clone()
    scaler.scale(table(votive.tensor([1, 1])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert (before - table.weight.detach()).tolist()[1] == pytest.approx([2.0, 2.0])
