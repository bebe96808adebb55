"""Adapters in PEFT's files: what peft writes gives its outputs here, and the other way round."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import nn
from votive.models import AutoModelForCausalLM, AutoModelForSequenceClassification

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
IDS = [[3, 7, 1, 9, 4], [5, 5, 2, 8, 6]]
LLAMA = ["q_proj", "v_proj", "down_proj"]
# name: (base, class of PEFT's configuration, settings)
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lora": ("llama", "LoraConfig", {"r": 3, "lora_alpha": 7, "target_modules": LLAMA}),
    "rslora": ("llama", "LoraConfig", {"r": 4, "use_rslora": True, "target_modules": LLAMA}),
    "patterns": (
        "llama",
        "LoraConfig",
        {"r": 4, "rank_pattern": {"v_proj": 2}, "alpha_pattern": {r"layers\.1.*": 3}, "target_modules": LLAMA},
    ),
    "layers": ("llama", "LoraConfig", {"r": 2, "layers_to_transform": [1], "target_modules": LLAMA}),
    "regex": ("llama", "LoraConfig", {"r": 2, "target_modules": r".*\.(k_proj|up_proj)"}),
    "all-linear": ("llama", "LoraConfig", {"r": 2, "target_modules": "all-linear", "exclude_modules": ["o_proj"]}),
    "dora": ("llama", "LoraConfig", {"r": 3, "use_dora": True, "target_modules": LLAMA}),
    "table": ("llama", "LoraConfig", {"r": 3, "target_modules": ["embed_tokens", "q_proj"]}),
    "dora-table": ("llama", "LoraConfig", {"r": 3, "use_dora": True, "target_modules": ["embed_tokens", "q_proj"]}),
    "head": ("llama", "LoraConfig", {"r": 3, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}),
    "conv1d": ("gpt2", "LoraConfig", {"r": 3, "fan_in_fan_out": True, "target_modules": ["c_attn", "c_proj"]}),
    "conv1d-dora": (
        "gpt2",
        "LoraConfig",
        {"r": 3, "use_dora": True, "fan_in_fan_out": True, "target_modules": ["c_attn"]},
    ),
    "bias-all": ("gpt2", "LoraConfig", {"r": 3, "bias": "all", "fan_in_fan_out": True, "target_modules": ["c_attn"]}),
    "bias-lora": (
        "gpt2",
        "LoraConfig",
        {"r": 3, "bias": "lora_only", "fan_in_fan_out": True, "target_modules": ["c_fc"]},
    ),
    "lora-bias": ("bert", "LoraConfig", {"r": 3, "lora_bias": True, "target_modules": ["query", "value"]}),
    "classify": ("bert", "LoraConfig", {"r": 3, "task_type": "SEQ_CLS", "target_modules": ["query", "value"]}),
    "ia3": ("llama", "IA3Config", {"target_modules": LLAMA, "feedforward_modules": ["down_proj"]}),
    "ia3-conv1d": (
        "gpt2",
        "IA3Config",
        {"target_modules": ["c_attn", "mlp.c_proj"], "feedforward_modules": ["mlp.c_proj"], "fan_in_fan_out": True},
    ),
    "loha": ("llama", "LoHaConfig", {"r": 2, "alpha": 5, "target_modules": LLAMA}),
    "lokr": ("llama", "LoKrConfig", {"r": 2, "alpha": 5, "target_modules": LLAMA}),
    "lokr-both": (
        "llama",
        "LoKrConfig",
        {"r": 1, "decompose_both": True, "decompose_factor": 4, "target_modules": LLAMA},
    ),
    "prompt": ("llama", "PromptTuningConfig", {"num_virtual_tokens": 3, "task_type": "CAUSAL_LM"}),
    "p-tuning": (
        "llama",
        "PromptEncoderConfig",
        {"num_virtual_tokens": 3, "task_type": "CAUSAL_LM", "encoder_hidden_size": 8},
    ),
    "prefix": ("llama", "PrefixTuningConfig", {"num_virtual_tokens": 3, "task_type": "CAUSAL_LM"}),
}
AUTO = {"bert": AutoModelForSequenceClassification}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: Any) -> dict[str, tuple[Any, Path]]:
    torch.manual_seed(0)
    sizes = {"vocab_size": 16, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    llama = transformers.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32)
    gpt2 = transformers.GPT2Config(
        vocab_size=16, n_embd=16, n_layer=2, n_head=2, n_positions=32, tie_word_embeddings=True
    )
    bert = transformers.BertConfig(**sizes, num_attention_heads=2, max_position_embeddings=32, num_labels=3)
    made = {
        "llama": transformers.LlamaForCausalLM(llama),
        "gpt2": transformers.GPT2LMHeadModel(gpt2),
        "bert": transformers.BertForSequenceClassification(bert),
    }
    found = {}
    for name, model in made.items():
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p) / 8)
        folder = tmp_path_factory.mktemp(name)
        model.eval().save_pretrained(folder)
        found[name] = (model, folder)
    return found


def theirs_of(name: str, bases: Any, **more: Any) -> Any:
    """The model of peft with weights that are no start values."""
    base, kind, settings = ROWS[name]
    model = peft.get_peft_model(copy.deepcopy(bases[base][0]), getattr(peft, kind)(**{**settings, **more}))
    torch.manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) / 4)
    return model.eval()


def logits(model: Any) -> Any:
    if isinstance(model, nn.Module):
        with votive.no_grad():
            return model(votive.tensor(IDS)).logits
    with torch.no_grad():
        return votive.tensor(model(torch.tensor(IDS)).logits.tolist())


def base_of(name: str, bases: Any) -> Any:
    base = ROWS[name][0]
    return AUTO.get(base, AutoModelForCausalLM).from_pretrained(bases[base][1])


@pytest.mark.parametrize("name", ROWS)
def test_what_peft_writes_gives_its_outputs_and_the_other_way_round(name: str, bases: Any, tmp_path: Path) -> None:
    theirs = theirs_of(name, bases)
    want = logits(theirs)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = base_of(name, bases)
    plain = logits(ours)
    ours.load_adapter(tmp_path / "theirs")
    assert not votive.allclose(want[:, -5:], plain, atol=1e-2)
    assert votive.allclose(logits(ours), want, atol=2e-5, rtol=1e-4)
    assert not any(p.requires_grad for p in ours.parameters())
    with ours.disabled_adapters():
        assert votive.equal(logits(ours), plain)
    assert votive.allclose(logits(ours), want, atol=2e-5, rtol=1e-4)
    ours.save_adapter(tmp_path / "ours")
    back = peft.PeftModel.from_pretrained(copy.deepcopy(bases[ROWS[name][0]][0]), tmp_path / "ours").eval()
    assert votive.allclose(logits(back), want, atol=2e-5, rtol=1e-4)
    if "prompt" in name or name in ("p-tuning", "prefix"):
        with pytest.raises(ValueError, match="no weight"):
            ours.merge_adapter()
        assert votive.equal(logits(ours.unload()), plain)
        return
    ours.merge_adapter()
    assert votive.allclose(logits(ours), want, atol=1e-4, rtol=1e-4)
    ours.unmerge_adapter()
    with ours.disabled_adapters():
        assert votive.equal(logits(ours), plain)
    ours.save_pretrained(tmp_path / "merged")
    assert votive.allclose(logits(type(ours).from_pretrained(tmp_path / "merged")), want, atol=1e-4, rtol=1e-4)
    assert votive.allclose(logits(ours.merge_and_unload()), want, atol=1e-4, rtol=1e-4)
    assert not [n for n, _ in ours.named_modules() if "adapters" in n]
