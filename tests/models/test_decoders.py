"""Decoders give what transformers gives, from the same weights."""

from __future__ import annotations

from typing import Any

import pytest

import votive

from .compare import BF16, agree, both, gradients_agree, ids, pair, torch, transformers
from .decoders import EXPERTS, ROWS, fresh, models_of

pytestmark = pytest.mark.parity
every = pytest.mark.parametrize("name", ROWS)


def run(name: str, theirs: dict[str, Any], ours: dict[str, Any], **kwargs: Any) -> tuple[Any, Any]:
    reference, model = models_of(name, kwargs.pop("dtype", None))
    with torch.no_grad():
        expected = reference(**theirs, **kwargs)
    with votive.no_grad():
        return model(**ours, **kwargs), expected


@every
def test_logits_of_a_batch_agree(name: str) -> None:
    t, v = ids((3, 11))
    got, expected = run(name, {"input_ids": t}, {"input_ids": v})
    agree(got.logits, expected.logits)


@every
def test_logits_in_bfloat16_agree_as_far_as_it_can_tell(name: str) -> None:
    t, v = ids((2, 9))
    got, expected = run(name, {"input_ids": t}, {"input_ids": v}, dtype="bfloat16")
    assert got.logits.dtype == votive.bfloat16
    if name not in EXPERTS:
        return agree(got.logits, expected.logits, BF16)
    # Where two experts are all but equally likely, rounding chooses; such tokens may differ.
    a, b = got.logits.float().numpy(), expected.logits.float().numpy()
    near = abs(a - b).max(-1) <= BF16 * abs(b).max()
    assert near.mean() > 0.7
    return None


@every
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing_for_what_is_no_padding(name: str, side: str) -> None:
    t, v = ids((3, 8))
    mask = [[1] * 8, [0] * 3 + [1] * 5, [0] * 6 + [1] * 2]
    mask = mask if side == "left" else [row[::-1] for row in mask]
    places = [[max(sum(row[:i]), 0) for i in range(8)] for row in mask]
    (tm, vm), (tp, vp) = both(mask), both(places)
    got, expected = run(
        name,
        {"input_ids": t, "attention_mask": tm, "position_ids": tp},
        {"input_ids": v, "attention_mask": vm, "position_ids": vp},
    )
    agree(got.logits, expected.logits, where=mask)


@every
@pytest.mark.parametrize("chunks", [[1] * 12, [5, 1, 1, 5], [7, 5]], ids=["single", "mixed", "two"])
def test_a_cache_gives_what_a_whole_pass_gives(name: str, chunks: list[int]) -> None:
    t, v = ids((2, 12))
    reference, model = models_of(name)
    with torch.no_grad():
        expected = reference(t).logits
    cache, parts = votive.nn.DynamicCache(), []
    with votive.no_grad():
        for chunk in v.split(chunks, 1):
            parts.append(model(chunk, past_key_values=cache).logits)
    agree(votive.cat(parts, 1), expected)


@every
def test_a_cache_and_left_padding_agree(name: str) -> None:
    t, v = ids((2, 10))
    mask = [[1] * 10, [0] * 4 + [1] * 6]
    places = [[max(sum(row[:i]), 0) for i in range(10)] for row in mask]
    (tm, vm), (tp, vp) = both(mask), both(places)
    reference, model = models_of(name)
    with torch.no_grad():
        expected = reference(t, attention_mask=tm, position_ids=tp).logits
    cache, parts = votive.nn.DynamicCache(), []
    with votive.no_grad():
        for a, b in [(0, 6), (6, 7), (7, 10)]:
            out = model(v[:, a:b], attention_mask=vm[:, :b], position_ids=vp[:, a:b], past_key_values=cache)
            parts.append(out.logits)
    agree(votive.cat(parts, 1), expected, where=mask)


@every
def test_far_positions_agree(name: str) -> None:
    t, v = ids((2, 6))
    # Beyond what the configuration was trained on, where positions are not learned one by one.
    tp, vp = both([[100 + i for i in range(6)]] * 2)
    got, expected = run(name, {"input_ids": t, "position_ids": tp}, {"input_ids": v, "position_ids": vp})
    agree(got.logits, expected.logits)


@every
def test_a_text_longer_than_trained_on_agrees(name: str) -> None:
    t, v = ids((1, 90))
    got, expected = run(name, {"input_ids": t}, {"input_ids": v})
    agree(got.logits, expected.logits)


@every
def test_embeddings_can_be_given_instead_of_ids(name: str) -> None:
    _reference, model = models_of(name)
    width = model.get_input_embeddings().weight.shape[1]
    t, v = both(torch.randn(2, 5, width, generator=torch.manual_seed(0)).numpy())
    got, expected = run(name, {"inputs_embeds": t}, {"inputs_embeds": v})
    agree(got.logits, expected.logits)


@every
def test_hidden_states_and_attentions_agree_and_change_no_logit(name: str) -> None:
    t, v = ids((2, 7))
    wanted = {"output_hidden_states": True, "output_attentions": True}
    got, expected = run(name, {"input_ids": t}, {"input_ids": v}, **wanted)
    assert len(got.hidden_states) == len(expected.hidden_states)
    assert len(got.attentions) == len(expected.attentions)
    for a, b in zip(got.hidden_states, expected.hidden_states, strict=True):
        agree(a, b)
    for a, b in zip(got.attentions, expected.attentions, strict=True):
        agree(a, b)
    plain, _ = run(name, {"input_ids": t}, {"input_ids": v})
    assert votive.equal(plain.logits, got.logits)
    assert plain.hidden_states is None
    assert plain.attentions is None


