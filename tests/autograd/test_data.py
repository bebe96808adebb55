"""`x.data`: the same memory with a version of its own. Programs that write through it on purpose
get their gradients; writes through `detach()` are noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive.core.storage import AliasStorage


def _sized(T: Any) -> tuple[Any, Any, Any]:
    x = T.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    h = x * 1
    return x, h, (h * h).sum()  # h is kept for backward


# What is written to (x: a leaf, h: a kept value), before backward.
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "data in place": lambda T, x, h: h.data.mul_(3),
    "data copied into": lambda T, x, h: h.data.copy_(T.ones(4)),
    "an element of data": lambda T, x, h: h.data.__setitem__(0, 7.0),
    "a slice of data": lambda T, x, h: h.data[1:].add_(1),
    "a view of data": lambda T, x, h: h.data.view(2, 2)[0].fill_(5),
    "data of a view": lambda T, x, h: h.view(2, 2).data.mul_(2),
    "data of data": lambda T, x, h: h.data.data.mul_(2),
    "data of detach": lambda T, x, h: h.detach().data.mul_(2),
    "detach of data": lambda T, x, h: h.data.detach().mul_(2),
    "data of the leaf": lambda T, x, h: x.data.mul_(2),
    "other data": lambda T, x, h: setattr(h, "data", T.ones(4)),
    "other data of the leaf": lambda T, x, h: setattr(x, "data", T.ones(4)),
    "its own data": lambda T, x, h: setattr(h, "data", h.data),
    "data that is written afterwards": lambda T, x, h: _given(h, T.ones(4)).mul_(3),
    "out": lambda T, x, h: T.add(T.ones(4), 1, out=h.data),
    "detach": lambda T, x, h: h.detach().mul_(3),
    "a view of detach": lambda T, x, h: h.detach()[1:].mul_(3),
    "the value itself": lambda T, x, h: h.mul_(3),
    "detach after other data": lambda T, x, h: _given(h, T.ones(4)) is None or h.detach().mul_(3),
}


def _given(h: Any, value: Any) -> Any:
    h.data = value
    return value


def outcome(T: Any, how: str) -> Any:
    """What is seen after a write and backward."""
    x, h, y = _sized(T)
    with T.no_grad():
        WRITES[how](T, x, h)
    versions = x._version, h._version, h.data._version
    try:
        y.backward()
    except RuntimeError as e:
        noticed = "modified by an inplace operation" in str(e)
        return RuntimeError if noticed else e, versions
    return x.tolist(), h.tolist(), x.grad.tolist(), versions


@pytest.mark.parametrize("how", WRITES)
def test_a_write_is_noticed_or_not_as_in_torch(how: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(votive, how) == outcome(torch, how)


@pytest.mark.parametrize("how", WRITES)
def test_backward_notices_writes_but_those_through_data(how: str) -> None:
    noticed = how in ("detach", "a view of detach", "the value itself", "detach after other data")
    assert (outcome(votive, how)[0] is RuntimeError) == noticed


def test_data_shares_memory_and_has_no_history() -> None:
    x = votive.ones(3, requires_grad=True)
    d = x.data
    assert not d.requires_grad
    assert d.data_ptr() == x.data_ptr()
    assert d.is_set_to(x)
    d.add_(1)
    assert x.tolist() == [2, 2, 2]
    assert (x._version, d._version, x.data._version) == (0, 1, 0)
    assert x.detach()._version == 0
    x.detach().add_(1)
    assert (x._version, d._version) == (1, 1)


def test_data_set_again_and_again_does_not_pile_up() -> None:
    x = votive.ones(3)
    for _ in range(5):
        x.data = x.data
    assert not isinstance(x._storage.root, AliasStorage)
    x.data.mul_(2)
    assert x.tolist() == [2, 2, 2]


def test_overlap_is_seen_across_versions() -> None:
    x = votive.arange(2000.0)
    want = x[:-1].clone()
    x[1:].copy_(x.data[:-1])
    assert votive.equal(x[1:], want)
    y = votive.arange(6.0).view(2, 3).t()
    votive.cumsum(y.data, 0, out=y)
    assert y.tolist() == [[0, 3], [1, 7], [3, 12]]


def test_a_gradient_that_a_hook_takes_from_data_is_nobody_elses() -> None:
    kept = []
    a = votive.ones(600, requires_grad=True)
    a.register_hook(lambda g: kept.append(g) or g.data)
    (a * 2).sum().backward()
    a.grad.zero_()
    assert kept[0][0] == 2


def test_casts_of_weights_are_made_again_after_writes_through_data() -> None:
    w = votive.ones(2, 2, requires_grad=True)
    x = votive.ones(1, 2)
    with votive.autocast("cpu"):
        before = votive.nn.functional.linear(x, w)
        w.data.mul_(3)
        assert votive.equal(votive.nn.functional.linear(x, w), 3 * before)


def test_a_solver_that_writes_through_data_gets_its_gradients() -> None:
    """Newton's steps on the value of a parameter, with the graph of the first step kept."""
    x = votive.tensor([3.0], requires_grad=True)
    y = (x * x - 2) ** 2
    with votive.no_grad():
        for _ in range(20):
            x.data.sub_((x.data * x.data - 2) / (2 * x.data))
    (g,) = votive.autograd.grad(y, x)
    root = 2**0.5
    assert abs(x.item() - root) < 1e-6
    assert abs(g.item() - 2 * (9 - 2) * 2 * root) < 1e-4  # 2 (x^2 - 2) was kept, x was written
