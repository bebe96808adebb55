"""Edits of operators: their inputs, their results and what runs in their place, in every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit
from votive.nn import functional as F

from .session_models import model as decoder


class Fn(nn.Module):
    """A function as a module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


def data() -> Any:
    return votive.tensor([[1.0, -2.0, 3.0]])


def in_place(x: Any) -> Any:
    y = x * 1
    y.relu_()
    return y  # what relu_ returned is not used


def into(x: Any) -> Any:
    out = votive.empty(1, 3)
    votive.add(x, 1.0, out=out)
    return out


def by_index(x: Any) -> Any:
    y = x * 1
    y[0, 1] = 7.0
    return y


W = votive.arange(6.0).reshape(2, 3)
ONE, FIVE = votive.ones(1, 3), votive.full((1, 3), 5.0)
# A function of x, an edit, and the same function with the edit written out.
ROWS: list[tuple[str, Callable[[Any], Any], Edit, Callable[[Any], Any]]] = [
    ("input", votive.relu, Edit("/relu:in", value=5.0), lambda x: FIVE),
    ("second input", lambda x: x - x.exp(), Edit("/sub:in.1", value=5.0), lambda x: x - 5.0),
    ("number first", lambda x: 1 - x, Edit("/sub:in", value=5.0), lambda x: 1 - FIVE),
    ("named input", lambda x: F.linear(x, weight=W), Edit("/linear:in.weight", "zero"), lambda x: F.linear(x, W * 0)),
    ("one of a list", lambda x: votive.cat([x, x + 1]), Edit("/cat:in.0.1", "zero"), lambda x: votive.cat([x, x * 0])),
    (
        "part of an input",
        votive.relu,
        Edit("/relu:in", "add", 9.0, features=[1]),
        lambda x: (x + votive.tensor([0.0, 9.0, 0.0])).relu(),
    ),
    ("in-place input", in_place, Edit("/relu:in", "scale", -1.0), lambda x: (-x).relu()),
    ("in-place result", in_place, Edit("/relu", "add", 2.0), lambda x: x.relu() + 2),
    ("in-place swap", in_place, Edit("/relu", "swap", votive.tanh), votive.tanh),
    ("out= input", into, Edit("/add:in", "scale", 2.0), lambda x: x * 2 + 1),
    ("out= result", into, Edit("/add", "scale", 2.0), lambda x: (x + 1) * 2),
    ("out= swap", into, Edit("/add", "swap", votive.mul), lambda x: x),
    ("written at an index", by_index, Edit("/mul", "add", 1.0), lambda x: by_index(x + 1)),
    (
        "one of two results",
        lambda x: x.max(1).values + 0.0,
        Edit("/max_dim", value=5.0),
        lambda x: votive.tensor([5.0]),
    ),
    ("swap by a function", votive.relu, Edit("/relu", "swap", votive.exp), votive.exp),
    ("swap by a module", votive.relu, Edit("/relu", "swap", nn.Sigmoid()), votive.sigmoid),
    (
        "swap with its arguments",
        lambda x: x.softmax(-1),
        Edit("/softmax", "swap", votive.log_softmax),
        lambda x: x.log_softmax(-1),
    ),
    ("swap without defaults", F.gelu, Edit("/gelu", "swap", votive.relu), votive.relu),
    ("result", votive.relu, Edit("/relu", "zero"), lambda x: x * 0),
]


