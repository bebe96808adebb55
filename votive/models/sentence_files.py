"""Sentence encoders written as sentence-transformers reads them. Knows the folder's files; knows no family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import votive
from votive import nn

from .adapter_files import save_adapter
from .adapter_layers import adapters_of
from .checkpoint import write_json
from .config import StrPath

# What may follow the product of a dense layer.
ACTIVATIONS = {"Identity": nn.Identity, "Tanh": nn.Tanh, "ReLU": nn.ReLU, "GELU": nn.GELU}
_PARTS = "sentence_transformers.models."
# In this order sentence-transformers joins several.
_POOLINGS = (
    "cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken",
)  # fmt: skip


def save_encoder(encoder: Any, folder: StrPath) -> None:
    """Write an encoder: its model (or only the adapter in it), tokenizer, pooling, dense layers and settings."""
    out = Path(folder)
    if encoder.pooling != [name for name in _POOLINGS if name in encoder.pooling]:
        raise ValueError(
            f"save_pretrained: sentence-transformers joins poolings in the order {', '.join(_POOLINGS)}, not "
            f"{', '.join(encoder.pooling)}."
        )
    if not hasattr(encoder.tokenizer, "save_pretrained"):
        raise TypeError(
            f"save_pretrained: the tokenizer is a {type(encoder.tokenizer).__name__}, which has no save_pretrained; "
            "encoders with one of votive.text can be written."
        )
    for layer in encoder.dense:
        _check_dense(layer)
    out.mkdir(parents=True, exist_ok=True)
    if adapters_of(encoder.model) is None:
        encoder.model.save_pretrained(out)
    else:
        save_adapter(encoder.model, out)
    encoder.tokenizer.save_pretrained(out)
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")]
    _write(out / "1_Pooling", _pooling(encoder))
    for layer in encoder.dense:
        path = f"{len(parts)}_Dense"
        parts.append((path, "Dense"))
        _write_dense(out / path, layer)
    if encoder.normalize:
        path = f"{len(parts)}_Normalize"
        parts.append((path, "Normalize"))
        (out / path).mkdir(exist_ok=True)
    rows = [{"idx": i, "name": str(i), "path": path, "type": _PARTS + kind} for i, (path, kind) in enumerate(parts)]
    write_json(out / "modules.json", rows)
    write_json(
        out / "sentence_bert_config.json", {"max_seq_length": encoder.max_length, "do_lower_case": encoder.lower_case}
    )
    write_json(
        out / "config_sentence_transformers.json",
        {
            "prompts": encoder.prompts,
            "default_prompt_name": encoder.default_prompt,
            "similarity_fn_name": encoder.compared,
        },
    )


def _pooling(encoder: Any) -> dict[str, Any]:
    chosen = {f"pooling_mode_{name}": name in encoder.pooling for name in _POOLINGS}
    return {
        "word_embedding_dimension": encoder.model.config.hidden_size,
        **chosen,
        "include_prompt": encoder.include_prompt,
    }


def _write(folder: Path, settings: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", settings)


def _check_dense(layer: Any) -> None:
    kinds = [type(part).__name__ for part in layer] if isinstance(layer, nn.Sequential) else [type(layer).__name__]
    if len(kinds) != 2 or kinds[0] != "Linear" or kinds[1] not in ACTIVATIONS:
        raise ValueError(
            f"save_pretrained: dense layers are written as Sequential(Linear, activation) with "
            f"{', '.join(ACTIVATIONS)}; got {', '.join(kinds)}."
        )


def _write_dense(folder: Path, layer: Any) -> None:
    linear, activation = layer[0], type(layer[1]).__name__
    home = "linear" if activation == "Identity" else "activation"
    settings = {
        "in_features": linear.in_features,
        "out_features": linear.out_features,
        "bias": linear.bias is not None,
        "activation_function": f"torch.nn.modules.{home}.{activation}",
    }
    _write(folder, settings)
    weights = {f"linear.{name}": value.detach().contiguous() for name, value in linear.state_dict().items()}
    votive.io.safetensors.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
