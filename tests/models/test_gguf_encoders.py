"""GGUF files of encoders, and of T5: written, read, and compared with what others say of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from tests import tiny_sizes
from votive.io.gguf import GGUFFile, write
from votive.models.gguf_names import to_gguf

_SIZES: dict[str, Any] = {
    **tiny_sizes.transformer(32, 48, layers=2, heads=4, vocab=64), "max_position_embeddings": 40, "pad_token_id": 1,
    "initializer_range": 0.3,
}  # fmt: skip
_T5 = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
ROWS: dict[str, dict[str, Any]] = {
    "bert": {**_SIZES, "pad_token_id": 0},
    "roberta": {**_SIZES, "type_vocab_size": 1},
    "xlm-roberta": _SIZES,
    "camembert": _SIZES,
    "distilbert": {"vocab_size": 64, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "nomic_bert": {**_SIZES, "pad_token_id": 0},
    "modernbert": {**_SIZES, "num_hidden_layers": 5, "pad_token_id": 0, "local_attention": 4},
    "eurobert": {**_SIZES, "num_key_value_heads": 2, "pad_token_id": 0},
    "t5": {**_T5, "num_decoder_layers": 3},
    "mt5": {**_T5, "tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"},
    "umt5": {**_T5, "feed_forward_proj": "gated-gelu"},
}
# What files of these are read as.
READ_AS = {"roberta": "bert", "xlm-roberta": "bert", "camembert": "bert", "distilbert": "bert", "mt5": "t5"}


@cache
def model_of(kind: str) -> Any:
    votive.manual_seed(0)
    auto = models.AutoModelForSeq2SeqLM if kind.endswith("t5") else models.AutoModel
    model = auto.from_config(models.AutoConfig.from_dict({"model_type": kind, **ROWS[kind]})).eval()
    with votive.no_grad():
        for parameter in model.parameters():
            parameter.add_(votive.randn(parameter.shape) * 0.1)
    return model


def states(model: Any) -> Any:
    ids = votive.tensor([[3, 4, 5, 6, 7, 8, 9, 33, 2]])
    with votive.no_grad():
        if "T5" in type(model).__name__:
            return model(ids, decoder_input_ids=ids[:, :5]).logits
        return model(ids).last_hidden_state


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("quantized", [False, True])
def test_an_encoder_comes_back_from_gguf_and_computes_the_same(kind: str, quantized: bool, tmp_path: Path) -> None:
    from votive.models.gguf_types import mixture

    model, path = model_of(kind), tmp_path / "model.gguf"
    metadata, tensors = to_gguf(model.config, model.state_dict())
    types, told = mixture("Q8_0" if quantized else None, metadata, tensors.names())
    write(path, tensors, metadata | told, types=types)
    auto = models.AutoModelForSeq2SeqLM if kind.endswith("t5") else models.AutoModel
    again = auto.from_pretrained(path, dequantize=quantized)
    assert again.config.model_type == READ_AS.get(kind, kind)
    want, got = states(model), states(again)
    if quantized:
        assert ((got - want).abs().mean() / want.abs().mean()).item() < 0.1
    else:
        assert ((got - want).abs().max() / want.abs().max()).item() <= 1e-6


@pytest.mark.parity
@pytest.mark.parametrize("kind", ROWS)
def test_names_are_those_of_the_gguf_package(kind: str) -> None:
    gguf = pytest.importorskip("gguf")
    model = model_of(kind)
    metadata, tensors = to_gguf(model.config, model.state_dict())
    arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == metadata["general.architecture"])
    allowed = {gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSORS[arch]}
    table = gguf.get_tensor_name_map(arch, 8)
    for stored, part in tensors.entries.items():
        assert re.sub(r"blk\.\d+\.", "blk.{bid}.", stored).rpartition(".")[0] in allowed, stored
        if part.change is None:
            assert table.get_name(part.names[0], try_suffixes=(".weight", ".bias")) in (None, stored), part.names[0]


@pytest.mark.parity
@pytest.mark.parametrize("kind", sorted(set(ROWS) - {"distilbert"}))
def test_folders_of_transformers_become_the_same_file(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **ROWS[kind])
    auto = transformers.AutoModelForSeq2SeqLM if kind.endswith("t5") else transformers.AutoModel
    theirs = auto.from_config(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path / "folder")
    told = models.config.read_json(tmp_path / "folder" / "config.json")
    metadata, tensors = to_gguf(told, votive.io.open_weights(tmp_path / "folder"))
    write(tmp_path / "model.gguf", tensors, metadata)
    ours = models.AutoModelForSeq2SeqLM if kind.endswith("t5") else models.AutoModel
    again = ours.from_pretrained(tmp_path / "model.gguf")
    ids = torch.tensor([[3, 4, 5, 6, 7, 8, 9, 33, 2]])
    with torch.no_grad():
        found = theirs(ids, decoder_input_ids=ids[:, :5]).logits if kind.endswith("t5") else theirs(ids)[0]
    want, got = found.numpy(), states(again).numpy()
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


def test_positions_of_roberta_begin_at_the_first_row(tmp_path: Path) -> None:
    model = model_of("roberta")
    metadata, tensors = to_gguf(model.config, model.state_dict())
    table = model.state_dict()["embeddings.position_embeddings.weight"]
    assert metadata["bert.context_length"] == 38
    assert metadata["tokenizer.ggml.token_type_count"] == 1
    assert votive.equal(tensors.tensor("position_embd.weight"), table[2:])
    write(tmp_path / "model.gguf", tensors, metadata)
    assert GGUFFile(tmp_path / "model.gguf").metadata["bert.attention.causal"] is False


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("t5", {"feed_forward_proj": "gated-silu"}, "feed_forward_proj is 'gated-silu'"),
        ("t5", {"relative_attention_max_distance": 64}, "relative_attention_max_distance is 64"),
        ("t5", {"num_layers": 3}, "tensors are missing"),
        ("t5", {"num_layers": 1}, "have no place for"),
        (
            "modernbert",
            {"layer_types": ["full_attention"] + ["sliding_attention"] * 2 + ["full_attention"] * 2},
            "n-th",
        ),
        ("eurobert", {"attention_bias": True}, "attention_bias is True"),
        ("distilbert", {"activation": "relu"}, "activation is 'relu'"),
    ],
)
def test_what_files_cannot_say_is_refused(kind: str, change: dict[str, Any], match: str) -> None:
    config = {"model_type": kind, **ROWS[kind], **change}
    with pytest.raises(ValueError, match=match):
        to_gguf(config, model_of(kind).state_dict())