@every
def test_the_loss_and_all_its_gradients_agree(name: str) -> None:
    reference, model = fresh(name, train=True)
    t, v = ids((2, 9))
    (tl, vl) = both(t.masked_fill(t < 12, -100).numpy())
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


@every
def test_only_the_last_logits_are_made_when_only_they_are_wanted(name: str) -> None:
    _, v = ids((2, 7))
    _, model = models_of(name)
    with votive.no_grad():
        whole, last = model(v).logits, model(v, logits_to_keep=2).logits
    assert last.shape == (2, 2, 64)
    agree(last, whole[:, -2:], 1e-6)


@pytest.mark.parametrize("name", EXPERTS)
def test_router_logits_and_the_loss_for_even_use_agree(name: str) -> None:
    reference, model = fresh(name, train=True)
    t, v = ids((2, 8))
    (tm, vm) = both([[1] * 8, [1] * 5 + [0] * 3])
    (tl, vl) = both(t.masked_fill(tm == 0, -100).numpy())
    expected = reference(t, attention_mask=tm, labels=tl, output_router_logits=True)
    got = model(v, attention_mask=vm, labels=vl, output_router_logits=True)
    assert len(got.router_logits) == len(expected.router_logits)
    # Padding is not compared: it sees nothing here, and all of itself there.
    for a, b in zip(got.router_logits, expected.router_logits, strict=True):
        agree(a, b, where=tm.flatten().numpy())
    agree(got.loss, expected.loss)
    if getattr(expected, "aux_loss", None) is None:
        # Families whose files say nothing of an even use.
        assert got.aux_loss is None
        return
    agree(got.aux_loss, expected.aux_loss)
    got.aux_loss.backward()
    assert model.get_input_embeddings().weight.grad is not None
    assert model(v).router_logits is None


@pytest.mark.parametrize("static", [False, True])
def test_text_is_written_while_routers_are_watched(static: bool) -> None:
    reference, model = fresh("mixtral")
    model.config.output_router_logits = True  # with which transformers fails
    reference.generation_config = transformers.GenerationConfig()
    (t, v), (tm, vm) = ids((2, 7)), both([[1] * 7, [0] * 3 + [1] * 4])
    ask = {"max_new_tokens": 6, "pad_token_id": 1, "eos_token_id": 2, "do_sample": False}
    got = model.generate(v, attention_mask=vm, cache_implementation="static" if static else None, **ask)
    assert got.tolist() == reference.generate(t, attention_mask=tm, **ask).tolist()
    # The loss for even use is that of the positions of this call.
    with votive.no_grad():
        cache = votive.nn.DynamicCache()
        model(v[:, :5], attention_mask=vm[:, :5], past_key_values=cache)
        last = model(v[:, 5:], attention_mask=vm, past_key_values=cache)
    alone = votive.models.load_balancing_loss(last.router_logits, 2, vm[:, 5:])
    agree(last.aux_loss, alone, 1e-6)
    wide = votive.ones(2, 1, 7, 7, dtype=votive.bool).tril()
    with pytest.raises(ValueError, match="is told by an attention_mask"):
        model(v, attention_mask=wide, labels=v)


def test_a_cache_that_forgets_gives_what_windows_give() -> None:
    _, v = ids((2, 14))
    _, model = models_of("mistral")
    with votive.no_grad():
        whole = model(v).logits
        cache, parts = votive.nn.SlidingWindowCache(4), []
        for chunk in v.split([6, 1, 1, 3, 3], 1):
            parts.append(model(chunk, past_key_values=cache).logits)
    agree(votive.cat(parts, 1), whole)


def test_gpt2_says_when_it_runs_out_of_positions() -> None:
    _, model = models_of("gpt2")
    with pytest.raises(IndexError, match="n_positions=128"):
        model(votive.ones(1, 129, dtype=votive.int64))


def test_scores_of_a_falcon_fall_with_the_distance_once() -> None:
    row = ROWS["falcon of the new kind"]
    config = transformers.FalconConfig(**{**row.settings, "alibi": True})
    reference, model = pair((transformers.FalconForCausalLM, config), votive.models.FalconForCausalLM)
    # transformers adds them twice where attention is "eager": they are in its mask as well.
    reference.config._attn_implementation = "sdpa"
    (t, v), (tm, vm) = ids((2, 11)), both([[1] * 11, [0] * 4 + [1] * 7])
    with torch.no_grad(), votive.no_grad():
        agree(model(v).logits, reference(t).logits)
        got, expected = model(v, attention_mask=vm).logits, reference(t, attention_mask=tm).logits
    agree(got, expected, where=tm.numpy())


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not supported"),
        ("olmo2", {"rope_parameters": {"partial_rotary_factor": 0.25}}, "partial_rotary_factor=0.25 is not supported"),
        ("gemma3", {"attn_logit_softcapping": 2.0}, "attn_logit_softcapping=2.0 is not supported"),
        ("glm4 moe", {"n_group": 4, "topk_group": 1, "num_experts_per_tok": 3}, "num_experts_per_tok=3 cannot be"),
        ("exaone moe", {"n_group": 3, "topk_group": 1}, "in n_group=3 groups"),
    ],
)
def test_what_transformers_leaves_out_or_leaves_to_chance_is_refused(
    name: str, change: dict[str, Any], told: str
) -> None:
    kind = getattr(votive.models, ROWS[name].ours)
    config = kind.config_class.from_dict({**ROWS[name].settings, **change})
    with pytest.raises(ValueError, match=told):
        kind(config)
