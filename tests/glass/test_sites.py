"""Named places: every family has them, they hold what they say, and they can be edited."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.glass.site_names import translated
from votive.models.decoder import attention
from votive.nn import points

from .decoders import EVERY, decoder


def small(**more: Any) -> Any:
    votive.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
    config = votive.models.LlamaConfig(**{**sizes, "num_attention_heads": 4, "num_key_value_heads": 2, **more})
    return votive.models.LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("family", EVERY)
def test_every_place_of_every_family_holds_what_its_name_says(family: str) -> None:
    model, ids = decoder(family)
    # Edits at each place take the longest, and are the same code in all.
    check = glass.check_sites(model.eval(), ids, edits=family in EDITED)
    assert not check.wrong
    assert check.worst < 1e-5
    there = set(glass.sites(model, ids))
    assert {"layers.0.resid_pre", "layers.1.resid_post", "logits"} <= there
    assert any(at.endswith("attn.pattern") for at in there) or family in WITHOUT_HEADS


WITHOUT_HEADS = ["falcon_mamba", "mamba", "mamba2", "rwkv"]
# One of each kind of layer.
EDITED = ["cohere", "deepseek_v3", "gemma2", "gpt2", "gpt_neox", "gpt_oss", "llama", "mixtral", "olmo2", "qwen3_next"]


def test_decoders_without_places_say_so() -> None:
    model, ids = decoder("bart")
    with pytest.raises(LookupError, match="no named places"):
        glass.check_sites(model, ids)


def test_a_wrong_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def crossed(address: str, x: Any) -> Any:
        return points.point(address.replace("attn.rot_q", "attn.q"), x)

    model = small()
    monkeypatch.setattr(attention, "point", crossed)
    with pytest.raises((glass.WrongSite, KeyError)):
        glass.check_sites(model)
    monkeypatch.setattr(
        attention, "point", lambda at, x: points.point(at, x.clone() * 1.01 if at.endswith("attn.v") else x)
    )
    with pytest.raises(glass.WrongSite, match=r"attn\.v"):
        glass.check_sites(model)


def test_places_whose_edits_do_nothing_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(address: str, x: Any) -> Any:
        seen = points.point(address, x)
        return x if address.endswith("mlp_in") else seen

    monkeypatch.setattr("votive.models.opened.point", deaf)
    with pytest.raises((glass.WrongSite, glass.Unread), match="mlp_in"):
        glass.check_sites(small())


def test_other_names_mean_the_same() -> None:
    assert translated("blocks.3.attn.hook_attn_scores") == "layers.3.attn.scores"
    assert translated("blocks.*.hook_resid_pre") == "layers.*.resid_pre"
    assert translated("hook_z") == "attn.z"
    assert translated("blocks.0.mlp.hook_pre") == "layers.0.mlp.pre"
    assert translated("ln_final.hook_scale") == "ln_final.scale"
    assert translated("my.hook_thing") == "my.hook_thing"
    with pytest.raises(ValueError, match="may mean any of"):
        translated("hook_scale")
    model, ids = decoder("gpt2")
    with glass.capture(model, ["blocks.0.attn.hook_pattern", "hook_embed"]) as seen:
        model(ids)
    assert list(seen) == ["embed", "layers.0.attn.pattern"]
    assert seen["blocks.0.attn.hook_pattern"] is seen["layers.0.attn.pattern"]


def test_only_the_layer_that_is_looked_into_is_opened() -> None:
    model, ids = decoder("llama")
    for at, fused in (("layers.0.attn.pattern", 1), ("layers.*.attn.scores", 0), ("layers.1.attn.z", 2)):
        with glass.capture(model, "/attention*"), glass.capture(model, at), glass.capture(model, "/**") as ops:
            model(ids) if fused else None
        if fused:
            assert sum("/attention#" in a for a in ops) == fused, at
    with glass.capture(model, "layers.*.attn.scores"), glass.capture(model, "/**") as ops:
        model(ids)
    assert not any("/attention#" in a for a in ops)
    with glass.capture(model, "/**") as ops:
        model(ids)
    assert sum("/attention#" in a for a in ops) == 2


def test_an_edited_pattern_mixes_the_values_of_its_layer() -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7, 8]])
    first = votive.zeros(1, 4, 4, 4)
    first[..., 0] = 1.0
    with (
        glass.patch(model, {"layers.0.attn.pattern": first}) as receipt,
        glass.capture(model, ["layers.0.attn.{v,z}", "layers.0.attn.scores"]) as seen,
    ):
        changed = model(ids).logits
    v, z = seen["layers.0.attn.v"], seen["layers.0.attn.z"]
    assert votive.allclose(z, v[:, :1].repeat_interleave(2, 2).expand(z.shape), atol=1e-6)
    assert receipt.sites["layers.0.attn.pattern"].reached
    assert not votive.allclose(changed, model(ids).logits)
    both = [glass.Edit("layers.0.attn.scores", "zero"), glass.Edit("layers.0.attn.pattern", "replace", first)]
    with glass.patch(model, both) as receipt:
        model(ids)
    # Of the scores nothing is left where the pattern is replaced, and the receipt says so.
    assert receipt.sites["layers.0.attn.scores"].reached is False
    assert "layers.0.attn.pattern" in receipt.sites["layers.0.attn.scores"].why


def test_heads_positions_and_samples_choose() -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7], [7, 6, 5]])
    edit = glass.Edit("layers.1.attn.z", "zero", heads=[1, -1], positions=[-1], samples=[0])
    assert glass.Edit.from_dict(edit.to_dict()) == edit
    with glass.capture(model, "layers.1.attn.z") as seen, glass.patch(model, edit):
        model(ids)
    zero = (seen["layers.1.attn.z"] == 0).all(-1)
    expected = votive.zeros(2, 3, 4, dtype=votive.bool)
    expected[0, 2, 1] = expected[0, 2, 3] = True
    assert votive.equal(zero, expected)
    with pytest.raises(IndexError, match="heads"), glass.patch(model, glass.Edit("hook_z", "zero", heads=[4])):
        model(ids)
    with pytest.raises(ValueError, match="heads"), glass.patch(model, glass.Edit("layers.0.mlp", "zero", heads=[0])):
        model(ids)


def test_what_chooses_is_taken_as_numbers_only() -> None:
    for given in (2, [2], votive.tensor([2]), votive.tensor(2), np.int64(2), slice(2, 3), range(2, 3)):
        assert glass.Edit("hook_z", "zero", heads=given).heads == (2,)
    for mask in ([True, False, True, False], votive.tensor([True, False]), True, [1.5], votive.tensor([1.0]), "12"):
        with pytest.raises(TypeError, match="heads"):
            glass.Edit("hook_z", "zero", heads=mask)
    for part in (slice(-2, 3), slice(0, -1)):
        with pytest.raises(ValueError, match="from the beginning"):
            glass.Edit("hook_z", "zero", positions=part)


def test_heads_can_be_ablated() -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7], [7, 6, 5]])
    for more in ({}, {"data": [ids, ids.flip(1)]}):
        kind = "mean" if more else "zero"
        with (
            glass.ablate(model, "layers.1.attn.z", kind, heads=[2], **more),
            glass.capture(model, "layers.1.attn.z") as seen,
        ):
            model(ids)
        with glass.capture(model, "layers.1.attn.z") as plain:
            model(ids)
        moved = (seen["layers.1.attn.z"] != plain["layers.1.attn.z"]).any(-1)
        assert not moved[:, :, [0, 1, 3]].any()
        assert moved[:, -1, 2].all()


def test_sweeps_say_which_sites_have_other_heads() -> None:
    with pytest.raises(ValueError, match=r"layers\.0\.attn\.q 4, layers\.0\.attn\.k 2"):
        glass.sweep(
            small(),
            votive.tensor([[5, 6]]),
            votive.tensor([[5, 7]]),
            metric=lambda out: out.logits[:, -1, 3],
            sites="layers.0.attn.{q,k}",
            by="head",
        )


def test_an_edit_means_the_same_while_a_cache_is_filled() -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7, 8, 9]])
    edits = [
        glass.Edit("layers.0.attn.scores", "add", 1.5, positions=[3], heads=[2]),
        glass.Edit("layers.1.attn.rot_k", "zero", positions=[1], heads=[0]),
        glass.Edit("layers.0.mlp.post", "zero", positions=[4], features=range(8)),
    ]
    edits[0] = glass.Edit("layers.0.attn.pattern", "scale", 0.25, positions=[3], heads=[2])
    with glass.patch(model, edits):
        whole = model(ids).logits
    cache = votive.nn.DynamicCache()
    with glass.patch(model, edits):
        parts = [model(ids[:, a:b], past_key_values=cache).logits for a, b in ((0, 3), (3, 4), (4, 5))]
    assert votive.allclose(votive.cat(parts, 1), whole, atol=1e-5)


def test_readers_of_one_stream_can_be_told_apart() -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7]])
    with glass.capture(model, ["layers.0.attn.{q,k,v}", "layers.0.resid_mid"]) as plain:
        model(ids)
    with (
        glass.capture(model, ["layers.0.attn.{q,k,v}"]) as seen,
        glass.patch(model, glass.Edit("layers.0.q_input", "call", lambda x: x.roll(1, -1), heads=[3])),
    ):
        model(ids)
    same = (seen["layers.0.attn.q"] - plain["layers.0.attn.q"]).abs().amax((0, 1, 3)) < 1e-5
    assert same.tolist() == [True, True, True, False]
    for n in "kv":
        assert votive.allclose(seen[f"layers.0.attn.{n}"], plain[f"layers.0.attn.{n}"], atol=1e-5)


@pytest.mark.parametrize("edit", ["ln1.normalized", "ln1.scale", "input_layernorm"])
def test_who_looks_at_inputs_of_heads_hides_no_edit_of_the_norm(edit: str) -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7]])
    edit = f"layers.1.{edit}"
    change = glass.Edit(edit, "scale", 0.5) if "scale" in edit else glass.Edit(edit, "zero", features=range(32))
    with glass.patch(model, change):
        expected = model(ids).logits
    for at in ("layers.1.q_input", "layers.1.{q,k,v}_input"):
        with glass.patch(model, change) as receipt, glass.capture(model, at) as seen:
            got = model(ids).logits
        assert votive.allclose(got, expected, atol=1e-6), at
        assert all(s.reached is not False for s in receipt.sites.values())
    assert seen["layers.1.k_input"].shape == (1, 3, 2, 64)


def test_attention_is_taken_apart_over_caches_in_blocks() -> None:
    model = small(hidden_size=128)
    ids = votive.tensor([[5, 6, 7, 8, 9]])
    edit = glass.Edit("layers.1.attn.pattern", "scale", 0.25, positions=[4], heads=[2])
    plain, edited = votive.nn.DynamicCache(dtype="q8_0"), votive.nn.DynamicCache(dtype="q8_0")
    with votive.no_grad():
        for a, b in ((0, 3), (3, 5)):
            expected = model(ids[:, a:b], past_key_values=plain).logits
            if a:
                with glass.patch(model, edit):
                    got = model(ids[:, a:b], past_key_values=edited).logits
            else:
                with glass.capture(model, "layers.*.attn.pattern"):
                    model(ids[:, a:b], past_key_values=edited)
        assert votive.allclose(got[:, 0], expected[:, 0], atol=1e-2)
        with glass.patch(model, edit):
            whole = model(ids).logits
    assert votive.allclose(got, whole[:, 3:], atol=1e-2)
    assert not votive.allclose(got[:, 1], expected[:, 1], atol=1e-2)


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
def test_an_expert_can_be_taken_out(family: str) -> None:
    model, ids = decoder(family)
    model.eval()
    for edit in (
        glass.Edit("layers.0.mlp.expert_weights", "zero"),
        glass.Edit("layers.0.mlp.expert_weights", "zero", features=[0]),
    ):
        with (
            glass.patch(model, edit) as receipt,
            glass.capture(model, ["layers.0.mlp_out", "layers.0.mlp.expert_weights"]) as seen,
        ):
            model(ids)
        assert receipt.sites["layers.0.mlp.expert_weights"].reached
        assert edit.features is not None or bool((seen["layers.0.mlp_out"] == 0).all())


@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
def test_models_in_blocks_have_the_same_places(kind: str) -> None:
    model = small()
    votive.quantize_(model, kind)
    assert not glass.check_sites(model).wrong


@pytest.mark.parametrize("dtype", [votive.float64, votive.bfloat16, votive.float16])
def test_places_hold_in_every_type(dtype: votive.dtype) -> None:
    check = glass.check_sites(small().to(dtype))
    assert check.worst < {votive.float64: 1e-13}.get(dtype, 0.06)


def test_compiled_models_are_edited_as_written() -> None:
    model = small()
    ids = votive.tensor([[5, 6, 7]])
    compiled = votive.compile(copy.deepcopy(model))
    with votive.no_grad():
        plain = compiled(ids).logits
        edit = glass.Edit("layers.1.attn.pattern", "zero", heads=[0])
        with glass.patch(model, edit):
            expected = model(ids).logits
        with glass.patch(compiled, edit) as receipt:
            got = compiled(ids).logits
        assert receipt.sites["layers.1.attn.pattern"].reached
        assert votive.allclose(got, expected, atol=1e-6)
        with glass.capture(compiled, "layers.0.attn.pattern") as seen:
            compiled(ids)
        assert seen["layers.0.attn.pattern"].shape == (1, 4, 3, 3)
        assert votive.equal(compiled(ids).logits, plain)
    assert not glass.check_sites(compiled).wrong


def test_debuggers_stop_at_places_they_were_begun_with() -> None:
    model, ids = small(), votive.tensor([[5, 6, 7]])
    with votive.debug(model, ids, sites="layers.*.attn.pattern", ops=False) as d:
        assert str(d.run(until="layers.1.attn.pattern", phase="leave")) == "layers.1.attn.pattern"
        d.value = votive.zeros_like(d.value)
        got = d.finish().logits
    with glass.patch(model, {"layers.1.attn.pattern": 0.0}):
        assert votive.allclose(got, model(ids).logits, atol=1e-6)
    with votive.debug(model, ids) as d, pytest.raises(ValueError, match="sites="):
        d.run(until="layers.1.attn.pattern")
    steps = [e.phase for e in votive.steps(model, ids, at="layers.*.attn.z")]
    assert steps == ["enter", "leave"] * 2


def test_sweeps_and_gradients_take_places() -> None:
    model = small()
    clean, corrupt = votive.tensor([[5, 6, 7, 8]]), votive.tensor([[5, 9, 7, 8]])

    def metric(out: Any) -> Any:
        return out.logits[:, -1, 3]

    heads = glass.sweep(model, clean, corrupt, metric=metric, sites="layers.*.attn.z", heads=4, estimate=True)
    before = glass.sweep(model, clean, corrupt, metric=metric, sites="layers.*.self_attn.o_proj:in", heads=4)
    assert votive.allclose(heads.values, before.values, atol=1e-6)
    with pytest.raises(ValueError, match="4 heads"):
        glass.sweep(model, clean, corrupt, metric=metric, sites="layers.*.attn.z", heads=3)
    mid = glass.sweep(model, clean, corrupt, metric=metric, sites="layers.*.{resid_pre,resid_mid,resid_post}")
    assert [s.rpartition(".")[2] for s in mid.sites] == ["resid_pre", "resid_mid", "resid_post"] * 2
    assert votive.allclose(mid.values[2], mid.values[3], atol=1e-6)  # one stream
    scores = glass.sweep(model, clean, corrupt, metric=metric, sites="layers.1.attn.scores", by="head", estimate=True)
    assert scores.estimate.isfinite().all()
    assert scores.correlation > 0.5
    masked = glass.gradient_times_activation(model, clean, at="layers.1.attn.scores", metric=metric)
    assert masked.product()["layers.1.attn.scores"].isfinite().all()
    found = glass.gradient_times_activation(model, clean, at="layers.1.{resid_mid,mlp_in}", metric=metric)
    # The net is one of two readers of the stream.
    assert not votive.allclose(found.grads["layers.1.resid_mid"], found.grads["layers.1.mlp_in"])


def test_places_cost_nothing_where_nobody_asks() -> None:
    assert points.POINTS.watchers == ()
    with glass.capture(small(), "layers.0.attn.z"):
        assert len(points.POINTS.watchers) == 1
    assert points.POINTS.watchers == ()
    with pytest.raises(glass.NoMatch):
        glass.capture(votive.nn.Linear(1, 1), "layers.0.attn.z")
    with pytest.raises(LookupError, match="no named places"):
        glass.sites(votive.nn.Linear(1, 1))
    model = small()
    with pytest.raises(glass.NoMatch), glass.capture(model, "layers.7.attn.z"):
        model(votive.tensor([[1]]))


@pytest.mark.parity
def test_a_pattern_edit_equals_the_same_written_with_torch() -> None:
    torch = pytest.importorskip("torch")
    model = small(num_hidden_layers=1)
    w = {n: torch.tensor(p.detach().numpy()) for n, p in model.named_parameters()}
    ids = votive.tensor([[5, 6, 7, 8]])
    generator = votive.Generator().manual_seed(3)
    given = votive.rand(1, 4, 4, 4, generator=generator)
    with glass.patch(model, {"layers.0.attn.pattern": given}), votive.no_grad():
        got = model(ids).logits.numpy()

    def norm(x: Any, weight: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight

    at = "model.layers.0."
    x = w["model.embed_tokens.weight"][torch.tensor(ids.numpy())]
    v = norm(x, w[at + "input_layernorm.weight"]) @ w[at + "self_attn.v_proj.weight"].T
    v = v.view(1, 4, 2, 16).transpose(1, 2).repeat_interleave(2, 1)
    z = (torch.tensor(given.numpy()) @ v).transpose(1, 2).reshape(1, 4, 64)
    x = x + z @ w[at + "self_attn.o_proj.weight"].T
    y = norm(x, w[at + "post_attention_layernorm.weight"])
    y = torch.nn.functional.silu(y @ w[at + "mlp.gate_proj.weight"].T) * (y @ w[at + "mlp.up_proj.weight"].T)
    x = norm(x + y @ w[at + "mlp.down_proj.weight"].T, w["model.norm.weight"])
    np.testing.assert_allclose(got, (x @ w["lm_head.weight"].T).numpy(), atol=1e-5)


def test_sessions_write_on_under_edits_at_places() -> None:
    model = small()
    edits = [
        glass.Edit("layers.0.attn.pattern", "scale", 0.5, heads=[1], positions=[2, 4]),
        glass.Edit("layers.1.mlp.post", "zero", features=range(8), positions=[5]),
        glass.Edit("layers.1.attn.k", "scale", 2.0, heads=[0]),
    ]
    session = glass.Session(model, None, [5, 6, 7, 8], edits=edits)
    plain = glass.Session(model, None, [5, 6, 7, 8])
    session.step(3)
    with votive.no_grad(), glass.patch(model, edits):
        whole = model(votive.tensor([session.tokens])).logits[0, -1]
    assert votive.allclose(session.logits(), whole, atol=1e-5)
    assert votive.allclose(session.logits(), session.fresh_logits(), atol=1e-6)
    assert not votive.allclose(session.logits(), plain.logits())
    with pytest.raises(glass.NoMatch):
        session.set_edits([glass.Edit("layers.9.attn.z", "zero")])
