"""Options of from_pretrained that change what is made: places, blocks, heads of one's own, code that is not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from votive.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, placement

from .golden import IDS, model_of

SIZES = {"vocab_size": 96, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: Any) -> Path:
    votive.manual_seed(0)
    path = tmp_path_factory.mktemp("wide")
    LlamaForCausalLM(LlamaConfig(**SIZES)).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def bare_bert(tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("bert")
    config = models.BertConfig(
        vocab_size=24, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20
    )
    models.BertModel(config).save_pretrained(path)
    return path


@pytest.mark.parametrize("use", ["SequenceClassification", "TokenClassification", "QuestionAnswering"])
def test_a_head_of_ones_own_starts_fresh_on_a_bare_model(use: str, bare_bert: Path) -> None:
    kind = getattr(models, f"AutoModelFor{use}")
    changes = {} if use == "QuestionAnswering" else {"num_labels": 5}
    with pytest.warns(UserWarning, match=r"2 missing(.|\n)*train the model"):
        model, told = kind.from_pretrained(bare_bert, output_loading_info=True, **changes)
    head = "qa_outputs" if use == "QuestionAnswering" else "classifier"
    assert told["missing_keys"] == {f"{head}.weight", f"{head}.bias"}
    weight = getattr(model, head).weight
    assert 0.005 < float(weight.std()) < 0.05
    assert getattr(model, head).bias.tolist() == [0.0] * len(weight)
    base = models.AutoModel.from_pretrained(bare_bert)
    for name, value in base.named_parameters():
        if "pooler" not in name:
            assert votive.equal(value, model.bert.get_parameter(name)), name
    with pytest.raises(ValueError, match=head):
        kind.from_pretrained(bare_bert, strict=True, **changes)


def test_nothing_of_the_layers_may_be_missing(tmp_path: Path) -> None:
    model_of("bert").save_pretrained(tmp_path)
    weights = votive.io.safetensors.load_file(tmp_path / "model.safetensors")
    gone = next(n for n in weights if n.endswith("layer.1.output.dense.weight"))
    del weights[gone]
    votive.io.safetensors.save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"layer\.1\.output\.dense\.weight"):
        models.BertForSequenceClassification.from_pretrained(tmp_path)


def test_what_did_not_fit_is_told_as_transformers_tells_it(bare_bert: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"num_labels": 3, "output_loading_info": True}
        _, ours = models.AutoModelForSequenceClassification.from_pretrained(bare_bert, **options)
        with torch.no_grad():
            _, theirs = transformers.AutoModelForSequenceClassification.from_pretrained(bare_bert, **options)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert set(ours[key]) == set(theirs[key]), key
    assert set(ours) <= set(theirs) | {"error_msgs"}


def test_attentions_are_those_of_eager(wide: Path) -> None:
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(wide, attn_implementation="eager")
    with torch.no_grad():
        wanted = theirs(torch.tensor(IDS), output_attentions=True).attentions
    for kind in ("eager", "sdpa", "flash_attention_2"):
        model = AutoModelForCausalLM.from_pretrained(wide, attn_implementation=kind)
        with votive.no_grad():
            found = model(votive.tensor(IDS), output_attentions=True).attentions
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "format"),
    [
        ({"load_in_8bit": True}, "q8_0"),
        ({"load_in_4bit": True}, "mxfp4"),
        ({"quantization_config": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}}, "iq4_nl"),
        ({"quantization_config": {"load_in_8bit": True, "llm_int8_skip_modules": ["*.down_proj"]}}, "q8_0"),
        ({"quantization_config": "q4_0"}, "q4_0"),
    ],
    ids=str,
)
def test_quantization_is_done_on_loading(options: dict[str, Any], format: str, wide: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(wide, **options)
    layer, wanted = model.model.layers[1], getattr(votive, format)
    assert layer.self_attn.q_proj.weight.dtype is wanted
    skipped = "llm_int8_skip_modules" in str(options)
    assert (layer.mlp.down_proj.weight.dtype is wanted) != skipped
    assert (model.lm_head.weight.dtype is wanted) == (options.get("quantization_config") == "q4_0")
    plain = AutoModelForCausalLM.from_pretrained(wide)
    with votive.no_grad():
        a, b = (m(votive.tensor(IDS)).logits for m in (model, plain))
    assert 0 < float((a - b).norm() / b.norm()) < (0.02 if "8" in format else 0.3)


def test_settings_of_transformers_for_bitsandbytes_are_read(wide: Path) -> None:
    transformers = pytest.importorskip("transformers")
    asked = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    model = AutoModelForCausalLM.from_pretrained(wide, quantization_config=asked)
    assert model.model.layers[0].mlp.up_proj.weight.dtype is votive.iq4_nl


def test_use_cache_is_a_setting_of_generate(wide: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(wide, use_cache=False)
    assert model.generation_config.use_cache is False
    kept = AutoModelForCausalLM.from_pretrained(wide)
    ids = votive.tensor(IDS)[:1]
    assert model.generate(ids, max_new_tokens=4).tolist() == kept.generate(ids, max_new_tokens=4).tolist()


def test_a_gguf_file_of_a_folder_is_named(wide: Path, tmp_path: Path) -> None:
    from votive.cli import main

    assert main(["convert", str(wide), str(tmp_path / "a.gguf"), "--dtype", "float32", "--quiet"]) in (0, None)
    (tmp_path / "b.gguf").write_bytes((tmp_path / "a.gguf").read_bytes())
    model = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="b.gguf")
    assert model.config.num_hidden_layers == 3


def test_code_of_a_folder_is_not_run_and_it_is_said_how_to_add_a_class(wide: Path, tmp_path: Path) -> None:
    AutoModelForCausalLM.from_pretrained(wide).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    told = {"AutoConfig": "configuration_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "auto_map": told, "model_type": "my_own"}))
    (tmp_path / "modeling_own.py").write_text("raise SystemExit('code of a model was run')")
    (tmp_path / "configuration_own.py").write_text("raise SystemExit('code of a model was run')")
    for options in ({}, {"trust_remote_code": True}):
        with pytest.raises(ValueError, match=r"modeling_own\.OwnForCausalLM.*never run.*register\('my_own', MyOwnConf"):
            AutoModelForCausalLM.from_pretrained(tmp_path, **options)
        with pytest.raises(ValueError, match="never run"):
            models.AutoConfig.from_pretrained(tmp_path, **options)

    class OwnConfig(LlamaConfig):
        model_type = "my_own"

    models.register("my_own", OwnConfig, causal=LlamaForCausalLM)
    try:
        assert isinstance(AutoModelForCausalLM.from_pretrained(tmp_path).config, OwnConfig)
    finally:
        del models.auto._ADDED["my_own"]
    # A family that is known needs no code.
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_type": "llama"}))
    assert type(AutoModelForCausalLM.from_pretrained(tmp_path)).__name__ == "LlamaForCausalLM"


def test_what_fits_nowhere_else_is_on_the_disk(wide: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(wide)
    found = placement.automatic(model, max_memory={"cpu": "300KB"})
    assert found[""] == "cpu"
    assert found["lm_head"] == "disk"
    assert "model.layers.0" not in found
    placed = placement.place(model, found)
    assert placed.hf_device_map == found
    assert placed.device.type == "cpu"
    with pytest.raises(ValueError, match="no device 7"):
        placement.automatic(model, max_memory={7: "1GB"})


def test_values_that_are_where_they_should_be_are_left_alone() -> None:
    mask = models.AttentionMask(votive.ones(1, 1))
    weights: list[Any] = []
    value = (votive.ones(2), {"mask": mask}, weights, None)
    assert placement.moved(value, votive.device("cpu")) is value
    away = placement.moved(value, votive.device("meta"))
    assert away[0].device.type == away[1]["mask"].attn_mask.device.type == "meta"
    assert away[2] is weights
    assert mask.attn_mask.device.type == "cpu"


_SPREAD = """
import sys, votive
from votive.models import AutoModelForCausalLM
ids = votive.tensor([[1, 5, 9, 2], [0, 0, 4, 7]])
mask = votive.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])
plain = AutoModelForCausalLM.from_pretrained(sys.argv[1])
maps = [
    {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.layers.2": "cpu", "model.norm": 1,
     "model.rotary_emb": 0, "lm_head": 1},
    {"": "cpu", "model.layers.1.mlp": 1, "model.layers.2": 0},
]
with votive.no_grad():
    wanted = plain(ids, attention_mask=mask).logits
    for device_map in maps:
        model = AutoModelForCausalLM.from_pretrained(sys.argv[1], device_map=device_map)
        there = {str(p.device) for p in model.parameters()}
        assert {"cpu", "cuda:1"} < there, there
        found = model(ids, attention_mask=mask).logits
        assert found.device.type == "cpu"
        assert votive.allclose(found, wanted, atol=1e-5)
        a, b = (m.generate(ids, attention_mask=mask, max_new_tokens=3, pad_token_id=0).tolist() for m in (plain, model))
        assert a == b, (a, b)
    even = AutoModelForCausalLM.from_pretrained(sys.argv[1], device_map="auto")
    assert {str(p.device) for p in even.parameters()} == {"cuda:0", "cuda:1"}, even.hf_device_map
    assert votive.allclose(even(ids, attention_mask=mask).logits, wanted, atol=1e-5)
    rooms = {0: "150KB", 1: 150000, "cpu": "1GB"}
    least = AutoModelForCausalLM.from_pretrained(sys.argv[1], device_map="sequential", max_memory=rooms)
    assert {str(p.device) for p in least.parameters()} == {"cuda:0", "cuda:1", "cpu"}, least.hf_device_map
print("spread")
"""


def test_a_model_over_several_devices_gives_the_same(wide: Path) -> None:
    pytest.importorskip("triton")
    env = {**os.environ, "VOTIVE_CUDA": "emulated:2", "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _SPREAD, str(wide)], env=env, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.stdout.strip().endswith("spread"), done.stderr[-3000:]
