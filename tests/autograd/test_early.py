"""Leaves that are finished while a backward pass goes on, and what is called at its end."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive.autograd import early
from votive.autograd.early import FinishEarly, when_backward_ends

DOCS = docstrings.examples([early])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def chain(weights: list[votive.Tensor], x: votive.Tensor) -> votive.Tensor:
    for w in weights:
        x = (x * w).tanh()
    return x.sum()


def leaves(n: int) -> list[votive.Tensor]:
    return [votive.linspace(-0.5, 1 + i, 4).requires_grad_() for i in range(n)]


def told(tensors: list[votive.Tensor]) -> tuple[list[Any], list[Any]]:
    """Whose hooks have run, in their order."""
    seen: list[Any] = []

    def watch(i: int) -> Any:
        return tensors[i].register_post_accumulate_grad_hook(lambda _: seen.append(i))

    return seen, [watch(i) for i in range(len(tensors))]


def test_leaves_that_are_asked_for_end_with_their_last_use_and_gradients_stay_the_same() -> None:
    x = votive.linspace(1, 2, 4)
    plain, hasty = leaves(4), leaves(4)
    order = [0, 1, 2, 3, 1]
    chain([plain[i] for i in order], x).backward()
    asked = [FinishEarly(t) for t in hasty]
    seen, _ = told(hasty)
    chain([hasty[i] for i in order], x).backward()
    assert seen == [3, 2, 1, 0]  # the one that is used twice comes with its first use
    for a, b in zip(plain, hasty, strict=True):
        np.testing.assert_array_equal(a.grad, b.grad)
    for one in asked:
        one.remove()
    assert not early.asked()


def test_gradients_that_come_early_are_not_copied() -> None:
    w = leaves(1)[0]
    sent: list[int] = []
    y = w * 3
    asked = FinishEarly(w)
    w.register_hook(lambda g: sent.append(g.data_ptr()))
    y.sum().backward()
    assert w.grad is not None
    assert sent == [w.grad.data_ptr()]
    asked.remove()


def test_a_leaf_to_which_nothing_more_comes_is_finished_all_the_same() -> None:
    class Half(votive.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: votive.Tensor, b: votive.Tensor) -> votive.Tensor:
            return a + b

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0], None

    a, b, c = leaves(3)
    asked = [FinishEarly(t) for t in (a, b, c)]
    seen, _ = told([a, b, c])
    (Half.apply(a, b) * b * c).sum().backward()
    assert sorted(seen) == [0, 1, 2]
    np.testing.assert_allclose(b.grad, ((a + b) * c).detach(), rtol=1e-6)
    # A node that a hook takes out of the way sends nothing at all.
    y = a * 2
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda grads: (None,))
    seen.clear()
    a.grad = None
    (y * b).sum().backward(inputs=[b])
    assert seen == [1]
    del asked


def test_the_same_leaf_as_root_and_below() -> None:
    w = leaves(1)[0]
    asked = FinishEarly(w)
    seen, _ = told([w])
    votive.autograd.backward([w, (w * w).sum()], [votive.ones(4), None])
    assert seen == [0]
    np.testing.assert_allclose(w.grad, 1 + 2 * w.detach(), rtol=1e-6)
    asked.remove()


def test_the_end_comes_once_and_only_after_passes_that_end_well() -> None:
    w = leaves(1)[0]
    ends: list[str] = []
    w.register_hook(lambda _: when_backward_ends(lambda: ends.append("end")))
    votive.utils.checkpoint.checkpoint(lambda t: (t * w).exp(), w * 2, use_reentrant=True).sum().backward()
    assert ends == ["end", "end"]  # one call for each of the two gradients that came, both behind the outer pass
    (w * 2).sum().backward(inputs=[w])
    assert len(ends) == 3
    votive.autograd.grad((w * 2).sum(), w)
    assert len(ends) == 4

    def fail(_: Any) -> None:
        raise RuntimeError("no")

    handle = w.register_hook(fail)
    with pytest.raises(RuntimeError, match="no"):
        (w * 2).sum().backward()
    handle.remove()
    assert len(ends) == 4


def test_leaves_that_are_gone_are_forgotten() -> None:
    FinishEarly(leaves(1)[0])
    gc.collect()
    assert not early.asked()
