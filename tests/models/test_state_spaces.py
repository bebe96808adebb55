"""Decoders with states in place of keys give what transformers gives, from the same weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models
from votive.generation import generate

from .compare import BF16, agree, both, gradients_agree, ids, pair, torch, transformers
from .state_space_rows import ALONE, ROWS, WITHOUT_POSITIONS

pytestmark = pytest.mark.parity
every = pytest.mark.parametrize("name", ROWS)
EXPERTS = [
    name for name, row in ROWS.items() if row.settings.get("num_experts", row.settings.get("num_local_experts", 0)) > 1
]


def fresh(name: str, dtype: str | None = None, train: bool = False) -> tuple[Any, Any]:
    """Both models of a row, made anew."""
    row = ROWS[name]
    theirs = getattr(transformers, row.theirs), getattr(transformers, row.config)(**row.settings)
    # Larger matrices would make states forget all at once.
    reference, model = pair(theirs, getattr(models, row.ours), dtype=dtype, train=train, gain=1.5)
    reference.generation_config = transformers.GenerationConfig()
    return reference, model


@cache
def models_of(name: str, dtype: str | None = None) -> tuple[Any, Any]:
    """Both models of a row; they are shared, so tests leave them as they are."""
    return fresh(name, dtype)


def padded(name: str, mask: list[list[int]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A mask, and positions where transformers takes them."""
    tm, vm = both(mask)
    if name.startswith(WITHOUT_POSITIONS):
        return {"attention_mask": tm}, {"attention_mask": vm}
    tp, vp = both([[max(sum(row[:i]), 0) for i in range(len(row))] for row in mask])
    return {"attention_mask": tm, "position_ids": tp}, {"attention_mask": vm, "position_ids": vp}


def in_pieces(model: Any, v: Any, pieces: list[int], **given: Any) -> Any:
    """Logits of a text that a model is given piece by piece."""
    cache, parts, at = votive.nn.DynamicCache(), [], 0
    with votive.no_grad():
        for size in pieces:
            now = {k: x[:, : at + size] if k == "attention_mask" else x[:, at : at + size] for k, x in given.items()}
            parts.append(model(v[:, at : at + size], past_key_values=cache, **now).logits)
            at += size
    return votive.cat(parts, 1)


@every
def test_logits_and_hidden_states_of_a_batch_agree(name: str) -> None:
    t, v = ids((3, 11))
    reference, model = models_of(name)
    with torch.no_grad(), votive.no_grad():
        expected, got = (m(x, output_hidden_states=True) for m, x in ((reference, t), (model, v)))
        plain = model(v)
    agree(got.logits, expected.logits)
    assert votive.equal(got.logits, plain.logits)
    assert len(got.hidden_states) == len(expected.hidden_states)
    for a, b in zip(got.hidden_states, expected.hidden_states, strict=True):
        agree(a, b)


@every
def test_attention_weights_are_those_of_layers_that_have_them(name: str) -> None:
    if name.startswith((*WITHOUT_POSITIONS, "mamba2")):
        pytest.skip("no layer has attention")
    t, v = ids((2, 7))
    reference, model = models_of(name)
    with torch.no_grad(), votive.no_grad():
        expected, got = (m(x, output_attentions=True) for m, x in ((reference, t), (model, v)))
    # Some give states of other layers there, too.
    kept = [a for a in expected.attentions or () if a is not None and a.shape[-2:] == (7, 7)]
    assert got.attentions
    assert len(got.attentions) == len(kept)
    for a, b in zip(got.attentions, kept, strict=True):
        agree(a, b)


@every
def test_a_long_text_agrees(name: str) -> None:
    t, v = ids((1, 150))
    reference, model = models_of(name)
    with torch.no_grad(), votive.no_grad():
        agree(model(v).logits, reference(t).logits)


@every
def test_logits_in_bfloat16_agree_as_far_as_it_can_tell(name: str) -> None:
    if name.startswith("minimax"):
        pytest.skip("transformers adds float32 to bfloat16 there, and fails")
    t, v = ids((2, 9))
    reference, model = models_of(name, "bfloat16")
    with torch.no_grad(), votive.no_grad():
        got, expected = model(v).logits, reference(t).logits
    a, b = got.float().numpy(), expected.float().numpy()
    near = abs(a - b).max(-1) <= BF16 * abs(b).max()
    # Where two experts are all but equally likely, rounding chooses; such tokens may differ.
    assert near.mean() > (0.7 if name in EXPERTS or "moe" in name or "nemotron" in name else 0.99)


