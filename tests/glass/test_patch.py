"""Edits: what they change, that gradients flow through them, and what the receipt says."""

from __future__ import annotations

import io

import pytest

import votive
from tests import tiny_sizes
from votive import glass, nn
from votive.glass import Edit
from votive.models import LlamaConfig, LlamaForCausalLM

from .nets import net, x
from .test_capture import clean


def test_a_replaced_value_gives_what_a_hook_gives() -> None:
    model, data = net().eval(), x()
    new = votive.randn(2, 5, 4)
    with model.blocks[0].lin.register_forward_hook(lambda m, args, out: new):
        expected = model(data)["out"]
    with glass.patch(model, {"blocks.0.lin": new}) as receipt:
        got = model(data)["out"]
    assert votive.equal(got, expected)
    assert receipt.sites["blocks.0.lin"].times == 1
    assert receipt.sites["blocks.0.lin"].largest > 0
    assert clean(model)


EDITS = [
    (Edit("0", "zero"), lambda v: v * 0),
    (Edit("0", "scale", 3.0), lambda v: v * 3),
    (Edit("0", "add", 1.5), lambda v: v + 1.5),
    (Edit("0", "call", lambda v: v.square()), lambda v: v.square()),
    (Edit("0", "replace", 2.0), lambda v: votive.full_like(v, 2.0)),
    (Edit("0", "mean"), lambda v: v.mean(0, keepdim=True).expand_as(v)),
    (Edit("0", "resample"), lambda v: v.flip(0)),
]


@pytest.mark.parametrize(("edit", "expected"), EDITS, ids=[e.do for e, _ in EDITS])
def test_each_kind_of_edit_does_what_it_says(edit: Edit, expected: object) -> None:
    model, data = nn.Sequential(nn.Identity()), x()
    with glass.patch(model, edit):
        got = model(data)
    assert votive.equal(got, expected(data))  # type: ignore[operator]


PARTS = [
    ({"positions": [1, 3]}, (slice(None), [1, 3])),
    ({"positions": -1}, (slice(None), [4])),
    ({"features": range(2)}, (slice(None), slice(None), [0, 1])),
    ({"samples": [1]}, ([1],)),
]


@pytest.mark.parametrize(("part", "index"), PARTS, ids=[str(p) for p, _ in PARTS])
def test_a_part_changes_and_the_rest_stays(part: dict[str, object], index: object) -> None:
    model, data = nn.Sequential(nn.Identity()), x()
    expected = data.clone()
    expected[index] = 0.0
    with glass.patch(model, Edit("0", "zero", **part)):  # type: ignore[arg-type]
        assert votive.equal(model(data), expected)


def test_several_parts_together_mean_all_their_combinations() -> None:
    model, data = nn.Sequential(nn.Identity()), x()
    expected = data.clone()
    for p in (0, 2):
        for f in (1, 3):
            expected[1, p, f] = 0.0
    edit = Edit("0", "zero", positions=[0, 2], features=[1, 3], samples=[1])
    with glass.patch(model, edit):
        assert votive.equal(model(data), expected)


def test_the_mean_of_a_part_is_that_of_the_whole_site() -> None:
    model, data = nn.Sequential(nn.Identity()), x()
    expected = data.clone()
    expected[0, 1, 2] = data.mean(0)[1, 2]
    with glass.ablate(model, "0", "mean", positions=[1], features=[2], samples=[0]):
        assert votive.allclose(model(data), expected)


def test_gradients_flow_through_an_edit() -> None:
    model, data = nn.Sequential(nn.Identity()), x().requires_grad_()
    with glass.patch(model, Edit("0", "scale", 3.0, positions=[1])):
        model(data).sum().backward()
    expected = votive.ones_like(data)
    expected[:, 1] = 3.0
    assert votive.equal(data.grad, expected)


def test_a_replacement_receives_the_gradient() -> None:
    model, data = net().eval(), x()
    new = votive.randn(2, 5, 4, requires_grad=True)
    with glass.patch(model, {"blocks.1": new}):
        model(data)["out"].sum().backward()
    assert votive.allclose(new.grad, model.head.weight.sum(0).expand(2, 5, 4))
    assert model.blocks[0].lin.weight.grad is None or not model.blocks[0].lin.weight.grad.any()


def test_inputs_and_parts_of_results_can_be_edited() -> None:
    model, data = net().eval(), x()
    zeros = votive.zeros_like(data)
    with glass.patch(model, {"head:in": 0.0}):
        out = model(data)["out"]
    assert votive.equal(out, model.head(zeros))
    with glass.patch(model, {"^:out.out": 5.0}):
        out = model(data)
    assert (out["out"] == 5.0).all()
    assert not (out["hidden"] == 5.0).any()


def test_an_operator_can_be_edited() -> None:
    model, data = net().eval(), x()
    with glass.patch(model, {"blocks.1/tanh": 0.0}):
        got = model(data)["hidden"]
    with glass.capture(model, "blocks.0") as found:
        model(data)
    assert votive.equal(got, found["blocks.0"])


def test_a_skipped_module_gives_its_input_and_runs_only_to_tell_the_form() -> None:
    model, data = net().eval(), x()
    with glass.skip(model, "blocks.1"), glass.capture(model, "**") as found:
        assert model(data)["hidden"] is found["blocks.0"]
        assert "blocks.1.lin" not in found  # nobody hears it
        model.blocks[1].forward = None  # type: ignore[assignment]
        assert model(data)["hidden"] is found["blocks.0"]


