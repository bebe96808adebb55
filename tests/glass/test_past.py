"""How much of a text came before, which run it is, and where a text begins."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit

from .session_models import model as small
from .test_patch import tiny

IDS = votive.tensor([[1, 2, 3, 4, 5, 6]])
ATTENTION = "layers.0.self_attn/attention"


class Writes(nn.Module):
    """Feeds a text in two parts, and says what the model gave."""

    def __init__(self, m: Any) -> None:
        super().__init__()
        self.m = m

    def forward(self, ids: Any) -> Any:
        first = self.m(ids[:, :4], use_cache=True)
        second = self.m(ids[:, 4:], past_key_values=first.past_key_values)
        return votive.cat([first.logits, second.logits], 1)


SITES = ["layers.0.mlp", "layers.1.mlp", "layers.1", "lm_head", ATTENTION, f"{ATTENTION}:in.1"]


@pytest.mark.parametrize("at", SITES)
@pytest.mark.parametrize("position", [1, 4, 5])
def test_the_past_is_that_of_the_nearest_call_with_a_cache(at: str, position: int) -> None:
    m = tiny()
    edit = Edit(at, "scale", -2.0, positions=[position])
    with votive.no_grad():
        with glass.patch(m, edit):
            whole = m(IDS).logits
        for model in (Writes(m), nn.Sequential(Writes(m), nn.Identity())):
            with glass.patch(model, edit):
                assert votive.allclose(model(IDS), whole, atol=1e-5)
        assert not votive.allclose(whole, m(IDS).logits, atol=1e-3)


@pytest.mark.parametrize("at", ["layers.0.mlp", "layers.0.mlp.gate_proj/linear"])
def test_a_part_that_is_called_alone_knows_its_past(at: str) -> None:
    m, cache = tiny(), nn.DynamicCache()
    with votive.no_grad():
        m(IDS, past_key_values=cache, use_cache=True)
        with pytest.raises(IndexError, match="were in no run"):
            with glass.patch(m, Edit(at, "zero", positions=[0])) as receipt:
                m.model(IDS[:, :1], past_key_values=cache)
    assert receipt.fired == 0


@pytest.mark.parametrize("ops", [False, True])
def test_an_outermost_call_of_a_part_is_one_run(ops: bool) -> None:
    m = tiny()
    edits = [Edit("layers.*.mlp", "zero", runs=[2])]
    edits += [Edit("layers.*.mlp/silu", "scale", 1.0)] * ops
    layers = len(m.model.layers)
    with votive.no_grad(), glass.patch(m, edits, measure=False) as receipt:
        m.model(IDS)
        assert sum(receipt.edits[0].values()) == 0
        m.model(IDS)
        assert sum(receipt.edits[0].values()) == layers
        m(IDS)
    assert sum(receipt.edits[0].values()) == layers


# --- sessions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["", ":in.0", ":in.1", ":in.2", ":in.key", ":in.value"])
@pytest.mark.parametrize("position", [1, 5])
def test_a_session_edits_what_it_looks_back_at(side: str, position: int) -> None:
    model = small("llama")
    edit = Edit(f"{ATTENTION}{side}", "scale", -2.0, positions=[position])
    session = glass.Session(model, None, [1, 2, 3, 4], edits=[edit], block=2)
    session.step(4)
    for node in session.path():
        ids = votive.tensor([session.tokens_of(node)])
        with votive.no_grad():
            plain = model(ids).logits[0, -1]
            if ids.shape[1] <= position:
                expected = plain
            else:
                with glass.patch(model, edit):
                    expected = model(ids).logits[0, -1]
        assert votive.allclose(session.logits(node), expected, atol=1e-4)
        assert votive.equal(session.logits(node), session.fresh_logits(node))
        if side in (":in.1", ":in.2") and ids.shape[1] > position:
            assert not votive.allclose(expected, plain, atol=1e-4)


# --- repeated runs ------------------------------------------------------------------------------


def test_what_a_debugger_repeats_is_the_same_run() -> None:
    net, x = nn.Sequential(nn.Identity(), nn.Identity()), votive.zeros(1)
    edit = Edit("0", "replace", votive.full((1,), 5.0), runs=[1])
    with glass.patch(net, edit) as receipt, glass.capture(net, "0") as seen:
        with votive.debug(net, x) as d:
            assert float(d.finish()) == 5.0
            d.jump(0)
            assert float(d.finish()) == 5.0
            d.back(2)
            assert float(d.finish()) == 5.0
        assert receipt.fired == 1
        assert receipt.edits == [{"0": 1}]
        assert len(seen.all("0")) == 1
        assert float(net(x)) == 0.0  # the second run
    assert seen.runs == 2


def test_what_a_watch_finds_in_a_repeated_run_is_found_once() -> None:
    net = nn.Sequential(nn.Identity())
    with glass.watch(net, action="record") as seen:
        with votive.debug(net, votive.full((1,), votive.nan)) as d:
            d.finish()
            found, checked = len(seen.findings), seen.checked
            d.jump(0)
            d.finish()
        assert found > 0
        assert (len(seen.findings), seen.checked, seen.runs) == (found, checked, 1)


# --- padding ------------------------------------------------------------------------------------

PADDED = votive.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
REFUSED = [
    Edit("layers.0.mlp", "zero", positions=[2]),
    Edit(ATTENTION, "zero", positions=[2]),
    Edit("layers.0.mlp", "mean", votive.ones(1, 12, 16)),
    Edit("layers.0.mlp", "add", votive.ones(2, 2, 16), positions=[1, 2]),
]


@pytest.mark.parametrize("edit", REFUSED)
def test_positions_of_texts_that_begin_with_padding_are_refused(edit: Edit) -> None:
    m, ids = tiny(), IDS.expand(2, 6).clone()
    settings = {"max_new_tokens": 2, "do_sample": False, "pad_token_id": 0}
    for run in (
        lambda: m(ids, attention_mask=PADDED),
        lambda: m(ids, PADDED),
        lambda: m.generate(ids, attention_mask=PADDED, **settings),
    ):
        with pytest.raises(ValueError, match=r"padding comes before the text in the samples \[0\]"):
            with votive.no_grad(), glass.patch(m, edit):
                run()
    with votive.no_grad():
        if edit.do != "mean":
            with glass.patch(m, edit):  # padding behind a text shifts nothing
                m(ids, attention_mask=PADDED.flip(1))
        with glass.patch(m, Edit("layers.0.mlp", "zero", features=[1])):
            m(ids, attention_mask=PADDED)


def test_a_mask_that_is_added_is_no_padding() -> None:
    class Adds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x: Any, attention_mask: Any) -> Any:
            return self.inner(x) + attention_mask.sum()

    model = Adds()
    with glass.patch(model, Edit("inner", "zero", positions=[0])) as receipt:
        model(votive.ones(2, 4, 3), votive.zeros(4, 4))
    assert receipt.fired == 1


def test_means_by_position_of_padded_texts_are_refused() -> None:
    m, batch = tiny(), {"input_ids": IDS.expand(2, 6).clone(), "attention_mask": PADDED}
    with pytest.raises(ValueError, match="padding comes before the text"):
        glass.means(m, "layers.0.mlp", [batch])
    (found,) = glass.means(m, "layers.0.mlp", [batch], over="positions")
    assert found.value.shape[1] == 1
