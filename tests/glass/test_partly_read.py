"""A receipt says that a value reached the result only if what was read of its memory did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit


class Written(nn.Module):
    """A linear part `a`, of which a function makes the result."""

    def __init__(self, does: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.a, self.does = nn.Linear(3, 4), does

    def forward(self, x: Any) -> Any:
        return self.does(self.a, x)


def buffer(a: Any, x: Any) -> Any:
    buf = votive.zeros(2, 4)
    buf[0] = a(x)[0]
    buf[1] = x.sum()
    return buf


def overwritten(a: Any, x: Any) -> Any:
    y = votive.zeros(2, 4)
    y[0] = a(x)[0]
    y[0] = x.sum()
    return y * 2


def halves(a: Any, x: Any) -> Any:
    both = votive.zeros(2, 8)
    left, right = both.chunk(2, -1)
    left.copy_(a(x))
    return left, right


def columns(a: Any, x: Any) -> Any:
    y = votive.zeros(2, 4)
    y[:, 1] = a(x)[:, 0]
    return y


UNREAD: dict[str, Callable[[Any, Any], Any]] = {
    "the other row": lambda a, x: buffer(a, x)[1] * 2,
    "the other row of a product": lambda a, x: (buffer(a, x) * 2)[1] + 1,
    "the other row of a copy": lambda a, x: buffer(a, x).t().contiguous()[:, 1] * 2,
    "overwritten": overwritten,
    "filled": lambda a, x: buffer(a, x).zero_(),
    "the other half": lambda a, x: halves(a, x)[1] * 2,
    "the other part of what was joined": lambda a, x: votive.cat([x, a(x)], -1)[:, :3] * 2,
    "not chosen": lambda a, x: votive.where(x[:, :1] > 9, a(x), 1.0) * 2,
    "masked": lambda a, x: a(x).masked_fill(x[:, :1] < 9, 1.0) * 2,
    "another index": lambda a, x: buffer(a, x)[votive.tensor([1, 1])] * 2,
    "put over": lambda a, x: a(x).index_copy_(0, votive.tensor([0, 1]), votive.ones(2, 4)) * 2,
    "the other column": lambda a, x: columns(a, x)[:, 0] * 2,
}
READ: dict[str, Callable[[Any, Any], Any]] = {
    "the row": lambda a, x: buffer(a, x)[0] * 2,
    "the row of a product": lambda a, x: (buffer(a, x) * 2)[0],
    "both rows": lambda a, x: buffer(a, x) * 2,
    "the half": lambda a, x: halves(a, x)[0] * 2,
    "a half of it": lambda a, x: a(x).chunk(2, -1)[1] * 2,
    "the column": lambda a, x: columns(a, x)[:, 1] * 2,
    "a product of matrices": lambda a, x: buffer(a, x) @ votive.ones(4, 2),
    "joined": lambda a, x: votive.cat([x, a(x)], -1) * 2,
    "chosen": lambda a, x: votive.where(x[:, :1] > 0.7, a(x), 1.0) * 2,
    "masked twice": lambda a, x: a(x).masked_fill(x[:, :1] > 0.7, 1.0).masked_fill(x[:, :1] > 9, 2.0) * 2,
    "an index": lambda a, x: buffer(a, x)[votive.tensor([1, 0])][1] * 2,
    "in place": lambda a, x: a(x).mul_(2).add_(1),
    "detached": lambda a, x: a(x).detach() * 2,
}
UNKNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "a row of a product of matrices": lambda a, x: (buffer(a, x) @ votive.ones(4, 2))[1],
    "a part of the result's memory": lambda a, x: buffer(a, x)[1],
}


def made(does: Callable[[Any, Any], Any], edit: Any) -> tuple[Any, bool]:
    """What the receipt says, and whether the result is another one."""
    net, x = Written(does), votive.tensor([[1.0, -2.0, 3.0], [0.5, 0.5, -1.0]])
    plain = net(x)
    patch = glass.patch(net, edit)
    try:
        with patch:
            found = net(x)
    except glass.Unread:
        assert votive.equal(found, plain)
    (site,) = patch.receipt.sites.values()
    return site, not votive.equal(found, plain)


@pytest.mark.parametrize("name", UNREAD)
def test_what_lies_beside_or_was_overwritten_is_not_reached(name: str) -> None:
    site, changed = made(UNREAD[name], {"a": 5.0})
    assert not changed
    assert site.reached is False
    assert site.why


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_reached(name: str) -> None:
    site, changed = made(READ[name], {"a": 5.0})
    assert changed
    assert site.reached is True


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_depend_on_it_is_not_said_to(name: str) -> None:
    site, _ = made(UNKNOWN[name], {"a": 5.0})
    assert site.reached is None
    assert "a part" in site.why or "in the same memory" in site.why


@pytest.mark.parametrize(("half", "reached"), [(0, True), (1, False)])
def test_an_edit_of_features_marks_only_these(half: int, reached: bool) -> None:
    edit = Edit("a", "replace", 5.0, features=[0])
    site, changed = made(lambda a, x: a(x.unsqueeze(0)).chunk(2, -1)[half] * 2, edit)
    assert (site.reached, changed) == (reached, reached)


def test_the_old_content_of_what_is_written_to_is_not_read() -> None:
    site, changed = made(lambda a, x: buffer(a, x) * 2, {"^/copy#0:in": 5.0})
    assert (site.reached, changed) == (False, False)


def test_an_edit_that_a_later_one_covers_is_told() -> None:
    net, x = nn.Sequential(nn.Identity()), votive.randn(1, 2, 3)
    first, second = Edit("0", features=[0], value=5.0), Edit("0", features=[0, 1], value=6.0)
    with glass.patch(net, first) as outer, glass.patch(net, second) as inner:
        net(x)
    assert outer.sites["0"].reached is False
    assert inner.sites["0"].reached is True
    second = Edit("0", features=[1], value=6.0)
    with glass.patch(net, first) as outer, glass.patch(net, second):
        net(x)
    assert outer.sites["0"].reached is True


def test_an_edit_that_the_same_patch_replaces_is_told_and_no_error() -> None:
    net = nn.Sequential(nn.Identity())
    with glass.patch(net, [Edit("0", "add", 1.0), Edit("0", "zero", positions=[0])]) as receipt:
        net(votive.randn(1, 1, 3))
    assert receipt.sites["0"].reached is True  # the one that got furthest speaks
