"""Hooks of one's own beside glass: what a capture sees is what forward gets and the caller has."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

import votive
from votive import glass, nn

ORDERS = ["hooks first", "glass first"]


class Plus(nn.Module):
    """Adds one, by an operator that can be captured."""

    def forward(self, x: Any) -> Any:
        return x + 1.0


def net() -> Any:
    return nn.Sequential(Plus(), nn.Identity())


def hook(n: Any) -> None:
    n[0].register_forward_pre_hook(lambda m, args: (args[0] * 10,))
    n[0].register_forward_hook(lambda m, args, out: out * 2)


def ran(n: Any, x: Any, block: Any, order: str) -> tuple[Any, Any]:
    """What the block gives and the model's result, with hooks from before or from inside."""
    if order == ORDERS[0]:
        hook(n)
    with block as found:
        if order == ORDERS[1]:
            hook(n)
        return found, n(x)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("also", [[], ["0/add:in"]])
def test_a_capture_sees_what_forward_gets_and_what_the_caller_gets(order: str, also: list[str]) -> None:
    n = net()
    for wanted, value in (("0:in", 10.0), ("0", 22.0), ("1:in", 22.0)):
        found, out = ran(n := net(), votive.ones(1), glass.capture(n, [wanted, *also]), order)
        assert found[wanted].item() == value
        assert all(found[a].item() == 10.0 for a in also)
        assert out.item() == 22.0


@pytest.mark.parametrize("order", ORDERS)
def test_an_edited_input_is_what_forward_computes_with(order: str) -> None:
    seen = []
    n = net()
    n[0].register_forward_hook(lambda m, args, out: seen.append((args[0].item(), out.item())))
    _, out = ran(n, votive.ones(1), glass.patch(n, {"0:in": 1.0}), order)
    assert out.item() == 4.0
    assert seen == [(1.0, 2.0)]


@pytest.mark.parametrize("order", ORDERS)
def test_an_edited_result_is_what_the_caller_gets(order: str) -> None:
    n = net()
    seen = []
    n[0].register_forward_hook(lambda m, args, out: seen.append(out.item()))
    _, out = ran(n, votive.ones(1), glass.patch(n, {"0": 5.0}), order)
    assert out.item() == 5.0
    assert seen == [11.0]  # as the module computed it


def test_global_hooks_are_as_those_of_the_module() -> None:
    n = net()
    with (
        nn.modules.module.register_module_forward_pre_hook(lambda m, args: (args[0] * 10,) if m is n[0] else None),
        glass.capture(n, ["0:in", "0/add:in"]) as seen,
    ):
        n(votive.ones(1))
    assert seen["0:in"].item() == seen["0/add:in"].item() == 10.0


@pytest.mark.parametrize("order", ORDERS)
def test_of_a_skipped_module_only_the_hooks_before_it_are_called(order: str) -> None:
    n = net()
    _, out = ran(n, votive.ones(1), glass.skip(n, "0"), order)
    assert out.item() == 10.0


def test_hooks_that_are_always_called_are_when_a_hook_before_fails() -> None:
    n, seen = net(), []

    def fails(m: Any, args: Any) -> None:
        raise RuntimeError("no")

    n[0].register_forward_pre_hook(fails)
    n[0].register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(RuntimeError, match="no"), glass.capture(n, "0"):
        n(votive.ones(1))
    assert seen == [None]


# --- swaps by address -----------------------------------------------------------------------------


def swapped(n: Any, x: Any, other: str = "1") -> Any:
    with glass.swap(n, "0", other):
        return n(x)


def test_a_swap_by_address_follows_train_and_eval() -> None:
    n, x = nn.Sequential(nn.Identity(), nn.Dropout(0.5)), votive.ones(1, 64)
    assert (swapped(n.train(), x) == 0).any()
    assert votive.equal(swapped(n.eval(), x), x)
    assert (swapped(n.train(), x) == 0).any()


