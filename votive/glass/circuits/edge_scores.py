"""Edge attribution patching: what cutting each edge would do, estimated with gradients. Knows no family.

To first order, cutting an edge changes the metric by `(other - own) . gradient at the reader`: Syed et al. 2023,
arXiv:2310.10348. With integrated gradients, that is the mean over embeddings between the two texts: Hanna et al. 2024,
arXiv:2403.17806.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive

from ...nn import Module
from ...tensor import Tensor
from ..address import Pattern
from ..edits import Edit
from ..gradients import gradients
from ..labelled import Labelled
from ..patch import Patch
from ..plots import Plottable
from ..sweep_runs import inputs_of
from ..targets import uncompiled
from .edge_run import READS, Metric, Other, other_values, written
from .graph import Circuit, Edge, Graph, graph


@dataclass(frozen=True)
class EdgeScores(Plottable):
    """By how much the metric is estimated to change if an edge is cut, (writers, readers); 0 where there is none."""

    graph: Graph
    scores: Any

    def top(self, k: int = 10) -> list[tuple[Edge, float]]:
        """The `k` edges that matter most, with their scores."""
        order = self.scores.abs().flatten().argsort(descending=True)[:k].tolist()
        wide = len(self.graph.readers)
        return [
            ((self.graph.writers[i // wide], self.graph.readers[i % wide]), float(self.scores.flatten()[i]))
            for i in order
        ]

    def circuit(self, edges: int) -> Circuit:
        """The circuit of the edges that matter most, less those that lead nowhere."""
        return Circuit(self.graph, self.graph.mask(e for e, _ in self.top(edges))).pruned()

    def labelled(self) -> Labelled:
        """The scores with their names, for pandas and xarray."""
        return Labelled(self.scores, {"writer": self.graph.writers, "reader": self.graph.readers}, "change of metric")

    def nodes(self) -> Labelled:
        """The sum of the sizes of what each writer's edges do."""
        return Labelled(self.scores.abs().sum(1), {"writer": self.graph.writers}, "change of metric")

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return self.labelled().to_dict()

    def figure(self) -> Any:
        """A heat map of writers and readers."""
        return self.labelled().figure()


def eap(model: Module, clean: object, other: Other, *, metric: Metric, steps: int = 1) -> EdgeScores:
    """Estimate for every edge how the metric changes if it is cut, from one gradient or from `steps` of them.

    `clean` is inputs of the model; cut edges carry what they do in a run on `other`, "zero", or means. `metric` gives
    a number for each sample, over which scores are averaged. With more than one step the gradients are averaged over
    embeddings on the way from `other` to `clean` (EAP-IG).

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> found = votive.glass.circuits.eap(model, votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]]),
    ...     metric=lambda out: out.logits[:, -1, 4], steps=5)
    >>> found.scores.shape, len(found.circuit(3)) <= 3
    (votive.Size([4, 8]), True)
    """
    if steps < 1:
        raise ValueError(f"eap: steps must be positive, got {steps}.")
    model = uncompiled(model)
    of = graph(model)
    with votive.no_grad():
        own, _ = written(model, of, clean)
        values = other_values(model, of, own, other)
    given = inputs_of(clean)
    last = f"layers.{of.layers - 1}.resid_post"
    wanted = [Pattern(p if "resid_post" not in p else last) for p in READS]
    total: Any = 0
    for k in range(1, steps + 1):
        start = values[0] + (own[0] - values[0]) * (k / steps)
        with Patch(model, Edit("layers.0.resid_pre", "replace", start), measure=False):
            found = gradients(model, wanted, given, metric)
        total = total + _by_reader(of, found.grads)
    change = (values - own).flatten(1)  # (W, B T C)
    scores = change.double() @ (total / steps).double().flatten(1).t() / own.shape[1]
    return EdgeScores(of, scores.masked_fill(~of.allowed.to(scores.device), 0.0).to(own.dtype))


def _by_reader(of: Graph, grads: dict[str, Any]) -> Tensor:
    """Gradients at all readers, (readers, samples, positions, features)."""
    rows: list[Any] = []
    for i in range(of.layers):
        for kind in "qkv":
            rows += list(grads[f"layers.{i}.{kind}_input"].unbind(2))
        rows.append(grads[f"layers.{i}.mlp_in"])
    rows.append(grads[f"layers.{of.layers - 1}.resid_post"])
    return votive.stack(rows)
