"""`generate(compile=True)` gives the same tokens as without, for every family of decoders, with few versions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import votive
from tests.models.decoders import EXPERTS, ROWS
from votive import models
from votive.compiler import explain
from votive.generation.stepping import sees_part

PROMPT = [[5, 6, 7, 8], [9, 10, 11, 12]]
MASK = [[0, 1, 1, 1], [1, 1, 1, 1]]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOTIVE_JIT", "0")


def model_of(name: str) -> Any:
    votive.manual_seed(0)
    row = ROWS[name]
    return getattr(models, row.ours)(getattr(models, row.config).from_dict(row.settings)).eval()


def steps(model: Any, kind: str) -> Any:
    return explain(getattr(model.__dict__["_compiled_steps"], kind))


def same(model: Any, prompt: Any = PROMPT, **settings: Any) -> int:
    """Compares; gives the number of new tokens."""
    settings = {"eos_token_id": None, "max_new_tokens": 7, **settings}
    want = model.generate(votive.tensor(prompt), **settings)
    assert model.generate(votive.tensor(prompt), compile=True, **settings).tolist() == want.tolist()
    return int(want.shape[1]) - len(prompt[0])


@pytest.mark.parametrize("name", ROWS)
def test_every_family_gives_the_same_tokens(name: str) -> None:
    model = model_of(name)
    padded = name in ("llama", "qwen3", "gpt2", "gemma2", "mixtral")
    new = same(model, cache_implementation="dynamic")
    if padded:
        same(model, cache_implementation="dynamic", attention_mask=votive.tensor(MASK))
    windowed = any(sees_part(m) for m in model.modules())
    if windowed:
        with pytest.raises(ValueError, match="does not know windows"):
            same(model, cache_implementation="static")
    else:
        same(model, cache_implementation="static")
        if padded:
            same(model, cache_implementation="static", attention_mask=votive.tensor(MASK))
    if name not in EXPERTS and name not in ("llama rope dynamic", "phi3 for long texts"):
        found = steps(model, "growing")
        assert len(found.versions) <= 1 + padded + windowed  # texts within a window, and longer ones
        assert padded or sum(v.runs for v in found.versions) == new - 1


def test_texts_of_other_lengths_and_numbers_share_the_steps() -> None:
    model = model_of("llama")
    for rows, length, new in ((1, 3, 9), (3, 5, 7), (2, 9, 20)):
        prompt = votive.randint(3, 60, (rows, length)).tolist()
        same(model, prompt, max_new_tokens=new)
        same(model, prompt, max_new_tokens=new, do_sample=True, seed=3)
        same(model, prompt, max_new_tokens=new, num_beams=2)
    assert len(steps(model, "growing").versions) <= 3


def test_a_changed_weight_is_seen_and_a_copy_of_the_model_compiles_anew() -> None:
    model = model_of("gpt2")
    same(model)
    with votive.no_grad():
        for p in model.parameters():
            p.mul_(-1.3)
    same(model)
    twin = copy.deepcopy(model)
    same(twin)
    assert twin.__dict__["_compiled_steps"] is not model.__dict__["_compiled_steps"]


def test_what_cannot_be_compiled_is_refused() -> None:
    model = model_of("mistral")
    ids = votive.tensor(PROMPT)
    for settings, why in (
        ({"use_cache": False}, "needs use_cache=True"),
        ({"cache_implementation": "sliding"}, "a dynamic or a static cache"),
        ({"output_attentions": True, "return_dict_in_generate": True}, "no attentions"),
    ):
        with pytest.raises(ValueError, match=why):
            model.generate(ids, compile=True, max_new_tokens=4, **settings)


@pytest.mark.parametrize("name", ["bloom with other heads", "mpt with other heads", "falcon by distance"])
def test_scores_fall_with_the_distance_in_static_memory_too(name: str) -> None:
    model = model_of(name) if name in ROWS else falcon_by_distance()
    for mask in (None, votive.tensor(MASK)):
        ask: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 6, "eos_token_id": None, "output_logits": True}
        ask |= {"cache_implementation": "static", "return_dict_in_generate": True}
        plain = model.generate(votive.tensor(PROMPT), **ask).logits
        for a, b in zip(plain, model.generate(votive.tensor(PROMPT), compile=True, **ask).logits, strict=True):
            assert votive.allclose(a, b, atol=1e-5)


def falcon_by_distance() -> Any:
    votive.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return models.FalconForCausalLM(models.FalconConfig(**sizes, alibi=True, initializer_range=0.3)).eval()