@every
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing_for_what_is_no_padding(name: str, side: str) -> None:
    t, v = ids((3, 8))
    mask = [[1] * 8, [0] * 3 + [1] * 5, [0] * 6 + [1] * 2]
    mask = mask if side == "left" else [row[::-1] for row in mask]
    theirs, ours = padded(name, mask)
    reference, model = models_of(name)
    with torch.no_grad(), votive.no_grad():
        got = model(v, **ours).logits
        if not name.startswith(ALONE):
            agree(got, reference(t, **theirs).logits, where=mask)
        for i, row in enumerate(mask):
            if any(ROWS[name].settings.get(key) for key in ("use_bias", "mamba_proj_bias", "conv_bias")):
                break  # which convolutions see at padding, as in transformers
            real = [at for at, there in enumerate(row) if there]
            agree(got[i : i + 1, real[0] : real[-1] + 1], reference(t[i : i + 1, real[0] : real[-1] + 1]).logits)


@every
@pytest.mark.parametrize("pieces", [[1] * 12, [5, 1, 1, 5], [7, 5]], ids=["single", "mixed", "two"])
def test_a_cache_gives_what_a_whole_pass_gives(name: str, pieces: list[int]) -> None:
    t, v = ids((2, 12))
    reference, model = models_of(name)
    with torch.no_grad():
        expected = reference(t).logits
    agree(in_pieces(model, v, pieces), expected)


@every
def test_a_cache_and_left_padding_agree(name: str) -> None:
    t, v = ids((2, 10))
    mask = [[1] * 10, [0] * 4 + [1] * 6]
    theirs, ours = padded(name, mask)
    reference, model = models_of(name)
    got = in_pieces(model, v, [6, 1, 3], **ours)
    with torch.no_grad():
        if not name.startswith(ALONE):
            agree(got, reference(t, **theirs).logits, where=mask)
        else:
            agree(got[:1], reference(t[:1]).logits)
            agree(got[1:, 4:], reference(t[1:, 4:]).logits)


@every
def test_the_loss_and_all_its_gradients_agree(name: str) -> None:
    reference, model = fresh(name, train=True)
    if name.startswith("rwkv"):
        # Only in training it leaves weights and states as they are.
        reference.train(), model.train()
    t, v = ids((2, 9))
    tl, vl = both(t.masked_fill(t < 12, -100).numpy())
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


@every
@pytest.mark.parametrize("beams", [1, 3])
def test_texts_that_are_generated_agree(name: str, beams: int) -> None:
    t, v = ids((2, 7))
    mask = [[1] * 7, [0] * 3 + [1] * 4]
    tm, vm = both(mask)
    ask = {"max_new_tokens": 9, "num_beams": beams, "pad_token_id": 1, "eos_token_id": 2, "do_sample": False}
    reference, model = models_of(name)
    got = generate(model, v, attention_mask=vm, **ask).tolist()
    if name.startswith(ALONE):
        # Its cache is not led along with beams.
        for i, row in enumerate(mask):
            real = row.index(1)
            (alone,) = reference.generate(t[i : i + 1, real:], use_cache=beams == 1, **ask).tolist()
            assert got[i][real : real + len(alone)] == alone
            assert set(got[i][real + len(alone) :]) <= {1}
    else:
        assert got == reference.generate(t, attention_mask=tm, **ask).tolist()
    assert generate(model, v, attention_mask=vm, use_cache=False, **ask).tolist() == got
    assert generate(model, v, attention_mask=vm, prefill_chunk_size=3, **ask).tolist() == got


@every
def test_folders_go_both_ways(name: str, tmp_path: Path) -> None:
    transformers.utils.logging.disable_progress_bar()
    reference, _ = fresh(name)  # one that has not run: an RWKV's run changes its weights
    t, v = ids((2, 7))
    reference.save_pretrained(tmp_path / "theirs")
    model = models.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs")
    assert type(model).__name__ == ROWS[name].ours
    with torch.no_grad(), votive.no_grad():
        expected = reference(t).logits
        agree(model(v).logits, expected)
        model.save_pretrained(tmp_path / "ours")
        again, told = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
        )
        assert not told["missing_keys"], told
        assert not told["unexpected_keys"], told
        assert type(again) is type(reference)
        agree(again.eval()(t).logits, expected)
        bare = models.AutoModel.from_pretrained(tmp_path / "theirs")
        agree(bare(v).last_hidden_state, reference(t, output_hidden_states=True).hidden_states[-1])


