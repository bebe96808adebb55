"""Positions, features and samples of an edit are those of the text, at every kind of site."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit

from .decoders import ALL, CAUSAL
from .test_causality import all_sites, known, logits
from .test_models import made
from .test_patch import tiny


@pytest.mark.parametrize("name", ALL)
def test_an_edit_at_a_position_changes_nothing_before_it(name: str) -> None:
    model, ids = known(name)
    with votive.no_grad():
        plain = logits(model(ids))
        for at in all_sites(name):
            with glass.patch(model, Edit(at, "scale", -2.0, positions=[3])):
                changed = logits(model(ids))
            with glass.patch(model, Edit(at, "scale", -2.0, positions=[-3])):
                again = logits(model(ids))
            assert votive.allclose(changed[:, :3], plain[:, :3], atol=1e-5), at
            assert not votive.allclose(changed[:, 3], plain[:, 3], atol=1e-5), at
            assert votive.equal(changed, again), at


@pytest.mark.parametrize("name", [n for n in CAUSAL if n != "gemma2"])  # which caps its scores
@pytest.mark.parametrize("side", ["in.0", "in.1", "in.2", "in.query", "in.key", "in.value"])
def test_what_goes_into_attention_has_positions_of_the_text(name: str, side: str) -> None:
    model, ids = known(name)
    layer = "h.0.attn" if name == "gpt2" else "layers.0.self_attn"
    at = f"{layer}/attention:{side}"
    for edit in (Edit(at, "scale", -2.0, positions=[3]), Edit(at, "mean", positions=[1, 3])):
        with votive.no_grad():
            plain = logits(model(ids))
            with glass.patch(model, edit):
                whole = logits(model(ids))
            cache = nn.DynamicCache()
            with glass.patch(model, edit):
                parts = [logits(model(ids[:, a:b], past_key_values=cache)) for a, b in ((0, 4), (4, 6))]
        first = edit.positions[0]  # type: ignore[index]
        assert votive.allclose(whole[:, :first], plain[:, :first], atol=1e-5)
        assert not votive.allclose(whole, plain, atol=1e-4)
        assert votive.allclose(votive.cat(parts, 1), whole, atol=2e-5)


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 2, 4, 5])
def test_positions_of_attention_are_no_heads_whatever_the_sizes(heads: int, length: int) -> None:
    class Attends(nn.Module):
        def forward(self, x: Any) -> Any:
            q = x.view(*x.shape[:2], heads, -1).transpose(1, 2)
            y = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
            return y.transpose(1, 2).reshape(x.shape)

    model, x = Attends(), votive.randn(2, length, 8)
    expected = model(x)
    expected[:, length - 1] = 0.0
    with glass.patch(model, Edit("/attention", "zero", positions=[length - 1])):
        assert votive.equal(model(x), expected)


class Flat(nn.Module):
    """Works on rows of all positions of all samples."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.lin(x.reshape(-1, 4)).view(x.shape)


def test_rows_of_all_samples_and_positions_are_told_apart() -> None:
    model, x = Flat(), votive.randn(3, 5, 4)
    y = model(x).detach()
    for edit, index in [
        (Edit("lin", "zero", positions=[1, -1]), (slice(None), [1, 4])),
        (Edit("lin", "zero", samples=[2]), (2,)),
        (Edit("lin", "zero", positions=[2], samples=[0], features=[3]), (0, 2, 3)),
    ]:
        expected = y.clone()
        expected[index] = 0.0
        with glass.patch(model, edit):
            assert votive.equal(model(x), expected)
    with glass.ablate(model, "lin", "mean"):
        assert votive.allclose(model(x), y.mean(0).expand(3, 5, 4))
    with glass.ablate(model, "lin", "resample") as receipt:
        rolled = model(x)
    assert receipt.fired == 1
    assert any(votive.equal(rolled, y.roll(i, 0)) for i in (1, 2))


def test_a_value_for_several_parts_has_its_dimensions_in_their_order() -> None:
    model, x = nn.Sequential(nn.Identity()), votive.zeros(2, 5, 4)
    value = votive.arange(10.0).reshape(5, 2)
    with glass.patch(model, Edit("0", "replace", value, samples=[1], features=[0, 3])):
        got = model(x)
    assert votive.equal(got[1][:, [0, 3]], value)
    assert not got[0].any()
    assert not got[1][:, 1:3].any()


def test_a_convolution_has_channels_for_features() -> None:
    votive.manual_seed(0)
    line = nn.Sequential(nn.Conv1d(3, 4, 1))
    x = votive.randn(2, 3, 5)
    y = line(x).detach()
    expected = y.clone()
    expected[:, 1, 2] = 0.0
    with glass.patch(line, Edit("0", "zero", positions=[2], features=[1])):
        assert votive.equal(line(x), expected)
    picture = nn.Sequential(nn.Conv2d(3, 4, 1))
    x = votive.randn(2, 3, 5, 6)
    expected = picture(x).detach()
    expected[:, 3] = 0.0
    with glass.patch(picture, Edit("0", "zero", features=[3])):
        assert votive.equal(picture(x), expected)


class Pooled(nn.Module):
    """What has no positions: a class for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return self.head(x.mean(1))


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv1d(3, 3, 1), nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.conv(x))


class Heads(nn.Module):
    """Four positions and four heads, in which order is not to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.split = nn.Unflatten(2, (4, 2))

    def forward(self, x: Any) -> Any:
        return self.split(x)


