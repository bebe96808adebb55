"""What edits change, as a page asks for it: a value, the next token and the text, with and without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass

from .client import Page, Refused
from .demo_session import MLP, begun, ids, plain

LAST = "model.layers.3"


def zeroed(page: Page, **more: Any) -> Any:
    begun(page, settings={"temperature": 0})
    page.ask("edits.set", edits=[{"at": MLP, "do": "zero", **more}])
    return ids(page)


def test_the_next_token_is_told_with_and_without_the_edits(page: Page) -> None:
    tokens = zeroed(page)
    found = page.ask("consequence.next", k=4)
    old = plain(tokens)[0, -1].softmax(-1).numpy()
    new = plain(tokens, glass.Edit(MLP, "zero"))[0, -1].softmax(-1).numpy()
    for row in found["rows"]:
        assert row["before"] == pytest.approx(old[row["id"]], rel=1e-4)
        assert row["after"] == pytest.approx(new[row["id"]], rel=1e-4)
    assert {int(old.argmax()), int(new.argmax())} <= {r["id"] for r in found["rows"]}
    assert found["kl"] == pytest.approx(float((old * np.log(old / new)).sum()), rel=1e-3)


def test_the_text_goes_on_greedily_with_and_without_the_edits(page: Page) -> None:
    tokens = zeroed(page)
    nodes = len(page.ask("session.state")["nodes"])
    found = page.ask("consequence.text", n=5)
    for name, edits in (("before", ()), ("after", (glass.Edit(MLP, "zero"),))):
        row = tokens[0].tolist()
        for told in found[name]:
            assert told["id"] == int(plain(as_ids(row), *edits)[0, -1].argmax())
            row.append(told["id"])
    same = [a["id"] == b["id"] for a, b in zip(found["before"], found["after"])]
    assert found["alike"] == (same.index(False) if False in same else 5)
    assert len(page.ask("session.state")["nodes"]) == nodes, "nothing of it is kept"


def as_ids(row: list[int]) -> Any:
    return votive.tensor([row])


def test_a_value_is_compared_and_what_differs_is_told(page: Page) -> None:
    tokens = zeroed(page, positions=[2], features=[5, 6])
    found = page.ask("consequence.value", address=MLP)
    assert found["changed"] == [2, 3, 5, 7]
    assert not found["after"][2, 5:7].any()
    np.testing.assert_allclose(found["after"] - found["before"], found["difference"], atol=1e-6)
    assert found["share"] == pytest.approx(2 / found["before"].size)
    # What comes before sees nothing of it, and positions before it neither.
    assert page.ask("consequence.value", address="model.layers.0")["changed"] is None
    later = page.ask("consequence.value", address=LAST)
    assert later["changed"][0] == 2
    assert later["changed"][1] == tokens.shape[1]


def test_one_edit_can_be_left_out_of_several(page: Page) -> None:
    begun(page)
    edits = [{"at": MLP, "do": "zero"}, {"at": "model.layers.2.mlp", "do": "scale", "value": 2.0}]
    page.ask("edits.set", edits=edits)
    found = page.ask("consequence.value", address=MLP, without=[1])
    assert found["changed"] is None, "the first edit is in force on both sides"
    assert page.ask("consequence.value", address=MLP, without=[0])["share"] > 0.99
    with pytest.raises(Refused, match="There is no edit 2; there are 2"):
        page.ask("consequence.next", without=[2])


def test_a_head_can_be_edited_and_a_module_that_does_not_run_has_no_value(page: Page) -> None:
    tokens = zeroed(page)
    reply = page.ask("edits.set", edits=[{"at": "layers.1.attn.z", "do": "zero", "heads": [2]}])
    assert reply["edits"] == [{"at": "layers.1.attn.z", "do": "zero", "heads": [2]}]
    wanted = plain(tokens, glass.Edit("layers.1.attn.z", "zero", heads=[2]))[0, -1].softmax(-1)
    top = page.ask("session.top", k=1)["before"][0]
    assert (top["id"], top["p"]) == (int(wanted.argmax()), pytest.approx(float(wanted.max()), rel=1e-4))
    page.ask("edits.set", edits=[{"at": "model.layers.2", "do": "skip"}])
    with pytest.raises(Refused, match="does not run under these edits"):
        page.ask("consequence.value", address="model.layers.2.mlp")
