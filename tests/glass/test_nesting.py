"""What a capture sees is what the rest of the model sees, however blocks are nested."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit, values

from .nets import net, x
from .session_models import model as decoder

SITES = [
    "blocks.0.lin",
    "blocks.0.lin:in",
    "blocks.1",
    "blocks.1:in",
    "blocks.0.shared#1",
    "^:in",
    "^:out.hidden",
    "blocks.1/tanh",
    "blocks.1/tanh:in",
    "blocks.0.lin/linear:in.weight",
]


def both(first: Any, second: Any, run: Callable[[], Any]) -> tuple[Any, Any, Any]:
    """Run inside both blocks, entered in this order; gives what each gave, and the result."""
    with contextlib.ExitStack() as stack:
        a, b = (stack.enter_context(c) for c in (first, second))
        result = run()
    return a, b, result


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("policy", ["keep", "copy"])
def test_a_capture_sees_the_edited_value_in_both_orders(site: str, policy: str) -> None:
    model, data = net().eval(), x()

    def look() -> Any:
        return glass.capture(model, [site, "head:in"], policy=policy)

    def change() -> Any:
        return glass.patch(model, {site: lambda v: v * 0 + 5})

    def run() -> Any:
        return model(data)["out"]

    seen, _, out = both(look(), change(), run)
    _, again, other = both(change(), look(), run)
    name = next(n for n in seen if n != "head:in")
    assert votive.equal(seen[name], again[name])
    assert (values.first(seen[name]) == 5).all()
    assert votive.equal(out, other)
    assert votive.equal(seen["head:in"], again["head:in"])


@pytest.mark.parametrize("site", ["blocks.0.lin", "blocks.0.lin:in", "/tanh", "/tanh:in"])
def test_patches_are_made_in_the_order_of_entering(site: str) -> None:
    model, data = net().eval(), x()

    def add() -> Any:
        return glass.patch(model, {site: lambda v: v * 0 + 1})

    def scale() -> Any:
        return glass.patch(model, Edit(site, "scale", 10.0))

    with glass.capture(model, site) as seen:
        both(add(), scale(), lambda: model(data))
        both(scale(), add(), lambda: model(data))
    # Each run meets the site in both blocks, or twice where it is shared.
    for name in seen:
        first, second = seen.all(name)
        assert (values.first(first) == 10).all()
        assert (values.first(second) == 1).all()


def test_skip_and_swap_are_seen_in_both_orders() -> None:
    model, data = net().eval(), x()
    other = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def change(kind: str) -> Any:
        return glass.skip(model, "blocks.1") if kind == "skip" else glass.swap(model, "^blocks.1", other)

    for kind, turned in itertools.product(("skip", "swap"), (False, True)):
        look = glass.capture(model, ["^blocks.1", "^blocks.1:in", "^blocks.0"])
        pair = (look, change(kind)) if turned else (change(kind), look)
        *_, out = both(*pair, lambda: model(data))
        assert look["blocks.1"] is out["hidden"]
        assert look["blocks.1:in"] is look["blocks.0"]
        wanted = look["blocks.0"] if kind == "skip" else other(look["blocks.0"])
        assert votive.equal(look["blocks.1"], wanted)


@pytest.mark.parametrize("turned", [False, True])
def test_all_of_what_is_swapped_in_has_addresses(turned: bool) -> None:
    model, data = net().eval(), x()
    other = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh()))
    look, change = glass.capture(model, ["**", "/tanh"]), glass.swap(model, "^blocks.1", other)
    both(*((look, change) if turned else (change, look)), lambda: model(data))
    inside = [a for a in look if a.startswith("blocks.1")]
    assert inside == ["blocks.1.0", "blocks.1.1.0/tanh#0", "blocks.1.1.0", "blocks.1.1", "blocks.1"]
    assert votive.equal(look["blocks.1.0"], other[0](look["blocks.0"]))
    # And so they can be edited.
    with glass.swap(model, "^blocks.1", other), glass.patch(model, {"blocks.1.1": 5.0}) as receipt:
        assert (model(data)["hidden"] == 5).all()
    assert list(receipt.sites) == ["blocks.1.1"]


def test_the_parts_of_a_swapped_in_module_can_be_named_alone() -> None:
    model, data = net().eval(), x()
    with glass.swap(model, "^blocks.1", nn.Sequential(nn.Tanh())):
        with glass.capture(model, "^blocks.1.0") as seen:
            out = model(data)
        assert list(seen) == ["blocks.1.0"]
        assert votive.equal(seen["blocks.1.0"], out["hidden"])
    with pytest.raises(glass.NoMatch):
        glass.capture(model, "^blocks.1.0")


def test_a_module_of_the_model_has_the_addresses_of_the_place_where_it_runs() -> None:
    model, data = net().eval(), x()
    with glass.swap(model, "^blocks.1", model.blocks[0]), glass.capture(model, "**.norm") as seen:
        model(data)
    assert list(seen) == ["blocks.0.norm", "blocks.1.norm"]


def test_a_swap_is_not_made_inside_of_what_it_put_in() -> None:
    model = nn.Sequential(nn.Identity(), nn.ReLU())
    with glass.swap(model, "1", nn.Sequential(nn.Identity(), nn.Tanh())) as receipt:
        found = model(votive.full((1,), 5.0))
    assert votive.equal(found, votive.full((1,), 5.0).tanh())
    assert list(receipt.sites) == ["1"]


def test_the_last_of_skip_and_swap_is_what_happens() -> None:
    model, one = nn.Sequential(nn.ReLU()), votive.full((1,), -1.0)
    *_, found = both(glass.skip(model, "0"), glass.swap(model, "0", nn.Tanh()), lambda: model(one))
    assert votive.equal(found, one.tanh())
    *_, found = both(glass.swap(model, "0", nn.Tanh()), glass.skip(model, "0"), lambda: model(one))
    assert votive.equal(found, one)


def test_a_debugger_stops_at_edited_values_and_has_the_last_word() -> None:
    model, data = net().eval(), x()
    look = glass.capture(model, ["blocks.0.lin", "blocks.0.lin:in", "/tanh"])
    with (
        votive.debug(model, data) as d,
        glass.patch(model, {"blocks.0.lin": 5.0, "blocks.0.lin:in": 4.0, "blocks.0/tanh:in": 3.0}),
        look,
    ):
        d.run(until="blocks.0.lin")
        assert (d.value == 4).all()
        d.value = d.value * 2
        d.over()
        assert (d.value == 5).all()
        d.value = d.value * 2
        d.run(until="blocks.0/tanh")
        assert (d.value == 3).all()
        d.finish()
    assert (look["blocks.0.lin:in"] == 8).all()
    assert (look["blocks.0.lin"] == 10).all()
    assert votive.allclose(look["blocks.0/tanh#0"], votive.full((2, 5, 4), 3.0).tanh())


def test_a_debugger_steps_through_what_was_swapped_in() -> None:
    model, data = net().eval(), x()
    with glass.swap(model, "^blocks.1", nn.Sequential(nn.Tanh())), votive.debug(model, data) as d:
        d.run(until="^blocks.1")
        assert str(d.step()) == "blocks.1.0"
        assert str(d.step()) == "blocks.1.0/tanh#0"


def test_lenses_and_sweeps_see_an_edited_model_in_both_orders() -> None:
    model, ids = decoder("llama"), votive.tensor([[5, 17, 3, 42]])
    other = votive.tensor([[5, 17, 9, 42]])
    metric: Callable[[Any], Any] = lambda out: out.logits[:, -1, 4]
    with glass.patch(model, Edit("layers.0", "scale", 3.0)):
        lens = glass.logit_lens(model, ids)
        found = glass.sweep(model, ids, other, metric=metric)
        with votive.no_grad():
            logits, base = model(ids).logits, metric(model(other))
    assert votive.allclose(
        lens.probabilities[-1, 0], logits[0].softmax(-1).topk(lens.probabilities.shape[-1]).values, atol=1e-5
    )
    assert votive.allclose(found.corrupt, base)
    # Behind the last layer, the last position says all and another one nothing: what was recorded
    # under the edit is not edited again.
    assert votive.allclose(found.values[-1, -1], logits[0, -1, 4], atol=1e-5)
    assert votive.allclose(found.values[-1, 2], base[0], atol=1e-5)


def test_a_session_and_a_capture_around_it_agree() -> None:
    model = decoder("llama")
    session = glass.Session(model, None, [5, 17, 3], edits=[Edit("layers.0.mlp", "scale", 2.0)])
    with glass.capture(model, ["layers.0.mlp", "layers.0.mlp.down_proj"]) as seen:
        session.logits()
    assert votive.equal(seen["layers.0.mlp"], 2 * seen["layers.0.mlp.down_proj"])


def test_nothing_computed_by_one_probe_is_seen_by_another() -> None:
    model, data = net().eval(), x()
    with glass.capture(model, "/**") as plain:
        model(data)
    numbers = glass.capture(model, "**", policy="stats")
    change = glass.patch(model, {"head": lambda v: v.exp().log()})
    with glass.capture(model, "/**") as seen, numbers, change:
        model(data)
    assert list(seen) == list(plain)
