"""llama2.c files of each version, their tokenizer, and files that only claim to be such."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import votive
from votive.io import FileFormatError, MemorySource, llama2c
from votive.io.rotary import halves, neighbours

DATA = Path(__file__).parent / "data"
STORIES = DATA / "stories260K.bin"
TOKENS = DATA / "tok512.bin"
SIZES = (8, 16, 2, 2, 1, 5, 6)  # dim, hidden, layers, heads, kv_heads, vocab, length
SHAPES = {
    "rms_att": (2, 8),
    "rms_ffn": (2, 8),
    "rms": (8,),
    "tokens": (5, 8),
    "wq": (2, 8, 8),
    "wk": (2, 4, 8),
    "wv": (2, 4, 8),
    "wo": (2, 8, 8),
    "w1": (2, 16, 8),
    "w2": (2, 8, 16),
    "w3": (2, 16, 8),
    "classifier": (5, 8),
}


def parts() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {k: rng.standard_normal(v).astype(np.float32) for k, v in SHAPES.items()}


def versioned(version: int, shared: bool, group: int = 4) -> bytes:
    """A file as llama2.c's export.py lays it out."""
    head = struct.pack("<Ii7iB", 0x616B3432, version, *SIZES, shared)
    head += struct.pack("<i", group) if version == 2 else b""
    out = head.ljust(256, b"\0")
    for name, values in parts().items():
        if name == "classifier" and shared:
            continue
        if version == 1 or name.startswith("rms"):
            out += values.tobytes()
            continue
        for one in values if name.startswith("w") else [values]:
            q, s = quantized(one, group)
            out += q.tobytes() + s.tobytes()
    return out


