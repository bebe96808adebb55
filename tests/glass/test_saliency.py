"""Gradients at addresses, token saliency, Grad-CAM and layer statistics."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass.residual_stream import logits_of
from votive.nn import functional as F

from .decoders import ALL, CAUSAL, decoder
from .test_models import made


def logit(model: Any, embeds: Any, token: int) -> Any:
    return model(inputs_embeds=embeds).logits[:, -1, token]


def embeddings(model: Any, ids: Any) -> Any:
    return model.get_input_embeddings()(ids).detach().requires_grad_(True)


@pytest.mark.parametrize("name", [n for n in CAUSAL if not n.startswith("gemma")])
def test_saliency_is_the_gradient_at_the_embedding(name: str) -> None:
    model, ids = decoder(name)
    x = embeddings(model, ids)
    (g,) = votive.autograd.grad(logit(model, x, 3).sum(), [x])
    norm = glass.saliency(model, ids, target=3, method="gradient")
    assert votive.allclose(norm.scores, g.norm(dim=-1), rtol=1e-4, atol=1e-6)
    times = glass.saliency(model, ids, target=3)
    assert votive.allclose(times.scores, (g * x.detach()).sum(-1), rtol=1e-4, atol=1e-6)
    assert votive.allclose(times.output, logit(model, x, 3).detach(), atol=1e-6)
    assert all(p.grad is None for p in model.parameters())


# A router that sends a token elsewhere makes the output jump, which no gradient sees.
SMOOTH = [n for n in ALL if n not in ("mixtral", "qwen3_moe")]


@pytest.mark.parametrize("name", SMOOTH)
def test_integrated_gradients_sum_to_the_difference_from_the_baseline(name: str) -> None:
    model, ids = decoder(name)
    # A baseline near the text: norms turn sharply at zero, where few steps would not do.
    table = glass.find_parts(model).embedding.weight.detach()
    found = glass.saliency(model, ids, target=3, method="integrated_gradients", steps=48, baseline=table.mean(0))
    size = float(found.scores.abs().sum(-1).max())
    assert size > 1e-3
    assert float(found.gap.max()) <= 0.02 * size
    with votive.no_grad():
        output = logits_of(model(ids))[:, -1, 3]
    assert votive.allclose(found.output, output, atol=1e-6)


def test_integrated_gradients_of_something_linear_are_exact() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(9, 3)
            self.out = nn.Linear(3, 4)

        def forward(self, ids: Any) -> Any:
            return self.out(self.words(ids).mean(1))

    votive.manual_seed(0)
    model, ids = Bag(), votive.tensor([[1, 2, 3]])
    one = glass.saliency(model, ids, target=2, method="integrated_gradients", steps=1)
    product = glass.saliency(model, ids, target=2)
    assert votive.allclose(one.scores, product.scores, atol=1e-6)
    assert float(one.gap) < 1e-6
    wanted = (model.words(ids) / 3) @ model.out.weight[2]
    assert votive.allclose(product.scores, wanted.detach(), atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
def test_any_model_with_an_embedding_has_saliency(family: str) -> None:
    model, given = made(family)
    found = glass.saliency(model, **given, metric=lambda out: logits_of(out)[:, 1, 3])
    assert found.scores.shape == (2, 5)
    assert float(found.scores.abs().min()) > 0


def test_saliency_takes_a_metric_and_refuses_what_it_cannot_honour() -> None:
    model, ids = decoder("llama")
    found = glass.saliency(model, ids, metric=lambda out: out.logits[:, 0, 3])
    assert float(found.scores[:, 0].abs().min()) > 0
    assert float(found.scores[:, 1:].abs().max()) == 0.0  # later tokens are out of sight
    likeliest = glass.saliency(model, ids)
    with votive.no_grad():
        assert votive.allclose(likeliest.output, model(ids).logits[:, -1].amax(-1))
    with pytest.raises(ValueError, match="method"):
        glass.saliency(model, ids, method="guess")
    with pytest.raises(ValueError, match="not both"):
        glass.saliency(model, ids, target=1, metric=lambda out: out)
    with pytest.raises(ValueError, match="each of 2 samples"):
        glass.saliency(model, ids, metric=lambda out: out.logits[0, 0, 0])
    with pytest.raises(LookupError, match="embedding="):
        glass.saliency(nn.Linear(2, 2), votive.ones(1, 2))


# --- gradient times activation --------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_gradients_at_addresses_are_those_of_the_values_there(name: str) -> None:
    model, ids = decoder(name)
    parts = glass.find_parts(model)

    def metric(out: Any) -> Any:
        return logits_of(out)[:, -1, 3]

    at = [f"^{n}" for n in parts.names]
    found = glass.gradient_times_activation(model, ids, at=at, metric=metric)
    with glass.capture(model, at) as seen:
        out = metric(model(ids))
    kept = [seen[n][0] if isinstance(seen[n], tuple) else seen[n] for n in parts.names]
    for n, value, g in zip(parts.names, kept, votive.autograd.grad(out.sum(), kept), strict=True):
        assert votive.allclose(found.grads[n], g, rtol=1e-4, atol=1e-6)
        assert votive.allclose(found.product()[n], value.detach() * g, rtol=1e-4, atol=1e-6)
        assert found.totals()[n] == pytest.approx(float((value.detach() * g).sum()), abs=1e-4)


def test_a_frozen_model_has_gradients_at_its_addresses() -> None:
    model, ids = decoder("llama")
    for p in model.parameters():
        p.requires_grad_(False)
    found = glass.gradient_times_activation(
        model, ids, at=["layers.*", "layers.0.mlp:in"], metric=lambda out: out.logits[:, -1, 3]
    )
    assert list(found.values) == ["model.layers.0.mlp:in", "model.layers.0", "model.layers.1"]
    assert all(float(g.norm()) > 0 for g in found.grads.values())
    with pytest.raises(glass.NoMatch):
        glass.gradient_times_activation(model, ids, at="nowhere", metric=lambda out: out.logits)
    with pytest.raises(ValueError, match="depends on"):
        glass.gradient_times_activation(model, ids, at="layers.*", metric=lambda out: out.logits.detach())


# --- Grad-CAM -------------------------------------------------------------------------------------


class Convs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(1, 4, 3, padding=1)
        self.two = nn.Conv2d(4, 6, 3, padding=1, stride=2)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        x = votive.relu(self.two(votive.relu(self.one(x))))
        return self.head(x.mean((2, 3)))


def test_grad_cam_weighs_maps_by_their_mean_gradient() -> None:
    votive.manual_seed(0)
    net, x = Convs(), votive.randn(2, 1, 8, 8)
    found = glass.grad_cam(net, x, target=[1, 2])
    assert found.address == "two"
    y = net.two(votive.relu(net.one(x))).detach().requires_grad_(True)
    scores = net.head(votive.relu(y).mean((2, 3)))
    (g,) = votive.autograd.grad(scores[0, 1] + scores[1, 2], [y])
    raw = votive.relu((g.mean((2, 3), keepdim=True) * y.detach()).sum(1))
    assert votive.allclose(found.raw, raw, atol=1e-6)
    large = F.interpolate(raw.unsqueeze(1), size=(8, 8), mode="bilinear")[:, 0]
    top = large.amax((1, 2), keepdim=True)
    assert votive.allclose(found.maps * top, large, atol=1e-6)
    assert found.maps.shape == (2, 8, 8)
    assert votive.allclose(found.score, votive.stack([scores[0, 1], scores[1, 2]]).detach())


def test_grad_cam_sees_where_the_thing_is() -> None:
    """A net that looks for one bright spot."""
    net = Convs()
    with votive.no_grad():
        for p in net.parameters():
            p.zero_()
        net.one.weight[0, 0, 1, 1] = 1.0
        net.two.weight[0, 0, 1, 1] = 1.0
        net.head.weight[1, 0] = 1.0
    x = votive.zeros(1, 1, 8, 8)
    x[0, 0, 6, 2] = 1.0
    found = glass.grad_cam(net, x)
    assert found.target.tolist() == [1]
    spot = int(found.maps[0].argmax())
    assert abs(spot // 8 - 6) <= 1
    assert abs(spot % 8 - 2) <= 1
    assert float(found.maps[0, :4].max()) == 0.0


def test_grad_cam_chooses_its_layer_and_refuses_others() -> None:
    votive.manual_seed(0)
    net, x = Convs(), votive.randn(1, 1, 8, 8)
    assert glass.grad_cam(net, x, at="one").address == "one"
    assert glass.grad_cam(net, x, size=(4, 4)).maps.shape == (1, 4, 4)
    with pytest.raises(ValueError, match="no maps"):
        glass.grad_cam(net, x, at="head")
    with pytest.raises(ValueError, match="choose one"):
        glass.grad_cam(net, x, at="{one,two}")
    with pytest.raises(LookupError, match="no convolution"):
        glass.grad_cam(nn.Linear(2, 2), votive.ones(1, 2))


# --- statistics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_statistics_are_those_of_the_layers_results(name: str) -> None:
    model, ids = decoder(name)
    found = glass.layer_statistics(model, ids)
    names = glass.find_parts(model).names
    assert list(found.rows) == ["embedding", *names]
    with votive.no_grad(), glass.capture(model, [f"^{n}" for n in names]) as seen:
        model(ids)
    for n in names:
        value = seen[n][0] if isinstance(seen[n], tuple) else seen[n]
        assert found[n].mean == pytest.approx(float(value.mean()), abs=1e-5)
        assert found[n].norm == pytest.approx(float(value.norm()), rel=1e-5)
        assert sum(found[n].histogram) == value.numel()
        grown = float(value.norm(dim=-1).mean())
        assert found.growth[n] == pytest.approx(grown, rel=1e-5)


def test_statistics_at_addresses_of_any_model() -> None:
    votive.manual_seed(0)
    found = glass.layer_statistics(Convs(), votive.randn(1, 1, 8, 8), at=["one", "/relu"])
    assert list(found.rows) == ["one", "/relu#0", "/relu#1"]
    assert found["/relu#0"].zeros > 0
    assert found.growth == {}
    assert "zeros" in str(found)
    assert found.to_dict()["rows"]["one"]["count"] == 4 * 64
    with pytest.raises(LookupError, match="layers="):
        glass.layer_statistics(Convs(), votive.randn(1, 1, 8, 8))


def test_positions_count_from_the_beginning_of_the_text_with_a_cache_too() -> None:
    model, ids = decoder("llama")

    def cached() -> Any:
        cache = votive.nn.DynamicCache()
        with votive.no_grad():
            model(ids[:, :2], past_key_values=cache)
        return cache

    for explained in (
        lambda x, **given: glass.saliency(model, x, target=3, **given).output,
        lambda x, **given: glass.logit_attribution(model, x, target=3, **given).logit,
    ):
        for position in (3, -2):
            whole = explained(ids, position=position)
            part = explained(ids[:, 2:], position=position, past_key_values=cached())
            assert votive.allclose(whole, part, atol=1e-5)
        with pytest.raises(IndexError, match="position 1 is in the cache, which holds 2"):
            explained(ids[:, 2:], position=1, past_key_values=cached())
        with pytest.raises(IndexError):
            explained(ids, position=5)
    with pytest.raises(ValueError, match="without a cache"):
        glass.saliency(model, ids[:, 2:], method="integrated_gradients", past_key_values=cached())
