"""Models are found, loaded and saved; what does not fit is told in one error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models
from votive.models import AutoModel, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from .golden import IDS, ROWS, inputs, model_of, scores

USES = {
    "Whisper": "AutoModelForSpeechSeq2Seq",
    "CausalLM": "AutoModelForCausalLM",
    "LMHead": "AutoModelForCausalLM",
    "MaskedLM": "AutoModelForMaskedLM",
    "Sequence": "AutoModelForSequenceClassification",
    "Conditional": "AutoModelForSeq2SeqLM",
    "Image": "AutoModelForImageClassification",
    "CLIPModel": "AutoModelForZeroShotImageClassification",
    "VisionEncoder": "AutoModelForVision2Seq",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model_of("llama").save_pretrained(tmp_path)
    return tmp_path


def edit(folder: Path, **changes: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


def rewrite(folder: Path, change: Any) -> Path:
    file = folder / "model.safetensors"
    weights = votive.io.safetensors.load_file(file)
    change(weights)
    votive.io.safetensors.save_file(weights, file)
    return folder


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("size", ["5GB", 3000], ids=["whole", "shards"])
def test_what_is_saved_is_loaded_again_bit_by_bit(row: str, size: Any, tmp_path: Path) -> None:
    model = model_of(row)
    model.save_pretrained(tmp_path, max_shard_size=size)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (size == 3000)
    use = next(use for part, use in USES.items() if part in type(model).__name__)
    again = getattr(models, use).from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert not again.training
    assert again.config.to_dict() == model.config.to_dict()
    with votive.no_grad():
        a, b = (scores(m(**inputs(row, votive.tensor))) for m in (model, again))
    assert votive.equal(a, b)


@pytest.mark.parametrize("dtype", [None, "auto", "float32", votive.float16, "bfloat16"])
def test_weights_keep_their_type_unless_another_is_asked_for(dtype: Any, tmp_path: Path) -> None:
    model_of("qwen3").to(votive.bfloat16).save_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=dtype)
    kept = dtype in (None, "auto")
    expected = votive.bfloat16 if kept else getattr(votive, str(dtype).removeprefix("votive."))
    assert {p.dtype for p in model.parameters()} == {expected}
    assert model.lm_head.weight is model.model.embed_tokens.weight
    with votive.no_grad():
        assert model(votive.tensor(IDS)).logits.dtype == expected


def test_a_file_tells_its_type_where_the_configuration_does_not(tmp_path: Path) -> None:
    model_of("llama").to(votive.bfloat16).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["dtype"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert AutoModelForCausalLM.from_pretrained(tmp_path).dtype == votive.bfloat16


def test_tied_weights_are_stored_once(tmp_path: Path) -> None:
    model_of("qwen3").save_pretrained(tmp_path)
    names = votive.io.open_weights(tmp_path).names()
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names


def test_tied_weights_load_from_either_name(tmp_path: Path) -> None:
    model = model_of("qwen3")
    model.save_pretrained(tmp_path)

    def move(weights: dict[str, Any]) -> None:
        weights["lm_head.weight"] = weights.pop("model.embed_tokens.weight")

    again = AutoModelForCausalLM.from_pretrained(rewrite(tmp_path, move))
    assert votive.equal(again.model.embed_tokens.weight, model.model.embed_tokens.weight)
    assert again.lm_head.weight is again.model.embed_tokens.weight


def test_a_bare_model_loads_from_the_file_of_one_with_a_head_and_back(folder: Path) -> None:
    bare = AutoModel.from_pretrained(folder)
    whole = AutoModelForCausalLM.from_pretrained(folder)
    ids = votive.tensor(IDS)
    with votive.no_grad():
        a, b = bare(ids).last_hidden_state, whole.model(ids).last_hidden_state
    assert votive.equal(a, b)
    bare.save_pretrained(folder / "bare")
    with pytest.raises(ValueError, match=r"missing(.|\n)*lm_head\.weight"):
        AutoModelForCausalLM.from_pretrained(folder / "bare")
    tied = model_of("qwen3").model
    tied.save_pretrained(folder / "tied")
    assert AutoModelForCausalLM.from_pretrained(folder / "tied").config.tie_word_embeddings


def test_missing_weights_are_all_named(folder: Path) -> None:
    def drop(weights: dict[str, Any]) -> None:
        del weights["model.norm.weight"], weights["model.layers.1.mlp.up_proj.weight"]

    rewrite(folder, drop)
    with pytest.raises(ValueError, match="do not fit") as e:
        AutoModelForCausalLM.from_pretrained(folder)
    assert "model.norm.weight" in str(e.value)
    assert "model.layers.1.mlp.up_proj.weight" in str(e.value)
    with pytest.warns(UserWarning, match="2 missing"):
        model = AutoModelForCausalLM.from_pretrained(folder, strict=False)
    assert model.model.norm.weight.tolist() == [1.0] * 16


def test_unused_weights_are_warned_of(folder: Path) -> None:
    rewrite(folder, lambda weights: weights.update({"model.extra.weight": votive.ones(2)}))
    with pytest.warns(UserWarning, match=r"model\.extra\.weight"):
        AutoModelForCausalLM.from_pretrained(folder)


def test_weights_of_another_shape_are_told_even_if_not_strict(folder: Path) -> None:
    edit(folder, intermediate_size=24)
    for strict in (True, False):
        with pytest.raises(ValueError, match=r"up_proj\.weight") as e:
            AutoModelForCausalLM.from_pretrained(folder, strict=strict)
        assert "[20, 16]" in str(e.value)
        assert "[24, 16]" in str(e.value)


def test_the_first_files_of_gpt2_load(tmp_path: Path) -> None:
    model = model_of("gpt2")
    model.save_pretrained(tmp_path)

    def old(weights: dict[str, Any]) -> None:
        for name in list(weights):
            weights[name.removeprefix("transformer.")] = weights.pop(name)
        for i in range(2):
            weights[f"h.{i}.attn.bias"] = votive.ones(1, 1, 32, 32).tril()
            weights[f"h.{i}.attn.masked_bias"] = votive.tensor(-1e4)

    again = AutoModelForCausalLM.from_pretrained(rewrite(tmp_path, old))
    with votive.no_grad():
        assert votive.equal(again(votive.tensor(IDS)).logits, model(votive.tensor(IDS)).logits)


def test_the_first_files_of_bert_load_without_a_word(tmp_path: Path) -> None:
    model = model_of("bert")
    model.save_pretrained(tmp_path)

    def old(weights: dict[str, Any]) -> None:
        for part, shape in {"bert.pooler.dense": (16, 16), "cls.seq_relationship": (2, 16)}.items():
            weights[f"{part}.weight"], weights[f"{part}.bias"] = (votive.ones(shape), votive.ones(shape[0]))
        weights["bert.embeddings.position_ids"] = votive.arange(32).unsqueeze(0)

    rewrite(tmp_path, old)
    again = models.AutoModelForMaskedLM.from_pretrained(tmp_path)
    with votive.no_grad():
        assert votive.equal(again(votive.tensor(IDS)).logits, model(votive.tensor(IDS)).logits)
    assert models.AutoModel.from_pretrained(tmp_path).pooler is not None


def test_weights_packed_in_an_unknown_way_are_told(folder: Path) -> None:
    edit(folder, quantization_config={"quant_method": "quip", "bits": 4})
    with pytest.raises(ValueError, match="quantized by 'quip'"):
        AutoModelForCausalLM.from_pretrained(folder)


def test_an_unknown_family_is_told_and_can_be_added(folder: Path) -> None:
    edit(folder, model_type="mine")
    with pytest.raises(ValueError, match=r"unknown model_type 'mine'.*register"):
        AutoModelForCausalLM.from_pretrained(folder)

    class MineConfig(LlamaConfig):
        model_type = "mine"

    models.register("mine", MineConfig, causal=LlamaForCausalLM)
    try:
        model = AutoModelForCausalLM.from_pretrained(folder)
        assert isinstance(model.config, MineConfig)
        assert "mine" in models.families()
        with pytest.raises(ValueError, match="taken"):
            models.register("mine", MineConfig)
        with pytest.raises(ValueError, match="a mine is no such model; use AutoModelForCausalLM"):
            AutoModel.from_pretrained(folder)
    finally:
        del models.auto._ADDED["mine"]
    with pytest.raises(ValueError, match="unknown uses"):
        models.register("other", MineConfig, poems=LlamaForCausalLM)


def test_a_configuration_without_a_family_is_told(folder: Path) -> None:
    (folder / "config.json").write_text('{"hidden_size": 16}')
    with pytest.raises(ValueError, match="model_type None"):
        AutoModelForCausalLM.from_pretrained(folder)


@pytest.mark.parametrize(
    "text,told",
    [("{", "not valid JSON"), ("[1, 2]", "holds a list"), ('"llama"', "holds a str"), ("[" * 100000, "not valid JSON")],
)
def test_nonsense_for_a_configuration_is_told(folder: Path, text: str, told: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=told) as e:
        AutoModelForCausalLM.from_pretrained(folder)
    assert "config.json" in str(e.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": "wide"},
        {"num_hidden_layers": -1},
        {"hidden_act": "bump"},
        {"num_attention_heads": 0},
        {"rms_norm_eps": "small"},
        {"num_key_value_heads": 3},
        {"rope_scaling": "linear"},
        {"layer_types": "full"},
        {"vocab_size": 1.5},
    ],
    ids=str,
)
def test_nonsense_in_a_configuration_is_told(folder: Path, changes: dict[str, Any]) -> None:
    edit(folder, **changes)
    with pytest.raises((ValueError, TypeError)) as e:
        AutoModelForCausalLM.from_pretrained(folder)
    ((name, value),) = changes.items()
    assert name in str(e.value) or str(value) in str(e.value)


def test_an_unknown_way_to_stretch_positions_is_told(folder: Path) -> None:
    edit(folder, rope_scaling={"rope_type": "spiral"})
    with pytest.raises(ValueError, match="unknown rope_type 'spiral'"):
        AutoModelForCausalLM.from_pretrained(folder)


def test_what_is_nowhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder or file here"):
        AutoModelForCausalLM.from_pretrained(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        AutoModelForCausalLM.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises((FileNotFoundError, ValueError), match=str(tmp_path.name)):
        AutoModelForCausalLM.from_pretrained(tmp_path)


def test_without_a_network_a_repository_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError("no route to host\nand more that nobody reads")

    monkeypatch.setattr(hub, "snapshot_download", fail)
    with pytest.raises(OSError, match=r"could not be downloaded \(no route to host\)\. Check"):
        AutoModelForCausalLM.from_pretrained("nobody/nothing")
    with pytest.raises(OSError, match="could not be downloaded"):
        models.SentenceEncoder.from_pretrained("nobody/nothing")


def test_a_repository_is_fetched_and_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def fetch(name: str, **options: Any) -> str:
        asked.append((name, options["revision"], options["local_files_only"]))
        return str(folder)

    monkeypatch.setattr(hub, "snapshot_download", fetch)
    model = AutoModelForCausalLM.from_pretrained("some/model", revision="v2", local_files_only=True)
    assert asked == [("some/model", "v2", True)]
    assert model.name_or_path == "some/model"


def test_a_configuration_keeps_what_it_does_not_know(folder: Path) -> None:
    edit(folder, made_by="me", torch_dtype="float16", quirk={"a": 1})
    config = models.AutoConfig.from_pretrained(folder)
    assert config.made_by == "me"
    assert config.to_dict()["quirk"] == {"a": 1}
    with pytest.raises(AttributeError, match="no field 'hue'"):
        _ = config.hue


def test_ids_of_the_wrong_shape_are_told() -> None:
    model = model_of("llama")
    with pytest.raises(ValueError, match="unsqueeze"):
        model(votive.tensor(IDS[0]))
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        model()
    with pytest.raises(ValueError, match=r"attention_mask must be \(batch, 7\)"):
        model(votive.tensor(IDS), attention_mask=votive.ones(2, 5))


def test_outputs_are_records_and_tuples() -> None:
    out = model_of("llama")(votive.tensor(IDS), use_cache=True)
    assert list(out.keys()) == ["logits", "past_key_values"]
    assert out["logits"] is out.logits is out[0] is out.to_tuple()[0]
    assert "loss" not in out
    with pytest.raises(KeyError):
        _ = out["loss"]


def test_a_file_that_is_no_model_is_told_apart_from_weights_without_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello, this is no model at all\n" * 20)
    with pytest.raises(votive.io.FileFormatError, match="in no format that is known"):
        models.AutoModelForCausalLM.from_pretrained(tmp_path / "note.txt")
    votive.io.safetensors.save_file({"a": votive.ones(2)}, tmp_path / "bare.safetensors")
    with pytest.raises(FileNotFoundError, match="holds weights"):
        models.AutoModelForCausalLM.from_pretrained(tmp_path / "bare.safetensors")
