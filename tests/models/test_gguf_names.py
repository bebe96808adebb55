"""GGUF files of models: configuration, names and tensors, there, back, and as others see it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import votive
from votive.models.gguf_config import llama3_factors, llama3_scaling
from votive.models.gguf_families import LLAMA, MIXTRAL
from votive.models.gguf_names import from_gguf, to_gguf
from votive.models.gguf_tensors import hf_name

from .gguf_checkpoints import CONFIGS, checkpoint, written


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
        if (kind.startswith("gemma") and "norm" in name) or name.endswith("A_log"):
            # One was added and taken away, or the logarithm is that of an exponential.
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
            name = f"{start}.experts.{rest.partition('.')[2]}".replace("feed_forward", "mlp")
        name = name.replace(".dt_bias", ".dt_proj.bias")
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
