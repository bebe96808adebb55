"""Texts written with keys and values in few bits: what an ordinary cache gives whose rows were rounded beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from tests.nn.rounding import FORMATS, Rounding
from votive import nn
from votive.generation import GenerationConfig, PrefixCache, generate
from votive.models import (
    EncoderDecoderCache,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

SIZES: dict[str, Any] = {
    **tiny_sizes.transformer(64, 48, layers=2, heads=4, kv_heads=2, vocab=61),
    "initializer_range": 0.5,
    "max_position_embeddings": 128,
    "head_dim": 32,
    "eos_token_id": None,
}
LLAMAS: dict[str, Any] = {
    "llama": (LlamaForCausalLM, LlamaConfig, {}),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {}),
    "mistral": (MistralForCausalLM, MistralConfig, {"sliding_window": 6}),
    "gemma2": (Gemma2ForCausalLM, Gemma2Config, {"sliding_window": 6, "pad_token_id": None, "bos_token_id": None}),
    "gemma3": (Gemma3ForCausalLM, Gemma3TextConfig, {"sliding_window": 6, "pad_token_id": None, "bos_token_id": None}),
}
KINDS = (*LLAMAS, "gpt2")
PROMPT = [5, 17, 3, 42, 8, 29, 11, 50, 2]
EVERY = pytest.mark.parametrize("kind", KINDS)


def model(kind: str) -> Any:
    votive.manual_seed(0)
    if kind == "gpt2":
        sizes: dict[str, Any] = {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 128}
        config = GPT2Config(vocab_size=61, initializer_range=0.5, eos_token_id=None, **sizes)
        return GPT2LMHeadModel(config).eval()
    made, config_class, changes = LLAMAS[kind]
    return made(config_class(**{**SIZES, **changes})).eval()


def written(net: Any, prompt: Any = None, **given: Any) -> tuple[list[Any], list[Any]]:
    """The tokens, and the logits of each step."""
    ids = [PROMPT] if prompt is None else prompt
    found = generate(net, ids, return_dict_in_generate=True, output_logits=True, **{"max_new_tokens": 8, **given})
    return found.sequences.tolist(), [x.tolist() for x in found.logits]


@EVERY
@pytest.mark.parametrize("dtype", ["q8_0", ("q8_0", "q4_0"), "fp8"], ids=str)
def test_every_family_writes_what_rounded_rows_give(kind: str, dtype: Any) -> None:
    net = model(kind)
    assert written(net, cache_dtype=dtype) == written(net, past_key_values=Rounding(dtype))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_what_rounded_rows_give(name: str) -> None:
    net = model("llama")
    got = written(net, cache_dtype=name)
    assert got == written(net, past_key_values=Rounding(name))
    assert got[1] != written(net)[1]


@EVERY
@pytest.mark.parametrize("way", ["static", "sliding", "chunks", "caches one by one"])
def test_the_kind_of_cache_and_the_pieces_of_a_prompt_do_not_show(kind: str, way: str) -> None:
    net, changes = model(kind), {"cache_implementation": way}
    if way == "sliding" and kind in ("llama", "qwen3", "gpt2"):
        pytest.skip("no windows")
    if way == "chunks":
        changes = {"prefill_chunk_size": 4}
    if way == "caches one by one":
        changes = {"past_key_values": nn.DynamicCache(dtype="q8_0")}
    tokens, logits = written(net, cache_dtype="q8_0", **changes)
    expected, others = written(net, cache_dtype="q8_0")
    assert tokens == expected
    np.testing.assert_allclose(np.array(logits), np.array(others), rtol=1e-4, atol=1e-4)


@EVERY
def test_padded_rows_write_what_each_writes_alone(kind: str) -> None:
    net, rows = model(kind), [PROMPT, PROMPT[:4], PROMPT[:6]]
    together = generate(net, rows, cache_dtype="q8_0", pad_token_id=0, max_new_tokens=6).tolist()
    for row, whole in zip(rows, together, strict=True):
        alone = generate(net, [row], cache_dtype="q8_0", max_new_tokens=6)[0].tolist()
        assert whole[-len(alone) :] == alone


def test_padding_on_the_right_of_a_cache_is_not_seen() -> None:
    net = model("llama")
    ids = votive.tensor([PROMPT, PROMPT[:6] + [0, 0, 0]])
    mask = votive.tensor([[1] * 9, [1] * 6 + [0] * 3])
    with votive.no_grad():
        results = [
            net(ids, attention_mask=mask, past_key_values=c, use_cache=True).logits
            for c in (nn.DynamicCache(dtype="q8_0"), Rounding("q8_0"))
        ]
    assert results[0].tolist() == results[1].tolist()


@pytest.mark.parametrize("kind", ["llama", "mistral", "gemma2", "gpt2"])
def test_beams_and_samples_go_with_it(kind: str) -> None:
    net = model(kind)
    for ask in ({"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True, "seed": 3, "num_return_sequences": 2}):
        got = generate(net, [PROMPT], cache_dtype="q4_0", max_new_tokens=7, **ask).tolist()
        assert got == generate(net, [PROMPT], past_key_values=Rounding("q4_0"), max_new_tokens=7, **ask).tolist()


def test_drafts_and_prefixes_go_with_it() -> None:
    net, draft = model("llama"), model("qwen3")
    want = generate(net, [PROMPT], cache_dtype="q8_0", max_new_tokens=12).tolist()
    assert generate(net, [PROMPT], cache_dtype="q8_0", max_new_tokens=12, assistant_model=draft).tolist() == want
    prefix = PrefixCache(nn.DynamicCache(overwrite=True, dtype="q8_0"))
    for _ in range(2):
        assert generate(net, [PROMPT], past_key_values=prefix, cache_dtype="q8_0", max_new_tokens=12).tolist() == want
    other = [PROMPT[:5] + [1, 2, 3]]
    want = generate(net, other, cache_dtype="q8_0", max_new_tokens=5).tolist()
    assert generate(net, other, past_key_values=prefix, max_new_tokens=5).tolist() == want


def test_weights_of_attention_are_those_of_rounded_keys() -> None:
    net = model("llama")
    ids = votive.tensor([PROMPT])
    with votive.no_grad():
        a, b = (
            net(ids, past_key_values=c, use_cache=True, output_attentions=True).attentions
            for c in (nn.DynamicCache(dtype="q4_1"), Rounding("q4_1"))
        )
    assert [x.tolist() for x in a] == [x.tolist() for x in b]


# --- encoders with a decoder ----------------------------------------------------------------------


def t5() -> Any:
    votive.manual_seed(0)
    sizes: dict[str, Any] = {"d_model": 64, "d_kv": 32, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    special = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": None}
    return T5ForConditionalGeneration(T5Config(vocab_size=41, **sizes, **special)).eval()


@pytest.mark.parametrize("ask", [{}, {"num_beams": 3}], ids=str)
def test_t5_keeps_both_its_own_text_and_the_encoders_so(ask: dict[str, Any]) -> None:
    net, sources = t5(), [[5, 9, 13, 2, 7], [8, 3, 4, 4, 4]]
    got = generate(net, sources, cache_dtype="q8_0", max_new_tokens=8, **ask).tolist()
    want = generate(net, sources, past_key_values=EncoderDecoderCache(Rounding("q8_0")), max_new_tokens=8, **ask)
    assert got == want.tolist()


def test_whisper_keeps_both_so_and_lends_them() -> None:
    votive.manual_seed(0)
    sizes = tiny_sizes.whisper(64, layers=(1, 2), heads=2)
    config = WhisperConfig(
        vocab_size=61,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=40,
        **sizes,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    net = WhisperForConditionalGeneration(config).eval()
    sound, ids = votive.randn(2, 8, 40), votive.tensor([[1, 5, 9], [1, 7, 3]])
    caches = [EncoderDecoderCache(nn.DynamicCache(dtype="q8_0")), EncoderDecoderCache(Rounding("q8_0"))]
    with votive.no_grad():
        first = [
            net(sound, decoder_input_ids=ids, past_key_values=c, use_cache=True, output_attentions=True) for c in caches
        ]
        assert first[0].logits.tolist() == first[1].logits.tolist()
        assert first[0].cross_attentions[1].tolist() == first[1].cross_attentions[1].tolist()
        for c in caches:
            c.reorder(votive.tensor([1, 1]))
        encoded = (first[0].encoder_last_hidden_state[1:].expand(2, -1, -1),)
        again = [
            net(encoder_outputs=encoded, decoder_input_ids=ids[:, :1], past_key_values=c, use_cache=True).logits
            for c in caches
        ]
    assert again[0].tolist() == again[1].tolist()
    lent = caches[0].another(votive.tensor([0]))
    assert lent.self_attention_cache.dtype == "q8_0"
    assert lent.cross(0, lambda: pytest.fail("looked up again"))[0].dtype is votive.q8_0


# --- settings -------------------------------------------------------------------------------------


def test_transformers_names_ask_for_it_too() -> None:
    net = model("llama")
    asked: dict[str, Any] = {"cache_implementation": "quantized"}
    assert written(net, **asked) == written(net, cache_dtype="q4_0")
    asked["cache_config"] = {"backend": "votive", "nbits": 8, "residual_length": 0}
    assert written(net, **asked) == written(net, cache_dtype=votive.q8_0)
    asked = {"cache_implementation": "quantized", "cache_dtype": ["q8_0", "q5_0"]}
    assert written(net, **asked) == written(net, cache_dtype=("q8_0", "q5_0"))


def test_settings_are_saved_by_name() -> None:
    config = GenerationConfig(cache_dtype=(votive.q8_0, "fp8"))
    assert config.to_dict() == {"cache_dtype": ["q8_0", "float8_e4m3fn"]}
    assert GenerationConfig.from_dict(config.to_dict()).resolved().cache_dtype == ["q8_0", "float8_e4m3fn"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"cache_dtype": "q4_k"}, "cache_dtype must be one of q8_0"),
    "no cache": ({"cache_dtype": "q8_0", "use_cache": False}, "use_cache is False"),
    "compiled": ({"cache_dtype": "q8_0", "compile": True}, "leave out cache_dtype"),
    "another cache": ({"cache_dtype": "q8_0", "past_key_values": nn.DynamicCache()}, "past_key_values keep numbers"),
    "both": ({"cache_dtype": "q8_0", "cache_implementation": "quantized", "cache_config": {"nbits": 4}}, "one of them"),
    "described": ({"cache_config": {"nbits": 4}}, "set that too"),
    "quanto": ({"cache_implementation": "quantized", "cache_config": {"backend": "quanto"}}, "another library"),
    "residual": (
        {"cache_implementation": "quantized", "cache_config": {"residual_length": 64}},
        "residual_length must be 0",
    ),
    "group": ({"cache_implementation": "quantized", "cache_config": {"q_group_size": 64}}, "not q_group_size"),
    "no dict": ({"cache_implementation": "quantized", "cache_config": 4}, "cache_config must be a dict"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_so_is_told_before_the_model_runs(name: str) -> None:
    asked, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        generate(model("llama"), [PROMPT], max_new_tokens=2, **asked)


def test_a_model_with_narrow_heads_is_told_so() -> None:
    votive.manual_seed(0)
    net = LlamaForCausalLM(LlamaConfig(**{**SIZES, "head_dim": 16})).eval()
    with pytest.raises(ValueError, match="heads here have 16 features"):
        generate(net, [PROMPT], max_new_tokens=2, cache_dtype="q8_0")


def test_ordinary_caches_pay_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any) -> Any:
        pytest.fail("an ordinary cache asked how to store")

    monkeypatch.setattr("votive.nn.layers.kv_storage.KVStorage.write", never)
    monkeypatch.setattr("votive.nn.layers.kv_storage.KVStorage.read", never)
    written(model("llama"))
