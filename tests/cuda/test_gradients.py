"""Gradients of leaves on the GPU: their memory is taken over where nobody else sees it."""

from __future__ import annotations

import pytest

import votive
from votive.backends.cuda import runtime as rt


@pytest.fixture
def copies(monkeypatch):
    """How many bytes were copied on the device so far."""
    found = []
    driver = rt.runtime.driver
    plain = type(driver).between

    def between(to, source, nbytes, stream):
        found.append(nbytes)
        return plain(driver, to, source, nbytes, stream)

    monkeypatch.setattr(driver, "between", between)
    return found


def test_a_gradient_becomes_the_leaf_s_without_a_copy(copies):
    x = votive.ones(3, 4, device="cuda")
    weight = votive.ones(5, 4, device="cuda", requires_grad=True)
    turned = votive.ones(4, 5, device="cuda", requires_grad=True)
    bias = votive.ones(5, device="cuda", requires_grad=True)
    y = votive.nn.functional.linear(x, weight, bias) + votive.nn.functional.linear(x, turned.t())
    (y * y).sum().backward()
    assert not copies
    for leaf in (weight, turned, bias):
        assert leaf.grad.shape == leaf.shape
        assert leaf.grad._base is None


def test_a_gradient_that_somebody_keeps_is_copied(copies):
    x = votive.ones(3, device="cuda", requires_grad=True)
    kept = []
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    x.grad.zero_()
    assert kept[0].tolist() == [2.0, 2.0, 2.0]
    assert copies


def test_a_gradient_that_is_part_of_something_larger_is_copied():
    x = votive.ones(3, device="cuda", requires_grad=True)
    y = votive.ones(3, device="cuda", requires_grad=True)
    votive.cat([x, y]).backward(votive.arange(6.0, device="cuda"))
    x.grad.zero_()
    assert y.grad.tolist() == [3.0, 4.0, 5.0]
