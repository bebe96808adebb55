"""What is done with an attribution graph: scores, pruning, files for viewers, text and pictures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import votive
from votive.glass import circuits
from votive.glass.circuits.influence import Table

from .test_attribution_graphs import IDS, coder, small


def test_influence_scores_and_pruning_are_those_published() -> None:
    rng = np.random.default_rng(0)
    units, errors, tokens, outputs = 12, 4, 3, 2
    edges = rng.normal(size=(units + outputs, units + errors + tokens))
    edges[:units, :units] = np.tril(edges[:units, :units], -1)
    edges[0, :] = 0  # what reads nothing
    chances = np.array([0.6, 0.3])
    # As published: a square matrix of shares A, influence (I - A)^-1 - I.
    size = units + errors + tokens + outputs
    A = np.zeros((size, size))
    target = [*range(units), *range(size - outputs, size)]
    A[np.ix_(target, range(size - outputs))] = np.abs(edges)
    total = A.sum(1, keepdims=True)
    A = A / np.where(total > 0, total, 1)
    start = np.zeros(size)
    start[-outputs:] = chances
    influence = start @ (np.linalg.inv(np.eye(size) - A) - np.eye(size))
    table = Table(votive.tensor(edges), units, errors, votive.tensor(chances))
    np.testing.assert_allclose(table.influence().numpy(), influence[:-outputs], atol=1e-12)
    replacement, completeness = table.scores()
    by_error, by_token = influence[units : units + errors].sum(), influence[units + errors : -outputs].sum()
    assert replacement == pytest.approx(by_token / (by_token + by_error))
    weight = (influence + start)[target]
    weight[0] = 0
    known = 1 - A[target][:, units : units + errors].sum(1)
    assert completeness == pytest.approx((weight * known).sum() / weight.sum())

    keep, marked = table.pruned(0.8, 0.9)
    order = np.sort(influence[:-outputs])[::-1]
    least = order[np.searchsorted(order.cumsum() / order.sum(), 0.8)]
    assert set(np.flatnonzero(keep[: units + errors].numpy())) <= set(np.flatnonzero(influence >= least))
    assert keep[units + errors :].all()
    assert 0 < int(marked.sum()) < marked.numel()
    used, fed = marked.any(0), marked.any(1)
    assert bool(used[: units + errors][keep[: units + errors]].all())
    assert bool(fed[:units][keep[:units]].all())
    every, all_edges = table.pruned(1.0, 1.0)
    assert int(all_edges.sum()) == int((edges * (np.arange(units + 2) != 0)[:, None] != 0).sum()) - int(
        (edges[:, 0] != 0).sum()
    )
    assert not bool(every[0])


def test_graphs_are_written_as_viewers_read_them(tmp_path: Any) -> None:
    model = small()
    words = [f" w{i}" for i in range(16)]

    class Tokenizer:
        def decode(self, ids: list[int]) -> str:
            return words[ids[0]]

    graph = circuits.attribution_graph(model, votive.tensor(IDS), coders=[coder(1)], tokenizer=Tokenizer())
    graph = graph.pruned(0.7, 0.9)
    graph.save_json(tmp_path / "graph.json", slug="mine", scan="tiny")
    found = json.loads((tmp_path / "graph.json").read_text())
    assert sorted(found) == ["links", "metadata", "nodes", "qParams"]
    assert {"slug", "scan", "prompt_tokens", "prompt"} <= set(found["metadata"])
    assert found["metadata"]["prompt_tokens"] == [words[i] for i in IDS[0]]
    assert found["metadata"]["prompt"] == "".join(words[i] for i in IDS[0])
    ids = [n["node_id"] for n in found["nodes"]]
    assert len(set(ids)) == len(ids) == len(graph.nodes)
    assert len({n["jsNodeId"] + str(n["ctx_idx"]) for n in found["nodes"]}) == len(ids)
    for node in found["nodes"]:
        assert {"node_id", "feature", "layer", "ctx_idx", "feature_type", "jsNodeId", "clerp"} <= set(node)
        assert type(node["feature"]) is int
        assert type(node["ctx_idx"]) is int
    kinds = {n["feature_type"] for n in found["nodes"]}
    assert kinds <= {"cross layer transcoder", "mlp reconstruction error", "embedding", "logit"}
    assert sum(n["is_target_logit"] for n in found["nodes"]) == 1
    assert {"E_5_0", "E_9_4"} <= set(ids)
    links = found["links"]
    assert len(links) == int((graph.edges != 0).sum())
    assert {e for link in links for e in (link["source"], link["target"])} <= set(ids)
    by_id = {n["node_id"]: n for n in found["nodes"]}
    first = {"E": -1}
    for link in links:
        a, b = (first.get(by_id[link[e]]["layer"], by_id[link[e]]["layer"]) for e in ("source", "target"))
        assert int(a) < int(b)
    counted = [n["influence"] for n in found["nodes"] if n["feature_type"] != "logit"]
    assert all(0 < c <= 1 + 1e-6 for c in counted)
    json.dumps(graph.figure().to_dict())


def test_graphs_can_be_read_and_seen(tmp_path: Any) -> None:
    model = small()
    words = [f"w{i}" for i in range(16)]
    graph = circuits.attribution_graph(model, votive.tensor(IDS), coders=[coder(1)], targets=[7], tokenizer=words)
    small_graph = graph.pruned()
    logit = graph.nodes[-1]
    (best, weight), *_ = graph.inputs(logit)
    assert dict(graph.outputs(best, 1000))[logit] == pytest.approx(weight)
    assert small_graph.units < graph.units
    assert repr(graph).startswith("<attribution graph of ")
    text = small_graph.text()
    assert text.startswith("logit w7 (p = ")
    assert "token w5 @0" in small_graph.text(50)
    svg = small_graph.svg()
    assert svg.count("<rect") > len(small_graph.nodes) / 2
    assert ">w5<" in svg
    small_graph.save(tmp_path / "graph.png")
    small_graph.save_html(tmp_path / "graph.html")
    assert (tmp_path / "graph.html").stat().st_size > 1000
    with pytest.raises(ValueError, match="share"):
        graph.pruned(1.5)
