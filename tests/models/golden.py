"""Small models whose weights come from a formula, so that what they give can be stored."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import votive
import votive.models as models
from tests import tiny_sizes

FILE = Path(__file__).parent / "data" / "golden.npz"
IDS = [[3, 17, 5, 20, 9, 4, 11], [8, 2, 14, 6, 22, 7, 19]]
LABELS = [[5, 12, 1], [21, 3, 1]]

_SMALL: dict[str, Any] = {
    "vocab_size": 24,
    **tiny_sizes.transformer(16, 20, layers=2, heads=4),
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GEMMA: dict[str, Any] = {**_SMALL, "head_dim": 8, "sliding_window": 3, "query_pre_attn_scalar": 12}
_BERT = {k: v for k, v in _SMALL.items() if k != "num_key_value_heads"}
_T5: dict[str, Any] = {
    "vocab_size": 24,
    "d_model": 16,
    "d_kv": 4,
    "d_ff": 20,
    "num_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 6,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}

_SEES: dict[str, Any] = {**tiny_sizes.transformer(16, 20, layers=2, heads=4), "image_size": 16, "patch_size": 8}
_CLIP: dict[str, Any] = {"text_config": {**_BERT, "eos_token_id": 23}, "vision_config": _SEES, "projection_dim": 8}
_TROCR: dict[str, Any] = {
    "vocab_size": 24,
    **tiny_sizes.trocr(16, 20, layers=2, heads=4),
    "max_position_embeddings": 16,
}

_WHISPER: dict[str, Any] = {
    "vocab_size": 24,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_mel_bins": 8,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_source_positions": 6,
    "max_target_positions": 8,
    "decoder_start_token_id": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}

# Name: (class of votive, which transformers has too, and its configuration).
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {**_SMALL, "rope_scaling": _LLAMA3}),
    "mistral": ("MistralForCausalLM", {**_SMALL, "sliding_window": 3}),
    "qwen2": ("Qwen2ForCausalLM", _SMALL),
    "qwen3": ("Qwen3ForCausalLM", {**_SMALL, "head_dim": 8, "tie_word_embeddings": True}),
    "gpt2": (
        "GPT2LMHeadModel",
        {
            "vocab_size": 24,
            "n_embd": 16,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 32,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    "mixtral": ("MixtralForCausalLM", {**_SMALL, "num_local_experts": 4}),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        {
            **_SMALL,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "norm_topk_prob": True,
            "mlp_only_layers": [0],
            "head_dim": 8,
        },
    ),
    "gemma": ("GemmaForCausalLM", {**_SMALL, "head_dim": 8}),
    "gemma2": ("Gemma2ForCausalLM", _GEMMA),
    "gemma3": ("Gemma3ForCausalLM", {**_GEMMA, "sliding_window_pattern": 2}),
    "phi3": ("Phi3ForCausalLM", {**_SMALL, "pad_token_id": 0}),
    "bert": ("BertForMaskedLM", _BERT),
    "bert_classes": ("BertForSequenceClassification", {**_BERT, "num_labels": 3}),
    "roberta": ("RobertaForMaskedLM", _BERT),
    "distilbert": (
        "DistilBertForMaskedLM",
        {"vocab_size": 24, "dim": 16, "hidden_dim": 20, "n_layers": 2, "n_heads": 4},
    ),
    "t5": ("T5ForConditionalGeneration", _T5),
    "t5_v1_1": ("T5ForConditionalGeneration", {**_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "vit": ("ViTForImageClassification", {**_SEES, "num_labels": 3}),
    "deit": ("DeiTForImageClassificationWithTeacher", {**_SEES, "num_labels": 3}),
    "beit": ("BeitForImageClassification", {**_SEES, "use_relative_position_bias": True, "num_labels": 3}),
    "clip": ("CLIPModel", _CLIP),
    "trocr": (
        "VisionEncoderDecoderModel",
        {"encoder": {**_SEES, "model_type": "deit"}, "decoder": {**_TROCR, "model_type": "trocr"}},
    ),
    "whisper": ("WhisperForConditionalGeneration", _WHISPER),
}


def model_of(row: str) -> Any:
    """The model of a row with weights from the formula."""
    name, settings = ROWS[row]
    model_class = getattr(models, name)
    model = model_class(model_class.config_class.from_dict(settings))
    with votive.no_grad():
        for key, p in model.named_parameters():
            p.copy_(votive.tensor(numbers(key, tuple(p.shape))))
    return model.eval()


def numbers(name: str, shape: tuple[int, ...]) -> Any:
    """Numbers that depend on a parameter's name and shape only: those of a norm are near one."""
    # Raw words of the generator are the same in every release of NumPy; its floats need not be.
    raw = np.random.Philox(key=zlib.crc32(name.encode())).random_raw(int(np.prod(shape)))
    spread = raw.astype(np.float64).reshape(shape) / 2.0**63 - 1.0
    if len(shape) > 1:
        return (spread * 2.0 / np.sqrt(shape[-1])).astype(np.float32)
    near = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
    return (near + 0.2 * spread).astype(np.float32)


def scores(found: Any) -> Any:
    """What is compared of an output."""
    return found.logits_per_image if "logits_per_image" in found else found.logits


def inputs(row: str, tensor: Callable[[Any], Any]) -> dict[str, Any]:
    """What a model of a row is called with, as tensors of either library."""
    pixels = numbers("pixels", (2, 3, 16, 16))
    if row in ("vit", "deit", "beit"):
        return {"pixel_values": tensor(pixels)}
    if row == "clip":
        ends = [[*ids[:4], 23, 0, 0] for ids in IDS]
        return {"input_ids": tensor(ends), "pixel_values": tensor(pixels)}
    if row == "whisper":
        return {"input_features": tensor(numbers("mels", (2, 8, 12))), "labels": tensor(LABELS)}
    if row == "trocr":
        return {"pixel_values": tensor(pixels), "labels": tensor(LABELS)}
    found = {"input_ids": tensor(IDS)}
    return {**found, "labels": tensor(LABELS)} if row.startswith("t5") else found
