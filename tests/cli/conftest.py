"""Small models and files that the commands run on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive.cli import main

TEXT = "Once upon a time there was a king who had three sons.\nThe youngest said: I will go.\n" * 30
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder: Path, *, chat: bool = False, seed: int = 0) -> Path:
    """A folder with a tiny Qwen3 of random weights and a tokenizer."""
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    tokenizer = votive.text.train_bpe(
        [TEXT], 320, special_tokens=special, progress=False, chat_template=CHAT if chat else None
    )
    config = votive.models.Qwen3Config(
        **tiny_sizes.transformer(32, 64, layers=2, heads=4, vocab=len(tokenizer), kv_heads=2),
        head_dim=8,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        max_position_embeddings=256,
        initializer_range=0.3,
    )
    votive.manual_seed(seed)
    model = votive.models.Qwen3ForCausalLM(config)
    model.generation_config = {"eos_token_id": tokenizer.eos_token_id}
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_pictures(folder: Path, tokenizer: Any) -> None:
    """Pictures, if pillow is here, and small models that see and read."""
    sees: dict[str, Any] = {**tiny_sizes.transformer(16, 20, layers=1, heads=2), "image_size": 32, "patch_size": 8}
    models = votive.models
    models.ViTForImageClassification(models.ViTConfig(**sees)).save_pretrained(folder / "seeing")
    models.ViTImageProcessor(size=32).save_pretrained(folder / "seeing")
    writes = models.TrOCRConfig(
        vocab_size=len(tokenizer), **tiny_sizes.trocr(16, 20, layers=1, heads=2), max_position_embeddings=16
    )
    config = models.VisionEncoderDecoderConfig(encoder=models.ViTConfig(**sees), decoder=writes)
    models.VisionEncoderDecoderModel(config).save_pretrained(folder / "reading")
    models.TrOCRProcessor(models.ViTImageProcessor(size=32), tokenizer).save_pretrained(folder / "reading")
    net = votive.vision.models.mobilenet_v2()
    votive.io.safetensors.save_file(net.state_dict(), folder / "mobilenet_v2.safetensors")
    try:
        from PIL import Image
    except ImportError:
        return
    for name, size in (("photo.png", (50, 40)), ("line.png", (90, 20))):
        Image.new("RGB", size, (200, 120, 30)).save(folder / name)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that continues texts."""
    return make_model(tmp_path_factory.mktemp("models") / "plain")


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a chat template."""
    return make_model(tmp_path_factory.mktemp("models") / "chat", chat=True)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A safetensors file with tensors of several types."""
    votive.manual_seed(0)
    path = tmp_path / "weights.safetensors"
    tensors = {
        "model.layers.0.mlp.up.weight": votive.randn(64, 32),
        "model.layers.1.mlp.up.weight": votive.randn(64, 32),
        "model.embed.weight": votive.randn(40, 32).bfloat16(),
        "bias": votive.tensor([0.0, float("nan"), float("inf"), 1.0]),
        "steps": votive.tensor(3),
    }
    votive.io.safetensors.save_file(tensors, path, {"format": "pt", "note": "x" * 300})
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command: `run("inspect", path)` gives (exit code, stdout, stderr)."""

    def call(*words: Any) -> tuple[int, str, str]:
        code = main([str(w) for w in words])
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


@pytest.fixture
def run_json(run: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a command that must succeed and gives the JSON it wrote."""

    def call(*words: Any) -> Any:
        code, out, err = run(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return call
