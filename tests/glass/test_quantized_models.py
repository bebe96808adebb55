"""Everything that looks into models and changes them works where weights are in blocks of few bits."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import glass
from votive.models import AutoModelForCausalLM
from votive.studio import demo


@cache
def original() -> Any:
    return demo.model(hidden=256)


@cache
def quantized(kind: str) -> Any:
    made = copy.deepcopy(original())
    votive.quantize_(made, kind)
    return made


def ids(text: str = "Once upon a time there was a fox") -> Any:
    return demo.tokenizer()(text, return_tensors="vt").input_ids


KINDS = pytest.mark.parametrize("kind", ["q4_k_m", "q8_0"])


@KINDS
def test_captured_values_are_those_that_the_model_computes(kind: str) -> None:
    model = quantized(kind)
    with votive.no_grad():
        plain = model(ids()).logits
        with glass.capture(model, "**") as seen:
            assert model(ids()).logits.equal(plain)
        x = seen["model.layers.1.mlp.down_proj"]
        before = seen["model.layers.1.post_attention_layernorm"]
        assert model.model.layers[1].mlp(before).equal(x)
        assert seen["lm_head"].equal(plain)


@KINDS
def test_edits_skips_and_swaps_reach_the_result_and_say_so(kind: str) -> None:
    model = quantized(kind)
    with votive.no_grad():
        plain = model(ids()).logits
        edit = glass.Edit("model.layers.1.mlp.down_proj", "scale", 0.0)
        for change in (
            glass.patch(model, [edit]),
            glass.skip(model, "model.layers.2"),
            glass.swap(model, "model.layers.1", "model.layers.2"),
        ):
            with change as told:
                assert not model(ids()).logits.allclose(plain)
            (receipt,) = [*getattr(told, "receipts", [told])][:1]
            assert "fired 1" in str(receipt)
        assert model(ids()).logits.equal(plain)


@KINDS
def test_lenses_maps_and_attributions_fit_the_models_own_numbers(kind: str) -> None:
    model = quantized(kind)
    with votive.no_grad():
        logits = model(ids()).logits
    lens = glass.logit_lens(model, ids(), tokenizer=demo.tokenizer())
    assert "fox" in str(lens)
    found = glass.logit_attribution(model, ids(), target=7)
    total = float(found.values.sum(0)[0])
    assert total == pytest.approx(float(found.logit[0]), rel=1e-2, abs=1e-2)
    assert total == pytest.approx(float(logits[0, -1, 7]), rel=2e-2, abs=2e-2)
    assert any(name.endswith(".rounding") for name in found.names)
    maps = glass.attention_maps(model, ids(), tokenizer=demo.tokenizer())
    assert float((maps[0].weights().sum(-1) - 1).abs().max()) < 1e-4
    tuned = glass.train_tuned_lens(model, [ids()], epochs=2, tokenizer=demo.tokenizer())
    assert len(tuned.translators) >= 4
    assert all(p.dtype.is_floating_point or p.grad is None for p in model.parameters())


@KINDS
def test_gradients_sweeps_and_comparisons_run_through_blocks(kind: str) -> None:
    model = quantized(kind)
    metric = lambda out: out.logits[:, -1, 3] - out.logits[:, -1, 4]
    a, b = ids()[:, :6], ids("The king of the wood saw a bear")[:, :6]
    swept = glass.sweep(model, a, b, metric=metric, estimate=True)
    assert len(swept.sites) >= 4
    grads = glass.gradient_times_activation(model, a, at="model.layers.*", metric=lambda out: out.logits[:, -1, 3])
    assert all(bool(v.isfinite().all()) for v in grads.values.values())
    rows = glass.lockstep(model, original(), a).rows
    assert 0 < rows[-1].relative < 1
    assert glass.predict(model, "model.layers.*", a).bytes > 0
    assert len(glass.means(model, "model.layers.*.mlp", [a])) == 4


@KINDS
def test_the_debugger_stops_at_products_with_blocks_and_changes_values(kind: str) -> None:
    model = quantized(kind)
    with votive.no_grad():
        plain = model(ids()).logits
        d = votive.debug(model, ids())
        d.run(until="model.layers.1.mlp.up_proj")
        assert "up_proj" in str(d)
        d.replace(votive.zeros_like(d.value))
        d.run()
        assert not d.result.logits.allclose(plain)
        assert model(ids()).logits.equal(plain)


@KINDS
def test_a_session_is_saved_and_goes_on_with_the_same_model_only(kind: str, tmp_path: Path) -> None:
    model, tokenizer = quantized(kind), demo.tokenizer()
    s = glass.Session(model, tokenizer, "Once upon a time", do_sample=True, seed=1)
    s.step(3)
    s.set_edits([glass.Edit("model.layers.1.mlp", "scale", 0.5)])
    s.step(2)
    s.save(tmp_path / "s")
    again = glass.Session.load(tmp_path / "s", model, tokenizer)
    assert again.text == s.text
    assert again.step(2).text == s.step(2).text
    other = copy.deepcopy(model)
    other.lm_head.weight.blocks[0, 0] ^= 1
    assert glass.model_hash(other) != glass.model_hash(model)
    assert glass.model_hash(copy.deepcopy(model)) == glass.model_hash(model)
    with pytest.raises(glass.SessionMismatch):
        glass.Session.load(tmp_path / "s", other, tokenizer)


def test_a_file_with_blocks_opens_in_a_session(tmp_path: Path) -> None:
    quantized("q8_0").save_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert glass.model_hash(model) == glass.model_hash(quantized("q8_0"))
    s = glass.Session(model, demo.tokenizer(), "The fox")
    assert s.step(2).text == glass.Session(quantized("q8_0"), demo.tokenizer(), "The fox").step(2).text
