"""One helper: the weights of a Whisper as OpenAI and CTranslate2 name and join them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import votive
from tests import tiny_sizes
from votive.io import ctranslate2


def small(**other: Any) -> Any:
    """A Whisper with random weights."""
    votive.manual_seed(0)
    numbers = {
        "vocab_size": 51865,
        **tiny_sizes.whisper(16, layers=(2, 3), heads=2),
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_source_positions": 10,
        "decoder_start_token_id": 50258,
        "pad_token_id": 50257,
        "bos_token_id": 50257,
        "eos_token_id": 50257,
        "init_std": 0.3,
    }
    config = votive.models.WhisperConfig(**{**numbers, **other})
    return votive.models.WhisperForConditionalGeneration(config).eval()


# What OpenAI's files say of the sizes of a small one whose inner width is 64.
OPENAI_DIMS = {
    "n_mels": 80,
    "n_vocab": 51865,
    "n_audio_ctx": 10,
    "n_audio_state": 16,
    "n_audio_head": 2,
    "n_audio_layer": 2,
    "n_text_ctx": 448,
    "n_text_state": 16,
    "n_text_head": 2,
    "n_text_layer": 3,
}


def openai_names(model: Any) -> dict[str, Any]:
    """The state of a model under OpenAI's names."""
    out = {}
    for name, t in model.model.state_dict().items():
        name = name.replace(".layers.", ".blocks.").replace("embed_tokens", "token_embedding")
        name = name.replace("embed_positions.weight", "positional_embedding")
        name = re.sub(
            r"(self|encoder)_attn_layer_norm", lambda m: "attn_ln" if m[1] == "self" else "cross_attn_ln", name
        )
        name = name.replace("self_attn.", "attn.").replace("encoder_attn.", "cross_attn.")
        for new, old in (
            ("query", "q_proj"),
            ("key", "k_proj"),
            ("value", "v_proj"),
            ("out", "out_proj"),
            ("mlp_ln", "final_layer_norm"),
            ("mlp.0", "fc1"),
            ("mlp.2", "fc2"),
        ):
            name = name.replace(old, new)
        name = name.replace("encoder.layer_norm", "encoder.ln_post")
        out[name.replace("decoder.layer_norm", "decoder.ln")] = t.detach()
    return out


def ctranslate2_file(model: Any, path: Path, quantization: str = "float32") -> None:
    """Write a model as CTranslate2's converter does."""
    state, config = model.model.state_dict(), model.config
    out: dict[str, Any] = {}

    def add(name: str, *sources: str) -> None:
        for end, new in (("weight", "weight"), ("bias", "bias")):
            parts = []
            for s in sources:
                if f"{s}.{end}" in state:
                    parts.append(state[f"{s}.{end}"].detach())
                elif len(sources) > 1:
                    parts.append(votive.zeros(config.d_model))
            if not parts:
                continue
            new = {"weight": "gamma", "bias": "beta"}[end] if "layer_norm" in name else end
            w = votive.cat(parts) if len(parts) > 1 else parts[0]
            quantized = end == "weight" and "layer_norm" not in name
            out.update(stored(f"{name}/{new}", w, quantization, quantized))

    for side in ("encoder", "decoder"):
        positions = state[f"{side}.embed_positions.weight"].detach()
        out[f"{side}/position_encodings/encodings"] = positions
        out[f"{side}/num_heads"] = votive.tensor(config.encoder_attention_heads).to(votive.int16)
        add(f"{side}/layer_norm", f"{side}.layer_norm")
        for i in range(getattr(config, f"{side}_layers")):
            old, new = f"{side}.layers.{i}", f"{side}/layer_{i}"
            own = [f"{old}.self_attn.{k}_proj" for k in "qkv"]
            add(f"{new}/self_attention/linear_0", *own)
            add(f"{new}/self_attention/linear_1", f"{old}.self_attn.out_proj")
            add(f"{new}/self_attention/layer_norm", f"{old}.self_attn_layer_norm")
            add(f"{new}/ffn/linear_0", f"{old}.fc1")
            add(f"{new}/ffn/linear_1", f"{old}.fc2")
            add(f"{new}/ffn/layer_norm", f"{old}.final_layer_norm")
            if side == "decoder":
                add(f"{new}/attention/linear_0", f"{old}.encoder_attn.q_proj")
                other = [f"{old}.encoder_attn.{k}_proj" for k in "kv"]
                add(f"{new}/attention/linear_1", *other)
                add(f"{new}/attention/linear_2", f"{old}.encoder_attn.out_proj")
                add(f"{new}/attention/layer_norm", f"{old}.encoder_attn_layer_norm")
    for conv in ("conv1", "conv2"):
        add(f"encoder/{conv}", f"encoder.{conv}")
    add("decoder/embeddings", "decoder.embed_tokens")
    aliases = {"decoder/projection/weight": "decoder/embeddings/weight"}
    ctranslate2.write(path, "WhisperSpec", out, revision=3, aliases=aliases)


def stored(name: str, w: Any, quantization: str, quantized: bool) -> dict[str, Any]:
    """A variable as it lies in the file, with its scale where it has one."""
    kind, _, rest = quantization.partition("_")
    if not quantized or kind.startswith("float"):
        plain = kind if kind.startswith("float") else rest or "float32"
        return {name: w.to(getattr(votive, plain))}
    a = w.numpy()
    if kind == "int16":
        scale = np.float32(2**10 / np.abs(a).max())
        return {name: votive.tensor(np.rint(a * scale).astype(np.int16)), f"{name}_scale": votive.tensor(scale)}
    flat = a.reshape(len(a), -1)
    most = np.abs(flat).max(1)
    most[most == 0] = 127.0
    scale = (127.0 / most).astype(np.float32)
    q = np.rint(flat * scale[:, None]).astype(np.int8).reshape(a.shape)
    return {name: votive.tensor(q), f"{name}_scale": votive.tensor(scale)}