UNKNOWN = [
    (Pooled(), votive.ones(2, 5, 4), Edit("head", "zero", positions=[0]), r"\(2, 5\).*positions"),
    (Conv(), votive.ones(2, 3, 3), Edit("act", "zero", positions=[0]), r"\(2, 3, 3\).*positions"),
    (Conv(), votive.ones(2, 3, 3), Edit("/relu", "zero", positions=[0]), r"\(2, 3, 3\).*positions"),
    (Conv(), votive.ones(2, 3, 4), Edit("act", "zero", features=[0]), r"\(2, 3, 4\).*features"),
    (Conv(), votive.ones(2, 3, 4), Edit("/relu", "zero", features=[0]), r"\(2, 3, 4\).*features"),
    (nn.Conv2d(3, 3, 1), votive.ones(2, 3, 3, 3), Edit("^", "zero", positions=[0]), "positions"),
    (nn.Identity(), votive.ones(2, 3), Edit("^", "zero", positions=[0]), r"\(2, 3\).*positions"),
    (nn.Identity(), votive.ones(3), Edit("^", "zero", positions=[0]), r"\(3,\).*positions"),
    (nn.Identity(), votive.ones(()), Edit("^", "zero", features=[0]), r"\(\).*features"),
    (Heads(), votive.ones(2, 4, 8), Edit("split", "zero", positions=[0]), r"\(2, 4, 4, 2\).*posit"),
    (nn.Identity(), votive.ones(4), Edit("^", "mean"), "averages over samples"),
    (nn.Identity(), votive.ones(1, 3, 4), Edit("^", "mean"), "only one.*data set"),
    (nn.Identity(), votive.ones(1, 3, 4), Edit("^", "resample"), "only one"),
    (Flat(), votive.ones(1, 3, 4), Edit("lin", "mean"), "only one"),
    (Flat(), votive.ones(1, 3, 4), Edit("lin", "resample"), "only one"),
]


@pytest.mark.parametrize(("model", "x", "edit", "text"), UNKNOWN)
def test_what_is_not_known_is_refused_with_its_shape(model: Any, x: Any, edit: Edit, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        with glass.patch(model, edit):
            model(x)


def test_weights_of_attention_have_no_features() -> None:
    model, ids = known("mine")
    with pytest.raises(ValueError, match=r"\(2, 3, 6, 6\) is known to be that of features"):
        with glass.patch(model, Edit("blocks.0.look/softmax", "zero", features=[0])):
            model(ids)


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
def test_rows_that_were_sent_to_an_expert_are_no_positions(family: str) -> None:
    model, given = made(family)
    at = next(n for n, _ in model.named_modules() if n.endswith("experts.1"))
    for edit in (Edit(at, "zero", positions=[0]), Edit(at, "mean"), Edit(at, "resample")):
        with pytest.raises(ValueError, match="known to be that of"):
            with votive.no_grad(), glass.patch(model, edit):
                model(**given)


def test_positions_that_no_run_has_are_an_error() -> None:
    model, x = nn.Sequential(nn.Identity()), votive.ones(2, 5, 4)
    with pytest.raises(IndexError, match=r"positions \[5, 9\] of the edit at '0' were in no run"):
        with glass.patch(model, Edit("0", "zero", positions=[1, 5, 9])):
            model(x)
    with pytest.raises(IndexError, match=r"position -6 .* text of 5 positions; use -5..4"):
        with glass.patch(model, Edit("0", "zero", positions=[-6])):
            model(x)
    with glass.patch(model, Edit("0", "zero", positions=[5])):  # the second text is long enough
        model(x)
        model(votive.ones(1, 6, 4))


def test_an_end_that_moves_is_not_counted_from() -> None:
    model, ids = tiny(), votive.tensor([[1, 2, 3]])
    with pytest.raises(ValueError, match="counts from an end that moves"):
        with glass.patch(model, Edit("layers.0.mlp", "zero", positions=[-1])):
            model.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0)


GENERATED = [
    Edit("lm_head", "add", votive.arange(31.0), positions=[6, 9]),
    Edit("lm_head:in", "zero", positions=[5]),
    Edit("layers.0.self_attn/attention", "scale", -20.0, positions=[4, 7]),
    Edit("layers.0.mlp", "mean", positions=[3, 6]),
    Edit("layers.0.mlp", "resample"),
    Edit("layers.0.self_attn", "mean", votive.linspace(-1, 1, 16)),
    Edit("layers.0.mlp", "add", votive.ones(2, 3, 16) * 2, positions=[1, 6, 8]),
]


@pytest.mark.parametrize("edit", GENERATED, ids=[f"{e.at} {e.do}" for e in GENERATED])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_text_is_written_alike_with_and_without_a_cache(edit: Edit, cache: str) -> None:
    model, ids = tiny(), votive.tensor([[1, 2, 3, 4, 5], [5, 9, 3, 2, 8]])
    settings = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    with votive.no_grad():
        plain = model.generate(ids, **settings)
        with glass.patch(model, edit):
            cached = model.generate(ids, use_cache=True, cache_implementation=cache, **settings)
        with glass.patch(model, edit):
            whole = model.generate(ids, use_cache=False, **settings)
    assert votive.equal(cached, whole)
    assert not votive.equal(cached, plain)


def test_the_encoders_text_is_not_in_the_decoders_cache() -> None:
    model, given = made("t5")
    cache = nn.DynamicCache()
    ids, heard = given["decoder_input_ids"], given["input_ids"]
    for at in ("encoder.block.1.layer.1", "decoder.block.1.layer.2"):
        edit = Edit(at, "zero", positions=[2])
        with votive.no_grad(), glass.patch(model, edit):
            whole = model(input_ids=heard, decoder_input_ids=ids).logits
            cache = nn.DynamicCache()
            parts = [
                model(
                    input_ids=heard, decoder_input_ids=ids[:, i : i + 1], past_key_values=cache, use_cache=True
                ).logits
                for i in range(3)
            ]
        assert votive.allclose(votive.cat(parts, 1), whole, atol=1e-5), at
