"""Texts that outgrow the angles they began with: with a cache they are what they are without."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.models import LlamaConfig, LlamaForCausalLM, Phi3Config, Phi3ForCausalLM

from .tiny import SIZES

TRAINED = 8  # positions; prompts below are shorter and longer
SHORT, LONG = [1.0, 1.1, 1.5, 2.0], [2.0, 3.0, 5.0, 9.0]
SCALINGS: dict[str, Any] = {
    "default": None,
    "linear": {"rope_type": "linear", "factor": 2.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": TRAINED,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED},
    "longrope": {
        "rope_type": "longrope",
        "short_factor": SHORT,
        "long_factor": LONG,
        "original_max_position_embeddings": TRAINED,
    },
}
WAYS: dict[str, dict[str, Any]] = {
    "dynamic": {"cache_implementation": "dynamic"},
    "static": {"cache_implementation": "static"},
    "chunks": {"prefill_chunk_size": 3},
    "beams": {"num_beams": 3},
}
# Texts grow beyond what the model was made for, and generate says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore:generate. the text has become longer"),
    pytest.mark.filterwarnings("ignore:generate. the prompt has"),
]


def model(kind: str, seed: int = 0) -> Any:
    votive.manual_seed(seed)
    sizes = {**SIZES, "eos_token_id": None, "bos_token_id": None, "initializer_range": 0.4}
    if kind == "phi3":
        config: Any = Phi3Config(
            **{**sizes, "max_position_embeddings": 64, "pad_token_id": 0},
            original_max_position_embeddings=TRAINED,
            rope_scaling=SCALINGS["longrope"],
        )
        return Phi3ForCausalLM(config).eval()
    most = TRAINED if kind == "dynamic" else 64
    config = LlamaConfig(**{**sizes, "max_position_embeddings": most}, rope_scaling=SCALINGS[kind])
    return LlamaForCausalLM(config).eval()


def written(m: Any, ids: Any, **settings: Any) -> Any:
    return m.generate(ids, max_new_tokens=9, min_new_tokens=9, **settings).tolist()


def by_hand(m: Any, ids: Any) -> list[list[int]]:
    """Greedy, each token from a run over all before it."""
    ids = votive.tensor(ids)
    with votive.no_grad():
        for _ in range(9):
            ids = votive.cat([ids, m(ids).logits[:, -1:].argmax(-1)], 1)
    return ids.tolist()


@pytest.mark.parametrize("way", [w for w in WAYS if w != "beams"])
@pytest.mark.parametrize("prompt", [[5, 17, 3], [5, 17, 3, 42, 8, 29, 11, 2, 9, 30]], ids=len)
@pytest.mark.parametrize("kind", [*SCALINGS, "phi3"])
def test_a_cache_changes_no_token(kind: str, prompt: list[int], way: str) -> None:
    m = model(kind)
    assert written(m, [prompt], **WAYS[way]) == by_hand(m, [prompt])


@pytest.mark.parametrize("kind", ["dynamic", "longrope", "yarn"])
def test_a_cache_changes_no_beam(kind: str) -> None:
    m = model(kind)
    kept, free = (written(m, [[5, 17, 3]], num_beams=3, use_cache=use) for use in (True, False))
    assert kept == free


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_cache_changes_no_row_of_a_batch_with_padding(kind: str) -> None:
    m = model(kind)
    ids = votive.tensor([[0, 0, 0, 5, 17], [5, 3, 42, 8, 29]])
    mask = (ids != 0).long()
    kept, free = (written(m, ids, attention_mask=mask, use_cache=use) for use in (True, False))
    assert kept == free


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_drafts_change_no_token(kind: str) -> None:
    m = model(kind)
    assert written(m, [[5, 17, 3]], assistant_model=m) == by_hand(m, [[5, 17, 3]])


def test_a_prefix_cache_serves_longer_and_shorter_texts() -> None:
    m = model("longrope")
    cache = votive.generation.PrefixCache()
    for prompt in ([5, 17, 3], [5, 17, 3, 42, 8, 29, 11, 2, 9, 30], [5, 17, 3, 4]):
        assert written(m, [prompt], past_key_values=cache) == by_hand(m, [prompt])


@pytest.mark.parametrize("kind", ["dynamic", "longrope", "phi3"])
def test_a_model_refuses_a_cache_that_its_text_has_outgrown(kind: str) -> None:
    m = model(kind)
    ids = votive.arange(1, 12).unsqueeze(0)
    cache = nn.DynamicCache()
    with votive.no_grad():
        m(ids[:, :6], past_key_values=cache)
        near = m(ids[:, 6:8], past_key_values=cache).logits
        assert votive.allclose(near, m(ids[:, :8]).logits[:, 6:], atol=1e-5)
        with pytest.raises(ValueError, match=r"run the whole text with an empty cache"):
            m(ids[:, 8:9], past_key_values=cache)
        far = nn.DynamicCache()
        m(ids[:, :10], past_key_values=far)
        if kind != "dynamic":  # whose angles change with every position
            last = m(ids[:, 10:], past_key_values=far).logits
            assert votive.allclose(last, m(ids).logits[:, 10:], atol=1e-5)


def test_a_layer_refuses_a_cache_that_its_text_has_outgrown() -> None:
    rope = nn.RotaryEmbedding(4, TRAINED, scaling=SCALINGS["dynamic"])
    layer, cache = nn.GroupedQueryAttention(16, 4, 2, rope=rope), nn.DynamicCache()
    with votive.no_grad():
        layer(votive.ones(1, TRAINED, 16), cache=cache)
        with pytest.raises(ValueError, match="angles of all positions change"):
            layer(votive.ones(1, 1, 16), cache=cache)
