"""Features are a site like any other: captured, patched, ablated, steered, with gradients and true receipts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.glass import features
from votive.glass.features.dashboard import logit_effects

from ..decoders import decoder
from . import plain


def coder(kind: str = "topk", **options: Any) -> features.SAE:
    votive.manual_seed(3)
    k = 6 if kind == "topk" else None
    sae = features.SAE(16, 40, kind, k=k, **options)
    with votive.no_grad():
        for p in sae.parameters():
            p.add_(votive.randn(p.shape) * 0.1)
    return sae


@pytest.fixture
def model() -> Any:
    votive.manual_seed(0)
    return plain.llama()


IDS = votive.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])


@pytest.mark.parametrize("at", ["layers.1", "layers.1:in", "^model.layers.1.mlp", "layers.1.self_attn", "embed_tokens"])
def test_without_edits_the_model_computes_what_it_did(model: Any, at: str) -> None:
    before = model(IDS).logits
    names = [n for n, _ in model.named_modules()]
    with features.splice(model, at, coder()) as place, glass.capture(model, [place.features, place.error]) as seen:
        assert votive.allclose(model(IDS).logits, before, atol=1e-5)
    assert seen[place.features].shape == (2, 5, 40)
    assert [n for n, _ in model.named_modules()] == names
    assert votive.equal(model(IDS).logits, before)


def test_features_and_error_are_those_of_the_value(model: Any) -> None:
    sae = coder()
    with glass.capture(model, "layers.1") as seen:
        model(IDS)
    x = seen["layers.1"]
    with features.splice(model, "layers.1", sae), glass.capture(model, ["*.features", "*.error"]) as seen:
        model(IDS)
    assert votive.allclose(seen["layers.1.features"], sae.encode(x), atol=1e-6)
    assert votive.allclose(seen["layers.1.error"], x - sae(x), atol=1e-5)
    with features.splice(model, "layers.1", sae, error=False), glass.capture(model, "layers.1") as seen:
        model(IDS)
    assert votive.allclose(seen["layers.1"], sae(x), atol=1e-5)


def test_edits_of_features_change_what_they_write_and_receipts_say_so(model: Any) -> None:
    sae = coder()
    with glass.capture(model, "layers.1") as seen:
        model(IDS)
    x, f = seen["layers.1"], sae.encode(seen["layers.1"])
    edit = glass.Edit("layers.1.features", "add", 2.5, positions=[3], features=[7], samples=[1])
    with features.splice(model, "layers.1", sae), glass.capture(model, "layers.1") as seen:
        with glass.patch(model, edit) as receipt:
            model(IDS)
    wanted = x.clone()
    wanted[1, 3] += 2.5 * sae.W_dec[7]
    assert votive.allclose(seen["layers.1"], wanted, atol=1e-5)
    site = receipt.sites["model.layers.1.features"]
    assert site.times == 1
    assert site.reached is True

    with features.splice(model, "layers.1", sae), glass.capture(model, "layers.1") as seen:
        with glass.ablate(model, "layers.1.features", "zero"):
            model(IDS)
    assert votive.allclose(seen["layers.1"], x - f @ sae.W_dec, atol=1e-5)

    with features.splice(model, "layers.1", sae), glass.capture(model, "layers.1") as seen:
        with glass.patch(model, {"layers.1.features": features.steer({7: 2.0, 8: -1.0})}):
            model(IDS)
    assert votive.allclose(seen["layers.1"], x + 2 * sae.W_dec[7] - sae.W_dec[8], atol=1e-5)


def test_an_edit_that_nothing_reads_is_told(model: Any) -> None:
    with features.splice(model, "layers.1", coder()):
        with glass.patch(model, {"layers.1.features": 1.0, "layers.1": 0.0}) as receipt:
            model(IDS)
    site = receipt.sites["model.layers.1.features"]
    assert site.reached is False
    assert "replaced at model.layers.1" in site.why
    with features.splice(model, "layers.1", coder(), error=False), pytest.raises(glass.NoMatch, match="not called"):
        with glass.patch(model, {"layers.1.error": 0.0}):
            model(IDS)


def metric(out: Any) -> Any:
    return out.logits[:, -1, 3] - out.logits[:, -1, 5]


@pytest.mark.parametrize("kind", ["topk", "relu", "jumprelu", "gated"])
def test_gradients_at_features_are_those_of_small_changes(model: Any, kind: str) -> None:
    model, sae = model.double(), coder(kind).double()
    with features.splice(model, "layers.1", sae):
        found = glass.gradient_times_activation(model, IDS, at="layers.1.features", metric=metric)
        grads = found.grads["model.layers.1.features"]
        for position, feature in ((4, 3), (2, 11)):
            ends = []
            for step in (1e-5, -1e-5):
                edit = glass.Edit("layers.1.features", "add", step, positions=[position], features=[feature])
                with votive.no_grad(), glass.patch(model, edit, measure=False):
                    ends.append(metric(model(IDS)))
            slope = (ends[0] - ends[1]) / 2e-5
            assert votive.allclose(grads[:, position, feature], slope, atol=1e-7, rtol=1e-5)


def test_a_captured_features_gradient_is_that_of_what_it_writes(model: Any) -> None:
    with features.splice(model, "layers.1", coder()), glass.capture(model, "layers.1.features") as seen:
        value = metric(model(IDS)).sum()
    (own,) = votive.autograd.grad(value, [seen["layers.1.features"]])
    with features.splice(model, "layers.1", coder()):
        found = glass.gradient_times_activation(model, IDS, at="layers.1.features", metric=metric)
    # Were the error's part in it, the two would cancel.
    assert votive.allclose(own, found.grads["model.layers.1.features"], atol=1e-6)
    assert float(own.abs().max()) > 1e-4


def test_gradients_upstream_are_those_without_a_coder_unless_the_error_is_frozen(model: Any) -> None:
    def upstream(**options: Any) -> Any:
        with features.splice(model, "layers.1", coder(), **options):
            return glass.gradient_times_activation(model, IDS, at="layers.0", metric=metric).grads["model.layers.0"]

    own = glass.gradient_times_activation(model, IDS, at="layers.0", metric=metric).grads["model.layers.0"]
    assert votive.allclose(upstream(), own, atol=1e-5)
    assert not votive.allclose(upstream(frozen_error=True), own, atol=1e-3)


@pytest.mark.parametrize("skip", [False, True])
def test_a_transcoder_stands_for_a_module(model: Any, skip: bool) -> None:
    sae = coder("relu", d_out=16, skip=skip, site="layers.1.mlp:in", writes="layers.1.mlp")
    with glass.capture(model, ["layers.1.mlp:in", "layers.1.mlp"]) as seen:
        before = model(IDS).logits
    x = seen["model.layers.1.mlp:in"]
    with features.splice(model, None, sae, error=False), glass.capture(model, "layers.1.mlp") as seen:
        model(IDS)
    assert votive.allclose(seen["layers.1.mlp"], sae(x), atol=1e-5)
    with features.splice(model, None, sae) as place, glass.capture(model, place.features) as seen:
        assert votive.allclose(model(IDS).logits, before, atol=1e-5)
    assert votive.allclose(seen[place.features], sae.encode(x), atol=1e-6)


def test_two_coders_and_a_cache(model: Any) -> None:
    one, two = coder(), coder("relu")
    whole = model(IDS).logits
    edit = glass.Edit("layers.1.features", "add", 3.0, positions=[3], features=[2])
    with features.splice(model, "layers.0", one), features.splice(model, "layers.1", two):
        assert votive.allclose(model(IDS).logits, whole, atol=1e-5)
        with glass.patch(model, edit):
            edited = model(IDS).logits
        with glass.patch(model, edit):
            first = model(IDS[:, :2], use_cache=True)
            rest = model(IDS[:, 2:], past_key_values=first.past_key_values, use_cache=True)
        assert votive.allclose(rest.logits, edited[:, 2:], atol=1e-5)
        with pytest.raises(ValueError, match="has 'features' already"):
            features.splice(model, "layers.1", one).__enter__()
        with features.splice(model, "layers.1", one, name="b_"), glass.capture(model, "layers.1.b_features") as seen:
            model(IDS)
        assert seen["layers.1.b_features"].shape == (2, 5, 40)


def test_features_of_a_compiled_model_are_captured_and_edited(model: Any) -> None:
    sae = coder()
    compiled = votive.compile(model)
    with votive.no_grad():
        with features.splice(model, "layers.1", sae), glass.capture(model, "*.features") as wanted:
            with glass.patch(model, {"layers.1.features": features.steer({7: 2.0})}):
                logits = model(IDS).logits
        compiled(IDS)
        for _ in range(2):
            with features.splice(compiled, "layers.1", sae), glass.capture(compiled, "*.features") as seen:
                with glass.patch(compiled, {"layers.1.features": features.steer({7: 2.0})}):
                    found = compiled(IDS).logits
            assert votive.allclose(seen["layers.1.features"], wanted["layers.1.features"], atol=1e-5)
            assert votive.allclose(found, logits, atol=1e-5)
        assert votive.allclose(compiled(IDS).logits, model(IDS).logits, atol=1e-5)


def test_features_of_a_quantized_model_are_captured(model: Any) -> None:
    config = votive.models.LlamaConfig(
        vocab_size=11, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    model = votive.models.LlamaForCausalLM(config).eval()
    votive.quantize_(model, "q8_0")
    sae = features.SAE(64, 128, "topk", k=8)
    before = model(IDS).logits
    with features.splice(model, "layers.0", sae) as place, glass.capture(model, ["layers.0", place.features]) as seen:
        assert votive.allclose(model(IDS).logits, before, atol=1e-4)
    assert votive.allclose(seen[place.features], sae.encode(seen["layers.0"]), atol=1e-3)


def test_a_sweep_over_features_is_one_patch_after_another(model: Any) -> None:
    clean, corrupt = IDS[:1], votive.tensor([[1, 2, 7, 4, 5]])
    with features.splice(model, "layers.1", coder()) as place:
        with glass.capture(model, [place.features, place.error]) as seen:
            best = metric(model(clean))
        worst = metric(model(corrupt))
        swept = glass.sweep(model, clean, corrupt, metric=metric, sites=[place.features, place.error])
        for row, site in enumerate([place.features, place.error]):
            for p in range(5):
                with glass.patch(model, glass.Edit(site, "replace", seen[site][:, p : p + 1], positions=[p])):
                    wanted = (metric(model(corrupt)) - worst) / (best - worst)
                assert float(swept.recovered[row, p]) == pytest.approx(float(wanted), abs=1e-3)


@pytest.mark.parametrize("family", ["gpt2", "gemma"])
def test_effects_on_logits_are_those_behind_each_familys_norm(family: str) -> None:
    votive.manual_seed(0)
    sizes = {"vocab_size": 11, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    if family == "gpt2":
        net: Any = votive.models.GPT2LMHeadModel(
            votive.models.GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=1, n_head=2)
        )
        norm, head = net.transformer.ln_f, net.lm_head.weight.detach().double().numpy()
    else:
        net = votive.models.GemmaForCausalLM(
            votive.models.GemmaConfig(**sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=8)
        )
        norm, head = net.model.norm, net.lm_head.weight.detach().double().numpy()
    with votive.no_grad():
        norm.weight.add_(votive.randn(16) * 0.2)
    weight = norm.weight.detach().double().numpy() + (family == "gemma")
    sae = coder("relu")
    rows = plain.arrays(sae)["W_dec"][[3, 4]]
    rows = rows - rows.mean(1, keepdims=True) if family == "gpt2" else rows
    wanted = np.sort((rows * weight) @ head.T, 1)
    found = logit_effects(net, sae, [3, 4], 3)
    np.testing.assert_allclose([[v for _, v in up] for up, _ in found], wanted[:, ::-1][:, :3], atol=1e-5)
    np.testing.assert_allclose([[v for _, v in down] for _, down in found], wanted[:, :3], atol=1e-5)


def test_what_cannot_be_spliced_is_refused(model: Any) -> None:
    with pytest.raises(glass.NoMatch, match="nope"):
        features.splice(model, "layers.1.nope", coder())
    with pytest.raises(ValueError, match="means 3 modules"):
        features.splice(model, "layers.*", coder())
    with pytest.raises(ValueError, match="does not say where"):
        features.splice(model, None, coder())
    with pytest.raises(ValueError, match="crosscoder reads later layers"):
        features.splice(model, "layers.1", coder(layers=2))
    with pytest.raises(ValueError, match="calls its parts in order"):
        features.splice(votive.nn.Sequential(votive.nn.Linear(2, 2)), "^", coder())
    with pytest.raises(ValueError, match="must name a module"):
        features.splice(model, "layers.1/add", coder())


def test_a_dashboard_shows_where_features_fire_and_what_they_do(model: Any) -> None:
    sae = coder(site="layers.1")
    votive.manual_seed(5)
    ids = votive.randint(0, 11, (30, 7))
    board = features.dashboard(model, sae, ids.split(8), range(40), examples=4, around=2, near=3)
    with votive.no_grad(), glass.capture(model, "layers.1") as seen:
        model(ids)
    f = plain.encode(sae, seen["layers.1"].flatten(0, 1).double().numpy()).reshape(30, 7, 40)
    for i in range(40):
        view, own = board[i], f[:, :, i]
        peaks = np.sort(own.max(1))[::-1][:4]
        np.testing.assert_allclose([e.value for e in view.examples], peaks[peaks > 0], atol=1e-5)
        for e in view.examples:
            assert own[e.text, e.position] == pytest.approx(e.value, abs=1e-5)
            start = max(0, e.position - 2)
            assert e.tokens == [f" {t}" for t in ids[e.text, start : e.position + 3].tolist()]
            np.testing.assert_allclose(e.values, own[e.text, start : e.position + 3], atol=2e-3)
        assert view.rate == pytest.approx((own > 0).mean())
        assert sum(view.counts) == (own > 0).sum()
        both = ((f[:, :, i : i + 1] > 0) & (f > 0)).sum((0, 1)) / np.maximum(
            ((f[:, :, i : i + 1] > 0) | (f > 0)).sum((0, 1)), 1
        )
        for j, share in view.together:
            assert share == pytest.approx(both[j], abs=1e-6)
        rows = plain.arrays(sae)["W_dec"]
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = np.delete(rows @ rows[i], i)
        np.testing.assert_allclose([v for _, v in view.similar], np.sort(cosines)[::-1][:3], atol=1e-5)
        w = model.lm_head.weight.detach().double().numpy()
        effects = np.sort((plain.arrays(sae)["W_dec"][i] * model.model.norm.weight.detach().numpy()) @ w.T)
        np.testing.assert_allclose([v for _, v in view.promoted], effects[::-1][:3], atol=1e-5)
        np.testing.assert_allclose([v for _, v in view.suppressed], effects[:3], atol=1e-5)
    assert "feature 3:" in board.text()
    assert board.html().count("<section>") == 40
    assert "<svg" in board[3]._repr_mimebundle_()["text/html"] or "<table>" in board[3]._repr_mimebundle_()["text/html"]


def test_a_dashboard_is_the_same_whatever_the_batches(model: Any) -> None:
    sae = coder(site="layers.1")
    ids = votive.randint(0, 11, (30, 7))
    one, two = (features.dashboard(model, sae, ids.split(n), [3, 9], skip=1).views for n in (30, 4))
    assert [v.to_dict()["counts"] for v in one.values()] == [v.to_dict()["counts"] for v in two.values()]
    assert [[e.position for e in v.examples] for v in one.values()] == [
        [e.position for e in v.examples] for v in two.values()
    ]


def test_padding_is_in_no_dashboard(model: Any) -> None:
    sae = coder("relu", site="layers.1")
    ids = votive.randint(1, 11, (6, 7))
    mask = votive.ones_like(ids)
    mask[:3, 4:] = 0
    padded = features.dashboard(model, sae, [{"input_ids": ids, "attention_mask": mask}], [5, 9], skip=1).views
    whole = features.dashboard(model, sae, [ids[:3, :4], ids[3:]], [5, 9], skip=1).views
    for i in (5, 9):
        assert padded[i].places == whole[i].places == 3 * 3 + 3 * 6
        assert padded[i].counts == whole[i].counts
        assert padded[i].rate == whole[i].rate > 0
        assert [(e.text, e.position) for e in padded[i].examples] == [(e.text, e.position) for e in whole[i].examples]


def test_tokens_are_escaped_in_html() -> None:
    from votive.glass.features.dashboard import Example

    view = features.FeatureView(0, [Example(0, 0, 1.0, ["<script>"], [1.0])], 0.1, 1.0, [1], 1.0)
    assert "<script>" not in view.html()
    assert "&lt;script&gt;" in view.html()


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "phi3", "mixtral"])
def test_named_places_take_a_coder_in_every_family(family: str) -> None:
    model, ids = decoder(family)
    width = model.eval().config.hidden_size
    hooks = ["hook_resid_pre", "hook_attn_out", "hook_mlp_in", "hook_mlp_out", "hook_resid_post", "attn.hook_z"]
    hooks += [] if family == "mixtral" else ["mlp.hook_post"]
    sizes = glass.sites(model, ids)
    for hook in hooks:
        hook = f"blocks.1.{hook}"
        place = features.formats.address_of(hook)
        sae = features.SAE(int(np.prod(sizes[place][2:])), 24, "relu", site=place)
        with votive.no_grad():
            before = model(ids).logits
            with features.splice(model, None, sae) as at, glass.capture(model, [at.features, hook]) as seen:
                after = model(ids).logits
            expected = sae.encode(seen[hook].flatten(2))
            assert votive.allclose(seen[at.features], expected, atol=1e-5), hook
            assert votive.allclose(before, after, atol=1e-4)
            # As the edit at the place itself.
            with features.splice(model, hook, sae, error=False):
                spliced = model(ids).logits
            value = sae(seen[hook].flatten(2)).reshape(seen[hook].shape)
            with glass.patch(model, {hook: value}):
                assert votive.allclose(model(ids).logits, spliced, atol=1e-4), hook
    sae = features.SAE(width, 24, "relu")
    with pytest.raises(ValueError, match="not the input or output of one module"):
        features.splice(model, "blocks.1.hook_resid_mid", sae)
    with pytest.raises(IndexError, match="behind the last layer"):
        features.splice(model, "blocks.2.hook_resid_post", sae)


def test_a_transcoder_is_not_given_what_it_does_not_read(model: Any) -> None:
    for site in ("layers.1.mlp_in", "blocks.1.hook_resid_mid"):
        with pytest.raises(ValueError, match="reads"):
            features.splice(model, "layers.1.mlp", coder(d_out=16, site=site))
    gemma, _ = decoder("gemma2")
    width = gemma.config.hidden_size
    with pytest.raises(ValueError, match="is the output of a norm"):
        features.splice(gemma, "layers.1.mlp_out", features.SAE(width, 8, "relu", d_out=width))


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_has_no_part_in_losses(model: Any, side: str) -> None:
    from votive.glass.features.measures import model_losses

    sae = coder(site="layers.0")
    short, whole = IDS[:1, :3], IDS[1:]
    ids, mask = IDS.clone(), votive.ones(2, 5, dtype=votive.int64)
    gap = slice(0, 2) if side == "left" else slice(3, 5)
    ids[0] = votive.tensor([1, 1, *short[0].tolist()] if side == "left" else [*short[0].tolist(), 1, 1])
    mask[0, gap] = 0
    batch = {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
    found = model_losses(model, sae, [batch])
    assert found == pytest.approx(model_losses(model, sae, [short, whole]), rel=1e-5)
