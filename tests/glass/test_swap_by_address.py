"""A module of the model in the place of another, said by its address: it can be kept in files."""

from __future__ import annotations

import copy
import gc
import weakref
from pathlib import Path

import pytest

import votive
from votive import glass
from votive.glass import module_swap

from .session_models import PROMPT, model, start

MODEL = model("llama")

LAYER = "model.layers.1"


def ids() -> votive.Tensor:
    return votive.tensor([[3, 5, 7, 9]])


@pytest.mark.parametrize("other", ["model.layers.0", "identity"])
def test_a_session_with_a_swap_is_saved_opened_and_replayed(other: str, tmp_path: Path) -> None:
    session = start()
    session.step(2)
    session.set_edits([glass.Edit(LAYER, "swap", other)])
    session.step(2)
    session.set_edits([])
    session.step()
    session.save(tmp_path / "x.votive")
    again = glass.Session.load(tmp_path / "x.votive", MODEL)
    assert again.tokens == session.tokens
    assert again.replay().exact
    assert [n.edits for n in again.nodes] == [n.edits for n in session.nodes]
    again.step(2)
    session.step(2)
    assert again.tokens == session.tokens
    assert votive.equal(again.logits(), session.fresh_logits())


def test_a_session_with_a_swap_is_a_program() -> None:
    session = start()
    session.set_edits([glass.Edit(LAYER, "swap", "model.layers.0")])
    session.step(2)
    setup = "from tests.glass.session_models import model\nmodel, tokenizer = model('llama'), None"
    text = session.to_script(setup)
    assert f"glass.Edit({LAYER!r}, 'swap', value='model.layers.0')" in text
    exec(compile(text, "script", "exec"), {})


def test_swapping_by_address_is_running_with_the_weights_of_the_other() -> None:
    other = copy.deepcopy(MODEL)
    other.model.layers[1].load_state_dict(other.model.layers[0].state_dict())
    with votive.no_grad():
        with glass.swap(MODEL, LAYER, "model.layers.0") as receipt:
            found = MODEL(ids()).logits
        wanted = other(ids()).logits
    assert votive.equal(found, wanted)
    assert receipt.sites[LAYER].times == 1
    with votive.no_grad():
        assert not votive.equal(MODEL(ids()).logits, wanted)


def test_the_debugger_swaps_by_address_and_goes_back() -> None:
    with votive.no_grad():
        with glass.swap(MODEL, LAYER, "model.layers.0"):
            wanted = MODEL(ids()).logits
        plain = MODEL(ids()).logits
        with votive.debug(MODEL, ids()) as d:
            d.run(until=LAYER)
            at = d.index
            d.swap("model.layers.0")
            assert votive.equal(d.finish().logits, wanted)
            d.jump(at)
            with pytest.raises(glass.NoMatch):
                d.swap("model.layers.77")
        with votive.debug(MODEL, ids()) as d:
            d.run(until="model.layers.1.mlp")
            d.swap("identity")
            assert not votive.equal(d.finish().logits, plain)


def test_a_name_that_is_no_module_is_told_before_anything_runs() -> None:
    for wrong in ("model.layers.99", "", "model.layers.*"):
        with pytest.raises(glass.NoMatch):
            glass.swap(MODEL, LAYER, wrong)
    with pytest.raises(ValueError, match="is an operator"):
        start(edits=[glass.Edit("/silu", "swap", LAYER)]).logits()


def test_a_module_of_ones_own_is_refused_with_what_to_do(tmp_path: Path) -> None:
    session = start(edits=[glass.Edit("layers.0.mlp", "swap", votive.nn.Identity())])
    session.step()
    with pytest.raises(TypeError, match=r"Identity of your own .* by its address") as caught:
        session.save(tmp_path / "x.votive")
    assert "take the edit out" in str(caught.value)
    assert not list(tmp_path.iterdir())
    session.set_edits([])
    assert session.nodes  # earlier nodes still were made with it
    with pytest.raises(TypeError, match="of your own"):
        session.save(tmp_path / "x.votive")


def test_stand_ins_share_what_the_other_holds_and_hold_no_model() -> None:
    net = votive.nn.Sequential(votive.nn.Linear(2, 2), votive.nn.Linear(2, 2))
    made = module_swap.replacement_for(net, "0", "1")
    net[1].weight = votive.nn.Parameter(votive.zeros(2, 2))
    assert made.weight is net[1].weight
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_an_edit_inside_of_what_is_swapped_in_is_made_there(tmp_path: Path) -> None:
    inside = glass.Edit("model.layers.1.mlp", "zero")
    session = start(edits=[inside, glass.Edit(LAYER, "swap", "model.layers.0")])
    session.step(3)
    other = copy.deepcopy(MODEL)
    other.model.layers[1].load_state_dict(other.model.layers[0].state_dict())
    alike = glass.Session(other, None, PROMPT, edits=[inside], do_sample=True, seed=1)
    alike.step(3)
    assert session.tokens == alike.tokens
    assert votive.equal(session.logits(), alike.logits())
    session.save(tmp_path / "x.votive")
    assert glass.Session.load(tmp_path / "x.votive", MODEL).replay().exact


def test_an_edit_inside_of_what_is_skipped_does_nothing_and_a_patch_says_so() -> None:
    inside = glass.Edit("model.layers.1.mlp", "zero")
    session = start(edits=[inside, glass.Edit(LAYER, "swap", "identity")])
    other = start(edits=[glass.Edit(LAYER, "swap", "identity")])
    session.step(3)
    other.step(3)
    assert session.tokens == other.tokens
    with (
        pytest.raises(glass.NoMatch, match="is there, but was not called"),
        glass.patch(MODEL, [inside, glass.Edit(LAYER, "skip")]),
        votive.no_grad(),
    ):
        MODEL(ids(), use_cache=False)


def test_hooks_of_a_skipped_layer_with_a_cache_are_called_as_of_any_that_is_skipped() -> None:
    other, seen = copy.deepcopy(MODEL), []
    layer = other.model.layers[1]
    layer.register_forward_pre_hook(lambda m, args: seen.append("before"))
    layer.register_forward_hook(lambda m, args, out: seen.append("behind"))
    with glass.skip(other, LAYER), votive.no_grad():
        other(ids(), use_cache=True)
    assert seen == ["before"]
