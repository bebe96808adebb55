"""Adapters above weights in blocks: trained, resumed bit by bit, saved as PEFT has them, with the base as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive.cli import main
from votive.models import AutoModelForCausalLM
from votive.train import Recipe, train_language_model
from votive.train.adapter import base_model, recompute_layers

TEXT = "the cat sat on the mat and the dog sat on the log\n" * 120


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quantized model in a GGUF file."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer = votive.text.train_bpe([TEXT], 280, special_tokens=("<|endoftext|>",), progress=False)
    sizes = tiny_sizes.transformer(64, 96, layers=2, heads=4, vocab=len(tokenizer), kv_heads=2)
    votive.manual_seed(0)
    config = votive.models.Qwen3Config(**sizes, head_dim=16, tie_word_embeddings=True, max_position_embeddings=64)
    votive.models.Qwen3ForCausalLM(config).save_pretrained(folder / "whole")
    tokenizer.save_pretrained(folder / "whole")
    assert main(["quantize", str(folder / "whole"), str(folder / "base.gguf"), "--type", "q8_0", "--quiet"]) == 0
    return folder / "base.gguf"


def recipe(base: Path, **more: Any) -> Recipe:
    settings = {"base": str(base), "lora": 4, "context": 16, "batch_size": 4, "max_steps": 6, "lr": 5e-3}
    return Recipe.from_dict({**settings, "checkpoint_every": 3, "eval_every": 3, **more})


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("optimizer", ["adamw", "adamw8bit"])
def test_a_run_that_was_stopped_ends_with_the_same_adapters(
    base: Path, text: Path, tmp_path: Path, optimizer: str
) -> None:
    before = base.read_bytes()
    plan = recipe(base, optimizer_name=optimizer, lora_targets="q_proj,down_proj", lora=72)
    whole = train_language_model(text, plan, tmp_path / "whole", progress=False)

    class Stop:
        def __call__(self, trainer: Any) -> None:
            if trainer.step == 3:
                trainer.stop()

    train_language_model(text, plan, tmp_path / "parts", progress=False, callbacks=[Stop()])
    for path in (tmp_path / "parts" / "training").glob("step-*.safetensors"):
        held = votive.load(path)["model"]
        assert held
        assert all(".lora_" in name for name in held)  # nothing of the base
    again = train_language_model(text, plan, tmp_path / "parts", resume=True, progress=False)
    assert again.history["loss"] == whole.history["loss"]
    assert again.history["loss"][-1] < again.history["loss"][0] - 0.3
    files = [(tmp_path / f / "adapter_model.safetensors").read_bytes() for f in ("whole", "parts")]
    assert files[0] == files[1]
    assert base.read_bytes() == before
    if optimizer == "adamw8bit":
        kinds = {v.dtype for s in held_states(tmp_path / "whole") for n, v in s.items() if n.startswith("state")}
        assert votive.uint8 in kinds


def held_states(folder: Path) -> list[dict[str, Any]]:
    return list(votive.load(folder / "training" / "step-00000006.safetensors")["optimizer"]["state"].values())


def test_what_is_written_loads_above_its_base_and_predicts_the_same(base: Path, text: Path, tmp_path: Path) -> None:
    made = train_language_model(text, recipe(base), tmp_path / "out", progress=False)
    ids = votive.tensor([[5, 17, 200, 2, 90]])
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert again(ids).logits.equal(made.model(ids).logits)
    assert not (tmp_path / "out" / "config.json").exists()
    plain = AutoModelForCausalLM.from_pretrained(base)
    assert not again(ids).logits.allclose(plain(ids).logits)
    assert main(["generate", "the cat", "--model", str(tmp_path / "out"), "--max-new-tokens", "3", "--quiet"]) == 0


def test_layers_computed_again_give_the_same_gradients(base: Path) -> None:
    ids = votive.randint(0, 270, (2, 12), generator=votive.Generator().manual_seed(1))
    grads = []
    for again in (False, True):
        votive.manual_seed(0)
        model = base_model(recipe(base, gradient_checkpointing=again, lora_dropout=0.1)).train()
        for n, p in model.named_parameters():
            if n.endswith("lora_B"):
                p.data = votive.ones_like(p) / 50
        votive.manual_seed(7)
        model(ids, labels=ids).loss.backward()
        grads.append({n: p.grad for n, p in model.named_parameters() if p.requires_grad})
        assert all(p.dtype is votive.q8_0 for n, p in model.named_parameters() if n.endswith("base.weight"))
    assert all(g.equal(grads[1][n]) for n, g in grads[0].items())
    with pytest.raises(ValueError, match="no list of layers"):
        recompute_layers(votive.nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lora": 4}, "lora needs base"),
        ({"base": "x"}, "base needs lora"),
        ({"base": "x", "lora": 0}, "a positive integer"),
        ({"base": "x", "lora": 4, "hidden_size": 64}, "hidden_size is what the base has"),
        ({"base": "x", "lora": 4, "lora_dropout": 1.0}, "a fraction below 1"),
        ({"base": "x", "lora": 4, "lora_targets": []}, "names no layer"),
        ({"lora_alpha": 2.0}, "lora_alpha is for adapters"),
        ({"optimizer_name": "adam9"}, "adamw, adamw8bit, lion, lion8bit"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Recipe.from_dict(settings)


def test_the_command_trains_adapters_and_says_so(
    base: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "adapter"
    words = [
        "train",
        text,
        "--base",
        base,
        "--lora",
        2,
        "--lora-targets",
        "q_proj,v_proj",
        "--steps",
        2,
        "--context",
        16,
    ]
    more = ["--out", out, "--gradient-checkpointing", "--optimizer", "lion8bit", "--no-samples", "--quiet"]
    assert main([str(w) for w in (*words, *more)]) == 0
    assert "adapters of rank 2 for" in capsys.readouterr().out
    assert Recipe.from_dict(votive.models.config.read_json(out / "training" / "recipe.json")).lr == 2e-4
    assert main([str(w) for w in ("train", text, "--lora", 2, "--out", tmp_path / "x", "--quiet")]) == 1
    assert "lora needs base" in capsys.readouterr().err


def test_a_checkpoint_of_other_adapters_is_refused(base: Path, text: Path, tmp_path: Path) -> None:
    made = train_language_model(text, recipe(base, max_steps=3, lora_targets="q_proj"), tmp_path / "a", progress=False)
    assert made.held_out_loss is not None
    (tmp_path / "a" / "training" / "recipe.json").unlink()
    with pytest.raises(ValueError, match="of other trained parameters"):
        train_language_model(
            text, recipe(base, max_steps=3, lora_targets="k_proj"), tmp_path / "a", resume=True, progress=False
        )


def test_a_whole_model_may_be_computed_again_in_backward_as_well(text: Path, tmp_path: Path) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 270}
    plans = [Recipe(**sizes, context=8, max_steps=2, gradient_checkpointing=again) for again in (False, True)]
    made = [train_language_model(text, p, tmp_path / f"{i}", progress=False) for i, p in enumerate(plans)]
    assert made[0].history["loss"] == made[1].history["loss"]
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "1")
    assert again(votive.tensor([[1, 2]])).logits.equal(made[1].model(votive.tensor([[1, 2]])).logits)
