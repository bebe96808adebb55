"""Folders that transformers writes load here, and those written here load there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models
from tests import tiny_sizes

from . import golden, test_encoders, test_t5
from .compare import agree, ids, torch, transformers
from .decoders import ROWS, models_of

pytestmark = pytest.mark.parity
DECODERS = [
    "llama tied",
    "llama rope yarn",
    "llama rope llama3",
    "mistral",
    "qwen2 with windows",
    "qwen3",
    "gpt2",
    "mixtral",
    "qwen3 moe with dense layers",
    "gemma",
    "gemma2",
    "gemma3",
    "phi3 turning a part",
]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    transformers.utils.logging.disable_progress_bar()


def theirs(folder: Path, use: str) -> Any:
    """What transformers makes of a folder; it must find every weight it wants."""
    model, told = getattr(transformers, use).from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    assert not told["missing_keys"], told
    assert not told["unexpected_keys"], told
    return model.eval()


@pytest.mark.parametrize("name", DECODERS)
def test_decoders_go_both_ways(name: str, tmp_path: Path) -> None:
    reference, _ = models_of(name)
    t, v = ids((2, 7))
    reference.save_pretrained(tmp_path / "theirs")
    model = models.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs")
    assert type(model).__name__ == ROWS[name].ours
    assert model.dtype == votive.float32
    with torch.no_grad(), votive.no_grad():
        expected = reference(t).logits
        agree(model(v).logits, expected)
        model.save_pretrained(tmp_path / "ours")
        agree(theirs(tmp_path / "ours", "AutoModelForCausalLM")(t).logits, expected)
        bare = models.AutoModel.from_pretrained(tmp_path / "theirs")
        agree(bare(v).last_hidden_state, reference(t, output_hidden_states=True).hidden_states[-1])


@pytest.mark.parametrize("family", test_encoders.FAMILIES)
@pytest.mark.parametrize("use", ["AutoModelForMaskedLM", "AutoModelForSequenceClassification", "AutoModel"])
def test_encoders_go_both_ways(family: str, use: str, tmp_path: Path) -> None:
    kind = use.removeprefix("AutoModel") or "Model"
    reference, _ = test_encoders.models_of(family, kind)
    t, v = ids((2, 7))
    reference.save_pretrained(tmp_path / "theirs")
    model = getattr(models, use).from_pretrained(tmp_path / "theirs")
    with torch.no_grad(), votive.no_grad():
        expected = test_encoders.result(reference(t))
        agree(test_encoders.result(model(v)), expected)
        model.save_pretrained(tmp_path / "ours")
        agree(test_encoders.result(theirs(tmp_path / "ours", use)(t)), expected)


@pytest.mark.parametrize("kind", test_t5.KINDS)
def test_t5_goes_both_ways(kind: str, tmp_path: Path) -> None:
    reference, _ = test_t5.models_of(kind)
    t, v = ids((2, 7))
    reference.save_pretrained(tmp_path / "theirs")
    model = models.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs")
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, decoder_input_ids=t).logits
        agree(model(v, decoder_input_ids=v).logits, expected)
        model.save_pretrained(tmp_path / "ours")
        again = theirs(tmp_path / "ours", "AutoModelForSeq2SeqLM")
        agree(again(t, decoder_input_ids=t).logits, expected)
        encoder = models.AutoModelForTextEncoding.from_pretrained(tmp_path / "theirs")
        agree(encoder(v).last_hidden_state, reference.encoder(t).last_hidden_state)


def test_shards_and_bfloat16_go_both_ways(tmp_path: Path) -> None:
    model = golden.model_of("qwen3").to(votive.bfloat16)
    model.save_pretrained(tmp_path / "ours", max_shard_size=4000)
    assert len(list((tmp_path / "ours").glob("*.safetensors"))) > 2
    reference = theirs(tmp_path / "ours", "AutoModelForCausalLM")
    assert reference.dtype == torch.bfloat16
    state = {k: v.float().numpy() for k, v in reference.state_dict().items()}
    for key, p in model.state_dict().items():
        assert (p.float().numpy() == state[key]).all(), key
    reference.save_pretrained(tmp_path / "theirs", max_shard_size=4000)
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 2
    again = models.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs")
    assert again.dtype == votive.bfloat16
    for key, p in model.state_dict().items():
        assert votive.equal(p, again.state_dict()[key]), key


def test_stacked_experts_load_as_single_ones_do() -> None:
    reference, model = models_of("mixtral")
    stacked = reference.state_dict()
    assert any(k.endswith("experts.gate_up_proj") for k in stacked), "transformers changed"
    single = dict(model.state_dict())
    assert any("experts.3.w1" in k for k in single)
    again = models.MixtralForCausalLM(model.config)
    again.load_weights(votive.io.MemorySource(single))
    _, v = ids((1, 6))
    with votive.no_grad():
        assert votive.equal(again.eval()(v).logits, model(v).logits)


@pytest.mark.parametrize("name", ROWS)
def test_transformers_finds_the_class_of_a_folder_by_itself(name: str, tmp_path: Path) -> None:
    reference, model = models_of(name)
    model.save_pretrained(tmp_path)
    there = theirs(tmp_path, "AutoModelForCausalLM")
    # Where transformers has no such family, what it has for it.
    assert type(there).__name__ == type(reference).__name__
    t, v = ids((2, 7))
    with torch.no_grad(), votive.no_grad():
        agree(model(v).logits, there(t).logits)


def test_a_mistral_with_types_of_layers_is_the_ministral_of_transformers(tmp_path: Path) -> None:
    types = ["full_attention", "sliding_attention"]
    votive.manual_seed(0)
    model = models.MistralForCausalLM(
        models.MistralConfig(
            **tiny_sizes.transformer(32, 48, layers=2, heads=4, vocab=64, kv_heads=2),
            sliding_window=3,
            layer_types=types,
            initializer_range=0.3,
        )
    ).eval()
    model.save_pretrained(tmp_path)
    t, v = ids((2, 9))
    with torch.no_grad(), votive.no_grad():
        agree(model(v).logits, theirs(tmp_path, "AutoModelForCausalLM")(t).logits)
