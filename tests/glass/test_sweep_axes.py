"""What a sweep goes over beside sites: heads, neurons, positions by name, pairs of texts."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass

from .decoders import decoder
from .test_models import made
from .test_sweep import metric, texts


@pytest.mark.parametrize("positions", [None, [1, 4]])
def test_heads_are_patched_one_at_a_time(positions: Any) -> None:
    model, ids = decoder("qwen3")
    clean, corrupt = texts(ids)
    site = "layers.*.self_attn.o_proj:in"
    found = glass.sweep(model, clean, corrupt, metric=metric, sites=site, heads=2, positions=positions, estimate=True)
    assert found.values.shape == found.estimate.shape == (2, 2)
    with votive.no_grad(), glass.capture(model, site) as seen:
        model(clean)
    for i, name in enumerate(found.sites):
        for head in range(2):
            features = range(8 * head, 8 * head + 8)
            value = seen[name] if positions is None else seen[name][:, positions]
            edit = glass.Edit(name, value=value[..., list(features)], features=features, positions=positions)
            with votive.no_grad(), glass.patch(model, [edit]):
                wanted = metric(model(corrupt))
            assert votive.allclose(found.per_sample[i, head], wanted, atol=1e-5)
    assert found.figure().x_name == "head"
    with pytest.raises(ValueError, match="3 heads"):
        glass.sweep(model, clean, corrupt, metric=metric, sites=site, heads=3)


HEADS = [
    ("qwen3", "layers.*.self_attn.o_proj:in", 2, None),
    ("qwen3", "layers.*.self_attn.q_proj", 2, None),
    ("qwen3", "layers.*.self_attn.v_proj", 1, None),
    ("gpt2", "h.*.attn.c_proj:in", 2, None),
    ("mine", "blocks.*.look.out:in", 3, None),
    ("qwen3", "layers.*.self_attn.o_proj:in", 4, "attention there has 1 and 2"),
    ("qwen3", "layers.*.self_attn.v_proj", 2, "which are not those of 2 heads"),
    ("qwen3", "layers.*.self_attn.o_proj", 2, "are not those of heads"),
    ("qwen3", "layers.*.self_attn", 2, "are not those of heads"),
    ("qwen3", "layers.*.mlp", 2, "are not those of heads"),
    ("qwen3", "layers.*.mlp.gate_proj:in", 2, "are not those of heads"),
    ("gpt2", "h.*.attn.c_attn", 2, "which are not those of 2 heads"),
]


@pytest.mark.parametrize(("name", "site", "heads", "refused"), HEADS)
def test_heads_are_told_only_where_they_are(name: str, site: str, heads: int, refused: str | None) -> None:
    model, ids = decoder(name)
    clean, corrupt = texts(ids)
    if refused is not None:
        with pytest.raises(ValueError, match=refused):
            glass.sweep(model, clean, corrupt, metric=metric, sites=site, heads=heads)
        return
    found = glass.sweep(model, clean, corrupt, metric=metric, sites=site, heads=heads)
    assert found.values.shape == (2, heads)


def test_the_heads_of_an_encoder_are_read_in_another_module() -> None:
    model, given = made("bert")
    ids = given["input_ids"]
    corrupt = ids.flip(1)
    found = glass.sweep(
        model, ids, corrupt, metric=lambda out: out.logits[:, 0, 3], heads=2, sites="attention.output.dense:in"
    )
    assert found.values.shape == (2, 2)
    assert not votive.allclose(found.values, found.corrupt.mean().expand(2, 2))


def _pair_model() -> Any:
    votive.manual_seed(0)
    config = votive.models.LlamaConfig(
        vocab_size=12,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        initializer_range=0.4,
    )
    return votive.models.LlamaForCausalLM(config).eval()


def _third(out: Any) -> Any:
    return out.logits[:, -1, 3]


def test_all_combinations_of_heads_and_positions_are_single_patches() -> None:
    model = _pair_model()
    clean, corrupt = votive.tensor([[1, 2, 3, 4]]), votive.tensor([[1, 5, 3, 6]])
    seen: list[tuple[int, int]] = []
    found = glass.sweep(
        model,
        clean,
        corrupt,
        metric=_third,
        sites="layers.*.attn.z",
        by=("head", "position"),
        heads=[3, 1],
        positions=[1, -1],
        progress=lambda done, total: seen.append((done, total)),
        estimate=True,
    )
    table = found.labelled()
    assert table.dims == {"site": ["layers.0.attn.z", "layers.1.attn.z"], "head": [3, 1], "position": [1, -1]}
    assert seen == [(1, 2), (2, 2)]
    with glass.capture(model, "layers.1.attn.z") as kept:
        model(clean)
    z = kept["layers.1.attn.z"].detach()
    for head in (3, 1):
        for at in (1, -1):
            edit = glass.Edit("layers.1.attn.z", "replace", z[:, at, head].detach(), heads=[head], positions=[at])
            with glass.patch(model, edit), votive.no_grad():
                expected = float(_third(model(corrupt)))
            got = table.sel(site="layers.1.attn.z", head=head, position=at).values.item()
            assert got == pytest.approx(expected, abs=1e-6)
    assert found.figure("recovered").rows == found.sites
    assert found.labelled("estimate").values.shape == (2, 2, 2)


def test_neurons_are_swept_over() -> None:
    model = _pair_model()
    clean, corrupt = votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]])
    found = glass.sweep(
        model, clean, corrupt, metric=_third, sites="layers.0.mlp.post", by="neuron", neurons=[0, 7], positions=[1]
    )
    with glass.capture(model, "layers.0.mlp.post") as kept:
        model(clean)
    value = kept["layers.0.mlp.post"].detach()[:, 1:2, 7:8]
    with glass.patch(model, glass.Edit("layers.0.mlp.post", "replace", value, positions=[1], features=[7])):
        expected = float(_third(model(corrupt)).detach())
    assert float(found.values[0, 1]) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="say what"):
        glass.sweep(model, clean, corrupt, metric=_third, sites="layers.0.mlp.post", neurons=[0])
    with pytest.raises(ValueError, match="no dimension is known"):
        glass.sweep(model, clean, corrupt, metric=_third, sites="layers.0.mlp.post", by="head")
    with pytest.raises(IndexError, match="outside"):
        glass.sweep(model, clean, corrupt, metric=_third, sites="layers.0.attn.z", by="head", heads=[4])


def test_pairs_of_different_lengths_share_positions_by_name() -> None:
    model = _pair_model()
    letters = "abcdefghijkl"
    clean = [votive.tensor([[1, 2, 3, 4]]), votive.tensor([[7, 8, 2, 1, 4], [2, 8, 7, 1, 4]])]
    corrupt = [votive.tensor([[1, 5, 3, 4]]), votive.tensor([[7, 8, 5, 1, 4], [5, 8, 7, 1, 4]])]
    places = {"changed": lambda ids: ids.index(5), "e": "e", "first": 0}
    found = glass.sweep(model, clean, corrupt, metric=_third, sites="layers.*", positions=places, tokenizer=letters)
    assert found.labelled().dims["position"] == ["changed", "e", "first"]
    assert found.per_sample.shape == (2, 3, 3)
    for i, at in enumerate((1, 2, 0)):  # where the change stands in each sample
        a, b = ((x[0] if i == 0 else x[1][i - 1 : i]) for x in (clean, corrupt))
        alone = glass.sweep(model, a, b, metric=_third, sites="layers.*", positions=[at])
        assert votive.allclose(found.per_sample[:, 0, i], alone.per_sample[:, 0, 0], atol=1e-6)
    assert votive.allclose(found.labelled().sel(position="e").values[1], found.clean.mean(), atol=1e-6)
    several = glass.sweep(model, clean, corrupt, metric=[_third, _third], sites="layers.*", positions={"end": -1})
    assert votive.allclose(several.values[:, 0], found.labelled().sel(position="e").values, atol=1e-6)
    with pytest.raises(ValueError, match="same positions"):
        glass.sweep(model, clean, corrupt, metric=_third, sites="layers.*")
    with pytest.raises(LookupError, match="stands 0 times"):
        glass.sweep(model, clean, corrupt, metric=_third, positions={"x": "z"}, tokenizer=letters)
    with pytest.raises(ValueError, match="as many inputs"):
        glass.sweep(model, clean, corrupt[:1], metric=_third, positions={"end": -1})
