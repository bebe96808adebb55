"""An attribution graph as data: nodes, edges, what counts among them, as text, picture and JSON. Runs no model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import votive

from ...tensor import Tensor
from ..labels import TokenNames, token_labels
from ..plots import Plottable
from .influence import Table, weighed


@dataclass(frozen=True)
class Node:
    """A "feature", "neuron", "error", "token" or "logit", in which layer (-1 before the first) and at which position.

    `number` is which feature or neuron of its layer, or which token; `activation` that of a feature or neuron, of a
    logit its probability.

    >>> print(votive.glass.circuits.Node("feature", 3, 7, 41))
    layers.3.feature.41 @7
    """

    kind: str
    layer: int
    position: int
    number: int = -1
    activation: float = 0.0

    def __str__(self) -> str:
        if self.kind in ("token", "logit"):
            return f"{self.kind} {self.number} @{self.position}"
        number = f".{self.number}" if self.number >= 0 else ""
        return f"layers.{self.layer}.{self.kind}{number} @{self.position}"


@dataclass(frozen=True)
class AttributionGraph(Plottable):
    """What nodes add directly to what others read.

    `edges` are (targets, sources): sources are features and neurons from the first layer on, errors, tokens;
    targets the same features and neurons, then logits. A row and its entry of `constants` add up to that of
    `values`, unless the graph is `pruned`. `tokens` are the text's, -1 where they are not known, and `tokenizer` says
    what they are called.
    """

    nodes: tuple[Node, ...]
    edges: Any
    constants: Any
    values: Any
    layers: int
    positions: int
    tokens: tuple[int, ...]
    # Where it is a part of another one: how much of that one's influence its sources and those before them make up.
    counted: tuple[float, ...] | None = None
    tokenizer: TokenNames | None = field(default=None, repr=False, compare=False)

    @property
    def units(self) -> int:
        """How many features and neurons there are: the first nodes."""
        return sum(n.kind in ("feature", "neuron") for n in self.nodes)

    @property
    def sources(self) -> tuple[Node, ...]:
        """The nodes that add to others, as the columns of `edges` have them."""
        return self.nodes[: self.edges.shape[1]]

    @property
    def targets(self) -> tuple[Node, ...]:
        """The nodes that read, as the rows of `edges` have them."""
        return (*self.nodes[: self.units], *self.nodes[self.edges.shape[1] :])

    def _table(self) -> Table:
        chances = votive.tensor([n.activation for n in self.nodes[self.edges.shape[1] :]], dtype=self.edges.dtype)
        errors = sum(n.kind == "error" for n in self.nodes)
        return Table(self.edges, self.units, errors, weighed(chances).to(self.edges.device))

    @property
    def replacement(self) -> float:
        """The share of influence on the logits that begins at tokens, and not at errors."""
        return self._table().scores()[0]

    @property
    def completeness(self) -> float:
        """The share of what nodes read, by their influence, that comes from other nodes than errors."""
        return self._table().scores()[1]

    def influence(self) -> Tensor:
        """How much of the logits each source makes up over all paths, in shares of what comes in."""
        return self._table().influence()

    def top(self, k: int = 10) -> list[tuple[Node, float]]:
        """The sources of most influence."""
        found = self.influence()
        order = found.argsort(descending=True)[:k].tolist()
        return [(self.sources[i], float(found[i])) for i in order]

    def inputs(self, node: Node, k: int = 10) -> list[tuple[Node, float]]:
        """The largest edges into a feature, a neuron or a logit."""
        row = self.edges[self.targets.index(node)]
        order = [i for i in row.abs().argsort(descending=True)[:k].tolist() if float(row[i])]
        return [(self.sources[i], float(row[i])) for i in order]

    def outputs(self, node: Node, k: int = 10) -> list[tuple[Node, float]]:
        """The largest edges from a node."""
        column = self.edges[:, self.sources.index(node)]
        order = [i for i in column.abs().argsort(descending=True)[:k].tolist() if float(column[i])]
        return [(self.targets[i], float(column[i])) for i in order]

    def pruned(self, nodes: float = 0.8, edges: float = 0.98) -> AttributionGraph:
        """The part whose nodes, and then edges, make up these shares of all influence.

        What is left out is in no constant: rows no longer add up to `values`. Tokens and logits stay.
        """
        for name, share in (("nodes", nodes), ("edges", edges)):
            if not 0 <= share <= 1:
                raise ValueError(f"pruned: {name} must be a share from 0 to 1, got {share}.")
        table = self._table()
        keep, marked = table.pruned(nodes, edges)
        n, chosen = self.units, keep.nonzero().flatten()
        rows = votive.cat([keep[:n], votive.ones_like(keep[: len(table.chances)])]).nonzero().flatten()
        left = self.edges * marked
        spread = table.influence()
        order = spread.argsort(descending=True)
        shares = votive.zeros_like(spread)
        shares[order] = spread[order].cumsum(0) / spread.sum().clamp(min=1e-30)
        kept = [*(self.sources[i] for i in chosen.tolist()), *self.nodes[len(self.sources) :]]
        return replace(
            self,
            nodes=tuple(kept),
            edges=left[rows][:, chosen],
            constants=self.constants[rows],
            values=self.values[rows],
            counted=tuple(shares[chosen].tolist()),
        )

    def to_dict(self, *, slug: str = "graph", scan: str = "", prompt: str = "") -> dict[str, Any]:
        """The graph as the viewers of circuit-tracer and of Neuronpedia read it.

        `slug` is its name there, `scan` the model's (of coders that Neuronpedia knows); prune it first.
        """
        from .graph_file import as_json

        return as_json(self, slug, scan, prompt)

    def save_json(self, path: str | os.PathLike[str], *, slug: str = "graph", scan: str = "", prompt: str = "") -> None:
        """Write `to_dict` into a file."""
        from .graph_file import write

        write(path, self.to_dict(slug=slug, scan=scan, prompt=prompt))

    def figure(self, *, edges: int = 200) -> Any:
        """Nodes by position and layer, with the `edges` of most influence."""
        from .graph_picture import GraphPicture

        return GraphPicture(self, edges)

    def labels(self) -> list[str]:
        """The tokens of the text."""
        return ["?" if t < 0 else token_labels([t], self.tokenizer)[0] for t in self.tokens]

    def text(self, k: int = 5) -> str:
        """Each logit with its largest inputs, and the nodes of most influence with theirs."""
        shown = [self.nodes[i] for i in range(len(self.sources), len(self.nodes))]
        shown += [n for n, _ in self.top(k) if n.kind in ("feature", "neuron")]
        names = self.labels()
        lines = []
        for node in shown:
            lines.append(self._named(node, names))
            lines += [f"  {w:+9.4f}  {self._named(n, names)}" for n, w in self.inputs(node, k)]
        return "\n".join(lines)

    def _named(self, node: Node, names: Sequence[str]) -> str:
        here = names[node.position]
        if node.kind == "logit":
            said = token_labels([node.number], self.tokenizer)[0]
            return f"logit {said} (p = {node.activation:.3f}) behind {here}"
        return f"token {here} @{node.position}" if node.kind == "token" else f"{node} {here}"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        kinds = [n.kind for n in self.nodes]
        counts = [f"{kinds.count(k)} {k}s" for k in ("feature", "neuron", "error", "token") if k in kinds]
        return f"<attribution graph of {', '.join(counts)} and {kinds.count('logit')} logits>"
