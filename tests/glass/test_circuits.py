"""Circuits: each method against the same written with torch, and the induction circuit that all of them must find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.glass import circuits
from votive.glass.circuits.edge_run import averages, written
from votive.nn import functional as F

from .decoders import CAUSAL, decoder
from .torch_decoder import TorchDecoder

CLEAN, OTHER = [[5, 6, 7, 8, 9], [9, 8, 5, 9, 8]], [[5, 6, 1, 8, 9], [9, 2, 5, 9, 8]]


def small() -> Any:
    votive.manual_seed(0)
    config = votive.models.LlamaConfig(
        vocab_size=16,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.4,
    )
    return votive.models.LlamaForCausalLM(config).eval()


def metric(out: Any) -> Any:
    return out.logits[:, -1, 3] - out.logits[:, -1, 4]


@pytest.fixture(scope="module")
def learned() -> Any:
    """A model of two layers that has learned to repeat texts of any length, and so cannot count back."""
    votive.manual_seed(0)
    config = votive.models.LlamaConfig(
        vocab_size=26,
        hidden_size=64,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        rope_theta=100.0,
        initializer_range=0.08,
    )
    model = votive.models.LlamaForCausalLM(config)
    optimizer = votive.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for _ in range(700):
        length = int(votive.randint(3, 12, ()))
        half = votive.randn(32, 26).argsort(-1)[:, :length]  # no letter twice
        ids = votive.cat([half, half], 1)
        optimizer.zero_grad()
        F.cross_entropy(model(ids).logits[:, length:-1].flatten(0, 1), half[:, 1:].flatten()).backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("family", [*CAUSAL, "cohere", "falcon", "gpt_neox", "granite"])
def test_writers_add_up_to_the_stream_and_cutting_all_edges_is_the_other_run(family: str) -> None:
    model, ids = decoder(family)
    model.eval()
    other = ids.flip(1)
    g = circuits.graph(model)
    with votive.no_grad():
        change = written(model, g, ids)[0].sum(0) - written(model, g, other)[0].sum(0)
        ends = []
        for text in (ids, other):
            with glass.capture(model, f"layers.{g.layers - 1}.resid_post") as seen:
                model(text)
            ends.append(seen[f"layers.{g.layers - 1}.resid_post"])
        assert votive.allclose(change, ends[0] - ends[1], atol=1e-5)
        assert votive.allclose(
            circuits.patch_paths(model, ids, other, g.edges()).logits, model(other).logits, atol=1e-5
        )
        assert votive.allclose(circuits.patch_paths(model, ids, other, []).logits, model(ids).logits, atol=1e-5)
        found = circuits.direct_logits(model, ids, 4)
        said = model(ids).logits[..., 4]
        cap = getattr(model.config, "final_logit_softcapping", None)
        said = said if cap is None else cap * votive.atanh(said / cap)
        assert votive.allclose(found.values.sum(0), said, atol=1e-5)
        end = circuits.direct_logits(model, ids, 4, by="layer").sel(layer="end").values
        assert votive.allclose(end, said, atol=1e-5)
        if family not in ("mixtral", "qwen3_moe"):
            neurons = circuits.direct_logits(model, ids, 4, against=5, by="neuron", layer=1).values
            whole = circuits.direct_logits(model, ids, 4, against=5).sel(part="layers.1.mlp").values
            if not bool(glass.weights(model).b_out[1].any()):
                assert votive.allclose(neurons.sum(0), whole, atol=1e-5)


@pytest.mark.parity
def test_paths_scores_and_searches_equal_those_written_with_torch() -> None:
    torch = pytest.importorskip("torch")
    model = small()
    g, ref = circuits.graph(model), TorchDecoder(model, torch)
    clean, other = torch.tensor(CLEAN), torch.tensor(OTHER)
    texts = votive.tensor(CLEAN), votive.tensor(OTHER)
    with torch.no_grad():
        own = ref.run(clean)[1]
        far = ref.run(other)[1]

    def scored(logits: Any) -> Any:
        return (logits[:, -1, 3] - logits[:, -1, 4]).mean()

    def number(*args: Any) -> float:
        return float(scored(ref.run(*args)[0]).detach())

    # Path patching.
    edges = [("embed", "layers.1.k.1"), ("layers.0.head.2", "layers.1.q.3"), ("layers.0.mlp", "logits")]
    cut = torch.tensor(g.mask(edges).numpy())
    expected = ref.run(clean, cut, far)[0].detach().numpy()
    np.testing.assert_allclose(circuits.patch_paths(model, *texts, edges).logits.numpy(), expected, atol=1e-5)
    zeros = [torch.zeros_like(x) for x in far]
    expected = ref.run(clean, cut, zeros)[0].detach().numpy()
    np.testing.assert_allclose(circuits.patch_paths(model, texts[0], "zero", edges).logits.numpy(), expected, atol=1e-5)

    # Edge attribution, plain and with integrated gradients.
    change = torch.stack(far) - torch.stack(own)
    for steps in (1, 4):
        total: Any = 0
        for k in range(1, steps + 1):
            start = far[0] + (own[0] - far[0]) * k / steps
            logits, _, read = ref.run(clean, start=start)
            total = total + torch.stack(torch.autograd.grad(scored(logits), read))
        table = torch.einsum("wbtc,rbtc->wr", change, total / steps) * torch.tensor(g.allowed.numpy())
        found = circuits.eap(model, *texts, metric=metric, steps=steps)
        np.testing.assert_allclose(found.scores.numpy(), table.numpy(), atol=1e-5)

    # ACDC.
    threshold = 0.02
    goal, off = number(clean), 0.0
    kept = torch.tensor(g.allowed.numpy())
    for j in reversed(range(len(g.readers))):
        users = [g.writers.index(w) for w in g.writer_of(g.readers[j])]
        for i in reversed(range(len(g.writers))):
            if not g.allowed[i, j]:
                continue
            kept[i, j] = False
            if users and not kept[users].any():
                continue
            now = abs(number(clean, torch.tensor(g.allowed.numpy()) & ~kept, far) - goal)
            if now - off > threshold:
                kept[i, j] = True
            else:
                off = now
    found = circuits.acdc(model, *texts, metric=metric, threshold=threshold)
    expected = circuits.Circuit(g, votive.tensor(kept.numpy())).pruned()
    assert set(found) == set(expected)
    assert 0 < len(found) < len(g.edges())

    # What is left of the metric.
    left = circuits.faithfulness(model, *texts, found, metric=metric)
    alone = number(clean, torch.tensor(~found.mask.numpy()), far)
    assert left.circuit == pytest.approx(alone, abs=1e-5)
    without = number(clean, torch.tensor(found.mask.numpy()), far)
    assert left.without == pytest.approx(without, abs=1e-5)
    assert left.clean == pytest.approx(goal, abs=1e-5)


@pytest.mark.parity
def test_direct_logits_equal_those_written_with_torch() -> None:
    torch = pytest.importorskip("torch")
    model = small()
    ref = TorchDecoder(model, torch)
    with torch.no_grad():
        _, parts, read = ref.run(torch.tensor(CLEAN))
    end = read[-1].detach()
    scale = torch.rsqrt(end.square().mean(-1, keepdim=True) + model.config.rms_norm_eps) * ref.w["model.norm.weight"]
    rows = ref.w["lm_head.weight"]
    expected = torch.stack([(p.detach() * scale) @ (rows[3] - rows[4]) for p in parts])
    found = circuits.direct_logits(model, votive.tensor(CLEAN), 3, against=4)
    np.testing.assert_allclose(found.values[:-1].numpy(), expected.numpy(), atol=1e-5)
    assert float(found.sel(part="rest").values.abs().max()) < 1e-5


def test_the_induction_circuit_is_found_by_gradients_and_by_search(learned: Any) -> None:
    rows = votive.randn(16, 26, generator=votive.Generator().manual_seed(1)).argsort(-1)[:, :10]
    clean = votive.cat([rows[:, :9], rows[:, :6]], 1)
    other = clean.clone()
    other[:, 5] = rows[:, 9]  # the last letter has no earlier copy any more
    sample = votive.arange(16)

    def right(out: Any) -> Any:
        return votive.log_softmax(out.logits[:, -1], -1)[sample, clean[:, 6]]

    found = circuits.acdc(learned, clean, other, metric=right, threshold=0.1)
    edges = set(found)
    # Heads of the first layer tell each position what stood before it, by keys of the second; these heads answer.
    assert any(w.startswith("layers.0.head") and r.startswith("layers.1.k") for w, r in edges)
    assert any(w.startswith("layers.1.head") and r == "logits" for w, r in edges)
    # The text of the query is the same in both.
    assert not any(r.startswith("layers.1.q") for _, r in edges)
    assert len(edges) < 0.5 * len(found.graph.edges())
    left = circuits.faithfulness(learned, clean, other, found, metric=right)
    assert left.faithfulness > 0.8
    assert left.completeness > 0.9

    scores = circuits.eap(learned, clean, other, metric=right, steps=8)
    strongest = [e for e, _ in scores.top(6)]
    assert ("layers.1.head.0", "logits") in strongest, scores.top(8)
    assert ("layers.1.head.1", "logits") in strongest
    inside, outside = scores.scores.abs()[found.mask], scores.scores.abs()[~found.mask & found.graph.allowed]
    assert float(inside.mean()) > 4 * float(outside.mean()), (inside.mean(), outside.mean())
    left = circuits.faithfulness(learned, clean, other, scores.circuit(24), metric=right)
    assert left.faithfulness > 0.5

    # What the weights say: the second layer copies, by eigenvalues, and the first does not.
    w = glass.weights(learned)
    copying = [[float(w.full_OV(i, h).copying()) for h in range(2)] for i in range(2)]
    assert min(copying[1]) > 0.3 > max(copying[0])


def test_means_of_a_data_set_stand_in_for_what_writers_write(tmp_path: Any) -> None:
    model = small()
    texts = votive.randint(0, 16, (12, 5), generator=votive.Generator().manual_seed(0))
    found = averages(model, [texts[:4], texts[4:]])
    again = averages(model, [texts])
    g = circuits.graph(model)
    assert list(found) == g.writers
    assert all(votive.allclose(found[w], again[w], atol=1e-6) for w in g.writers)
    whole = written(model, g, texts)[0]
    assert votive.allclose(found["layers.1.head.2"], whole[g.writers.index("layers.1.head.2")].mean(0), atol=1e-6)
    votive.save(found, tmp_path / "means.vt")
    kept = votive.load(tmp_path / "means.vt")
    edges = [("layers.0.head.1", "logits")]
    a = circuits.patch_paths(model, texts[:2], found, edges).logits
    assert votive.equal(a, circuits.patch_paths(model, texts[:2], kept, edges).logits)
    assert not votive.allclose(a, model(texts[:2]).logits)
    over_all = averages(model, [texts[:, :3], texts], over="positions")
    assert over_all["embed"].shape == (1, 1, 16)
    circuits.patch_paths(model, texts[:, :2], over_all, edges)
    with pytest.raises(ValueError, match="different lengths"):
        averages(model, [texts[:, :3], texts])
    with pytest.raises(ValueError, match="as many samples"):
        circuits.patch_paths(model, texts[:2], texts[:2, :3], edges)
    with pytest.raises(ValueError, match="'zero' or means"):
        circuits.eap(model, texts, "none", metric=metric)


def test_circuits_lose_edges_that_lead_nowhere() -> None:
    g = circuits.Graph(2, 2, 1)
    edges = [("embed", "layers.0.v.0"), ("layers.0.head.1", "layers.1.mlp"), ("layers.1.mlp", "logits")]
    dangling = [("embed", "layers.1.q.0"), ("layers.0.mlp", "logits")]
    found = circuits.Circuit(g, g.mask(edges + dangling)).pruned()
    assert set(found) == set(edges)
    assert found.nodes == ["embed", "layers.0.head.1", "layers.1.mlp"]
    with pytest.raises(ValueError, match="behind"):
        g.mask([("layers.1.mlp", "layers.0.mlp")])
    with pytest.raises(KeyError, match="none of"):
        g.index("nobody", "logits")


def test_labelled_numbers_become_tables_and_pictures() -> None:
    found = glass.Labelled(votive.arange(12.0).reshape(2, 3, 2), {"layer": [0, 1], "head": list("abc"), "row": [0, 1]})
    assert found.sel(layer=1, head=["c", "a"]).values.tolist() == [[10.0, 11.0], [6.0, 7.0]]
    assert found.mean("row").sel(layer=0, head="b").values.item() == 2.5
    assert found.top(1) == [((1, "c", 1), 11.0)]
    assert found.sel(row=0).plot().rows == ["0", "1"]
    assert found.sel(row=0, layer=1).svg().startswith("<svg")
    with pytest.raises(ValueError, match="dimensions"):
        found.plot()
    with pytest.raises(KeyError, match="not labels"):
        found.sel(head="z")
    with pytest.raises(ValueError, match="sizes"):
        glass.Labelled(votive.ones(2), {"x": [1]})


def test_labelled_numbers_become_pandas_and_xarray() -> None:
    pandas = pytest.importorskip("pandas")
    found = glass.Labelled(votive.arange(6.0).reshape(2, 3), {"layer": [0, 1], "head": list("abc")}, "score")
    table = found.to_pandas()
    assert table.loc[1, "b"] == 4.0
    assert table.index.name == "layer"
    deep = glass.Labelled(votive.ones(1, 1, 1), {"a": [0], "b": [0], "c": [0]}).to_pandas()
    assert isinstance(deep, pandas.Series)


def test_libraries_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match="needs xarray"):
        glass.Labelled(votive.ones(1), {"x": [0]}).to_xarray()


def test_averages_leave_padding_out() -> None:
    model = small()
    ids = votive.randint(1, 16, (3, 6), generator=votive.Generator().manual_seed(2))
    mask = votive.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0], [1] * 6])
    batch = {"input_ids": ids, "attention_mask": mask}
    with votive.no_grad(), glass.capture(model, "layers.1.attn.result") as seen:
        model(**batch)
    own = seen["layers.1.attn.result"][:, :, 2] * mask.unsqueeze(-1)
    found = averages(model, [batch])["layers.1.head.2"]
    assert votive.allclose(found[0], own.sum(0) / mask.sum(0).unsqueeze(-1), atol=1e-6)
    found = averages(model, [batch, batch], over="positions")["layers.1.head.2"]
    assert votive.allclose(found[0, 0], own.sum((0, 1)) / mask.sum(), atol=1e-6)
    with pytest.raises(ValueError, match="padding comes before"):
        averages(model, [{"input_ids": ids, "attention_mask": mask.flip(1)}])
    with pytest.raises(ValueError, match="in every sample"):
        averages(model, [{"input_ids": ids[:1], "attention_mask": mask[:1]}])


def test_direct_logits_refuse_a_stream_that_is_changed_behind_the_last_layer() -> None:
    model, ids = small(), votive.tensor(CLEAN)
    for at in ("model.layers.1", "ln_final.normalized"):
        with glass.patch(model, glass.Edit(at, "zero", features=[0, 1, 2])), pytest.raises(ValueError, match="behind"):
            circuits.direct_logits(model, ids, 4)
    for at in ("layers.1.resid_post", "model.norm"):
        with glass.patch(model, glass.Edit(at, "zero", features=[0, 1, 2])), votive.no_grad():
            found = circuits.direct_logits(model, ids, 4)
            assert votive.allclose(found.values.sum(0), model(ids).logits[..., 4], atol=1e-5), at
