"""Means over a data set: what they are, and what refuses to be one."""

from __future__ import annotations

import io

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit

from .nets import net, x
from .test_patch import tiny

IDS = [votive.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), votive.tensor([[9, 8, 7, 6]])]


def values(model: nn.Module, at: str, batches: list[votive.Tensor]) -> votive.Tensor:
    with votive.no_grad(), glass.capture(model, at) as seen:
        for batch in batches:
            model(batch)
    (address,) = seen
    return votive.cat(seen.all(address))


def test_the_mean_is_over_all_samples_at_each_position() -> None:
    model = tiny()
    (edit,) = glass.means(model, "layers.0.mlp", IDS)
    assert (edit.at, edit.do) == ("^model.layers.0.mlp", "mean")
    assert votive.allclose(edit.value, values(model, "layers.0.mlp", IDS).mean(0, keepdim=True))


def test_the_mean_over_positions_holds_at_all_of_them() -> None:
    model = tiny()
    (edit,) = glass.means(model, "layers.0.mlp", IDS, over="positions")
    assert edit.value.shape == (1, 1, 16)
    expected = values(model, "layers.0.mlp", IDS).mean((0, 1))
    assert votive.allclose(edit.value.flatten(), expected, atol=1e-6)
    with votive.no_grad(), glass.patch(model, edit) as receipt:
        model(votive.tensor([[1] * 9]))
    assert receipt.fired == 1


def test_texts_of_several_lengths_count_where_they_are() -> None:
    model = tiny()
    short = votive.tensor([[3, 1]])
    (edit,) = glass.means(model, "layers.1", [*IDS, short])
    long, brief = values(model, "layers.1", IDS), values(model, "layers.1", [short])
    first = votive.cat([long[:, :2], brief]).mean(0)
    assert votive.allclose(edit.value[0], votive.cat([first, long[:, 2:].mean(0)]), atol=1e-6)


def test_what_a_mask_leaves_out_does_not_count() -> None:
    model, ids = tiny(), votive.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    mask = votive.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    padded = {"input_ids": ids, "attention_mask": mask}
    (edit,) = glass.means(model, "layers.0.mlp", [padded])
    (apart,) = glass.means(model, "layers.0.mlp", [ids[:1], ids[1:, :2]])
    assert votive.allclose(edit.value, apart.value, atol=1e-5)
    padded["attention_mask"] = votive.tensor([[0, 1, 1, 1], [0, 1, 1, 1]])
    with pytest.raises(ValueError, match=r"padding comes before the text.*over='positions'"):
        glass.means(model, "layers.0.mlp", [padded])
    padded["attention_mask"] = votive.tensor([[1, 0, 1, 1], [1, 0, 1, 1]])
    with pytest.raises(ValueError, match="leaves out of every text; use over='positions'"):
        glass.means(model, "layers.0.mlp", [padded])


@pytest.mark.parametrize("at", ["self_attn/attention", "self_attn.o_proj:in", "mlp:in.0"])
def test_means_are_found_and_put_wherever_an_edit_is(at: str) -> None:
    model = tiny()
    edits = glass.means(model, f"layers.*.{at}", IDS)
    assert len(edits) == 2
    with votive.no_grad():
        plain = model(IDS[1]).logits
        with glass.patch(model, edits) as receipt:
            changed = model(IDS[1]).logits
    assert receipt.fired == 2
    assert not votive.allclose(changed, plain)


def test_each_call_of_a_module_has_its_own_mean() -> None:
    model = net().eval()
    edits = glass.means(model, "blocks.0.shared", [x()])
    assert [e.at for e in edits] == ["^blocks.0.shared#0", "^blocks.0.shared#1"]
    with glass.patch(model, edits) as receipt:
        model(x(2))
    assert sorted(receipt.sites) == ["blocks.0.shared", "blocks.0.shared#1"]
    assert all(s.times == 1 for s in receipt.sites.values())


def test_what_two_patterns_mean_is_counted_once() -> None:
    model = tiny()
    edits = glass.means(model, ["layers.0.mlp", "layers.*.mlp"], IDS)
    assert len(edits) == 2
    assert votive.equal(edits[0].value, glass.means(model, "layers.0.mlp", IDS)[0].value)


def test_ablate_takes_a_data_set() -> None:
    model = tiny()
    (edit,) = glass.means(model, "layers.0.mlp", IDS)
    part = Edit(edit.at, "mean", edit.value, positions=[1, 3], features=[2])
    with votive.no_grad():
        with glass.patch(model, part):
            expected = model(IDS[1]).logits
        with glass.ablate(model, "layers.0.mlp", "mean", data=iter(IDS), positions=[1, 3], features=[2]) as receipt:
            got = model(IDS[1]).logits
        with glass.capture(model, "layers.0.mlp") as seen:
            model(IDS[1])
    assert receipt.fired == 1
    assert votive.equal(got, expected)
    changed = seen["model.layers.0.mlp"].clone()
    changed[0, [1, 3], 2] = edit.value[0, [1, 3], 2]
    with votive.no_grad(), glass.patch(model, {"layers.0.mlp": changed}):
        assert votive.allclose(model(IDS[1]).logits, got, atol=1e-5)


def test_means_can_be_saved() -> None:
    edits = glass.means(tiny(), "layers.*.mlp", IDS)
    file = io.BytesIO()
    votive.save([e.to_dict() for e in edits], file)
    file.seek(0)
    back = [Edit.from_dict(d) for d in votive.load(file)]
    assert [e.at for e in back] == [e.at for e in edits]
    assert all(votive.equal(a.value, b.value) for a, b in zip(back, edits, strict=True))


def test_a_mean_of_nothing_or_of_nobody_is_refused() -> None:
    model = tiny()
    with pytest.raises(ValueError, match="nothing to average"):
        glass.means(model, "layers.0", [])
    with pytest.raises(ValueError, match="over must be one of"):
        glass.means(model, "layers.0", IDS, over="features")
    with pytest.raises(glass.NoMatch):
        glass.means(model, ["layers.0", "layers.0.mlp/softmax"], IDS)
    with pytest.raises(ValueError, match="known to be that of samples"):
        glass.means(nn.Identity(), "^", [votive.ones(3)])
    (edit,) = glass.means(model, "layers.0.mlp", IDS)
    with pytest.raises(ValueError, match="is for 4 positions, but position 4 is changed too"):
        with votive.no_grad(), glass.patch(model, edit):
            model(votive.tensor([[1, 2, 3, 4, 5]]))
    with pytest.raises(ValueError, match=r"shape \(3,\), which does not fit into \(1, 2, 16\)"):
        with votive.no_grad(), glass.patch(model, Edit("layers.0.mlp", "mean", votive.ones(3))):
            model(votive.tensor([[1, 2]]))