def test_a_swap_by_address_follows_all_that_the_other_holds() -> None:
    x = votive.tensor([[1.0, 3.0]])
    n = nn.Sequential(nn.Identity(), nn.LayerNorm(2), nn.BatchNorm1d(2)).eval()
    for change in (
        lambda: setattr(n[1], "eps", 100.0),
        lambda: n[1].register_parameter("weight", nn.Parameter(votive.tensor([2.0, 3.0]))),
        lambda: setattr(n[2], "running_mean", votive.tensor([1.0, 2.0])),
        lambda: n[1].bias.data.fill_(3.0),
        lambda: setattr(n[1], "forward", lambda x: x * 7),
        lambda: delattr(n[1], "forward"),
        lambda: n[1].register_forward_hook(lambda m, args, out: out + 1),
        lambda: n[1].register_forward_pre_hook(lambda m, args: (args[0] * 3 + x * x,)),
    ):
        for i in "12":
            once = n[int(i)]
            assert votive.equal(swapped(n, x, i), n[2](n[1](once(x))))
        change()
        for i in "12":
            assert votive.equal(swapped(n, x, i), n[2](n[1](n[int(i)](x))))


class Scaled(nn.Module):
    """A module with parts, numbers, and lists of its parts that are not registered."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Plus()
        self.parts = [self.inner]
        self.factor, self.layer_idx = 2.0, 1

    def forward(self, x: Any) -> Any:
        return self.parts[0](x) * self.factor


def test_a_method_as_forward_of_the_other_reads_it_as_it_is() -> None:
    n, x = nn.Sequential(nn.Identity(), Scaled()), votive.ones(1)

    def forward(self: Any, x: Any) -> Any:
        return self.inner(x) * self.factor + 100

    n[1].forward = forward.__get__(n[1])
    assert swapped(n, x).item() == 104 * 2 + 102
    n[1].factor = 3.0
    assert swapped(n, x).item() == (106 + 1) * 3 + 100


def test_parts_of_a_swap_by_address_have_their_place_and_their_hooks() -> None:
    n, x = nn.Sequential(nn.Identity(), Scaled()), votive.ones(1)
    n[1].inner.register_forward_hook(lambda m, args, out: out + 1)
    with glass.swap(n, "0", "1"), glass.capture(n, "**") as seen:
        n(x)
    assert [seen[a].item() for a in ("0.inner", "0", "1.inner", "1")] == [3, 6, 8, 16]


def test_what_the_other_keeps_in_training_is_kept() -> None:
    n, x = nn.Sequential(nn.Identity(), nn.BatchNorm1d(1)).train(), votive.tensor([[1.0], [3.0]])
    swapped(n, x)
    assert n[1].num_batches_tracked.item() == 2
    assert n[1].running_mean.item() > 0


# --- calls by number, and threads -----------------------------------------------------------------


class Often(nn.Module):
    """Calls its part many times."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Plus()

    def forward(self, x: Any) -> Any:
        for _ in range(300):
            x = self.part(x)
        return x


@pytest.mark.parametrize("at", ["part#65", "part#{65,70}", "p*#65", "part#[6]5", "^part#6[5]"])
def test_a_call_is_found_by_its_number_however_high(at: str) -> None:
    n = Often()
    with glass.capture(n, at) as seen:
        n(votive.zeros(1))
    assert seen["part#65"].item() == 66.0
    with glass.patch(n, {at: 0.0}) as receipt:
        n(votive.zeros(1))
    assert "part#65" in receipt.sites


def test_a_call_that_never_comes_is_told_at_the_end() -> None:
    n = Often()
    with pytest.raises(glass.NoMatch), glass.patch(n, {"part#300": 0.0}):
        n(votive.zeros(1))
    with pytest.raises(glass.NoMatch):
        glass.patch(n, {"other#300": 0.0})


def elsewhere(n: Any) -> None:
    thread = threading.Thread(target=lambda: n(votive.ones(1)))
    thread.start()
    thread.join()


@pytest.mark.parametrize("block", [lambda n: glass.patch(n, {"0": 5.0}), lambda n: glass.capture(n, "0")])
def test_runs_in_another_thread_only_are_told(block: Any) -> None:
    n = net()
    with pytest.warns(RuntimeWarning, match="another thread"), block(n):
        elsewhere(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with block(n):
            elsewhere(n)
            n(votive.ones(1))
        with block(n):
            pass
        with block(n):
            elsewhere(net())
            n(votive.ones(1))
