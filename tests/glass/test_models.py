"""The engine looks into every model of the package as it is, and into none of them by name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import glass
from votive.glass import values
from votive.models import auto, auto_table

from .seers import SEERS, UNASKED

SMALL: dict[str, Any] = {
    "vocab_size": 61,
    **tiny_sizes.transformer(16, 24, layers=2, heads=2),
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "initializer_range": 0.2,
}
BY_FAMILY: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 61, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "initializer_range": 0.2},
    "t5": {
        "vocab_size": 61,
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 24,
        "num_layers": 2,
        "num_heads": 2,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
    },
    "mixtral": {**SMALL, "num_local_experts": 3, "num_experts_per_tok": 2},
    "qwen3_moe": {**SMALL, "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 12},
    "distilbert": {
        "vocab_size": 61,
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 24,
        "max_position_embeddings": 32,
    },
}
SEES: dict[str, Any] = {
    **tiny_sizes.transformer(16, 24, layers=2, heads=2),
    "image_size": 16,
    "patch_size": 8,
    "initializer_range": 0.2,
}
WRITES: dict[str, Any] = {
    "vocab_size": 61,
    **tiny_sizes.trocr(16, 24, layers=2, heads=2),
    "max_position_embeddings": 32,
    "init_std": 0.2,
}
BY_FAMILY |= {
    "vit": SEES,
    "deit": SEES,
    "beit": {**SEES, "use_relative_position_bias": True},
    "clip": {"text_config": SMALL, "vision_config": SEES},
    "clip_vision_model": SEES,
    "trocr": WRITES,
    "whisper": {
        "vocab_size": 61,
        "num_mel_bins": 8,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "d_model": 16,
        "max_source_positions": 12,
        "max_target_positions": 32,
        "init_std": 0.2,
        "pad_token_id": 0,
        "decoder_start_token_id": 1,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "vision-encoder-decoder": {"encoder": {**SEES, "model_type": "vit"}, "decoder": {**WRITES, "model_type": "trocr"}},
}
# Decoders from before Llama, where sizes have other names.
BY_FAMILY |= {
    "codegen": {**SMALL, "num_attention_heads": 4, "rotary_dim": 2},
    "ctrl": {**SMALL, "dff": 24},
    "gpt_neo": {**SMALL, "attention_types": [[["global", "local"], 1]], "window_size": 3},
    "gpt_neox": {**SMALL, "rotary_pct": 0.5},
    "gptj": {**SMALL, "rotary_dim": 4},
    "opt": {**SMALL, "ffn_dim": 24},
    "xglm": {**SMALL, "ffn_dim": 24},
}
# Decoders whose keys and values are made of few features.
LATENT: dict[str, Any] = {
    **SMALL,
    "num_key_value_heads": 2,
    "kv_lora_rank": 6,
    "q_lora_rank": 5,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
}
_MIXED = {**LATENT, "moe_intermediate_size": 12, "n_routed_experts": 4, "num_experts_per_tok": 2}
BY_FAMILY |= {
    "deepseek_v2": {**_MIXED, "first_k_dense_replace": 1},
    "deepseek_v3": {**_MIXED, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1},
    "minicpm3": LATENT,
}
# Decoders whose sizes must fit each other, or that say nothing by themselves.
SPACE = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 6, "mamba_n_groups": 2, "mamba_chunk_size": 4}
_READS = {"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 24}
BY_FAMILY |= {
    "bamba": {**SMALL, **SPACE, "attn_layer_indices": [1]},
    "blenderbot": {**WRITES, **_READS},
    "dots1": {**SMALL, "moe_intermediate_size": 12, "n_routed_experts": 4, "num_experts_per_tok": 2},
    "granitemoehybrid": {**SMALL, **SPACE, "layer_types": ["mamba", "attention"], "num_local_experts": 4},
    "hunyuan_v1_moe": {**SMALL, "num_experts": 3, "moe_topk": 2},
    "lfm2_moe": {**SMALL, "layer_types": ["conv", "full_attention"], "num_experts": 4, "moe_intermediate_size": 12},
    "mamba2": {**SMALL, "num_heads": 4, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 4},
    "plbart": {**WRITES, **_READS},
}
# Few experts, whatever a family calls their number: what it does not know it keeps and does not read.
_FEW: dict[str, Any] = {
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size"), 12),
}
_NET = {"linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
BY_FAMILY |= {
    f: {**SMALL, **_FEW} for f in ("flex_olmo", "gpt_oss", "granitemoe", "granitemoe_swa", "granitemoeshared")
}
BY_FAMILY |= {f: {**SMALL, **_FEW} for f in ("ernie4_5_moe", "jamba", "llama4_text", "minimax", "minimax_m2", "olmoe")}
BY_FAMILY |= {f: {**SMALL, **_FEW} for f in ("exaone_moe", "glm4_moe", "phimoe", "qwen2_moe", "solar_open")}
# Layers that keep states, and one with attention.
BY_FAMILY["qwen3_next"] = {**SMALL, **_FEW, **_NET, "full_attention_interval": 2}
BY_FAMILY["jamba"] |= {"attn_layer_period": 2, "attn_layer_offset": 1}
BY_FAMILY["nemotron_h"] = {**SMALL, "n_routed_experts": 2, "num_experts_per_tok": 2}
BY_FAMILY["recurrent_gemma"] = {**SMALL, "block_types": ["recurrent", "attention"]}
# What is added to the stream, and the logits, are scaled.
BY_FAMILY["granite"] = {**SMALL, "residual_multiplier": 0.5, "logits_scaling": 3.0, "embedding_multiplier": 2.0}
BY_FAMILY["falcon_h1"] = {**SMALL, **SPACE, "mamba_d_ssm": 32}
FAMILIES = sorted(auto_table.FAMILIES)
# Where what is asked of a model takes long: families whose layers differ by more than sizes and names.
_DISTINCT = """
    albert bart beit bert bloom clip clip_vision_model convnext deberta deepseek_v3 deit detr dinov2 distilbert
    falcon falcon_h1 gemma gemma2 gemma3 gemma3_text gpt2 gpt_neo gpt_oss gptj granitemoehybrid hubert jamba lfm2
    llama llama4_text llava mamba2 minimax mistral mixtral modernbert mpt nemotron_h olmo2 phi3 qwen2 qwen2_vl
    qwen3 qwen3_moe qwen3_next recurrent_gemma resnet roberta rwkv segformer siglip2 swin t5 trocr vision-encoder-
    decoder vit whisper
