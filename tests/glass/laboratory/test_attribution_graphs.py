"""Attribution graphs: edges against plain torch and against runs in which all else is held fast; what is kept."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import votive
from tests.glass.decoders import CAUSAL, decoder
from votive import glass
from votive.glass import circuits, features

from .torch_graph import TorchGraph

IDS = [[5, 6, 1, 8, 9]]
# Beside those of the lenses: parallel layers, one product for all, norms of the stream, values at a limit or made in
# two steps.
FAMILIES = [*CAUSAL, "bloom", "cohere", "deepseek_v3", "falcon", "gpt_neox", "gptj", "granite", "minicpm3", "olmo"]
FAMILIES += ["olmo2", "openai-gpt", "opt"]
MIXTURES = ("deepseek_v3", "mixtral", "qwen3_moe")


def small(**more: Any) -> Any:
    votive.manual_seed(0)
    config = votive.models.LlamaConfig(
        vocab_size=16,
        hidden_size=16,
        intermediate_size=12,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.4,
        **more,
    )
    model = votive.models.LlamaForCausalLM(config).eval()
    with votive.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:  # weights of one would hide what is left out
                p.add_(0.2 * votive.randn(p.shape))
    return model


def coder(layer: int, kind: str = "relu", **more: Any) -> Any:
    votive.manual_seed(10 + layer)
    at = f"model.layers.{layer}.mlp"
    c = features.SAE(16, 24, kind, d_out=16, site=f"{at}:in", writes=at, **more)
    with votive.no_grad():
        for name, p in c.named_parameters():
            if name != "log_threshold":
                p.add_(0.2 * votive.randn(p.shape))
        c.scale_in.fill_(1.5)
        c.scale_out.fill_(0.8)
    return c


def off(graph: Any) -> float:
    """How far the sum of edges and constant is from what is read, as a share of the largest."""
    return float((graph.edges.sum(1) + graph.constants - graph.values).abs().max() / graph.values.abs().max())


def at(graph: Any, kind: str, layer: int, position: int, number: int) -> int:
    return next(
        i
        for i, n in enumerate(graph.nodes)
        if (n.kind, n.layer, n.position, n.number) == (kind, layer, position, number)
    )


@pytest.mark.parity
def test_edges_between_neurons_equal_those_written_with_torch() -> None:
    torch = pytest.importorskip("torch")
    model = small()
    graph = circuits.attribution_graph(model, votive.tensor(IDS), targets=[3, 7])
    ref = TorchGraph(model, torch)
    logits, written, read = ref.run(torch.tensor(IDS[0]))
    found = [ref.neurons(i, r) for i, r in enumerate(read)]
    units = [(i, t, n[t, f], d[f]) for i, (n, d) in enumerate(found) for t in range(5) for f in range(12)]
    units = [(i, t, a.detach(), d) for i, t, a, d in units]
    targets = [n[t, f] for n, _ in found for t in range(5) for f in range(12)] + [logits[4, 3], logits[4, 7]]
    expected = np.array([ref.edges(t, written, units) for t in targets])
    plain = [n for n, node in enumerate(graph.sources) if node.kind != "error"]
    np.testing.assert_allclose(graph.edges[:, plain].numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(graph.values.numpy(), [float(t.detach()) for t in targets], atol=1e-5)
    rest = [n for n, node in enumerate(graph.sources) if node.kind == "error"]
    assert float(graph.edges[:, rest].abs().max()) < 1e-5


@pytest.mark.parity
def test_edges_between_features_equal_those_written_with_torch() -> None:
    torch = pytest.importorskip("torch")
    model = small()
    coders = [coder(i) for i in range(3)]
    graph = circuits.attribution_graph(model, votive.tensor(IDS), coders=coders, targets=7)
    ref = TorchGraph(model, torch)
    logits, written, read = ref.run(torch.tensor(IDS[0]))
    units, targets, errors = [], [], []
    for i, c in enumerate(coders):
        w = {n: torch.tensor(p.detach().numpy(), dtype=torch.float64) for n, p in c.named_parameters()}
        pre = 1.5 * read[i] @ w["W_enc"] + w["b_enc"]
        fired = pre.relu().detach()
        errors.append(written[i + 1].detach() - (fired @ w["W_dec"] + w["b_dec"]) / 0.8)
        for t, f in fired.nonzero().tolist():
            units.append((i, t, fired[t, f], w["W_dec"][f] / 0.8))
            targets.append(pre[t, f])
    n = len(units)
    assert [(u.layer, u.position) for u in graph.nodes[:n]] == [(i, t) for i, t, _, _ in units]
    units += [(i, t, 1.0, e[t]) for i, e in enumerate(errors) for t in range(5)]
    expected = np.array([ref.edges(t, written, units) for t in [*targets, logits[4, 7]]])
    np.testing.assert_allclose(graph.edges.numpy(), expected, atol=1e-5)
    assert off(graph) < 1e-5
    assert 0 < graph.replacement < graph.completeness < 1


class Held(votive.nn.Module):
    """A norm with the scale that it has for certain vectors."""

    def __init__(self, norm: Any, x: Any) -> None:
        super().__init__()
        self.by = (norm(x) / x).detach()

    def forward(self, x: Any) -> Any:
        return x * self.by


@pytest.mark.parametrize("family", FAMILIES)
def test_an_edge_is_what_a_run_with_all_else_held_fast_shows(family: str) -> None:
    model, ids = decoder(family)
    model.eval()
    ids = ids[:1]
    others = "error" if family in MIXTURES else "neurons"
    graph = circuits.attribution_graph(model, ids, others=others, targets=[4, 6])
    assert off(graph) < 1e-5
    reads, there = "layers.1.mlp.pre", glass.sites(model, ids)
    ends = ("attn.pattern", "ln1.scale", "ln2.scale", "ln1_post.scale", "ln2_post.scale", "mlp_out", "ln_final.scale")
    held = [a for a in there if a.endswith(ends) or a == reads]
    with glass.capture(model, held) as seen:
        before = model(ids).logits
    source = next(i for i, n in enumerate(graph.sources) if n.kind in ("neuron", "error") and n.position == 2)
    node = graph.sources[source]
    if others == "neurons":
        net = glass.weights(model)
        wrote = net.W_out[0][node.number] * node.activation
    else:
        wrote = seen["layers.0.mlp_out"][0, 2].clone()
    norm = glass.weights(model)._norms(0)[3]
    if others == "neurons" and norm is not None:
        wrote = wrote * (norm.weight + getattr(norm, "weight_offset", 0.0)) / seen["layers.0.ln2_post.scale"][0, 2]
    if others == "neurons":
        wrote = wrote * glass.find_parts(model).layers[0].residual_scale
    edits = {a: seen[a] for a in seen if a != reads}
    edits["layers.0.mlp_out"] = edits["layers.0.mlp_out"].clone()
    edits["layers.0.mlp_out"][0, 2] -= wrote.detach()
    within = [n for n, _ in model.named_modules() if n.endswith("kv_a_layernorm")]
    with glass.capture(model, [f"{n}:in" for n in within] or "logits") as read:
        model(ids)
    for name in within:
        norm, owner = model.get_submodule(name), model.get_submodule(name.rpartition(".")[0])
        owner.kv_a_layernorm = Held(norm, read[f"{name}:in"])
    with (
        votive.no_grad(),
        glass.patch(model, edits),
        glass.capture(model, reads if reads in there else "**") as changed,
    ):
        after = model(ids).logits
    cap, rows = getattr(model.config, "final_logit_softcapping", None), []
    for logits in (before, after):
        plain = logits[0, -1] if cap is None else cap * votive.atanh(logits[0, -1] / cap)
        rows.append((plain - plain.mean())[[4, 6]])
    assert votive.allclose(graph.edges[-2:, source], rows[0] - rows[1], atol=2e-5)
    if others == "neurons" and "layers.0.mlp.pre_linear" not in there:
        change = seen[reads] - changed[reads]
        for position, number in ((2, 0), (2, 5), (4, 0), (4, 5)):
            row = at(graph, "neuron", 1, position, number)
            assert float(graph.edges[row, source] - change[0, position, number]) == pytest.approx(0, abs=2e-5)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("relu", {"skip": True}),
        ("topk", {"k": 4}),
        ("jumprelu", {}),
        ("gated", {"skip": True}),
        ("batchtopk", {"k": 3}),
    ],
)
def test_every_kind_of_transcoder_serves(kind: str, more: dict[str, Any]) -> None:
    model = small()
    graph = circuits.attribution_graph(model, votive.tensor(IDS), coders={1: coder(1, kind, **more)}, targets=7)
    assert off(graph) < 1e-5
    fired = [n for n in graph.nodes if n.kind == "feature"]
    assert fired
    assert {n.layer for n in graph.nodes if n.kind == "neuron"} == {0, 2}
    with features.splice(model, None, coder(1, kind, **more)) as place, glass.capture(model, place.features) as seen:
        model(votive.tensor(IDS))
    seen_at = seen[place.features][0]
    assert int((seen_at != 0).sum()) == len(fired)
    for n in fired:
        assert n.activation == pytest.approx(float(seen_at[n.position, n.number]), abs=1e-5)


def test_places_of_coders_are_those_they_were_trained_at() -> None:
    model = small()
    whole = circuits.attribution_graph(model, votive.tensor(IDS), coders=[coder(1)], targets=7)
    for site, writes in (("layers.1.mlp:in", "layers.1.mlp_out"), ("layers.1.mlp:in", "blocks.1.hook_mlp_out")):
        c = coder(1)
        c.config = c.config.replace(site=site, writes=writes)
        again = circuits.attribution_graph(model, votive.tensor(IDS), coders={1: c}, targets=7)
        assert votive.allclose(again.edges, whole.edges, atol=1e-6)
    for site in ("layers.1.mlp_in", "blocks.1.ln2.hook_normalized"):
        c = coder(1)
        c.config = c.config.replace(site=site, writes="layers.1.mlp_out")
        again = circuits.attribution_graph(model, votive.tensor(IDS), coders=[c], targets=7)
        assert off(again) < 1e-5
        assert again.nodes != whole.nodes
    c.config = c.config.replace(site="nowhere:in")
    with pytest.raises(LookupError, match="nowhere"):
        circuits.attribution_graph(model, votive.tensor(IDS), coders=[c])
    with pytest.raises(ValueError, match="two coders"):
        circuits.attribution_graph(model, votive.tensor(IDS), coders=[coder(1), coder(1)])
    with pytest.raises(ValueError, match="given for layer 2"):
        circuits.attribution_graph(model, votive.tensor(IDS), coders={2: coder(1)})
    with pytest.raises(ValueError, match="transcoders do"):
        circuits.attribution_graph(model, votive.tensor(IDS), coders=[features.SAE(16, 8, "relu", site="layers.1")])
    with pytest.raises(TypeError, match="coder"):
        circuits.attribution_graph(model, votive.tensor(IDS), coders=coder(1))


def test_what_is_not_kept_is_part_of_the_errors_and_what_matters_is_kept() -> None:
    model = small()
    ids = votive.tensor(IDS)
    whole = circuits.attribution_graph(model, ids, targets=[3, 7])
    told: list[tuple[int, int]] = []
    part = circuits.attribution_graph(
        model, ids, targets=[3, 7], max_nodes=40, progress=lambda done, of: told.append((done, of))
    )
    assert part.units <= 42
    assert told[-1] == (part.units + 2, part.units + 2)
    assert off(part) < 1e-5
    index = {n: i for i, n in enumerate(whole.nodes)}
    rows = [index[n] for n in part.nodes[: part.units]]
    assert votive.allclose(part.edges[: part.units, : part.units], whole.edges[rows][:, rows], atol=1e-6)
    assert votive.allclose(part.edges[-2:, : part.units], whole.edges[-2:, rows], atol=1e-6)
    spread = whole.influence()[: whole.units]
    # The layers below are chosen by what the kept ones above read, so that the order is nearly that of the whole.
    best = spread.sort(descending=True)[0][: part.units].sum()
    assert float(spread[rows].sum()) > 0.9 * float(best)
    none = circuits.attribution_graph(model, ids, targets=[3, 7], max_nodes=0)
    assert none.units == 0
    assert off(none) < 1e-5
    assert votive.allclose(none.edges, circuits.attribution_graph(model, ids, targets=[3, 7], others="error").edges)
    assert whole.replacement > 0.999 > part.replacement > none.replacement


def test_values_at_a_limit_are_constants() -> None:
    model, ids = decoder("olmo")
    for limit in (0.05, 0.3):
        for layer in glass.find_parts(model).layers:
            layer.mixer.clip = limit
        graph = circuits.attribution_graph(model, ids[:1], targets=3)
        assert off(graph) < 1e-5
        with glass.capture(model, "layers.1.attn.v") as seen:
            model(ids[:1])
        assert 0 < int((seen["layers.1.attn.v"].abs() == limit).sum()) < seen["layers.1.attn.v"].numel()


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    whole = circuits.attribution_graph(model, votive.tensor(IDS), max_nodes=50)
    monkeypatch.setattr(sys.modules["votive.glass.circuits.attribution_graph"], "_ROOM", 5 * 16 * 3)
    again = circuits.attribution_graph(model, votive.tensor(IDS), max_nodes=50)
    assert again.nodes == whole.nodes
    assert votive.allclose(again.edges, whole.edges, atol=1e-6)


def test_types_and_gates() -> None:
    model = small().double()
    graph = circuits.attribution_graph(model, votive.tensor(IDS))
    assert graph.edges.dtype == votive.float64
    assert off(graph) < 1e-13
    open_ = circuits.attribution_graph(model, votive.tensor(IDS), gates="frozen")
    assert off(open_) < 1e-13
    assert not votive.allclose(open_.edges, graph.edges)
    half = circuits.attribution_graph(small().to(votive.bfloat16), votive.tensor(IDS))
    assert half.edges.dtype == votive.float32
    assert off(half) < 0.1


def test_weights_in_blocks_and_compiled_models_are_traced() -> None:
    votive.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
    model = votive.models.LlamaForCausalLM(votive.models.LlamaConfig(**sizes, num_attention_heads=4)).eval()
    whole = circuits.attribution_graph(votive.compile(model), votive.tensor(IDS), targets=3)
    assert off(whole) < 1e-5
    votive.quantize_(model, "q8_0")
    graph = circuits.attribution_graph(model, votive.tensor(IDS), targets=3)
    assert off(graph) < 0.03
    assert float((graph.edges - whole.edges).abs().max()) < 0.05 * float(whole.edges.abs().max())


def test_answers_that_are_all_but_impossible_have_graphs() -> None:
    model = small()
    with votive.no_grad():
        model.lm_head.weight.mul_(1000.0)
        least = int(model(votive.tensor(IDS)).logits[0, -1].argmin())
    graph = circuits.attribution_graph(model, votive.tensor(IDS), targets=least, max_nodes=20)
    assert graph.nodes[-1].activation == 0
    assert graph.units > 10
    assert graph.pruned().units > 0


def test_padding_is_no_source() -> None:
    model = small()
    given = {"attention_mask": votive.tensor([[0, 0, 1, 1, 1]]), "input_ids": votive.tensor(IDS)}
    graph = circuits.attribution_graph(model, given, targets=3)
    assert off(graph) < 1e-5
    assert graph.tokens == tuple(IDS[0])
    padded = [i for i, n in enumerate(graph.sources) if n.position < 2]
    assert float(graph.edges[-1, padded].abs().max()) == 0
    assert all(n.position >= 2 for n, spread in graph.top(1000) if spread > 0)


def test_the_likeliest_tokens_are_explained() -> None:
    model = small()
    with votive.no_grad():
        chances = model(votive.tensor(IDS)).logits[0].softmax(-1)
    for position in (1, -1):
        graph = circuits.attribution_graph(model, votive.tensor(IDS), position=position)
        logits = [n for n in graph.nodes if n.kind == "logit"]
        assert [n.number for n in logits] == chances[position].argsort(descending=True)[: len(logits)].tolist()
        total = sum(n.activation for n in logits)
        assert total >= 0.95 or len(logits) == 10
        assert total - logits[-1].activation < 0.95
        later = [i for i, n in enumerate(graph.sources) if n.position > position % 5]
        assert not later or float(graph.edges[graph.units :, later].abs().max()) == 0


def test_what_cannot_be_told_is_refused() -> None:
    model, ids = small(), votive.tensor(IDS)
    graph = circuits.attribution_graph
    with pytest.raises(ValueError, match="one text"):
        graph(model, votive.tensor([[1, 2], [3, 4]]))
    with pytest.raises(ValueError, match="others"):
        graph(model, ids, others="nothing")
    with pytest.raises(ValueError, match="gates"):
        graph(model, ids, gates="open")
    with pytest.raises(IndexError, match="position 5"):
        graph(model, ids, position=5)
    for wrong in (16, [3, 3], []):
        with pytest.raises(ValueError, match="targets"):
            graph(model, ids, targets=wrong)
    with pytest.raises(ValueError, match="max_nodes"):
        graph(model, ids, max_nodes=-1)
    cache = votive.nn.DynamicCache()
    with votive.no_grad():
        model(ids, past_key_values=cache)
    with pytest.raises(ValueError, match="no cache"):
        graph(model, {"input_ids": ids, "past_key_values": cache})
    # A run that somebody changes is not what the matrices say.
    edit = glass.Edit("layers.1.attn.z", "scale", 2.0)
    with glass.patch(model, edit), pytest.raises(ValueError, match="attention of layer 1"):
        graph(model, ids)
    with pytest.raises(LookupError, match="others='error'"):
        graph(decoder("mixtral")[0], ids)
    with pytest.raises(LookupError, match="no attention"):
        graph(decoder("mamba")[0], ids)
    with pytest.raises(LookupError, match="none of the decoders"):
        graph(votive.nn.Linear(2, 2), ids)
