"""The fused step of a decoder: the same logits as its modules, and only where all is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import nn
from votive.models import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GemmaConfig,
    GemmaForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from votive.models.fused_decoder import FusedDecoder
from votive.nn.hooks import register_around

SMALL: dict[str, Any] = {
    "vocab_size": 61,
    **tiny_sizes.transformer(32, 48, layers=2, heads=4),
    "num_key_value_heads": 2,
    "initializer_range": 0.5,
    "max_position_embeddings": 64,
}
KNOWN: dict[str, Callable[[], Any]] = {
    "llama": lambda: llama(),
    "llama without shared heads": lambda: llama(num_key_value_heads=4),
    "llama tied": lambda: llama(tie_word_embeddings=True),
    "llama rope yarn": lambda: llama(rope_scaling={"rope_type": "yarn", "factor": 4.0}),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SMALL, head_dim=16)),
}


def llama(**changes: Any) -> Any:
    return LlamaForCausalLM(LlamaConfig(**{**SMALL, **changes}))


def scaled(model: Any) -> Any:
    """The model with norms whose scales are not one, so that they cannot be forgotten."""
    for part in model.modules():
        if isinstance(part, nn.RMSNorm):
            nn.init.uniform_(part.weight, 0.5, 1.5)
    return model.eval()


def steps(model: Any, tokens: Any, *, fused: bool) -> Any:
    """Logits of the tokens behind the first five, one by one; in float64."""
    cache = nn.StaticCache(12)
    found = []
    with votive.no_grad():
        model(tokens[:, :5], past_key_values=cache)
        for i in range(5, tokens.shape[1]):
            token = tokens[:, i : i + 1]
            if fused:
                # No kernel takes float64, so nothing is fused in it; here it shows the sums.
                wide = model.dtype == votive.float64
                step = FusedDecoder.read(model) if wide else FusedDecoder.of(model)
                assert step is not None
                found.append(step.step(token, votive.tensor([i]), cache))
            else:
                found.append(model(token, past_key_values=cache).logits)
            assert found[-1].shape == (2, 1, 61)
            assert found[-1].dtype == model.dtype
    return votive.cat(found, 1).double()


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64], ids=str)
@pytest.mark.parametrize("name", KNOWN)
def test_the_fused_step_gives_the_logits_of_the_modules(name: str, dtype: Any) -> None:
    votive.manual_seed(0)
    model = scaled(KNOWN[name]()).to(dtype)
    tokens = votive.randint(0, 61, (2, 9))
    want, got = (steps(model, tokens, fused=fused) for fused in (False, True))
    tol = 1e-4 if dtype == votive.float32 else 1e-11
    assert float((got - want).abs().max()) <= tol * float(want.abs().max())


@pytest.mark.parametrize("name", KNOWN)
def test_in_half_precision_the_fused_step_is_as_near_the_truth_as_the_modules(name: str) -> None:
    votive.manual_seed(0)
    model = scaled(KNOWN[name]()).to(votive.bfloat16)
    tokens = votive.randint(0, 61, (2, 9))
    halves = [steps(model, tokens, fused=fused) for fused in (False, True)]
    truth = steps(model.double(), tokens, fused=False)
    # The sums round at other places: on the mean over many logits neither may be far better.
    plain, fused = (float((half - truth).square().mean().sqrt()) for half in halves)
    assert fused <= 1.5 * plain


def hooked(path: str, kind: str) -> Any:
    model = llama()
    getattr(model.get_submodule(path), f"register_forward_{kind}")(lambda *given: None)
    return model


def surrounded() -> Any:
    model = llama()
    register_around(model.model.layers[1], lambda m, args, kwargs, go: go(args, kwargs))
    return model


UNKNOWN: dict[str, Callable[[], Any]] = {
    **{
        f"a {kind} on {path or 'the model'}": lambda path=path, kind=kind: hooked(path, kind)
        for path in (
            "",
            "model",
            "model.layers.1",
            "model.layers.0.self_attn",
            "model.layers.0.mlp.up_proj",
            "model.rotary_emb",
            "lm_head",
        )
        for kind in ("hook", "pre_hook")
    },
    "something around a layer": surrounded,
    "a bias in attention": lambda: llama(attention_bias=True),
    "a bias in the net": lambda: llama(mlp_bias=True),
    "qwen2, which has biases": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL)),
    "another activation": lambda: llama(hidden_act="gelu"),
    "a window": lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)),
    "angles that depend on the length": lambda: llama(rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
    "one product for queries, keys and values": lambda: Phi3ForCausalLM(Phi3Config(**SMALL, pad_token_id=0)),
    "experts": lambda: MixtralForCausalLM(MixtralConfig(**SMALL, num_local_experts=3)),
    "gemma": lambda: GemmaForCausalLM(GemmaConfig(**SMALL, head_dim=8)),
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SMALL, head_dim=8)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=61, n_embd=32, n_layer=1, n_head=4)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_left_to_the_modules(name: str) -> None:
    assert FusedDecoder.of(UNKNOWN[name]().eval()) is None


def test_float64_is_left_to_the_modules() -> None:
    assert FusedDecoder.of(llama().eval().double()) is None


def test_many_rows_of_wide_products_are_left_to_the_modules() -> None:
    small, wide = llama(), llama(intermediate_size=1 << 18)
    assert FusedDecoder.of(small.eval()).pays(8)
    assert not FusedDecoder.of(small.eval()).pays(9)
    assert FusedDecoder.of(wide.eval()).pays(1)
    assert not FusedDecoder.of(wide.eval()).pays(8)
    half = FusedDecoder.of(wide.eval().bfloat16())  # by tensor cores
    assert half.pays(64)
    assert not half.pays(65)


def test_training_is_left_to_the_modules() -> None:
    model = llama()
    assert FusedDecoder.of(model.train()) is None
    assert FusedDecoder.of(model.eval()) is not None


def test_a_hook_on_all_modules_is_seen_and_forgotten_when_removed() -> None:
    model = llama().eval()
    with register_around(None, lambda m, args, kwargs, go: go(args, kwargs)):
        assert FusedDecoder.of(model) is None
    assert FusedDecoder.of(model) is not None
