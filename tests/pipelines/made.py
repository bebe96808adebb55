"""Folders of small models with random weights, and what compares results of both libraries."""

from __future__ import annotations

import functools
import pathlib
import tempfile
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with transformers")
transformers = pytest.importorskip("transformers", reason="compares with transformers")

WORDS = """the a cat dog sat on mat ran to hill my name is sarah and i live in london this example text about news
sport ##s ##ed ##ing ##on lon par ##is who where what ? . , ! new york"""
SMALL = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 48,
}  # fmt: skip
LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
SAID = "my name is sarah and i live in london , new york . the cats ran to paris"


def same(got: Any, expected: Any, where: str = "", tolerance: float = 1e-5) -> None:
    """Equal in form, names and texts, and in numbers up to rounding."""
    if isinstance(expected, dict):
        assert list(got) == list(expected), f"{where}: {list(got)}, not {list(expected)}"
        for key in expected:
            same(got[key], expected[key], f"{where}.{key}", tolerance)
    elif isinstance(expected, list | tuple):
        assert type(got) is type(expected), f"{where}: {type(got)}"
        assert len(got) == len(expected), f"{where}: {len(got)}, not {len(expected)}"
        for i, (a, b) in enumerate(zip(got, expected, strict=True)):
            same(a, b, f"{where}[{i}]", tolerance)
    elif isinstance(expected, float | np.floating):
        assert isinstance(got, float | np.floating)
        assert abs(float(got) - float(expected)) <= tolerance * max(1.0, abs(float(expected))), where
    elif hasattr(expected, "getbands"):
        assert np.array_equal(np.asarray(got), np.asarray(expected)), where
    else:
        assert got == expected, f"{where}: {got!r}, not {expected!r}"


@functools.cache
def place() -> pathlib.Path:
    """A folder for the whole run."""
    return pathlib.Path(tempfile.mkdtemp(prefix="pipelines"))


@functools.cache
def tokenizer() -> Any:
    """A tokenizer of words and their parts."""
    vocabulary = place() / "vocab.txt"
    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
    words = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split(), *letters])
    vocabulary.write_text("\n".join(words) + "\n", "utf-8")
    return transformers.BertTokenizer(str(vocabulary), model_max_length=32)


@functools.cache
def folder(kind: str, family: str = "Bert", **config: Any) -> pathlib.Path:
    """A folder with a model of a class such as ForMaskedLM, larger weights than usual, and the tokenizer."""
    torch.manual_seed(0)
    tok = tokenizer()
    own = dict(config)
    if family == "GPT2":
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "bos_token_id": 2, "eos_token_id": 3}
    elif family == "Bart":
        sizes = {
            "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
            "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "bos_token_id": 2,
            "eos_token_id": 3, "pad_token_id": 0, "decoder_start_token_id": 2, "forced_eos_token_id": None,
            "max_position_embeddings": 64,
        }  # fmt: skip
    else:
        sizes = dict(SMALL)
    made = getattr(transformers, f"{family}Config")(vocab_size=len(tok), **{**sizes, **own})
    names = {"GPT2ForCausalLM": "GPT2LMHeadModel"}
    model = getattr(transformers, names.get(f"{family}{kind}", f"{family}{kind}"))(made).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(8.0)
    path = place() / f"{family}{kind}{len(list(place().iterdir()))}"
    model.save_pretrained(path)
    tok.save_pretrained(path)
    return path


def theirs(task: str, path: pathlib.Path, **options: Any) -> Any:
    """transformers' pipeline of a folder."""
    return transformers.pipeline(task, model=str(path), device="cpu", **options)