def quantized(values: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    rows = values.reshape(-1, group)
    scale = np.abs(rows).max(axis=1, keepdims=True) / np.float32(127)
    return np.rint(rows / scale).astype(np.int8), scale.astype(np.float32)


def test_the_stored_model_has_the_names_shapes_and_numbers_of_a_llama() -> None:
    file = llama2c.open(STORIES)
    assert len(file) == 5 * 9 + 2
    assert file.info("model.layers.4.self_attn.k_proj.weight").shape == (32, 64)
    config = file.config
    assert (config["hidden_size"], config["intermediate_size"]) == (64, 172)
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (8, 4)
    assert config["tie_word_embeddings"]
    assert config["vocab_size"] == 512
    first = np.fromfile(STORIES, np.float32, 512 * 64, offset=28).reshape(512, 64)
    np.testing.assert_array_equal(file.tensor("model.embed_tokens.weight").numpy(), first)
    np.testing.assert_array_equal(file.slice("model.embed_tokens.weight", (3, slice(4))).numpy(), first[3, :4])


def test_open_weights_recognises_the_format() -> None:
    with votive.io.open_weights(STORIES) as source:
        assert "model.norm.weight" in source


def test_the_stored_model_tells_its_known_story() -> None:
    model = votive.models.AutoModelForCausalLM.from_pretrained(STORIES)
    pieces, _ = llama2c.tokenizer(TOKENS)
    ids = [1]
    with votive.no_grad():
        for _ in range(40):
            ids.append(int(model(votive.tensor([ids])).logits[0, -1].argmax()))
    text = b"".join(pieces[i] for i in ids[1:]).decode().strip()
    assert text.startswith("Once upon a time, there was a little girl named Lily. She loved to pla")


def test_queries_and_keys_are_in_the_order_of_halves(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(versioned(1, True))
    q = llama2c.open(path).tensor("model.layers.1.self_attn.q_proj.weight").numpy()
    wq = parts()["wq"][1]
    for head in range(2):
        rows = [4 * head + r for r in (0, 2, 1, 3)]
        np.testing.assert_array_equal(q[4 * head : 4 * head + 4], wq[rows])
    index = (slice(1, 3), slice(2))
    got = llama2c.open(path).slice("model.layers.1.self_attn.q_proj.weight", index)
    np.testing.assert_array_equal(got.numpy(), q[index])


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_two_orders_are_inverse_to_each_other(heads: int) -> None:
    x = votive.randn(16, 3)
    assert votive.equal(neighbours(halves(x, heads), heads), x)
    assert votive.equal(halves(neighbours(x, heads), heads), x)
    # Pair i of a head: rows 2i, 2i + 1 go to i, i + D/2.
    d = 16 // heads
    assert votive.equal(halves(x, heads)[d // 2], x[1])
    with pytest.raises(ValueError, match="16 rows do not make 3 heads"):
        halves(x, 3)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_later_versions_are_read(tmp_path: Path, version: int, shared: bool) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(versioned(version, shared))
    file = llama2c.open(path)
    assert ("lm_head.weight" in file) == (not shared)
    assert file.config["tie_word_embeddings"] == shared
    p = parts()
    want = {
        "model.embed_tokens.weight": p["tokens"],
        "model.layers.1.mlp.down_proj.weight": p["w2"][1],
        "model.layers.0.self_attn.v_proj.weight": p["wv"][0],
    }
    if not shared:
        want["lm_head.weight"] = p["classifier"]
    for name, values in want.items():
        if version == 2:
            q, s = quantized(values, 4)
            values = (q.astype(np.float32) * s).reshape(values.shape)
            assert file.info(name).stored == "I8 in groups of 4"
            assert file.info(name).nbytes == values.size * 2
        np.testing.assert_array_equal(file.tensor(name).numpy(), values)
        np.testing.assert_array_equal(file.slice(name, slice(1, 2)).numpy(), values[1:2])
    np.testing.assert_array_equal(
        file.tensor("model.layers.1.post_attention_layernorm.weight").numpy(), p["rms_ffn"][1]
    )


def test_writing_the_stored_model_gives_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "again.bin"
    file = llama2c.open(STORIES)
    llama2c.write(path, file, file.config)
    got, want = (np.fromfile(p, np.float32, offset=28) for p in (path, STORIES))
    tables = 2 * 512 * 4  # cosines and sines at the end, which nobody reads
    np.testing.assert_array_equal(got[:-tables], want[:-tables])
    np.testing.assert_allclose(got[-tables:], want[-tables:], atol=1e-4)
    assert path.read_bytes()[:28] == STORIES.read_bytes()[:28]


def test_an_untied_classifier_is_written_and_read(tmp_path: Path) -> None:
    first = tmp_path / "v1.bin"
    first.write_bytes(versioned(1, False))
    file = llama2c.open(first)
    path = tmp_path / "v0.bin"
    llama2c.write(path, file, file.config)
    again = llama2c.open(path)
    assert again.version == 0
    assert again.config == file.config
    for name in file:
        assert votive.equal(again.tensor(name), file.tensor(name))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"model_type": "qwen3"}, "model_type is 'qwen3'"),
        ({"rope_theta": 500000.0}, "rope_theta is 500000.0"),
        ({"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}, "rope_theta is 500000"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2}}, "rope_scaling is"),
        ({"rms_norm_eps": 1e-6}, "rms_norm_eps is 1e-06"),
        ({"head_dim": 16}, "head_dim is 16"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"vocab_size": None}, "lacks vocab_size"),
        ({"num_hidden_layers": 6}, r"9 tensors are missing: \['model.layers.5"),
        ({"num_hidden_layers": 4}, r"no place for \['model.layers.4"),
        ({"intermediate_size": 170}, r"gate_proj.weight has shape \(172, 64\); .* \(170, 64\)"),
        ({"tie_word_embeddings": False}, r"missing: \['lm_head.weight'\]"),
    ],
)
def test_models_that_the_format_cannot_hold_are_refused(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    file = llama2c.open(STORIES)
    with pytest.raises(ValueError, match=match):
        llama2c.write(tmp_path / "m.bin", file, file.config | change)
    assert not list(tmp_path.iterdir())


def test_a_plain_dict_of_tensors_can_be_written(tmp_path: Path) -> None:
    file = llama2c.open(STORIES)
    tensors = {name: file.tensor(name, dtype=votive.float64) for name in file}
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    llama2c.write(tmp_path / "a.bin", tensors, file.config)
    llama2c.write(tmp_path / "b.bin", MemorySource(tensors), file.config)
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes()


def test_the_tokenizer_has_pieces_and_scores() -> None:
    pieces, scores = llama2c.tokenizer(TOKENS)
    assert len(pieces) == len(scores) == 512
    assert pieces[0] == b"<unk>"
    assert pieces[3] == b"<0x00>"
    assert scores[-1] == -252.0


def test_a_cut_off_tokenizer_is_refused(tmp_path: Path) -> None:
    raw = TOKENS.read_bytes()
    path = tmp_path / "tok.bin"
    good = 0
    for size in range(300):
        path.write_bytes(raw[:size])
        try:
            llama2c.tokenizer(path)
            good += 1
        except FileFormatError:
            pass
    assert good < 40  # only where a piece ends
    path.write_bytes(struct.pack("<ifi", 7, 0.0, 1 << 30))
    with pytest.raises(FileFormatError, match="should have 1073741824 bytes"):
        llama2c.tokenizer(path)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_cut_off_or_longer_file_is_refused(tmp_path: Path, version: int) -> None:
    raw = versioned(version, True) if version else STORIES.read_bytes()
    path = tmp_path / "m.bin"
    for content in (raw[:0], raw[:27], raw[:200], raw[:300], raw[:-1], raw + b"\0"):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"m\.bin"):
            llama2c.open(path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([-1, 0, 1, 2, 8, 3, 2**31 - 1, -(2**31)]), min_size=9, max_size=9))
def test_headers_that_make_no_sense_are_refused(tmp_path: Path, numbers: list[int]) -> None:
    path = tmp_path / "m.bin"
    magic = struct.pack("<I", 0x616B3432)
    for raw in (struct.pack("<7i", *numbers[:7]), magic + struct.pack("<9i", *numbers)):
        path.write_bytes(raw.ljust(400, b"\1"))
        try:
            file = llama2c.open(path)
        except FileFormatError:
            continue
        for name in file:  # a small model that fits by chance
            file.tensor(name)
