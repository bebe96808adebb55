"""What is saved is loaded again, whatever was done to the model; what cannot be is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models
from votive import nn
from votive.models import AutoModelForCausalLM, LlamaConfig
from votive.nn.utils import parametrize

from .golden import IDS, inputs, model_of, scores
from .test_loading import edit, rewrite

ROWS = ["llama", "qwen3", "gpt2", "phi3", "gemma2", "mixtral"]


def logits(model: Any) -> Any:
    with votive.no_grad():
        return model.eval()(votive.tensor(IDS)).logits


def adapted(row: str = "llama", patterns: Any = ("q_proj", "*down_proj"), **options: Any) -> Any:
    """A model whose adaptations have learned something."""
    model = model_of(row)
    votive.manual_seed(1)
    nn.apply_lora(model, patterns, r=2, **options)
    with votive.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("lora_B"):
                nn.init.normal_(p, std=0.3)
    return model.eval()


@pytest.mark.parametrize("merged", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("row", ["llama", "qwen3", "mixtral"])
def test_an_adapted_model_is_saved_merged(row: str, merged: bool, tmp_path: Path) -> None:
    model = adapted(row, ["q_proj", "v_proj"])
    assert not votive.equal(logits(model), logits(model_of(row)))
    if merged:
        for m in model.modules():
            if isinstance(m, nn.LoRALinear):
                m.merge()
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert votive.io.open_weights(tmp_path).names() == list(
        votive.io.open_weights(_plain(row, tmp_path / "plain")).names()
    )
    assert votive.allclose(logits(again), logits(model), atol=1e-5)
    assert isinstance(model.model.layers[0].self_attn.q_proj, nn.LoRALinear)  # still adapted


def _plain(row: str, folder: Path) -> Path:
    model_of(row).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("row", ROWS)
def test_parametrized_weights_are_saved_as_what_they_compute(row: str, tmp_path: Path) -> None:
    class Doubled(nn.Module):
        def forward(self, x: Any) -> Any:
            return 2 * x

    model = model_of(row)
    name, layer = next((n, m) for n, m in model.named_modules() if n.endswith(("o_proj", "attn.c_proj")))
    parametrize.register_parametrization(layer, "weight", Doubled())
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert votive.equal(logits(again), logits(model))
    assert votive.equal(again.get_submodule(name).weight, layer.weight)


def test_a_module_of_another_kind_is_refused(tmp_path: Path) -> None:
    model = model_of("llama")
    model.model.layers[1].mlp = nn.Sequential(nn.Linear(16, 16))
    with pytest.raises(ValueError, match=r"layers\.1\.mlp\.0\.weight is no weight(.|\n)*missing"):
        model.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_module_of_the_same_kind_in_another_size_is_refused(tmp_path: Path) -> None:
    model = model_of("llama")
    model.lm_head = nn.Linear(16, 7, bias=False)
    with pytest.raises(ValueError, match=r"lm_head\.weight has the shape \(7, 16\)"):
        model.save_pretrained(tmp_path)


def test_a_module_that_was_swapped_for_one_like_it_is_saved(tmp_path: Path) -> None:
    model = model_of("llama")
    model.model.layers[0], model.model.layers[1] = model.model.layers[1], model.model.layers[0]
    model.save_pretrained(tmp_path)
    assert votive.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path)), logits(model))


def test_a_configuration_that_was_changed_to_fit_is_saved(tmp_path: Path) -> None:
    model = model_of("llama")
    model.model.layers = model.model.layers[:1]
    with pytest.raises(ValueError, match=r"layers\.1.* is missing"):
        model.save_pretrained(tmp_path)
    model.config.num_hidden_layers = 1
    model.save_pretrained(tmp_path)
    assert votive.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path)), logits(model))


def test_a_class_of_ones_own_may_add_weights(tmp_path: Path) -> None:
    class Own(models.LlamaForCausalLM):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.gain = nn.Parameter(votive.ones(1))

    Own(model_of("llama").config).save_pretrained(tmp_path)
    assert "gain" in votive.io.open_weights(tmp_path).names()
    assert Own.from_pretrained(tmp_path).gain.tolist() == [1.0]


def test_weights_from_a_gguf_file_are_saved(tmp_path: Path) -> None:
    from votive.models.gguf_names import to_gguf

    model = model_of("qwen3")
    metadata, tensors = to_gguf(model.config, model.state_dict())
    votive.io.gguf.write(tmp_path / "m.gguf", tensors, metadata)
    refitted = AutoModelForCausalLM.from_pretrained(tmp_path / "m.gguf")
    nn.apply_lora(refitted, "q_proj")
    refitted.save_pretrained(tmp_path / "folder")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "folder")
    assert votive.equal(logits(again), logits(model))


@pytest.mark.parametrize("row", ["qwen3", "gpt2", "gemma2"])
def test_a_head_that_is_not_the_table_it_is_tied_to_is_kept(row: str, tmp_path: Path) -> None:
    model = model_of(row)
    model.save_pretrained(tmp_path)
    table = next(iter(model.ties().values()))
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)

    def add(weights: dict[str, Any]) -> None:
        weights["lm_head.weight"] = 2 * weights[table]

    rewrite(tmp_path, add)
    with pytest.warns(UserWarning, match=r"tie_word_embeddings=true, but .* lm_head\.weight apart"):
        again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert not votive.equal(logits(again), logits(plain))
    head = again.lm_head.weight
    assert votive.equal(head, 2 * again.get_parameter(table))
    assert again.config.tie_word_embeddings is False
    again.save_pretrained(tmp_path / "again")
    once_more = AutoModelForCausalLM.from_pretrained(tmp_path / "again")  # without a word
    assert votive.equal(once_more.lm_head.weight, head)


def test_a_head_of_another_size_than_the_table_it_is_tied_to_is_told(tmp_path: Path) -> None:
    model_of("qwen3").save_pretrained(tmp_path)
    rewrite(tmp_path, lambda weights: weights.update({"lm_head.weight": votive.ones(5, 16)}))
    with pytest.warns(UserWarning, match="tie_word_embeddings"), pytest.raises(ValueError, match=r"lm_head\.weight"):
        AutoModelForCausalLM.from_pretrained(tmp_path)


def test_a_second_copy_of_a_tied_table_loads_without_a_word(tmp_path: Path) -> None:
    model = model_of("qwen3")
    model.save_pretrained(tmp_path)

    def add(weights: dict[str, Any]) -> None:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()

    again = AutoModelForCausalLM.from_pretrained(rewrite(tmp_path, add))
    assert again.lm_head.weight is again.model.embed_tokens.weight


def test_a_masked_model_keeps_a_head_of_its_own(tmp_path: Path) -> None:
    model = model_of("bert")
    model.save_pretrained(tmp_path)
    name, table = next(iter(model.ties().items()))
    rewrite(tmp_path, lambda weights: weights.update({name: 3 * weights[table]}))
    with pytest.warns(UserWarning, match=r"apart and with other values"):
        again = models.AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert votive.equal(again.get_parameter(name), 3 * again.get_parameter(table))
    biases = [n for n in model.tied if n.endswith("bias")]
    assert all(again.get_parameter(n) is again.get_parameter(model.tied[n]) for n in biases)


def test_two_tables_of_a_t5_are_told(tmp_path: Path) -> None:
    model_of("t5").save_pretrained(tmp_path)
    rewrite(tmp_path, lambda w: w.update({"encoder.embed_tokens.weight": 2 * w["shared.weight"]}))
    with pytest.raises(ValueError, match=r"encoder\.embed_tokens\.weight is another table"):
        models.AutoModelForSeq2SeqLM.from_pretrained(tmp_path)


def test_the_decoder_of_two_models_keeps_a_head_of_its_own(tmp_path: Path) -> None:
    model = model_of("trocr")
    model.save_pretrained(tmp_path)
    ((name, table),) = model.ties().items()
    rewrite(tmp_path, lambda weights: weights.update({name: 3 * weights[table]}))
    with pytest.warns(UserWarning, match=r"apart and with other values"):
        again = models.AutoModelForVision2Seq.from_pretrained(tmp_path)
    assert votive.equal(again.get_parameter(name), 3 * again.get_parameter(table))


def test_no_parameter_is_left_at_chance_by_loading(tmp_path: Path) -> None:
    model_of("llama").save_pretrained(tmp_path)
    edit(tmp_path, num_hidden_layers=3)
    with pytest.raises(ValueError, match=r"layers\.2"):
        AutoModelForCausalLM.from_pretrained(tmp_path)
    edit(tmp_path, num_hidden_layers=1)
    with pytest.warns(UserWarning, match=r"unused(.|\n)*layers\.1"):
        AutoModelForCausalLM.from_pretrained(tmp_path)
    assert LlamaConfig.from_pretrained(tmp_path).num_hidden_layers == 1


_TIED = ["qwen3", "gpt2", "gemma2", "bert", "roberta", "distilbert", "t5", "trocr", "whisper"]


def again_of(model: Any, folder: Path) -> Any:
    """What a folder gives that the model was saved to."""
    model.save_pretrained(folder)
    return type(model).from_pretrained(folder)


def answers(row: str, model: Any) -> Any:
    with votive.no_grad():
        return scores(model.eval()(**inputs(row, votive.tensor)))


def pair_of(model: Any) -> tuple[str, str]:
    return next((a, b) for a, b in model.ties().items() if a.endswith("weight"))


@pytest.mark.filterwarnings("ignore:.*apart and with other values")  # T5 has no word for it
@pytest.mark.parametrize("row", _TIED)
def test_a_head_that_is_no_longer_tied_is_saved(row: str, tmp_path: Path) -> None:
    model = model_of(row)
    name, table = pair_of(model)
    before = answers(row, model)
    path, _, attribute = name.rpartition(".")
    own = nn.Parameter(-2 * model.get_parameter(table).detach())
    setattr(model.get_submodule(path), attribute, own)
    again = again_of(model, tmp_path)
    assert not votive.equal(answers(row, model), before)
    assert votive.equal(answers(row, again), answers(row, model))
    assert votive.equal(again.get_parameter(name), own)
    assert votive.equal(again.get_parameter(table), model.get_parameter(table))
    if row != "t5":
        told = json.loads((tmp_path / "config.json").read_text())
        assert told.get("decoder", told)["tie_word_embeddings"] is False
    once_more = again_of(again, tmp_path / "again")
    assert votive.equal(answers(row, once_more), answers(row, model))


@pytest.mark.parametrize("row", _TIED)
def test_what_is_tied_is_written_once(row: str, tmp_path: Path) -> None:
    model = model_of(row).to(votive.float64).to(votive.float32)
    again = again_of(model, tmp_path)
    assert not set(model.ties()) & set(votive.io.open_weights(tmp_path).names())
    name, table = pair_of(model)
    assert again.get_parameter(name) is again.get_parameter(table)


def test_weights_assigned_to_a_tied_head_are_saved(tmp_path: Path) -> None:
    model = model_of("qwen3")
    state = {k: v.clone() for k, v in model.state_dict().items()}
    state["lm_head.weight"] = state["lm_head.weight"] * 3
    model.load_state_dict(state, assign=True)
    again = again_of(model, tmp_path)
    assert votive.equal(logits(again), logits(model))


def test_an_adapted_tied_head_is_saved_merged(tmp_path: Path) -> None:
    model = adapted("qwen3", ["lm_head"])
    again = again_of(model, tmp_path)
    assert votive.allclose(logits(again), logits(model), atol=1e-5)
    assert not votive.allclose(logits(again), logits(model_of("qwen3")), atol=1e-3)
    assert model.config.tie_word_embeddings is True  # its base still is


@pytest.mark.parametrize("row", ["llama", "mixtral", "t5_v1_1"])
def test_a_head_that_is_shared_without_the_configuration_saying_so_loads(row: str, tmp_path: Path) -> None:
    model = model_of(row)
    model.lm_head.weight = model.get_input_embeddings().weight
    assert votive.equal(answers(row, again_of(model, tmp_path)), answers(row, model))


def test_layers_that_share_weights_load_as_two(tmp_path: Path) -> None:
    model = model_of("llama")
    model.model.layers[1].mlp = model.model.layers[0].mlp
    assert votive.equal(logits(again_of(model, tmp_path)), logits(model))


def test_a_tied_head_of_another_size_is_refused(tmp_path: Path) -> None:
    model = model_of("qwen3")
    model.lm_head = nn.Linear(16, 7, bias=False)
    with pytest.raises(ValueError, match=r"lm_head\.weight has the shape \(7, 16\)"):
        model.save_pretrained(tmp_path)
