"""Gradients through edits: those of the model as it was edited, by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit
from votive.nn import functional as F

from .test_operator_edits import Fn


def given() -> Any:
    return votive.arange(1.0, 25.0, dtype=votive.float64).reshape(4, 6) / 10


def slopes(run: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    """The gradient of a sum by central differences."""
    out = votive.zeros(x.numel(), dtype=x.dtype)
    with votive.no_grad():
        for i in range(x.numel()):
            change = votive.zeros(x.numel(), dtype=x.dtype)
            change[i] = step
            change = change.reshape(x.shape)
            out[i] = (run(x + change) - run(x - change)) / (2 * step)
    return out.reshape(x.shape)


def weighed(parts: Any) -> Any:
    return sum((i + 2) * (p * p).sum() for i, p in enumerate(parts))


def agree(model: Any, edits: Any, x: Any) -> Any:
    """Check x's gradient under edits, and give that of the model as it is."""

    def run(x: Any) -> Any:
        with glass.patch(model, edits):
            y = model(x)
        return total(y)

    found = grad_of(run, x)
    assert votive.allclose(slopes(run, x), found, rtol=1e-5, atol=1e-6)
    return found


def grad_of(run: Callable[[Any], Any], x: Any) -> Any:
    x = x.detach().requires_grad_()
    run(x).backward()
    return x.grad


CUTS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("unbind", lambda x: weighed(x.unbind(1)), "/select#1"),
    ("iteration", lambda x: weighed(list(x)), "/select#1"),
    ("iteration of a transposed", lambda x: weighed(list(x.T)), "/select#1"),
    ("split", lambda x: weighed(x.split(2)), "/slice#1"),
    ("split by sizes", lambda x: weighed(x.split([1, 3])), "/slice#1"),
    ("split_with_sizes", lambda x: weighed(votive.split_with_sizes(x, [1, 3])), "/slice#1"),
    ("unsafe_split", lambda x: weighed(votive.unsafe_split(x, 3)), "/slice#1"),
    ("chunk", lambda x: weighed(x.chunk(2, -1)), "/slice#1"),
    ("chunk of a view", lambda x: weighed(x[1:].chunk(3, -1)), "/slice#2"),
    ("tensor_split", lambda x: weighed(x.tensor_split(3)), "/slice#1"),
    ("tensor_split by indices", lambda x: weighed(x.tensor_split([1, 2])), "/slice#1"),
    ("hsplit", lambda x: weighed(votive.hsplit(x, 2)), "/slice#1"),
    ("vsplit", lambda x: weighed(votive.vsplit(x, 2)), "/slice#1"),
    ("pieces of pieces", lambda x: weighed(p for c in x.chunk(2) for p in c.unbind(1)), "/select#1"),
]
DO = {
    "zero": ("zero", None),
    "scale": ("scale", 3.0),
    "replace": ("replace", 2.0),
    "call": ("call", lambda v: v * v),
    "own": ("call", lambda v: v.mul_(2)),
    "detach": ("call", lambda v: v.detach()),
}


@pytest.mark.parametrize("do", [k for k in DO if k != "detach"])
@pytest.mark.parametrize(("fn", "at"), [c[1:] for c in CUTS], ids=[c[0] for c in CUTS])
def test_an_edited_piece_has_its_own_gradient(fn: Any, at: str, do: str) -> None:
    x = given()
    net = Fn(fn)
    edited = agree(net, [Edit(at, *DO[do])], x)
    plain = grad_of(net, x)
    assert not votive.allclose(edited, plain)


@pytest.mark.parametrize(("fn", "at"), [c[1:] for c in CUTS], ids=[c[0] for c in CUTS])
def test_looking_at_pieces_changes_no_gradient(fn: Any, at: str) -> None:
    x, net = given(), Fn(fn)

    def seen(x: Any) -> Any:
        with glass.capture(net, at):
            return net(x)

    assert votive.equal(grad_of(seen, x), grad_of(net, x))


def test_an_unbound_vector_by_hand() -> None:
    x = votive.ones(2, requires_grad=True)
    net = Fn(lambda x: 3 * x.unbind(0)[0] + x.unbind(0)[1])
    with glass.patch(net, {"/select#0": 0.0}):
        net(x).backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_a_piece_that_was_cut_off_gets_no_gradient() -> None:
    x = votive.ones(2, requires_grad=True)
    net = Fn(lambda x: weighed(x.unbind(0)))
    with glass.patch(net, {"/select#0": lambda v: v.detach()}):
        net(x).backward()
    assert x.grad.tolist() == [0.0, 6.0]


@pytest.mark.parametrize("cut", [lambda x: x.chunk(2, -1), lambda x: x.unbind(-1)])
def test_what_is_added_to_a_piece_gets_a_gradient(cut: Any) -> None:
    at = "/slice#0" if len(cut(given())) == 2 else "/select#0"
    steer = votive.ones((), requires_grad=True, dtype=votive.float64)
    net = Fn(lambda x: 2 * cut(x)[0].sum() + cut(x)[1].sum())
    with glass.patch(net, [Edit(at, "add", steer)]):
        net(given()).backward()
    assert float(steer.grad) == 2.0 * cut(given())[0].numel()


