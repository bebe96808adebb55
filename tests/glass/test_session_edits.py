"""Edits in a session: what they change, what they leave, and when they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import votive
from votive import glass

from .session_models import start


def test_an_edit_with_positions_keeps_what_comes_before_them() -> None:
    session = start(block=2)
    session.step(6)
    session.logits()
    runs = session.memory()["runs"]
    session.set_edits([glass.Edit("layers.*.mlp", "zero", positions=[7])])
    assert session.memory()["runs"] == runs + 3  # positions 7, 8 and 9
    session.set_edits([glass.Edit("layers.*.mlp", "zero", positions=[200])])
    assert session.memory()["runs"] == runs + 3
    session.set_edits([glass.Edit("layers.*.mlp", "zero")])
    assert session.memory()["runs"] == runs + 4  # from here on


def test_edits_change_the_node_where_they_are_set_and_what_follows_only() -> None:
    session = start()
    plain = session.step(3)
    before = plain.digest
    edited = session.set_edits([glass.Edit("layers.1.mlp", "zero")])
    assert edited is not plain
    assert edited.token == plain.token
    assert edited.parent is plain.parent
    assert edited.digest != before == plain.digest
    assert edited.variant_of == plain.id
    child = session.step()
    assert [e.at for e in child.edits] == ["layers.1.mlp"]
    session.set_edits([])
    assert session.edits == []
    assert session.node.plan[0].until == child.start
    whole = session.set_edits([], from_start=True)
    assert whole.plan == ()


def test_an_edit_is_a_copy_of_what_was_given() -> None:
    session = start()
    value = votive.ones(32)
    session.set_edits([glass.Edit("layers.1.mlp", "add", value)])
    first = session.node.digest
    value.fill_(100.0)
    session.forget()
    assert session.node.digest == first


def test_edits_that_cannot_be_made_are_refused_and_leave_nothing() -> None:
    session = start()
    session.step()
    count = len(session)
    with pytest.raises(glass.NoMatch):
        session.set_edits([glass.Edit("layers.9.mlp", "zero")])
    with pytest.raises(glass.NoMatch):
        session.set_edits([glass.Edit("layers.0.mlp/softmax", "zero")])
    with pytest.raises(ValueError, match="count from an end that moves"):
        session.set_edits([glass.Edit("layers.0.mlp", "zero", positions=[-1])])
    with pytest.raises(ValueError, match="counts runs"):
        session.set_edits([glass.Edit("layers.0.mlp", "zero", runs=[1])])
    with pytest.raises(RuntimeError, match="do not broadcast"):
        session.set_edits([glass.Edit("layers.0.mlp", "add", votive.ones(7))])
    assert len(session) == count
    assert session.edits == []
    assert session.nodes[0].children_ids == [1]
    assert votive.equal(session.logits(), session.fresh_logits())


def test_code_as_an_edit_works_and_cannot_be_saved(tmp_path: Path) -> None:
    session = start(edits=[glass.Edit("layers.0.mlp", "call", lambda x: x * 0)])
    other = start(edits=[glass.Edit("layers.0.mlp", "zero")])
    assert votive.equal(session.logits(), other.logits())
    with pytest.raises(TypeError, match="holds code, which is not saved"):
        session.save(tmp_path / "x.votive")
    with pytest.raises(TypeError, match="holds code"):
        session.to_script("model = tokenizer = None")


def test_means_come_from_a_data_set_since_a_session_writes_one_text() -> None:
    session = start()
    session.step(3)
    for do in ("mean", "resample"):
        with pytest.raises(ValueError, match="a session writes one text"):
            session.set_edits([glass.Edit("layers.0.mlp", do)])
    data = [votive.tensor([[1, 2, 3, 4], [4, 3, 2, 1]]), votive.tensor([[5, 6]])]
    edits = glass.means(session.model, "layers.*.mlp", data, over="positions")
    before = session.logits()
    session.set_edits(edits, from_start=True)
    assert not votive.allclose(session.logits(), before)
    assert votive.equal(session.logits(), session.fresh_logits())
    with votive.no_grad(), glass.patch(session.model, edits):
        whole = session.model(votive.tensor([session.tokens])).logits[0, -1]
    assert votive.allclose(session.logits(), whole, atol=1e-5)
    short = glass.means(session.model, "layers.0.mlp", data)
    with pytest.raises(ValueError, match="is for 4 positions, but position"):
        session.set_edits(short, from_start=True)
