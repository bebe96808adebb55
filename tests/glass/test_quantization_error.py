"""The error of a quantized model, by weight and layer, is what measuring it by hand gives."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import glass
from votive.models import LlamaConfig, LlamaForCausalLM
from votive.quant import divergence


def original(*, tied: bool = False) -> LlamaForCausalLM:
    votive.manual_seed(0)
    sizes = tiny_sizes.transformer(64, 96, layers=3, heads=2, vocab=64)
    return LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=tied, initializer_range=0.2)).eval()


def ids(batch: int = 2) -> votive.Tensor:
    return votive.randint(0, 64, (batch, 12), generator=votive.Generator().manual_seed(1))


@pytest.mark.parametrize("tied", [False, True])
def test_the_errors_are_those_measured_by_hand(tied: bool) -> None:
    first = original(tied=tied)
    second = copy.deepcopy(first)
    report = votive.quantize_(second, "q4_0")
    before = first(ids()).logits
    found = glass.quantization_error(second, first, ids(), each=True)
    assert first(ids()).logits.equal(before)  # what was exchanged is back
    by_name = {e.name: e.relative_error for e in report}
    assert {s.name: pytest.approx(s.weight, rel=1e-5) for s in found.sites} == by_name
    whole = divergence(first, second, [ids()])
    assert found.kl == pytest.approx(whole.kl_divergence, rel=1e-4)
    assert (found.tokens, found.same_top) == (whole.tokens, whole.same_top)
    assert found.perplexity == pytest.approx(whole.perplexity, rel=1e-5)
    assert found.perplexity_original == pytest.approx(whole.perplexity_original, rel=1e-5)
    names = [x.name for x in found]
    assert names[-4:] == ["model.layers.0", "model.layers.1", "model.layers.2", "lm_head"]
    for name in ("model.layers.1", "lm_head"):
        alone = copy.deepcopy(first)
        changed = (
            ["lm_head", *(["model.embed_tokens"] if tied else [])]
            if name == "lm_head"
            else [n for n, m in alone.named_modules() if n.startswith(f"{name}.") and hasattr(m, "weight")]
        )
        for part in changed:
            alone.get_submodule(part).weight = second.get_submodule(part).weight
        wanted = divergence(first, alone, [ids()]).kl_divergence
        got = next(x.kl for x in found if x.name == name)
        assert got == pytest.approx(wanted, rel=1e-3), name


def test_the_output_error_of_a_layer_is_of_the_same_input() -> None:
    first = original()
    second = copy.deepcopy(first)
    votive.quantize_(second, "q4_0")
    found = glass.quantization_error(second, first, [ids(1), ids(3)])
    name = "model.layers.1.mlp.down_proj"
    inputs: list[Any] = []
    handle = first.get_submodule(name).register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
    with votive.no_grad():
        for item in (ids(1), ids(3)):
            first(item)
        handle.remove()
        error = size = 0.0
        for x in inputs:
            wanted = first.get_submodule(name)(x)
            error += float((second.get_submodule(name)(x) - wanted).square().sum())
            size += float(wanted.square().sum())
    site = next(s for s in found.sites if s.name == name)
    assert site.output == pytest.approx(math.sqrt(error / size), rel=1e-4)
    assert (site.layer, site.format, site.bits) == ("model.layers.1", "q4_0", 4.5)
    assert found.layers[1].kl is None
    with pytest.raises(ValueError, match="pass each=True"):
        found.figure("kl")


def test_scaled_inputs_are_taken_into_account() -> None:
    first = original()
    data = [ids(4)]
    second = copy.deepcopy(first)
    votive.quantize_(second, "q4_0", method="awq", data=data)
    assert not second.model.layers[0].input_layernorm.weight.allclose(first.model.layers[0].input_layernorm.weight)
    found = glass.quantization_error(second, first, data)
    assert all(s.weight < 0.2 and s.output < 0.2 for s in found.sites)
    assert found.kl == pytest.approx(divergence(first, second, data).kl_divergence, rel=1e-4)


def test_another_model_is_refused_with_the_name_that_differs() -> None:
    first = original()
    second = copy.deepcopy(first)
    with pytest.raises(ValueError, match="no weights in blocks"):
        glass.quantization_error(second, first, ids())
    with pytest.raises(ValueError, match="are one"):
        glass.quantization_error(first, first, ids())
    votive.quantize_(second, "q8_0")
    with votive.no_grad():
        second.model.norm.weight.mul_(3)
    with pytest.raises(ValueError, match=r"'model\.norm\.weight' of model\.norm is in no block and differs"):
        glass.quantization_error(second, first, ids())
    small = LlamaForCausalLM(LlamaConfig(**tiny_sizes.transformer(32, 96, layers=3, heads=2, vocab=64)))
    with pytest.raises(ValueError, match="has the shape"):
        glass.quantization_error(second, small, ids())


def test_models_without_layers_or_logits_are_measured_by_weight() -> None:
    first = votive.nn.Sequential(votive.nn.Linear(64, 32), votive.nn.ReLU(), votive.nn.Linear(32, 5))
    second = copy.deepcopy(first)
    votive.quantize_(second, "q8_0")
    found = glass.quantization_error(second, first, votive.randn(6, 64))
    assert [s.name for s in found.sites] == ["0", "2"]
    assert math.isnan(found.perplexity)
    assert found.tokens == 6  # rows of scores count as predictions
