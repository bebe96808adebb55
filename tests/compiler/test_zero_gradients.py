"""Gradients that rules answer with zeros are zeros in compiled programs, too, and absent ones stay absent."""

from __future__ import annotations

from typing import Any

import pytest

import votive

pytestmark = pytest.mark.usefixtures("interpreted")


def drawn_anew(y: Any, w: Any) -> tuple[Any, Any]:
    """The first result depends on `w` only through what was overwritten by random numbers."""
    t = y * w
    t.uniform_()
    return y / (t + 1), votive.sigmoid(w)


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_a_result_that_leads_to_zeros_gives_zeros(used: tuple[int, ...]) -> None:
    compiled = votive.compile(drawn_anew)
    for _ in range(3):
        y, w = votive.randn(1, 6), votive.randn(6)
        grads = []
        for fn in (drawn_anew, compiled):
            votive.manual_seed(3)
            leaf = w.clone().requires_grad_()
            outs = fn(y, leaf)
            sum(outs[i].sum() for i in used).backward()
            assert leaf.grad is not None
            grads.append(leaf.grad)
        assert votive.allclose(grads[0], grads[1])


def test_an_input_that_no_used_result_comes_from_has_no_gradient() -> None:
    compiled = votive.compile(lambda x, w: (x * 2, w * 3))
    for _ in range(3):
        x, w = votive.ones(3, requires_grad=True), votive.ones(3, requires_grad=True)
        compiled(x, w)[0].sum().backward()
        assert x.grad is not None
        assert w.grad is None
