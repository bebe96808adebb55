"""Edits from a page: what they change, their receipts, and when they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.studio import demo

from .client import Page, Refused
from .demo_session import MLP, begun, ids, plain


def test_an_edit_changes_the_text_with_a_receipt_and_can_be_taken_back(page: Page) -> None:
    begun(page, settings={"temperature": 0})
    before = page.ask("session.top", k=3)["before"]
    reply = page.ask("edits.set", edits=[{"at": MLP, "do": "zero"}])
    assert reply["edits"] == [{"at": MLP, "do": "zero"}]
    assert reply["receipts"][0]["count"] == 1
    assert reply["receipts"][0]["relative"] == pytest.approx(1.0)
    logits = plain(ids(page), glass.Edit(MLP, "zero"))[0, -1]
    wanted = logits.softmax(-1).topk(3)
    after = page.ask("session.top", k=3)["before"]
    assert [c["id"] for c in after] == wanted[1].tolist()
    np.testing.assert_allclose([c["p"] for c in after], wanted[0].numpy(), rtol=1e-3)
    assert after != before
    # The views look at the edited model, too.
    assert page.ask("layers.statistics")["rows"][4]["norm"] == 0.0
    assert page.ask("lens.grid")["ids"][-1][-1] == after[0]["id"]
    assert page.ask("edits.remove", index=0)["edits"] == []
    assert page.ask("session.top", k=3)["before"] == before
    page.ask("session.undo")
    assert page.ask("edits.list")["edits"] == [{"at": MLP, "do": "zero"}]


def test_an_edit_of_an_operator_s_input_is_made_and_one_that_nothing_reads_is_refused(page: Page) -> None:
    begun(page, settings={"temperature": 0})
    at = "model.layers.1.mlp/silu:in"
    reply = page.ask("edits.set", edits=[{"at": at, "do": "zero"}])
    assert (reply["receipts"][0]["count"], reply["receipts"][0]["sites"][0]["reached"]) == (1, True)
    logits = plain(ids(page), glass.Edit("model.layers.1.mlp", "zero"))[0, -1]
    assert page.ask("session.top", k=1)["before"][0]["id"] == int(logits.argmax())
    with pytest.raises(Refused, match="nothing of the result is computed from it"):
        page.ask("edits.set", edits=[{"at": "/attention:out.1", "do": "zero"}])
    assert [e["at"] for e in page.ask("edits.list")["edits"]] == [at]


def test_an_edit_that_another_one_replaces_says_so(page: Page) -> None:
    begun(page)
    first = {"at": "model.layers.0", "do": "scale", "value": 2.0}
    reply = page.ask("edits.set", edits=[first, {"at": "model.layers.1", "do": "zero"}])
    said = [r["text"] for r in reply["receipts"]]
    assert said[0].endswith("no effect: what was computed from it was replaced at model.layers.1")
    assert "no effect" not in said[1]


def test_a_skipped_layer_has_no_attention(page: Page) -> None:
    begun(page)
    page.ask("edits.set", edits=[{"at": "model.layers.1", "do": "skip"}])
    found = page.ask("attention.heads")["entropy"]
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
    with pytest.raises(Refused, match="a layer that is skipped runs none"):
        page.ask("attention.layer", layer=1, mean=True)


def test_edits_of_positions_and_features_and_of_later_tokens_are_replayed(page: Page) -> None:
    begun(page, settings={"temperature": 0})
    reply = {"at": "model.layers.0", "do": "replace", "value": 4, "positions": [2], "features": [5]}
    page.ask("edits.set", edits=[reply])
    edit = glass.Edit("model.layers.0", "replace", 4.0, positions=[2], features=[5])
    logits = plain(ids(page), edit)[0, -1]
    assert page.ask("session.top", k=1)["before"][0]["id"] == int(logits.argmax())
    assert page.ask("value.window", address="model.layers.0")["values"][2, 5] == 4.0
    page.ask("edits.set", edits=[])
    page.ask("session.step", n=2)
    page.ask("edits.set", edits=[{"at": MLP, "do": "zero"}], from_start=False)
    page.ask("session.step", n=2)
    rows = page.ask("value.window", address=MLP)["values"]
    silent = [not np.any(r) for r in rows]
    assert silent == [False] * (len(rows) - 3) + [True] * 3
    # What the views say of the next token is what the session says.
    top = page.ask("session.top", k=1)["before"][0]
    assert page.ask("lens.grid")["ids"][-1][-1] == top["id"]
    weights = page.ask("attention.layer", layer=2, heads=[0])["weights"][0]
    assert np.abs(weights.astype(int).sum(-1) - 255).max() <= len(weights)


def test_a_layer_is_swapped_for_another_and_skipped(page: Page) -> None:
    begun(page, settings={"temperature": 0})
    page.ask("edits.swap", at="model.layers.2", **{"with": "model.layers.0"})
    tokens = ids(page)
    with votive.no_grad():
        other = demo.model()
        other.model.layers[2].load_state_dict(other.model.layers[0].state_dict())
        wanted = other(tokens).logits[0, -1].softmax(-1)
    found = page.ask("session.top", k=1)["before"][0]
    assert found["p"] == pytest.approx(float(wanted.max()), rel=1e-3)
    page.ask("session.step", n=3)
    assert page.ask("edits.list")["edits"] == [{"at": "model.layers.2", "do": "swap", "with": "model.layers.0"}]
    # What a page was told, it may send back.
    page.ask("edits.set", edits=page.ask("edits.list")["edits"])
    begun(page, settings={"temperature": 0})
    page.ask("edits.set", edits=[{"at": "model.layers.0", "do": "skip"}])
    rows = page.ask("lens.grid")
    assert rows["ids"][1] == rows["ids"][0]
    page.ask("session.step", n=2)
    for wrong in ("model.layers.99", ""):
        with pytest.raises(Refused, match="no module"):
            page.ask("edits.swap", at="model.layers.0", **{"with": wrong})


def test_a_session_with_swapped_and_skipped_modules_is_saved_and_opened(page: Page) -> None:
    begun(page, settings={"temperature": 0})
    page.ask("edits.swap", at="model.layers.2", **{"with": "model.layers.0"})
    page.ask("edits.swap", at="model.layers.1", **{"with": "identity"})
    state = page.ask("session.step", n=3)
    edits = page.ask("edits.list")
    page.ask("session.save", name="swapped")
    page.ask("session.new", prompt="Something else")
    again = page.ask("session.open", name="swapped")
    assert again["text"] == state["text"]
    assert page.ask("edits.list") == edits
    assert [e["do"] for e in edits["edits"]] == ["swap", "skip"]
    page.ask("session.step")
    exec(compile(page.ask("session.script")["text"], "script", "exec"), {})


@pytest.mark.parametrize(
    "edit",
    [
        {"at": "layers.77", "do": "zero"},
        {"at": MLP, "do": "call", "value": 1},
        {"at": MLP, "do": "replace"},
        {"at": MLP, "do": "replace", "value": "os.system"},
        {"at": MLP, "do": "zero", "positions": [-1]},
        {"at": MLP, "do": "scale", "value": [1]},
        {"do": "zero"},
        {"at": MLP, "do": "zero", "code": "x"},
        {},
        {"at": MLP, "do": "mean"},
    ],
)
def test_an_edit_that_makes_no_sense_is_refused_and_changes_nothing(page: Page, edit: Any) -> None:
    begun(page)
    with pytest.raises(Refused):
        page.ask("edits.set", edits=[edit])
    assert page.ask("edits.list")["edits"] == []
    page.ask("session.step")
