"""Whisper's weights under the names of others: OpenAI's files and CTranslate2's.

Knows names and which tensors lie in one; knows no way to compute.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..io import WeightSource
from ..io.source import TableSource
from ..serialization.container import FileFormatError
from .whisper_vocabulary import Vocabulary

_OPENAI = (
    (r"^(?:model_state_dict|model)\.(?=encoder\.|decoder\.)", ""),
    (r"\.positional_embedding$", ".embed_positions.weight"),
    (r"^decoder\.token_embedding\.", "decoder.embed_tokens."),
    (r"\.blocks\.", ".layers."),
    (r"\.cross_attn\.", ".encoder_attn."),
    (r"\.cross_attn_ln\.", ".encoder_attn_layer_norm."),
    (r"\.attn\.", ".self_attn."),
    (r"\.attn_ln\.", ".self_attn_layer_norm."),
    (r"_attn\.(query|key|value)\.", lambda m: f"_attn.{m[1][0]}_proj."),
    (r"_attn\.out\.", "_attn.out_proj."),
    (r"\.mlp\.0\.", ".fc1."),
    (r"\.mlp\.2\.", ".fc2."),
    (r"\.mlp_ln\.", ".final_layer_norm."),
    (r"^encoder\.ln_post\.", "encoder.layer_norm."),
    (r"^decoder\.ln\.", "decoder.layer_norm."),
)
# Heads whose attention follows what is being said, as published with each model.
ALIGNMENT: dict[str, list[list[int]]] = {
    "tiny.en": [[1, 0], [2, 0], [2, 5], [3, 0], [3, 1], [3, 2], [3, 3], [3, 4]],
    "tiny": [[2, 2], [3, 0], [3, 2], [3, 3], [3, 4], [3, 5]],
    "base.en": [[3, 3], [4, 7], [5, 1], [5, 5], [5, 7]],
    "base": [[3, 1], [4, 2], [4, 3], [4, 7], [5, 1], [5, 2], [5, 4], [5, 6]],
    "small.en": [[6, 6], [7, 0], [7, 3], [7, 8], [8, 2], [8, 5], [8, 7], [9, 0], [9, 4], [9, 8],
                 [9, 10], [10, 0], [10, 1], [10, 2], [10, 3], [10, 6], [10, 11], [11, 2], [11, 4]],
    "small": [[5, 3], [5, 9], [8, 0], [8, 4], [8, 7], [8, 8], [9, 0], [9, 7], [9, 9], [10, 5]],
    "medium.en": [[11, 4], [14, 1], [14, 12], [14, 14], [15, 4], [16, 0], [16, 4], [16, 9],
                  [17, 12], [17, 14], [18, 7], [18, 10], [18, 15], [20, 0], [20, 3], [20, 9],
                  [20, 14], [21, 12]],
    "medium": [[13, 15], [15, 4], [15, 15], [16, 1], [20, 0], [23, 4]],
    "large-v1": [[9, 19], [11, 2], [11, 4], [11, 17], [22, 7], [22, 11], [22, 17], [23, 2],
                 [23, 15]],
    "large-v2": [[10, 12], [13, 17], [16, 11], [16, 12], [16, 13], [17, 15], [17, 16], [18, 4],
                 [18, 11], [18, 19], [19, 11], [21, 2], [21, 3], [22, 3], [22, 9], [22, 12],
                 [23, 5], [23, 7], [23, 13], [25, 5], [26, 1], [26, 12], [27, 15]],
    "large-v3": [[7, 0], [10, 17], [12, 18], [13, 12], [16, 1], [17, 14], [19, 11], [21, 4],
                 [24, 1], [25, 6]],
    "large-v3-turbo": [[2, 4], [2, 11], [3, 3], [3, 6], [3, 11], [3, 14]],
}  # fmt: skip


def later_half(layers: int, heads: int) -> list[list[int]]:
    """All heads of the later half of layers, which OpenAI's program takes where none are told.

    >>> from votive.models.whisper_names import later_half
    >>> later_half(2, 3)
    [[1, 0], [1, 1], [1, 2]]
    """
    return [[layer, head] for layer in range(layers // 2, layers) for head in range(heads)]


def from_openai(source: WeightSource) -> Any:
    """A source under Hugging Face's names, where it has OpenAI's; others stay as they are.

    >>> from votive.models.whisper_names import from_openai
    >>> source = votive.io.MemorySource({"encoder.blocks.0.attn.query.weight": votive.ones(2, 2)})
    >>> from_openai(source).names()
    ['encoder.layers.0.self_attn.q_proj.weight']
    """
    if not any(".blocks." in name for name in source.names()):
        return source

    def rule(name: str) -> str | None:
        for pattern, new in _OPENAI:
            name = re.sub(pattern, new, name)
        # Older files hold the causal mask.
        return None if name == "decoder.mask" else name

    return source.renamed(rule)


def openai_checkpoint(source: WeightSource, name: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The configuration and the generation settings of OpenAI's .pt file; None for other files.

    `name` is that of the file: it tells models of one size apart.
    """
    dims = source.metadata.get("dims")
    if not isinstance(dims, dict) or "n_audio_state" not in dims:
        return None
    config = {
        "model_type": "whisper",
        "num_mel_bins": dims["n_mels"],
        "vocab_size": dims["n_vocab"],
        "max_source_positions": dims["n_audio_ctx"],
        "d_model": dims["n_audio_state"],
        "encoder_attention_heads": dims["n_audio_head"],
        "encoder_layers": dims["n_audio_layer"],
        "encoder_ffn_dim": 4 * dims["n_audio_state"],
        "max_target_positions": dims["n_text_ctx"],
        "decoder_attention_heads": dims["n_text_head"],
        "decoder_layers": dims["n_text_layer"],
        "decoder_ffn_dim": 4 * dims["n_text_state"],
    }
    return _completed(config, name)


