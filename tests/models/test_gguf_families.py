"""GGUF files of the families that llama.cpp knows: written, read, and compared with what others say of them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from votive.io.gguf import GGUFFile, write
from votive.models.gguf_families import FAMILIES, by_metadata
from votive.models.gguf_names import from_gguf, to_gguf
from votive.models.gguf_types import mixture

from .gguf_rows import CHANGES, row

IDS = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 3, 1, 60, 33, 2, 2, 17, 5]]
_FAR, _NEAR = {"rope_theta": 1e6, "rope_type": "default"}, {"rope_theta": 1e4, "rope_type": "default"}
# Logarithms of exponentials, and sums with one, are not the same to the last bit.
ALMOST = 3e-6


@cache
def model_of(name: str) -> Any:
    """A model whose weights are all random, and of a size that shows what they do."""
    found = row(name)
    made = getattr(models, found.ours)
    votive.manual_seed(0)
    model = made(made.config_class.from_dict(found.settings)).eval()
    with votive.no_grad():
        for parameter in model.parameters():
            parameter.add_(votive.randn(parameter.shape) * (0.1 if parameter.dim() < 2 else 0.2))
    return model


def logits(model: Any) -> Any:
    with votive.no_grad():
        return model(votive.tensor(IDS)).logits


@cache
def written(name: str) -> tuple[dict[str, Any], Any]:
    model = model_of(name)
    return to_gguf(model.config, model.state_dict())


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_comes_back_from_gguf_and_computes_the_same(name: str, tmp_path: Path) -> None:
    model, (metadata, tensors) = model_of(name), written(name)
    path = tmp_path / "model.gguf"
    write(path, tensors, metadata)
    again = models.AutoModelForCausalLM.from_pretrained(path)
    # What llama.cpp calls a llama is read as one.
    assert type(again) is (models.LlamaForCausalLM if name == "internlm3" else type(model))
    want, got = logits(model), logits(again)
    error = ((got - want).abs().max() / want.abs().max()).item()
    assert error <= ALMOST
    assert want.std().item() > 0.01, "a model that says the same of everything shows nothing"
    assert by_metadata(GGUFFile(path).metadata).model_type == (again.config.model_type)


@pytest.mark.parametrize("name", CHANGES)
def test_quantized_rows_survive_what_moves_them(name: str, tmp_path: Path) -> None:
    model, (metadata, tensors) = model_of(name), written(name)
    path = tmp_path / "model.gguf"
    types, told = mixture("Q8_0", metadata, tensors.names())
    write(path, tensors, metadata | told, types=types)
    stored = GGUFFile(path)
    blocks = [n for n in stored if stored.info(n).stored == "Q8_0"]
    assert not any(re.search(r"norm|bias|ssm_(a|d|conv1d|dt)|gate_inp|sinks", n) for n in blocks)
    # As numbers they are those of the model, but for rounding; as blocks they are these numbers.
    numbers = models.AutoModelForCausalLM.from_pretrained(path, dequantize=True)
    if not name.startswith("falcon h1"):  # whose multipliers are in the file's numbers
        own = {key: value for key, value in model.state_dict().items() if value.dim() > 1}
        for key, value in numbers.state_dict().items():
            if key in own:
                assert (value - own[key]).abs().max() <= 0.01 * own[key].abs().max(), key
    kept = models.AutoModelForCausalLM.from_pretrained(path).state_dict()
    there = {key: value for key, value in kept.items() if value.dtype is votive.q8_0}
    assert len(there) >= len(blocks) // 2
    for key, value in there.items():
        assert votive.equal(value.dequantize(), numbers.state_dict()[key]), key


@pytest.mark.parity
@pytest.mark.parametrize("name", CHANGES)
def test_names_and_keys_are_those_of_the_gguf_package(name: str) -> None:
    gguf = pytest.importorskip("gguf")
    metadata, tensors = written(name)
    arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == metadata["general.architecture"])
    allowed = {gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSORS[arch]}
    for stored in tensors.names():
        plain = re.sub(r"blk\.\d+\.", "blk.{bid}.", stored)
        assert plain in allowed or plain.rpartition(".")[0] in allowed, stored
    known = set()
    for group in ("General", "LLM", "Attention", "Rope", "SSM", "ShortConv"):
        told = [value for value in vars(getattr(gguf.Keys, group)).values() if isinstance(value, str)]
        known |= {value.replace("{arch}", metadata["general.architecture"]) for value in told}
    known |= {getattr(gguf.Keys.Tokenizer, key) for key in ("BOS_ID", "EOS_ID", "PAD_ID")}
    assert set(metadata) <= known
    # Where the tables of the package know what a checkpoint calls a tensor, it is stored under the name they say.
    table = gguf.get_tensor_name_map(arch, 8)
    for stored, part in tensors.entries.items():
        if part.change is None and len(part.names) == 1 and ".experts." not in part.names[0]:
            found = table.get_name(part.names[0], try_suffixes=(".weight", ".bias"))
            # Without experts, the net that all positions have is the only one, and called so.
            alone = name == "granite hybrid without experts" and found == stored.replace("ffn_down", "ffn_down_shexp")
            assert alone or found in (None, stored, stored.rpartition(".")[0]), part.names[0]


@pytest.mark.parity
@pytest.mark.parametrize("name", CHANGES)
def test_folders_of_transformers_become_the_same_file(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    found = row(name)
    made = getattr(transformers, found.theirs, None)
    if made is None or getattr(transformers, found.config, None) is None:
        pytest.skip(f"transformers has no {found.theirs}")
    torch.manual_seed(0)
    theirs = made(getattr(transformers, found.config)(**found.settings)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path / "folder")
    # What `votive convert` does: nothing but names and rows, no model between.
    config = votive.models.config.read_json(tmp_path / "folder" / "config.json")
    metadata, tensors = to_gguf(config, votive.io.open_weights(tmp_path / "folder"))
    write(tmp_path / "model.gguf", tensors, metadata)
    again = models.AutoModelForCausalLM.from_pretrained(tmp_path / "model.gguf")
    with torch.no_grad():
        want = theirs(torch.tensor(IDS)).logits.numpy()
    got = logits(again).numpy()
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


@pytest.mark.parity
@pytest.mark.parametrize("name", ["gpt oss", "granite moe with a shared net", "granite hybrid", "llama4", "glm4 moe"])
def test_a_file_becomes_a_folder_that_transformers_reads(name: str, tmp_path: Path) -> None:
    from votive.cli.conversion import open_input

    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    metadata, tensors = written(name)
    write(tmp_path / "model.gguf", tensors, metadata)
    made = open_input(str(tmp_path / "model.gguf"), False, print)  # as `votive convert` does
    (tmp_path / "folder").mkdir()
    votive.io.safetensors.save_file(dict(made.weights.items()), tmp_path / "folder" / "model.safetensors")
    (tmp_path / "folder" / "config.json").write_text(json.dumps(made.config))
    theirs, told = getattr(transformers, row(name).theirs).from_pretrained(
        tmp_path / "folder", output_loading_info=True, attn_implementation="eager"
    )
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    with torch.no_grad():
        found = theirs.eval()(torch.tensor(IDS)).logits.numpy()
    want = logits(model_of(name)).numpy()
    assert np.abs(found - want).max() <= 1e-4 * np.abs(want).max()
    assert np.abs(logits(models.AutoModelForCausalLM.from_pretrained(tmp_path / "folder")).numpy() - want).max() < 1e-3


def stored(name: str, tensor: str) -> Any:
    return written(name)[1].tensor(tensor).numpy()


def own(name: str, tensor: str) -> Any:
    return model_of(name).state_dict()[tensor].numpy()


def test_rows_are_in_the_order_that_llama_cpp_reads() -> None:
    # Bloom and GPT-NeoX: a query, a key and a value of each head in turn; stored by kind.
    t = own("bloom", "transformer.h.1.self_attention.query_key_value.weight")
    np.testing.assert_array_equal(stored("bloom", "blk.1.attn_qkv.weight")[8:16], t[24:32])
    np.testing.assert_array_equal(stored("bloom", "blk.1.attn_qkv.weight")[32:40], t[8:16])
    t = own("gpt neox", "gpt_neox.layers.0.attention.query_key_value.bias")
    np.testing.assert_array_equal(stored("gpt neox", "blk.0.attn_qkv.bias")[64:72], t[16:24])
    # Falcon: for each key head its queries, its key and its value.
    t = own("falcon of the new kind", "transformer.h.0.self_attention.query_key_value.weight")
    s = stored("falcon of the new kind", "blk.0.attn_qkv.weight")
    np.testing.assert_array_equal(s, np.concatenate([t[:16], t[32:48], t[16:24], t[48:56], t[24:32], t[56:64]]))
    # Queries of what descends from Llama are stored as pairs of neighbours.
    t = own("arcee", "model.layers.0.self_attn.q_proj.weight")
    np.testing.assert_array_equal(stored("arcee", "blk.0.attn_q.weight")[:4], t[[0, 4, 1, 5]])
    t = own("granite hybrid", "model.layers.1.self_attn.k_proj.weight")
    np.testing.assert_array_equal(stored("granite hybrid", "blk.1.attn_k.weight")[:4], t[[0, 4, 1, 5]])
    # Those of others are not: they pair halves, or checkpoints have neighbours themselves.
    for name in ("phi", "olmoe", "glm4", "ernie", "falcon h1"):
        scale = 1.4 if name == "falcon h1" else 1
        t = own(name, "model.layers.0.self_attn.q_proj.weight")
        np.testing.assert_allclose(stored(name, "blk.0.attn_q.weight"), t * scale, rtol=1e-6)


def test_what_is_computed_is_what_llama_cpp_expects() -> None:
    # One is added to the norms of Nemotron and of Qwen3-Next, but for the one inside the delta rule.
    t = own("nemotron", "model.layers.0.input_layernorm.weight")
    np.testing.assert_array_equal(stored("nemotron", "blk.0.attn_norm.weight"), t + 1)
    np.testing.assert_array_equal(
        stored("nemotron", "blk.0.attn_norm.bias"), own("nemotron", "model.layers.0.input_layernorm.bias")
    )
    t = own("qwen3 next", "model.layers.1.self_attn.q_norm.weight")
    np.testing.assert_array_equal(stored("qwen3 next", "blk.1.attn_q_norm.weight"), t + 1)
    t = own("qwen3 next", "model.layers.0.linear_attn.norm.weight")
    np.testing.assert_array_equal(stored("qwen3 next", "blk.0.ssm_norm.weight"), t)
    # How states fade.
    t = own("qwen3 next", "model.layers.0.linear_attn.A_log")
    np.testing.assert_allclose(stored("qwen3 next", "blk.0.ssm_a"), -np.exp(t), rtol=1e-6)
    t = own("bamba", "model.layers.0.mamba.A_log")
    np.testing.assert_allclose(stored("bamba", "blk.0.ssm_a"), -np.exp(t)[:, None], rtol=1e-6)
    assert stored("bamba", "blk.0.ssm_norm.weight").shape == (2, 32)
    # Falcon-H1's multipliers are in its weights.
    rows, by = [0, 50, 100, 120, 130], np.array([[0.5], [1.5], [0.8], [1.2], [0.9]], np.float32)
    t = own("falcon h1", "model.layers.0.mamba.in_proj.weight")
    np.testing.assert_allclose(stored("falcon h1", "blk.0.ssm_in.weight")[rows], t[rows] * 1.1 * by, rtol=1e-5)
    t = own("falcon h1", "model.embed_tokens.weight")
    np.testing.assert_allclose(stored("falcon h1", "token_embd.weight"), t * 3, rtol=1e-6)


def test_experts_and_latent_heads_lie_as_llama_cpp_reads_them() -> None:
    for name, gate in (("gpt oss", "mlp.experts.3.gate_proj"), ("granite moe", "block_sparse_moe.experts.3.gate_proj")):
        t = own(name, f"model.layers.0.{gate}.weight")
        np.testing.assert_array_equal(stored(name, "blk.0.ffn_gate_exps.weight")[3], t)
    np.testing.assert_array_equal(
        stored("gpt oss", "blk.0.ffn_up_exps.bias")[2], own("gpt oss", "model.layers.0.mlp.experts.2.up_proj.bias")
    )
    t = own("granite moe with a shared net", "model.layers.0.shared_mlp.input_linear.weight")
    np.testing.assert_array_equal(stored("granite moe with a shared net", "blk.0.ffn_up_shexp.weight"), t[24:])
    # Of 4 heads with 6 features that are not rotated and values of 5; the keys' part is transposed.
    t = own("deepseek v3 moe", "model.layers.0.self_attn.kv_b_proj.weight").reshape(4, 11, 12)
    np.testing.assert_array_equal(stored("deepseek v3 moe", "blk.0.attn_k_b.weight"), t[:, :6].swapaxes(1, 2))
    np.testing.assert_array_equal(stored("deepseek v3 moe", "blk.0.attn_v_b.weight"), t[:, 6:])
    metadata = written("deepseek v3 moe")[0]
    assert metadata["deepseek2.attention.head_count_kv"] == 1
    assert metadata["deepseek2.attention.key_length"] == 12 + 4
    assert metadata["deepseek2.attention.key_length_mla"] == 6 + 4


def test_older_files_of_deepseek_and_phi_are_read(tmp_path: Path) -> None:
    name = "deepseek v3 moe"
    metadata, tensors = written(name)
    arch = "deepseek2.attention."
    older = {k: v for k, v in metadata.items() if not k.endswith("_mla")} | {
        f"{arch}key_length": 10,
        f"{arch}value_length": 5,
    }
    plain = {n: t for n, t in tensors.items() if not n.endswith(("attn_k_b.weight", "attn_v_b.weight"))}
    for i in range(2):
        plain[f"blk.{i}.attn_kv_b.weight"] = model_of(name).state_dict()[f"model.layers.{i}.self_attn.kv_b_proj.weight"]
    write(tmp_path / "older.gguf", plain, older)
    again = models.AutoModelForCausalLM.from_pretrained(tmp_path / "older.gguf")
    assert votive.equal(logits(again), logits(model_of(name)))
    metadata, tensors = written("phi")
    plain = dict(tensors.items())
    for i in range(2):
        for end in ("weight", "bias"):
            plain[f"blk.{i}.attn_qkv.{end}"] = votive.cat([plain.pop(f"blk.{i}.attn_{n}.{end}") for n in "qkv"])
    write(tmp_path / "phi.gguf", plain, metadata)
    again = models.AutoModelForCausalLM.from_pretrained(tmp_path / "phi.gguf")
    assert votive.equal(logits(again), logits(model_of("phi")))


def test_layers_that_predict_further_tokens_are_left_out(tmp_path: Path) -> None:
    metadata, tensors = written("glm4 moe")
    plain = dict(tensors.items()) | {
        "blk.2.nextn.eh_proj.weight": votive.ones(4, 4),
        "blk.2.attn_norm.weight": votive.ones(32),
    }
    told = metadata | {"glm4moe.block_count": 3, "glm4moe.nextn_predict_layers": 1}
    write(tmp_path / "model.gguf", plain, told)
    config, source = from_gguf(GGUFFile(tmp_path / "model.gguf"))
    assert config["num_hidden_layers"] == 2
    assert not any("layers.2." in name for name in source.names())
    again = models.AutoModelForCausalLM.from_pretrained(tmp_path / "model.gguf")
    assert votive.equal(logits(again), logits(model_of("glm4 moe")))


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("falcon", {"alibi": True}, "alibi is True; GGUF files of falcon always mean False"),
        ("gpt bigcode", {"multi_query": False}, "multi_query is False"),
        ("mpt", {"attn_config": {"softmax_scale": 0.7}}, "attn_config.softmax_scale is 0.7"),
        ("olmo3", {"rope_parameters": {"full_attention": _FAR, "sliding_attention": _NEAR}}, "have one"),
        ("gpt oss", {"layer_types": ["full_attention"] * 2}, "every other layer"),
        ("llama4", {"attention_chunk_size": 16}, "attention_chunk_size is 16"),
        ("llama4", {"moe_layers": [0, 1]}, "mean one in every 2 layers"),
        ("deepseek v3 moe stretched", {"rope_interleave": False}, "always mean pairs of neighbours"),
        ("minicpm3", {"scale_emb": 3}, "scale_emb is 3"),
        ("granite hybrid", {"layer_types": ["full_attention"] * 3}, "no layer of this model has a state"),
        ("nemotron h", {"layers_block_type": ["moe", "mlp"]}, "have one kind"),
        ("qwen3 next", {"layer_types": ["full_attention"] * 2 + ["linear_attention"] * 2}, "every n-th"),
        ("ernie moe", {"moe_layer_end_index": 1}, "mean the last layer"),
        ("exaone moe", {"mlp_layer_types": ["sparse", "dense", "sparse"]}, "the first ones are dense"),
        ("dots1", {"sliding_window": 4, "layer_types": ["sliding_attention"] * 3}, "all see all"),
        ("arcee", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
    ],
)  # fmt: skip
def test_what_files_cannot_say_is_refused(name: str, change: dict[str, Any], match: str) -> None:
    config = {**row(name).settings, **change, "model_type": model_of(name).config.model_type}
    with pytest.raises(ValueError, match=match):
        to_gguf(config, model_of(name).state_dict())


@pytest.mark.parametrize("name", ["gpt oss", "deepseek v2 moe", "nemotron h", "qwen3 next", "falcon", "granite hybrid"])
@pytest.mark.parametrize("value", [None, True, "many", -1, [1, 2], [], 1 << 50])
def test_wrong_metadata_gives_a_clear_error_or_a_configuration(name: str, value: Any, tmp_path: Path) -> None:
    metadata, tensors = written(name)
    path = tmp_path / "model.gguf"
    write(path, tensors, metadata)
    file = GGUFFile(path)
    for key in metadata:
        told = {k: v for k, v in (metadata | {key: value}).items() if v is not None}
        file.metadata = told
        try:
            config, _ = from_gguf(file)
        except (ValueError, votive.io.FileFormatError):
            continue
        assert config["model_type"] in {f.model_type for f in FAMILIES}