@every
def test_a_model_starts_where_transformers_starts(name: str) -> None:
    """Not the same random numbers: the same spread of each parameter."""
    row = ROWS[name]
    torch.manual_seed(0)
    votive.manual_seed(0)
    reference = getattr(transformers, row.theirs)(getattr(transformers, row.config)(**row.settings))
    ours = getattr(models, row.ours)
    model = ours(ours.config_class.from_dict(reference.config.to_dict()))
    theirs = ours(model.config)
    theirs.load_weights(
        votive.io.MemorySource({k: votive.tensor(x.detach().numpy()) for k, x in reference.state_dict().items()})
    )
    wanted = dict(theirs.named_parameters())
    for key, p in model.named_parameters():
        a, b = p.detach().float(), wanted[key].detach().float()
        scale = float(b.abs().mean()) + 1e-3
        assert abs(float(a.abs().mean()) - float(b.abs().mean())) < (0.5 if b.numel() >= 16 else 0.9) * scale, key


@pytest.mark.parametrize("name", ["mamba", "falcon h1", "nemotron h latent", "qwen3 next", "minimax", "rwkv"])
def test_places_hold_what_they_say(name: str) -> None:
    _, model = models_of(name)
    assert votive.glass.check_sites(model, ids((2, 6))[1], edits=False).rows


@pytest.mark.parametrize("name", ["mamba2", "lfm2 moe"])
def test_compiling_changes_nothing(name: str) -> None:
    _, v = ids((2, 6))
    _, model = models_of(name)
    with votive.no_grad():
        agree(votive.compile(model)(v).logits, model(v).logits, 1e-6)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"compile": True}, "layers of MambaForCausalLM keep states; leave it out"),
        ({"prompt_lookup_num_tokens": 2}, "takes drafts back, which layers that sum up a text in a state cannot"),
    ],
)
def test_what_needs_to_go_back_is_refused(asked: dict[str, Any], told: str) -> None:
    _, v = ids((1, 5))
    _, model = models_of("mamba")
    with pytest.raises(ValueError, match=told):
        generate(model, v, max_new_tokens=3, **asked)


@pytest.mark.parametrize("name", ["mamba", "falcon h1", "rwkv"])
def test_contrast_is_sought_for_each_text_of_a_batch(name: str) -> None:
    _, v = ids((2, 6))
    _, model = models_of(name)
    ask = {"max_new_tokens": 6, "penalty_alpha": 0.6, "top_k": 3, "pad_token_id": 1, "eos_token_id": 2}
    got = generate(model, v, **ask).tolist()
    assert generate(model, votive.cat([v, v.flip(0)]), **ask).tolist() == [*got, *got[::-1]]
    assert len(got[0]) > 6


@pytest.mark.parametrize("limit", [[0.0], [2.0, 1.0], [0.0, 1.0, 2.0]])
def test_a_limit_of_step_sizes_is_two_numbers(limit: list[float]) -> None:
    for name in ("mamba2", "bamba"):
        kind = getattr(models, ROWS[name].ours)
        config = kind.config_class.from_dict({**ROWS[name].settings, "time_step_limit": limit})
        with pytest.raises(ValueError, match="time_step_limit must be two numbers"):
            kind(config)


def test_step_sizes_stay_within_their_limit() -> None:
    row = ROWS["mamba2"]
    config = transformers.Mamba2Config(**{**row.settings, "time_step_limit": (0.3, 0.6)})
    reference, model = pair((transformers.Mamba2ForCausalLM, config), models.Mamba2ForCausalLM, gain=1.5)
    t, v = ids((2, 9))
    with torch.no_grad(), votive.no_grad():
        agree(model(v).logits, reference(t).logits)
        other = models_of("mamba2")[1](v).logits
    assert not votive.allclose(model(v).logits, other, rtol=1e-2)