def test_pieces_that_were_only_seen_share_one_node() -> None:
    x = votive.ones(3, requires_grad=True)
    net = Fn(lambda x: x.unbind(0))
    with glass.capture(net, "/select#0"):
        a, b, _ = net(x)
    assert a.grad_fn is b.grad_fn


def test_a_piece_may_keep_its_gradient_when_it_is_seen() -> None:
    kept: list[Any] = []

    class Keeps(votive.dispatch.Observer):
        def after(self, call: Any) -> None:
            if call.op.name == "select" and call.result.requires_grad:
                call.result.retain_grad()
                kept.append(call.result)

    x = votive.ones(2, requires_grad=True)
    with Keeps():
        a, b = x.unbind(0)
    (3 * a + b).backward()
    assert [float(k.grad) for k in kept] == [3.0, 1.0]
    assert x.grad.tolist() == [3.0, 1.0]


def on_view(x: Any) -> Any:
    y = x * 1
    y[0].mul_(2)
    return y


def assigned(x: Any) -> Any:
    y = x * 1
    y[1] = x[0] * x[0]
    return y * x


IN_PLACE: list[tuple[str, Callable[[Any], Any], str]] = [
    ("mul_ on a view", on_view, "/mul#1:in"),
    ("its result", on_view, "/mul#1"),
    ("its other input", lambda x: in_place(x, lambda y: y[0].mul_(x[1])), "/mul#1:in.1"),
    ("exp_ on a view", lambda x: in_place(x, lambda y: y[:, 1].exp_()), "/exp:in"),
    ("add_ on a view of a view", lambda x: in_place(x, lambda y: y[1:].T[2].add_(y[0, 0])), "/add#0:in"),
    ("mul_ on itself", lambda x: in_place(x, lambda y: y[0].mul_(y[0].clone())), "/mul#1:in"),
    ("on the whole", lambda x: in_place(x, lambda y: y.mul_(x[0])), "/mul#1:in"),
    ("assignment", assigned, "/mul#1"),
]


def in_place(x: Any, write: Callable[[Any], Any]) -> Any:
    y = x * 1
    write(y)
    return y * y


@pytest.mark.parametrize("do", ["zero", "scale", "call", "own"])
@pytest.mark.parametrize(("fn", "at"), [c[1:] for c in IN_PLACE], ids=[c[0] for c in IN_PLACE])
def test_edits_around_in_place_operators_reach_the_gradient(fn: Any, at: str, do: str) -> None:
    agree(Fn(fn), [Edit(at, *DO[do])], given())


def test_the_input_of_an_in_place_operator_on_a_view_by_hand() -> None:
    x = votive.ones(2, 3, requires_grad=True)
    net = Fn(on_view)
    with glass.patch(net, {"/mul#1:in": lambda v: v * 0}):
        net(x).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [1.0] * 3]


@pytest.mark.parametrize(
    "fn",
    [lambda x: F.cosine_similarity(x[0], x[1], 0), lambda x: F.gaussian_nll_loss(x[0], x[1], x[2])],
    ids=["cosine_similarity", "gaussian_nll_loss"],
)
def test_a_bound_that_gradients_do_not_see_is_no_site(fn: Any) -> None:
    net = Fn(fn)
    with pytest.raises(glass.NoMatch), glass.patch(net, {"/clamp*": 1.0}):
        net(given())


def total(y: Any) -> Any:
    return (y[0] if isinstance(y, tuple) else y).sum()


SITES = {"select", "slice", "unbind", "linear", "sigmoid", "tanh", "mul", "add", "transpose", "cat"}


@pytest.mark.parametrize("kind", ["lstm", "gru", "attention", "c_attn"])
def test_edits_inside_layers_reach_the_gradient(kind: str) -> None:
    """One operator after another is edited, wherever that changes anything."""
    votive.manual_seed(0)
    net, x = layer(kind)
    with glass.capture(net, "**/*") as seen:
        net(x)
    addresses = [a for a in seen if a.rpartition("/")[2].partition("#")[0] in SITES]
    assert any("slice" in a or "select" in a for a in addresses)
    plain, changed = grad_of(lambda x: total(net(x)), x), 0
    for at in addresses:
        for side in ("", ":in"):
            try:
                edited = agree(net, [Edit(at + side, "scale", 1.5)], x)
            except (glass.Unread, LookupError):
                continue
            changed += not votive.allclose(edited, plain)
    assert changed > 3


def layer(kind: str) -> Any:
    x = votive.randn(1, 2, 4, dtype=votive.float64)
    if kind == "lstm":
        return nn.LSTM(4, 3, batch_first=True, dtype=votive.float64), x
    if kind == "gru":
        return nn.GRU(4, 3, batch_first=True, dtype=votive.float64), x
    if kind == "attention":
        mha = nn.MultiheadAttention(4, 2, batch_first=True, dtype=votive.float64)
        return Holds(mha), x
    weight = votive.randn(12, 4, dtype=votive.float64)

    def c_attn(x: Any) -> Any:
        q, k, v = F.linear(x, weight).split(4, dim=2)
        heads = [t.view(1, 2, 2, 2).transpose(1, 2) for t in (q, k, v)]
        return F.scaled_dot_product_attention(*heads, is_causal=True)

    return Fn(c_attn), x


class Holds(nn.Module):
    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)