def test_a_swapped_module_runs_instead() -> None:
    model, data = net().eval(), x()
    other = nn.Linear(4, 3)
    with glass.swap(model, "head", other) as receipt:
        out = model(data)
    assert votive.equal(out["out"], other(out["hidden"]))
    assert receipt.fired == 1
    assert not votive.equal(model(data)["out"], out["out"])


def test_edits_nest_and_later_ones_see_earlier_ones() -> None:
    model = nn.Sequential(nn.Identity())
    edits = [Edit("0", "add", 1.0), Edit("0", "scale", 10.0)]
    with glass.patch(model, edits):
        assert model(votive.zeros(1)).item() == 10.0
    with glass.patch(model, {"0": lambda v: v + 1}), glass.patch(model, {"0": lambda v: v * 10}):
        assert model(votive.zeros(1)).item() in (1.0, 10.0)


def test_runs_limit_when_an_edit_is_made() -> None:
    model = nn.Sequential(nn.Identity())
    with glass.patch(model, Edit("0", "zero", runs=[2])) as receipt:
        found = [model(votive.ones(1)).item() for _ in range(3)]
    assert found == [1.0, 0.0, 1.0]
    assert receipt.fired == 1


def test_edits_are_data_that_a_file_keeps() -> None:
    edits = [
        Edit("a", "replace", votive.ones(2), positions=range(3)),
        Edit("b", "skip"),
        Edit("c", "scale", 0.5, runs=[1], features=[2]),
    ]
    file = io.BytesIO()
    votive.save([e.to_dict() for e in edits], file)
    file.seek(0)
    back = [Edit.from_dict(d) for d in votive.load(file)]
    assert votive.equal(back[0].value, edits[0].value)
    assert back[0].positions == (0, 1, 2)
    assert back[1:] == edits[1:]
    with pytest.raises(TypeError, match="holds code"):
        Edit("a", "call", abs).to_dict()


BAD = [
    (lambda: Edit("a", "explode"), "do must be one of"),
    (lambda: Edit("a", "replace"), "needs a value"),
    (lambda: Edit("a", "zero", 1.0), "takes no value"),
    (lambda: Edit("a", "skip", positions=[0]), "about a whole call"),
    (lambda: Edit("a", "zero", positions=slice(1, None)), "needs an end"),
    (lambda: Edit("a", "zero", positions=[]), "positions is empty"),
    (lambda: Edit("a", "zero", features=range(0)), "features is empty"),
    (lambda: glass.patch(nn.Identity(), {}), "no edit"),
    (lambda: glass.ablate(nn.Identity(), "^", data=[votive.ones(1)]), "for kind 'mean'"),
    (lambda: glass.ablate(nn.Identity(), "^", "mean", over="positions"), "give data="),
    (lambda: glass.ablate(nn.Identity(), "^", "half"), "zero, mean or resample"),
]


@pytest.mark.parametrize(("make", "text"), BAD)
def test_what_makes_no_sense_is_refused(make: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()  # type: ignore[operator]


def test_a_value_that_does_not_fit_names_both_shapes() -> None:
    model = nn.Sequential(nn.Identity())
    with pytest.raises(ValueError, match=r"shape \(3,\), which does not fit into \(2, 5, 4\)"):
        with glass.patch(model, {"0": votive.ones(3)}):
            model(x())
    assert clean(model)


def tiny() -> LlamaForCausalLM:
    votive.manual_seed(0)
    config = LlamaConfig(
        **tiny_sizes.transformer(16, 24, layers=2, heads=2, vocab=31), initializer_range=0.3, eos_token_id=None
    )
    return LlamaForCausalLM(config).eval()


def test_positions_count_from_the_beginning_of_the_text_with_a_cache_too() -> None:
    model, ids = tiny(), votive.tensor([[1, 2, 3, 4, 5, 6]])
    edit = Edit("layers.0.mlp", "zero", positions=[1, 4])
    with votive.no_grad(), glass.patch(model, edit) as receipt:
        whole = model(ids).logits
        cache = nn.DynamicCache()
        parts = [model(ids[:, i : i + 2], past_key_values=cache).logits for i in range(0, 6, 2)]
    assert votive.allclose(votive.cat(parts, 1), whole, atol=1e-5)
    # Once in the whole text, and in the two parts that hold positions 1 and 4.
    assert receipt.sites["model.layers.0.mlp"].times == 3


EDITED = [
    Edit("layers.0.mlp", "zero", positions=[1, 5, 8]),
    Edit("layers.1", "scale", 3.0),
    Edit("layers.0.self_attn", "skip"),
]


@pytest.mark.parametrize("edit", EDITED, ids=[e.do for e in EDITED])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generation_under_an_edit_is_the_same_with_and_without_a_cache(edit: Edit, cache: str) -> None:
    model, ids = tiny(), votive.tensor([[1, 2, 3, 4, 5]])
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(ids, use_cache=True, **settings)
    with glass.patch(model, edit) as receipt:
        cached = model.generate(ids, use_cache=True, cache_implementation=cache, **settings)
        whole = model.generate(ids, use_cache=False, **settings)
    assert votive.equal(cached, whole)
    assert receipt.fired > 1
    assert clean(model)
    assert votive.equal(model.generate(ids, use_cache=True, **settings), plain)
