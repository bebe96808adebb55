"""A decoder as a graph: who writes into the stream, who reads it, and who can read whom. Pure data; runs nothing.

Writers are "embed", "layers.0.head.1" and "layers.0.mlp"; readers are "layers.1.q.0", "layers.1.k.0", "layers.1.v.0"
(by key head where heads share them), "layers.1.mlp" and "logits".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import votive

from ...core.dtype import bool_
from ...nn import Module
from ...tensor import Tensor
from ..sites import sites
from ..targets import uncompiled

Edge = tuple[str, str]


@dataclass(frozen=True)
class Graph:
    """All writers and readers of a decoder, in the order in which they run.

    In a `parallel` decoder a layer's net reads the stream before the layer, and not its heads.

    >>> g = votive.glass.circuits.Graph(2, 1, 1)
    >>> g.writers
    ['embed', 'layers.0.head.0', 'layers.0.mlp', 'layers.1.head.0', 'layers.1.mlp']
    >>> len(g.edges()), g.reads("layers.0.head.0", "layers.0.mlp"), g.reads("layers.0.head.0", "layers.0.q.0")
    (23, True, False)
    >>> votive.glass.circuits.Graph(2, 1, 1, parallel=True).reads("layers.0.head.0", "layers.0.mlp")
    False
    """

    layers: int
    heads: int
    key_heads: int
    parallel: bool = False
    writers: list[str] = field(init=False, repr=False)
    readers: list[str] = field(init=False, repr=False)
    allowed: Any = field(init=False, repr=False, compare=False)  # (writers, readers): whether one can read the other

    def __post_init__(self) -> None:
        writers, readers = ["embed"], []
        when_written, when_read = [0], []
        for i in range(self.layers):
            for kind, count in (("q", self.heads), ("k", self.key_heads), ("v", self.key_heads)):
                readers += [f"layers.{i}.{kind}.{h}" for h in range(count)]
                when_read += [2 * i] * count
            writers += [*(f"layers.{i}.head.{h}" for h in range(self.heads)), f"layers.{i}.mlp"]
            when_written += [*([2 * i + 1] * self.heads), 2 * i + 2]
            readers.append(f"layers.{i}.mlp")
            when_read.append(2 * i if self.parallel else 2 * i + 1)
        readers.append("logits")
        when_read.append(2 * self.layers)
        allowed = votive.tensor(when_written).unsqueeze(1) <= votive.tensor(when_read).unsqueeze(0)
        object.__setattr__(self, "writers", writers)
        object.__setattr__(self, "readers", readers)
        object.__setattr__(self, "allowed", allowed)

    def reads(self, writer: str, reader: str) -> bool:
        """Whether a reader comes behind a writer."""
        return bool(self.allowed[self.index(writer, reader)])

    def index(self, writer: str, reader: str) -> tuple[int, int]:
        """Where an edge stands in tables of (writers, readers)."""
        if writer not in self.writers or reader not in self.readers:
            wrong = writer if writer not in self.writers else reader
            known = self.writers if writer not in self.writers else self.readers
            raise KeyError(f"{wrong!r} is none of {', '.join(known[:6])}, …")
        return self.writers.index(writer), self.readers.index(reader)

    def edges(self) -> list[Edge]:
        """All edges there can be."""
        return [(w, r) for i, w in enumerate(self.writers) for j, r in enumerate(self.readers) if self.allowed[i, j]]

    def mask(self, edges: Iterable[Edge]) -> Tensor:
        """Which of all edges these are, (writers, readers)."""
        found = votive.zeros(len(self.writers), len(self.readers), dtype=bool_)
        for writer, reader in edges:
            at = self.index(writer, reader)
            if not self.allowed[at]:
                raise ValueError(f"{reader!r} does not come behind {writer!r}.")
            found[at] = True
        return found

    def writer_of(self, reader: str) -> list[str]:
        """The writers that compute with what a reader reads: a head for its query, all that share a key head."""
        _, layer, kind, *number = (*reader.split("."), "", "")
        if reader == "logits":
            return []
        if kind == "mlp":
            return [reader]
        group = self.heads // self.key_heads if kind in "kv" else 1
        first = int(number[0]) * group
        return [f"layers.{layer}.head.{h}" for h in range(first, first + group)]


@dataclass(frozen=True)
class Circuit:
    """Some edges of a decoder.

    >>> g = votive.glass.circuits.Graph(1, 1, 1)
    >>> c = votive.glass.circuits.Circuit(g, g.mask([("embed", "logits"), ("embed", "layers.0.mlp")]))
    >>> len(c), sorted(c.pruned())
    (2, [('embed', 'logits')])
    """

    graph: Graph
    mask: Any  # (writers, readers)
    history: tuple[dict[str, Any], ...] = ()

    def __iter__(self) -> Iterator[Edge]:
        for i, j in self.mask.nonzero().tolist():
            yield self.graph.writers[i], self.graph.readers[j]

    def __len__(self) -> int:
        return int(self.mask.sum())

    def __contains__(self, edge: object) -> bool:
        return edge in set(self)

    @property
    def nodes(self) -> list[str]:
        """The writers that something in it reads."""
        return [w for w, used in zip(self.graph.writers, self.mask.any(1).tolist(), strict=True) if used]

    def pruned(self) -> Circuit:
        """Without edges that lead nowhere, or come from a writer that reads nothing."""
        mask = self.mask.clone()
        while True:
            before = int(mask.sum())
            used, fed = mask.any(1).tolist(), mask.any(0).tolist()
            live = {w for w, on in zip(self.graph.writers, used, strict=True) if on}
            has_input = {"embed"}
            for j, reader in enumerate(self.graph.readers):
                own = self.graph.writer_of(reader)
                if own and not live.intersection(own):
                    mask[:, j] = False
                if fed[j]:
                    has_input.update(own)
            for i, writer in enumerate(self.graph.writers):
                if writer not in has_input:
                    mask[i] = False
            if int(mask.sum()) == before:
                return Circuit(self.graph, mask, self.history)

    def to_dict(self) -> dict[str, Any]:
        """Its nodes and edges, as plain texts."""
        return {"nodes": self.nodes, "edges": [list(e) for e in self]}

    def __repr__(self) -> str:
        return f"<circuit of {len(self)} of {int(self.graph.allowed.sum())} edges, {len(self.nodes)} writers>"


def graph(model: Module, *args: object, **kwargs: object) -> Graph:
    """The graph of a decoder.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=2,
    ...     num_attention_heads=4, num_key_value_heads=2)
    >>> votive.glass.circuits.graph(votive.models.LlamaForCausalLM(config))
    Graph(layers=2, heads=4, key_heads=2, parallel=False)
    """
    if any(getattr(m, "norm_place", "before") != "before" for m in model.modules()):
        raise ValueError(
            f"{type(model).__name__}: its norms are of the stream itself, so the stream is not a sum of what its parts "
            "write, and has no edges."
        )
    found = sites(uncompiled(model), *args, **kwargs)
    layers = 1 + max(int(a.split(".")[1]) for a in found if a.startswith("layers."))
    heads_of = [[found.get(f"layers.{i}.{n}") for n in ("q_input", "k_input", "mlp_in")] for i in range(layers)]
    without = next((i for i, inputs in enumerate(heads_of) if None in inputs), None)
    if without is not None:
        raise ValueError(f"{type(model).__name__}: layer {without} is not attention followed by an MLP.")
    counts = {(q[2], k[2]) for q, k, _ in heads_of if q is not None and k is not None}
    if len(counts) != 1:
        raise ValueError(f"{type(model).__name__}: its layers have different numbers of heads: {sorted(counts)}.")
    ((heads, key_heads),) = counts
    parallel = {bool(m.parallel) for m in model.modules() if hasattr(m, "parallel") and hasattr(m, "mixer")}
    if len(parallel) > 1:
        raise ValueError(f"{type(model).__name__}: only some of its layers are parallel.")
    return Graph(layers, heads, key_heads, parallel == {True})
