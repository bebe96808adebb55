"""T5 gives what transformers gives, from the same weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from votive.models.t5_stack import distance_buckets

from .compare import BF16, agree, both, gradients_agree, ids, pair, torch, transformers

pytestmark = pytest.mark.parity
SMALL = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
    "decoder_start_token_id": 0,
}
KINDS = {
    "t5": ("T5", {}),
    "t5 v1.1": ("T5", {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5": ("MT5", {"feed_forward_proj": "gated-silu", "tie_word_embeddings": False}),
}
every = pytest.mark.parametrize("kind", KINDS)


@cache
def models_of(kind: str, use: str = "ForConditionalGeneration", dtype: Any = None) -> Any:
    return fresh(kind, use, dtype)


def fresh(kind: str, use: str, dtype: Any = None, train: bool = False, **other: Any) -> Any:
    family, more = KINDS[kind]
    config = getattr(transformers, f"{family}Config")(**{**SMALL, **more, **other})
    theirs = (getattr(transformers, family + use), config)
    # Its scores are not scaled: larger weights would let one key win by what rounding leaves.
    gain = 3.0 if dtype is None else 0.5
    return pair(theirs, getattr(models, family + use), dtype=dtype, train=train, gain=gain)


@every
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_agrees(kind: str, side: str) -> None:
    reference, model = models_of(kind)
    (t, v), (td, vd) = ids((3, 17)), ids((3, 8), seed=1)
    mask = [[1] * 17, [1] * 9 + [0] * 8, [1] * 2 + [0] * 15]
    mask = mask if side == "right" else [row[::-1] for row in mask]
    tm, vm = both(mask)
    own = [[1] * 8, [1] * 5 + [0] * 3, [1] * 8]
    to, vo = both(own)
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, tm, decoder_input_ids=td, decoder_attention_mask=to)
        got = model(v, vm, decoder_input_ids=vd, decoder_attention_mask=vo)
    agree(got.logits, expected.logits, where=own)
    agree(got.encoder_last_hidden_state, expected.encoder_last_hidden_state, where=mask)


@every
def test_bfloat16_agrees_as_far_as_it_can_tell(kind: str) -> None:
    reference, model = models_of(kind, dtype="bfloat16")
    (t, v), (td, vd) = ids((2, 9)), ids((2, 4), seed=1)
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, decoder_input_ids=td)
        agree(model(v, decoder_input_ids=vd).logits, expected.logits, BF16)


@every
def test_decoding_step_by_step_gives_what_a_whole_pass_gives(kind: str) -> None:
    reference, model = models_of(kind)
    (t, v), (td, vd) = ids((2, 9)), ids((2, 10), seed=1)
    tm, vm = both([[1] * 9, [1] * 4 + [0] * 5])
    with torch.no_grad():
        expected = reference(t, tm, decoder_input_ids=td).logits
    with votive.no_grad():
        encoded = model.get_encoder()(v, vm)
        cache, parts = None, []
        for chunk in vd.split([1, 1, 4, 1, 3], 1):
            out = model(
                attention_mask=vm,
                decoder_input_ids=chunk,
                encoder_outputs=encoded,
                past_key_values=cache,
                use_cache=True,
            )
            cache = out.past_key_values
            parts.append(out.logits)
    agree(votive.cat(parts, 1), expected)


def test_keys_of_the_encoder_are_computed_once() -> None:
    model = models_of("t5")[1]
    calls: list[int] = []
    cross = model.decoder.block[0].layer[1].EncDecAttention.k
    handle = cross.register_forward_hook(lambda m, args, y: calls.append(1))
    cache = votive.models.EncoderDecoderCache()
    with votive.no_grad():
        encoded = model.encode(ids((1, 5))[1])
        for _ in range(4):
            model(encoder_outputs=encoded, decoder_input_ids=ids((1, 1))[1], past_key_values=cache)
    handle.remove()
    assert len(calls) == 1
    assert cache.get_seq_length() == 4
    cache.reorder(votive.tensor([0, 0]))
    assert cache.cross(0, lambda: pytest.fail("asked again"))[0].shape[0] == 2


@every
def test_hidden_states_and_attentions_agree_and_change_no_logit(kind: str) -> None:
    reference, model = models_of(kind)
    (t, v), (td, vd) = ids((2, 9)), ids((2, 4), seed=1)
    wanted = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, decoder_input_ids=td, **wanted)
        got = model(v, decoder_input_ids=vd, **wanted)
        plain = model(v, decoder_input_ids=vd)
    for name in (
        "encoder_hidden_states",
        "encoder_attentions",
        "decoder_hidden_states",
        "decoder_attentions",
        "cross_attentions",
    ):
        for a, b in zip(got[name], expected[name], strict=True):
            agree(a, b)
    assert votive.equal(plain.logits, got.logits)


@every
def test_the_loss_and_all_its_gradients_agree(kind: str) -> None:
    reference, model = fresh(kind, "ForConditionalGeneration", train=True)
    (t, v), (tl, _) = ids((2, 9)), ids((2, 5), seed=1)
    tl, vl = both(tl.masked_fill(tl < 10, -100).numpy())
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.logits, expected.logits)
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


@every
@pytest.mark.parametrize("use", ["Model", "EncoderModel"])
def test_models_without_a_head_agree(kind: str, use: str) -> None:
    reference, model = models_of(kind, use)
    t, v = ids((2, 9))
    more = ({}, {}) if use == "EncoderModel" else ({"decoder_input_ids": t}, {"decoder_input_ids": v})
    with torch.no_grad(), votive.no_grad():
        agree(model(v, **more[1]).last_hidden_state, reference(t, **more[0]).last_hidden_state)


@pytest.mark.parametrize("buckets,furthest", [(32, 128), (8, 12), (32, 256), (16, 100)])
@pytest.mark.parametrize("both_ways", [True, False])
def test_every_distance_falls_into_the_same_bucket(buckets: int, furthest: int, both_ways: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    distance = torch.arange(furthest + 50)
    expected = T5Attention._relative_position_bucket(-distance, both_ways, buckets, furthest)
    table = distance_buckets(buckets, furthest, both_ways)
    assert np.array_equal(table[np.minimum(distance.numpy(), furthest)], expected.numpy())


def test_a_head_of_its_own_is_loaded_where_the_file_has_one() -> None:
    _, model = models_of("t5 v1.1")
    state = {k: v.detach().clone() for k, v in model.state_dict().items()}
    state["lm_head.weight"] = state["shared.weight"] * 2
    other = models.T5ForConditionalGeneration(models.T5Config.from_dict(model.config.to_dict()))
    other.load_weights(votive.io.MemorySource(state))
    assert not other.config.tie_word_embeddings
    assert votive.equal(other.lm_head.weight, other.shared.weight * 2)
    _, v = ids((1, 4))
    with votive.no_grad():
        a, b = (m.eval()(v, decoder_input_ids=v).logits for m in (model, other))
    agree(b, a * 2)


def test_what_the_decoder_needs_is_told() -> None:
    with pytest.raises(ValueError, match="decoder_start_token_id=0"):
        models_of("t5")[1](ids((1, 4))[1])


@pytest.mark.parametrize("beams", [1, 3])
def test_it_writes_what_transformers_writes(beams: int) -> None:
    # Its caches have room for as many layers as the encoder has.
    reference, model = fresh("t5", "ForConditionalGeneration", num_decoder_layers=2)
    t, v = ids((2, 9))
    tm, vm = both([[1] * 9, [1] * 5 + [0] * 4])
    asked = {"max_new_tokens": 8, "num_beams": beams, "do_sample": False}
    expected = reference.generate(t, attention_mask=tm, **asked)
    got = model.generate(v, attention_mask=vm, **asked)
    assert got.tolist() == expected.tolist()