def _completed(
    config: dict[str, Any], name: str = "", stored: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A configuration with its tokens, and settings of generation as files of Hugging Face have."""
    try:
        settings = Vocabulary.of_size(config["vocab_size"]).settings()
    except ValueError:
        settings = {}
    config |= {k: v for k, v in settings.items() if k.endswith("_token_id") and k in _IDS}
    stored = stored or {}
    settings["max_length"] = config["max_target_positions"]
    heads = stored.get("alignment_heads") or ALIGNMENT.get(name)
    layers = config["decoder_layers"]
    if heads is None or any(layer >= layers for layer, _ in heads):
        # What OpenAI's program takes where nothing is said: the heads of the later half.
        heads = later_half(layers, config["decoder_attention_heads"])
    settings["alignment_heads"] = heads
    for ours, theirs in (("suppress_tokens", "suppress_ids"), ("begin_suppress_tokens", "suppress_ids_begin")):
        if theirs in stored:
            settings[ours] = stored[theirs]
    return config, settings


_IDS = ("decoder_start_token_id", "eos_token_id", "bos_token_id", "pad_token_id")


def ctranslate2_checkpoint(file: Any, stored: dict[str, Any]) -> tuple[Any, Any, WeightSource]:
    """Configuration, generation settings and weights of a model.bin; `stored` is its config.json."""
    if file.spec != "WhisperSpec":
        raise FileFormatError(f"{file.path.name} holds a {file.spec} of CTranslate2; only Whisper is read from there.")
    width, mels, _ = file.info("encoder/conv1/weight").shape
    config: dict[str, Any] = {
        "model_type": "whisper",
        "num_mel_bins": mels,
        "d_model": width,
        "vocab_size": file.info("decoder/embeddings/weight").shape[0],
        "max_source_positions": file.info("encoder/position_encodings/encodings").shape[0],
        "max_target_positions": file.info("decoder/position_encodings/encodings").shape[0],
    }
    for side in ("encoder", "decoder"):
        layers = [int(m[1]) for n in file.names() if (m := re.match(rf"{side}/layer_(\d+)/", n))]
        config[f"{side}_layers"] = max(layers, default=-1) + 1
        config[f"{side}_attention_heads"] = file.number(f"{side}/num_heads", max(1, width // 64))
        inner = f"{side}/layer_0/ffn/linear_0/weight"
        config[f"{side}_ffn_dim"] = file.info(inner).shape[0] if inner in file else 4 * width
    config, settings = _completed(config, stored=stored)
    return config, settings, CTranslate2Names(file)


_CT2_WHOLE = {
    "encoder/position_encodings/encodings": "encoder.embed_positions.weight",
    "decoder/position_encodings/encodings": "decoder.embed_positions.weight",
    "decoder/embeddings/weight": "decoder.embed_tokens.weight",
}
_CT2_PARTS = {
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
    "ffn/layer_norm": "final_layer_norm",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "self_attention/linear_1": "self_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_2": "encoder_attn.out_proj",
}
# Several matrices that CTranslate2 multiplies at once lie in one.
_CT2_JOINED = {"self_attention/linear_0": ("self_attn", "qkv"), "attention/linear_1": ("encoder_attn", "kv")}
_ENDS = {"gamma": "weight", "beta": "bias"}


class CTranslate2Names(TableSource[tuple[str, int, int]]):
    """A Whisper of CTranslate2 with a tensor for each parameter, under Hugging Face's names."""

    def __init__(self, file: Any) -> None:
        self.file, self.metadata = file, file.metadata
        # New name: (name, which part, of how many).
        self.entries: dict[str, tuple[str, int, int]] = {}
        for name in file.names():
            self._add(name)
        self._open: tuple[str, Any] = ("", None)

    def _add(self, name: str) -> None:
        if len(self.file.info(name).shape) == 0:
            return  # numbers, which the configuration holds
        if name in _CT2_WHOLE:
            self.entries[_CT2_WHOLE[name]] = (name, 0, 1)
            return
        path, _, end = name.rpartition("/")
        end = _ENDS.get(end, end)
        found = re.fullmatch(r"(encoder|decoder)/layer_(\d+)/(.*)", path)
        if found is None:
            self.entries[path.replace("/", ".") + f".{end}"] = (name, 0, 1)
            return
        side, number, part = found.groups()
        layer = f"{side}.layers.{number}"
        if part not in _CT2_JOINED:
            self.entries[f"{layer}.{_CT2_PARTS.get(part, part)}.{end}"] = (name, 0, 1)
            return
        module, each = _CT2_JOINED[part]
        for i, which in enumerate(each):
            if (which, end) != ("k", "bias"):  # zeros: keys have no bias
                self.entries[f"{layer}.{module}.{which}_proj.{end}"] = (name, i, len(each))

    def info(self, name: str) -> Any:
        old, _, count = self._entry(name)
        info = self.file.info(old)
        shape = (info.shape[0] // count, *info.shape[1:])
        return replace(info, name=name, shape=shape, nbytes=info.nbytes // count)

    def _read(self, name: str) -> Any:
        old, i, count = self._entry(name)
        if count == 1:
            return self.file._read(old)
        rows = self.file.info(old).shape[0] // count
        return self.file.slice(old, slice(i * rows, (i + 1) * rows))

    def close(self) -> None:
        self.file.close()