@pytest.mark.parametrize(("fn", "edit", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_an_edit_of_an_operator_does_what_it_says(fn: Any, edit: Edit, expected: Any) -> None:
    model = Fn(fn)
    with glass.patch(model, edit) as receipt:
        found = model(data())
    assert votive.allclose(found, expected(data()))
    (site,) = receipt.sites.values()
    assert (site.times, site.reached) == (1, True)


# out= has no gradient, and what relu_ keeps for its own is what a changed result overwrites.
RECORDED = [r for r in ROWS if "out=" not in r[0] and r[0] != "in-place result"]


@pytest.mark.parametrize(("fn", "edit", "expected"), [r[1:] for r in RECORDED], ids=[r[0] for r in RECORDED])
def test_gradients_flow_through_an_edit_of_an_operator(fn: Any, edit: Edit, expected: Any) -> None:
    model = Fn(fn)
    x, y = data().requires_grad_(), data().requires_grad_()
    with glass.patch(model, edit):
        got = model(x).sum()
    for out in (got, expected(y).sum()):
        if out.requires_grad:
            out.backward()
    a, b = (votive.zeros(1, 3) if t.grad is None else t.grad for t in (x, y))
    assert votive.allclose(a, b)


def test_the_debugger_gives_operators_other_inputs_and_swaps_them() -> None:
    model = Fn(lambda x: votive.relu(x) * 2)
    with votive.debug(model, data()) as d:
        d.run(until="/relu")
        d.value = FIVE
        assert votive.equal(d.finish(), FIVE * 2)
        d.jump(0)
        d.run(until="/relu")
        d.swap(votive.exp)
        assert votive.equal(d.finish(), data().exp() * 2)
        d.jump(0)
        d.run(until="/mul")
        d.replace(ONE, (1,))  # the number 2 becomes a tensor
        assert votive.equal(d.finish(), data().relu())
        d.jump(0)
        d.run(until="/relu")
        with pytest.raises(ValueError, match="is an operator; give a function"):
            d.swap("0")


def test_a_loop_over_steps_gives_operators_other_inputs() -> None:
    model, found = Fn(lambda x: votive.relu(x) * 2), None
    events = votive.steps(model, data(), at="/relu")
    while True:
        try:
            event = next(events)
        except StopIteration as e:
            found = e.value
            break
        if event.phase == "enter":
            event.value = FIVE
    assert votive.equal(found, FIVE * 2)


def test_a_session_edits_the_inputs_of_operators() -> None:
    model = decoder("llama")

    def start(*edits: Edit) -> glass.Session:
        return glass.Session(model, None, [5, 17, 3], edits=edits)

    plain, edited = start(), start(Edit("layers.0.mlp/silu:in", "zero"))
    other = start(Edit("layers.0.mlp", "zero"))
    assert not votive.equal(edited.logits(), plain.logits())
    assert votive.equal(edited.logits(), other.logits())  # silu of zero is zero


REFUSED: list[tuple[Edit, type[Exception], str]] = [
    (Edit("/relu", "skip"), ValueError, "is an operator"),
    (Edit("/relu", "swap", 5.0), TypeError, "needs a module, its address or a function"),
    (Edit("/relu", "swap", "0"), ValueError, "is an operator"),
    (Edit("/relu:in.7", "zero"), LookupError, "there is no '7'"),
    (Edit("/relu:in.mask", "zero"), LookupError, "there is no 'mask'.*has these inputs: input"),
    (Edit("/full:in", "zero"), LookupError, "has no tensor"),
]


@pytest.mark.parametrize(("edit", "kind", "text"), REFUSED, ids=[str(e.at) + e.do for e, *_ in REFUSED])
def test_what_an_operator_cannot_be_told_is_an_error(edit: Edit, kind: Any, text: str) -> None:
    model = Fn(lambda x: votive.relu(x) + votive.zeros(3))
    with pytest.raises(kind, match=text), glass.patch(model, edit):
        model(data())


def test_a_function_with_other_arguments_than_the_operator_s_is_told_these() -> None:
    model = Fn(lambda x: x.softmax(-1))
    with pytest.raises(TypeError) as caught, glass.patch(model, Edit("/softmax", "swap", nn.Identity())):
        model(data())
    assert "swapped in for the operator _softmax" in "".join(caught.value.__notes__)


def test_what_an_edit_computes_is_no_call_of_the_model() -> None:
    model = Fn(lambda x: x.relu() * 1)
    with glass.capture(model, "/**") as seen, glass.patch(model, {"/relu": lambda v: v.exp() * 3}):
        model(data())
    assert list(seen) == ["/relu#0", "/mul#0"]


def test_a_value_of_ones_own_is_not_written_over_by_what_comes_next() -> None:
    model, own = nn.Sequential(nn.Identity(), nn.ReLU(inplace=True)), votive.full((1, 3), -1.0)
    for value in (own, -1.0):
        with glass.patch(model, {"0": value}):
            assert votive.equal(model(data()), votive.zeros(1, 3))
    assert votive.equal(own, votive.full((1, 3), -1.0))


def test_a_function_that_writes_into_its_value_edits_only_what_it_was_given() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.a(x) + x

    model, x = Two(), data()
    with glass.patch(model, {"a:in": lambda v: v.zero_()}) as receipt:
        assert votive.equal(model(x), data())
    assert votive.equal(x, data())
    assert (receipt.sites["a"].times, receipt.sites["a"].largest) == (1, 3.0)