"""
DISTINCT = [f for f in FAMILIES if f in _DISTINCT.split()]
_USES = ("seq2seq", "causal", "masked", "image_text", "base")


def made(family: str) -> tuple[Any, dict[str, Any]]:
    """A small model of a family, with its head if it has one, and what it is called with."""
    sizes, given_by = SEERS.get(family, (BY_FAMILY.get(family, SMALL), None))
    config = auto.AutoConfig.from_dict({"model_type": family, **sizes})
    classes = auto._family(family)[1]
    votive.manual_seed(0)
    model = next(classes[u][0] for u in _USES if u in classes)(config)
    if given_by is not None:
        for p in model.parameters():  # pictures are heard of from the beginning
            if p.dim() > 1 and not p.any():
                votive.nn.init.normal_(p, std=0.2)
        return model.eval(), given_by()
    ids = votive.tensor([[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])
    pictures = {"pixel_values": votive.rand(2, 3, 16, 16)}
    if "vision2seq" in classes:
        return model.eval(), {**pictures, "decoder_input_ids": ids[:, :3]}
    if "speech" in classes:
        return model.eval(), {"input_features": votive.randn(2, 8, 24), "decoder_input_ids": ids}
    if "zero_shot_image" in classes:
        return model.eval(), {"input_ids": ids, **pictures}
    if family in BY_FAMILY and "image_size" in BY_FAMILY[family]:
        return model.eval(), pictures
    given = {"input_ids": ids}
    if "seq2seq" in classes:
        given["decoder_input_ids"] = ids[:, :3]
    return model.eval(), given


def result(out: Any) -> Any:
    return values.first(out)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_is_the_same_under_the_eye_and_every_call_has_one_address(family: str) -> None:
    model, given = made(family)
    with votive.no_grad():
        plain = result(model(**given))
        with glass.capture(model, ["**", "/**"], policy="stats") as seen:
            watched = result(model(**given))
        with votive.debug(model, **given) as d:
            stepped = result(d.finish())
            count = d.index
            d.jump(count // 2)
            again = result(d.finish())
    assert votive.equal(plain, watched)
    assert votive.equal(plain, stepped)
    assert votive.equal(plain, again)
    assert all(len(kept) == 1 for kept in seen.kept.values())
    called = {str(k.address.module) for kept in seen.kept.values() for k in kept}
    unused = {n for n, m in model.named_modules() if n not in called and _is_leaf(m)} - UNASKED.get(family, set())
    assert not unused, f"never called: {sorted(unused)}"


def _is_leaf(module: Any) -> bool:
    return not list(module.children()) and bool(list(module.parameters(recurse=False)))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_edit_inside_a_layer_changes_what_the_model_says(family: str) -> None:
    model, given = made(family)
    called = [str(n.address) for n in glass.tree(model, **given).walk()]
    layers = [n for n in called if re.search(r"(layers|layer|h|blocks?)\.0(\.layer)?(\.0)?$", n)]
    assert layers, "no first layer was found"
    with votive.no_grad():
        plain = result(model(**given))
        with glass.patch(model, {f"^{layers[0]}": lambda v: v * 0 + 1}) as receipt:
            changed = result(model(**given))
    assert receipt.fired >= 1
    assert not votive.allclose(plain, changed)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_seen_at_the_addresses_of_the_forward_run(family: str) -> None:
    model, given = made(family)
    modules = {n for n, _ in model.named_modules()}
    with votive.debug(model, loss=lambda out: result(out).float().square().mean(), **given) as d:
        found = set()
        while d.run(until=lambda f: f.kind == "grad") is not None:
            assert d.address is not None
            found.add(d.address.module)
    assert len(found) > 5
    assert all(m in modules for m in found if "." in m)


def test_the_engine_imports_no_model() -> None:
    for path in Path(glass.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert "models" not in (node.module or "").split("."), path.name
