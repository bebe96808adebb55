"""Logits that only a loss reads are computed in chunks; losses and gradients are those of all at once."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.compiler import explain
from votive.compiler.rules import losses
from votive.nn import functional as F
from votive.ops.registry import F as ops

from .compare import close

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "_LEAST", 0)


def data(rows: tuple[int, ...], bias: bool, dtype: Any, ignored: int = 3) -> list[Any]:
    votive.manual_seed(0)
    x, w = votive.randn(*rows, 8, dtype=dtype), votive.randn(11, 8, dtype=dtype)
    b = votive.randn(11, dtype=dtype) if bias else None
    t = votive.randint(0, 11, rows)
    t.view(-1)[:ignored] = -100
    return [x.requires_grad_(), w.requires_grad_(), None if b is None else b.requires_grad_(), t]


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64], ids=str)
@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"label_smoothing": 0.2}], ids=str)
@pytest.mark.parametrize("rows", [(3,), (200,), (5, 130)], ids=str)
def test_losses_and_gradients(rows: tuple[int, ...], options: dict[str, Any], dtype: Any) -> None:
    for bias in (False, True):

        def loss(x: Any, w: Any, b: Any, t: Any) -> Any:
            logits = F.linear(x, w, b)
            return F.cross_entropy(logits.flatten(0, -2) if logits.ndim > 2 else logits, t.flatten(), **options)

        def step(x: Any, w: Any, b: Any, t: Any) -> Any:
            out = loss(x, w, b, t)
            (out * 1.5).backward()
            return out.detach()

        compiled, whole = votive.compile(loss), votive.compile(step, fullgraph=True)
        ignored = min(3, rows[0] - 1)
        want, out = data(rows, bias, dtype, ignored), None
        out = loss(*want)
        (out * 1.5).backward()
        for fn in (compiled, compiled, whole, whole):
            got = data(rows, bias, dtype, ignored)
            found = fn(*got)
            if found.requires_grad:
                (found * 1.5).backward()
            close(found.detach(), out.detach())
            for a, b in zip(want[:3], got[:3], strict=True):
                assert a is None or close(a.grad, b.grad) is None
        for fn in (compiled, whole):
            (version,) = explain(fn).versions
            assert version.rules["product and cross entropy"] == 1
            assert "linear(" not in version.forward


def test_logits_that_others_read_stay() -> None:
    x, w, _, t = data((70,), False, votive.float32)

    def both(x: Any, w: Any, t: Any) -> Any:
        logits = F.linear(x, w)
        return F.cross_entropy(logits, t), logits.argmax(-1)

    compiled = votive.compile(both)
    for _ in range(2):
        close(compiled(x, w, t)[0], both(x, w, t)[0])
    assert "product and cross entropy" not in explain(compiled).rules


def test_nothing_that_counts_is_no_number() -> None:
    x, w, _, t = data((70,), False, votive.float32, 70)
    compiled = votive.compile(lambda x, w, t: F.cross_entropy(F.linear(x, w), t))
    for _ in range(2):
        assert bool(compiled(x, w, t).isnan())


def test_gradients_of_gradients_and_without_gradients() -> None:
    x, w, b, t = data((70,), True, votive.float64)

    def chunked(x: Any, w: Any, b: Any) -> Any:
        return ops._linear_cross_entropy(x, w, b, t, -100, 0.1, True, True)[0]

    assert votive.autograd.gradcheck(chunked, (x, w, b))
    assert votive.autograd.gradgradcheck(chunked, (x, w, b))
    with votive.no_grad():
        compiled = votive.compile(lambda x, w, b: F.cross_entropy(F.linear(x, w, b), t))
        for _ in range(2):
            close(compiled(x, w, b), F.cross_entropy(F.linear(x, w, b), t))
    assert explain(compiled).rules["product and cross entropy"] == 1


def test_training_with_a_head_that_is_tied() -> None:
    def run(compiled: bool) -> list[float]:
        votive.manual_seed(0)
        embed = nn.Embedding(11, 8)
        optimizer = votive.optim.AdamW(embed.parameters(), lr=0.05)
        ids = votive.randint(0, 11, (4, 33))

        def step(ids: Any) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(
                F.linear(embed(ids[:, :-1]).tanh(), embed.weight).flatten(0, 1), ids[:, 1:].flatten()
            )
            loss.backward()
            optimizer.step()
            return loss.detach()

        fn = votive.compile(step, fullgraph=True) if compiled else step
        found = [float(fn(ids)) for _ in range(10)]
        assert not compiled or explain(fn).rules["product and cross entropy"] == 1
        return found

    assert run(True) == pytest.approx(run(False), rel=1e-4)
