"""What users of transformers pass to from_pretrained is honoured, or refused with what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models
from votive import nn
from votive.models import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM
from votive.text import Tokenizer

from .golden import IDS, model_of
from .test_saving import adapted, logits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("llama")
    model_of("llama").save_pretrained(path)
    return path


@pytest.mark.parametrize("kind", [AutoModelForCausalLM, LlamaForCausalLM])
@pytest.mark.parametrize(
    "options",
    [
        {"low_cpu_mem_usage": True},
        {"trust_remote_code": True},
        {"token": "secret"},
        {"attn_implementation": "sdpa"},
        {"attn_implementation": "eager"},
        {"attn_implementation": "flash_attention_2"},
        {"attn_implementation": {"text_config": "sdpa"}},
        {"offload_folder": "somewhere"},
        {"device_map": "auto", "max_memory": {"cpu": "1GB"}},
        {"device_map": {"model": "cpu", "lm_head": "disk"}},
        {"device_map": "cpu"},
        {"device_map": {"": "cpu"}},
        {"cache_dir": "somewhere"},
        {"use_safetensors": True},
        {"load_in_8bit": False},
        {"quantization_config": None},
        {"use_cache": True},
        {"output_attentions": False},
        {"return_dict": True},
        {"ignore_mismatched_sizes": True},
        {"force_download": False},
        {"subfolder": ""},
        {"variant": None},
        {"max_memory": None},
    ],
    ids=str,
)
def test_what_asks_for_what_is_so_changes_nothing(kind: Any, options: dict[str, Any], folder: Path) -> None:
    model = kind.from_pretrained(folder, **options)
    assert votive.equal(logits(model), logits(model_of("llama")))


@pytest.mark.parametrize("options", [{"torch_dtype": "bfloat16"}, {"dtype": votive.bfloat16}])
def test_both_spellings_of_the_type_are_known(options: dict[str, Any], folder: Path) -> None:
    assert AutoModelForCausalLM.from_pretrained(folder, **options).dtype == votive.bfloat16


def test_a_device_map_is_a_device(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="auto")
    assert model.device.type in ("cpu", "cuda")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"quantization_config": {"bits": 4}}, ValueError, "pass a format such as 'q8_0'"),
        ({"quantization_config": {"load_in_4bit": True}, "load_in_8bit": True}, TypeError, "not both"),
        ({"attn_implementation": "paged"}, ValueError, "one fused kernel"),
        ({"device_map": {"model": "cpu", "head": "disk"}}, ValueError, "no module 'head'; it has lm_head"),
        ({"device_map": {"model": "cpu", "model.norm": "disk"}}, ValueError, "no entry says where 'lm_head"),
        ({"device": "cpu", "device_map": "cpu"}, TypeError, "not both"),
        ({"dtype": "float16", "torch_dtype": "float32"}, TypeError, "differ; pass one"),
        ({"output_attentions": True}, ValueError, "when you call the model"),
        ({"return_dict": False}, ValueError, "records and tuples at once"),
        ({"tp_plan": "auto"}, ValueError, "device_map spreads whole ones"),
        ({"gguf_file": "a.gguf"}, FileNotFoundError, "has no file 'a.gguf'"),
        ({"classes": 3}, TypeError, "'classes', which is no field of LlamaConfig"),
        ({"low_cpu_mem_usag": True}, TypeError, "did you mean 'low_cpu_mem_usage'"),
        ({"sliding_windo": 4}, TypeError, "did you mean 'sliding_window'"),
        ({"variant": "fp16"}, FileNotFoundError, r"none of .*model\.fp16\.safetensors"),
        ({"subfolder": "nowhere"}, FileNotFoundError, "no subfolder 'nowhere'"),
        ({"use_safetensors": False}, FileNotFoundError, "no torch weights"),
        ({"hidden_size": -3}, ValueError, "hidden_size must be"),
    ],
    ids=lambda x: str(x)[:30],
)
@pytest.mark.parametrize("kind", [AutoModelForCausalLM, LlamaForCausalLM])
def test_what_cannot_be_is_refused_with_what_to_do(
    kind: Any, options: dict[str, Any], error: type[Exception], told: str, folder: Path
) -> None:
    with pytest.raises(error, match=told):
        kind.from_pretrained(folder, **options)


def test_fields_of_the_configuration_may_be_changed(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, sliding_window=3, rms_norm_eps=0.5)
    assert (model.config.sliding_window, model.config.rms_norm_eps) == (3, 0.5)
    assert not votive.equal(logits(model), logits(model_of("llama")))
    config = AutoConfig.from_pretrained(folder, num_hidden_layers=1, trust_remote_code=True)
    assert config.num_hidden_layers == 1
    with pytest.raises(TypeError, match="did you mean 'num_hidden_layers'"):
        AutoConfig.from_pretrained(folder, num_hiden_layers=1)


def test_a_new_number_of_classes_makes_a_new_head(tmp_path: Path) -> None:
    old = model_of("bert_classes")
    old.save_pretrained(tmp_path)
    kind = models.AutoModelForSequenceClassification
    with pytest.raises(ValueError, match=r"classifier\.weight(.|\n)*ignore_mismatched_sizes=True"):
        kind.from_pretrained(tmp_path, num_labels=7)
    with pytest.warns(UserWarning, match=r"mismatched(.|\n)*classifier"):
        model, told = kind.from_pretrained(
            tmp_path, num_labels=7, ignore_mismatched_sizes=True, output_loading_info=True
        )
    assert model.config.num_labels == len(model.config.id2label) == 7
    assert {name for name, *_ in told["mismatched_keys"]} == {"classifier.weight", "classifier.bias"}
    assert model(votive.tensor(IDS)).logits.shape[-1] == 7
    assert bool(model.classifier.weight.isfinite().all())
    assert votive.equal(model.bert.embeddings.word_embeddings.weight, old.bert.embeddings.word_embeddings.weight)
    named = dict(enumerate("abc"))
    other = AutoConfig.from_pretrained(tmp_path, id2label=named)
    assert other.num_labels == 3


def test_a_variant_and_a_subfolder_are_found(folder: Path, tmp_path: Path) -> None:
    model_of("llama").save_pretrained(tmp_path / "inner")
    (tmp_path / "inner" / "model.safetensors").rename(tmp_path / "inner" / "model.fp16.safetensors")
    model = AutoModelForCausalLM.from_pretrained(tmp_path, subfolder="inner", variant="fp16")
    assert votive.equal(logits(model), logits(model_of("llama")))


def test_an_adapter_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    model = adapted(alpha=3.0)
    paths = models.save_adapter(model, tmp_path)
    again = AutoModelForCausalLM.from_pretrained(folder)
    assert models.load_adapter(again, tmp_path) == paths
    assert votive.allclose(logits(again), logits(model), atol=1e-6)
    learned = {n for n, p in again.named_parameters() if p.requires_grad}
    assert learned == {f"{p}.adapters.default.lora_{side}" for p in paths for side in "AB"}


def test_a_folder_with_an_adapter_gives_its_base_adapted(folder: Path, tmp_path: Path) -> None:
    model = adapted()
    model.name_or_path = str(folder)
    models.save_adapter(model, tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="float32")
    assert votive.allclose(logits(again), logits(model), atol=1e-6)


def test_an_adapter_whose_base_is_elsewhere_is_told(tmp_path: Path) -> None:
    model = adapted()
    model.name_or_path = "nobody/knows"
    models.save_adapter(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"PEFT adapter of 'nobody/knows'.*load_adapter"):
        AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"peft_type": "OFT"}, "peft_type='OFT' is an adapter that is not known"),
        ({"use_qalora": True}, "use_qalora=True"),
        ({"use_dora": True}, "lacks .*lora_magnitude_vector"),
        ({"modules_to_save": ["lm_head"]}, "lacks 'lm_head.weight'"),
        ({"r": 5}, "has the shape"),
    ],
)
def test_an_adapter_of_another_kind_is_told(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    models.save_adapter(adapted(), tmp_path)
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    model = model_of("llama")
    with pytest.raises(ValueError, match=told):
        models.load_adapter(model, tmp_path)
    assert not any(isinstance(m, nn.AdaptedLayer) for m in model.modules())


def test_an_adapter_of_another_model_is_told(tmp_path: Path) -> None:
    models.save_adapter(adapted(), tmp_path)
    with pytest.raises(ValueError, match=r"GPT2LMHeadModel has no such layers .*It adapts .*down_proj"):
        models.load_adapter(model_of("gpt2"), tmp_path)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # between peft and transformers
@pytest.mark.parametrize("rslora", [False, True])
def test_adapters_go_both_ways(rslora: bool, folder: Path, tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    peft = pytest.importorskip("peft")
    ours = adapted(alpha=3.0, rslora=rslora)
    models.save_adapter(ours, tmp_path / "ours")
    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "ours").eval()
    with torch.no_grad():
        found = theirs(torch.tensor(IDS)).logits.numpy()
    assert votive.allclose(votive.tensor(found.tolist()), logits(ours), atol=1e-4)
    theirs.save_pretrained(tmp_path / "theirs")
    again = AutoModelForCausalLM.from_pretrained(folder)
    models.load_adapter(again, tmp_path / "theirs")
    assert votive.allclose(logits(again), logits(ours), atol=1e-5)


@pytest.fixture(scope="module")
def words(tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("words")
    votive.text.train_bpe(
        ["some words"], vocab_size=262, special_tokens=["<end>", "<pad>"], progress=False
    ).save_pretrained(path)
    return path


def test_a_tokenizer_takes_what_transformers_users_pass(words: Path) -> None:
    tok = Tokenizer.from_pretrained(
        words,
        use_fast=True,
        trust_remote_code=True,
        token=None,
        revision="main",
        padding_side="left",
        model_max_length=7,
        pad_token="<pad>",
        legacy=False,
    )
    assert (tok.padding_side, tok.model_max_length, tok.pad_token) == ("left", 7, "<pad>")
    inner = Tokenizer.from_pretrained(words.parent, subfolder=words.name)
    assert inner.encode("words") == tok.encode("words")
    with pytest.raises(ValueError, match="use_fast=False asks for"):
        Tokenizer.from_pretrained(words, use_fast=False)
    with pytest.raises(TypeError, match=r"no option 'padding_sied'; there are .*padding_side"):
        Tokenizer.from_pretrained(words, padding_sied="left")


def test_a_vocabulary_of_tiktoken_is_told(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"IQ== 0\nIg== 1\nIw== 2\n")
    with pytest.raises(votive.io.FileFormatError, match=r"tiktoken .*use the tokenizer\.json"):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("start", ["pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga"])
def test_an_adapter_that_changed_its_base_is_refused(start: str, tmp_path: Path) -> None:
    model = model_of("llama")
    votive.nn.apply_lora(model, "q_proj")
    models.save_adapter(model, tmp_path)
    file = tmp_path / "adapter_config.json"
    told = json.loads(file.read_text())
    plain = model_of("llama")
    before = {k: v.clone() for k, v in plain.state_dict().items()}
    file.write_text(json.dumps({**told, "init_lora_weights": start}))
    with pytest.raises(ValueError, match=f"init_lora_weights='{start}'.*weight_conversion"):
        models.load_adapter(plain, tmp_path)
    assert all(votive.equal(v, before[k]) for k, v in plain.state_dict().items())
    for harmless in (True, False, "gaussian", "eva"):
        file.write_text(json.dumps({**told, "init_lora_weights": harmless}))
        assert models.load_adapter(model_of("llama"), tmp_path)


@pytest.mark.parametrize(
    ("row", "use"),
    [
        ("gemma", "LlamaForCausalLM"),
        ("mistral", "LlamaForCausalLM"),
        ("llama", "Qwen2ForCausalLM"),
        ("vit", "DeiTForImageClassification"),
        ("t5", "MT5ForConditionalGeneration"),
    ],
)
def test_a_folder_of_another_family_is_refused(row: str, use: str, tmp_path: Path) -> None:
    model = model_of(row)
    model.save_pretrained(tmp_path)
    kind = getattr(models, use)
    told = f"'{model.config.model_type}', not of a '{kind.config_class.model_type}'.*AutoModel"
    with pytest.raises(ValueError, match=told):
        kind.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match=told):
        kind.config_class.from_pretrained(tmp_path)


def test_families_of_one_network_read_each_other(tmp_path: Path) -> None:
    model_of("roberta").save_pretrained(tmp_path)
    assert models.XLMRobertaForMaskedLM.from_pretrained(tmp_path).config.vocab_size == 24
