"""Attribution graphs: what each feature, neuron, token and error adds directly to what later ones read.

Ameisen et al. 2025, "Circuit tracing: revealing computational graphs in language models". Edges are traced backwards
through the frozen decoder, a batch of targets at a time. Knows no family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import votive

from ...nn import Module
from ...tensor import Tensor
from ..labels import TokenNames
from ..residual_stream import ids_of
from ..sweep_runs import inputs_of
from .frozen_decoder import NEURONS, FrozenDecoder
from .influence import weighed
from .net_units import GATES, Units, all_units, dots, left_over
from .traced_graph import AttributionGraph, Node

if TYPE_CHECKING:
    from ..features.coder import SAE

OTHERS = ("neurons", "error")
# Effects that a batch of targets may have while it is traced.
_ROOM = 1 << 25


@dataclass
class _Traced:
    """What a batch of targets gets: from units by layer, from each net's rest, from tokens; and constants."""

    units: dict[int, Tensor]
    errors: dict[int, Tensor]
    tokens: Tensor
    constant: Tensor


class _Tracer:
    """Traces gradients of targets back to all that was written, some targets at a time."""

    def __init__(self, frozen: FrozenDecoder, units: list[Units]) -> None:
        self.frozen, self.units = frozen, units
        size = frozen.positions * (8 * frozen.width + sum(u.every.shape[1] for u in units if u.every is not None))
        self.batch = max(1, _ROOM // size)
        # Which units are looked at; None for all of them.
        self.chosen: list[Tensor] | None = None
        self._written: list[Tensor] = []
        # What all neurons together leave over is rounding.
        self.errors = {
            i: left_over(u, votive.arange(len(u), device=frozen.device))
            for i, u in enumerate(units)
            if u.kind != "neuron"
        }

    def choose(self, chosen: list[Tensor]) -> None:
        """Look at these units only, and at what they leave over."""
        self.chosen = chosen
        self._written = [u.writes(c) for u, c in zip(self.units, chosen, strict=True)]
        self.errors = {i: left_over(u, c) for i, (u, c) in enumerate(zip(self.units, chosen, strict=True))}

    def _effects(self, i: int, g: Tensor) -> Tensor:
        units = self.units[i]
        if self.chosen is None:
            return units.effects(g)
        positions = units.positions[self.chosen[i]]
        here = int((positions < g.shape[1]).sum())
        return dots(g, self._written[i][:here], positions[:here])

    def traced(self, layer: int, rows: Tensor, positions: Tensor) -> _Traced:
        """From gradients (rows, features) by the stream at positions: of what layer's net reads; -1 for the end."""
        B, T = rows.shape[0], int(positions.max()) + 1
        g = rows.new_zeros(B, T, rows.shape[1])
        g[votive.arange(B, device=g.device), positions] = rows
        layers, found = self.frozen.layers, _Traced({}, {}, rows, rows.new_zeros(B))
        if layer >= 0:
            g = layers[layer].from_read(g, found.constant)
        for i in reversed(range(len(layers) if layer < 0 else layer)):
            written = layers[i].by_written(g, found.constant)
            units = self.units[i]
            if len(units):
                found.units[i] = self._effects(i, written)
            found.constant += (written * units.constant[:T]).sum((1, 2))
            if i in self.errors:
                found.errors[i] = (written * self.errors[i][:T]).sum(-1)
            g = layers[i].below(written, units.around(written), found.constant)
        found.tokens = (g * layers[0].start[:T]).sum(-1)
        return found

    def by_batch(self, layer: int, rows: Tensor, positions: Tensor) -> Iterable[tuple[slice, _Traced]]:
        """`traced`, some rows at a time."""
        for first in range(0, rows.shape[0], self.batch):
            part = slice(first, min(first + self.batch, rows.shape[0]))
            yield part, self.traced(layer, rows[part], positions[part])


def attribution_graph(
    model: Module,
    given: object,
    *,
    coders: Mapping[int, SAE] | Iterable[SAE] | None = None,
    others: str = "neurons",
    targets: int | Sequence[int] | None = None,
    position: int = -1,
    max_nodes: int = 2000,
    gates: str = "half",
    tokenizer: TokenNames | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> AttributionGraph:
    """Who adds how much to what whom reads, for one text, with attention patterns and norm scales held fast.

    Nodes are the features of `coders` (transcoders) that fire and, in layers without one, neurons; with
    `others="error"` what such a layer's net adds is taken as a whole. Then, by layer and position, what a net adds
    besides ("error"); what enters the first layer ("token"); and logits, less the mean one: those of `targets` at
    `position`, or the likeliest ones, up to ten that make up 95 %. An edge is what a node adds directly: the edges
    into a node and a constant add up to what it reads, which is its value before the activation, of a gated
    neuron the neuron itself, half of it by the gate (with `gates="frozen"` none of it).

    Of weights in blocks, whose products round what they are given, sums are off by that rounding.

    At most `max_nodes` features and neurons are kept, chosen from the last layer on by their influence; the rest
    is part of the errors. Rows are traced in batches, so that memory is that of the edges between kept nodes.
    `tokenizer` names tokens in what is shown, `progress` is called with how many targets were traced, and of how many.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=2,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> graph = votive.glass.circuits.attribution_graph(model, votive.tensor([[1, 2, 3]]), targets=4)
    >>> graph
    <attribution graph of 96 neurons, 6 errors, 3 tokens and 1 logits>
    >>> votive.allclose(graph.edges.sum(1) + graph.constants, graph.values, atol=1e-5)
    True
    """
    if others not in OTHERS:
        raise ValueError(f"attribution_graph: others must be one of {', '.join(OTHERS)}, got {others!r}.")
    if gates not in GATES:
        raise ValueError(f"attribution_graph: gates must be one of {', '.join(GATES)}, got {gates!r}.")
    if max_nodes < 0:
        raise ValueError(f"attribution_graph: max_nodes must not be negative, got {max_nodes}.")
    frozen = FrozenDecoder(model, given, NEURONS if others == "neurons" else ())
    with votive.no_grad():
        at = _position(position, frozen.positions)
        tokens = _targets(frozen, targets, at)
        units = all_units(frozen, coders, others, gates)
        tracer = _Tracer(frozen, units)
        rows, constants, values = frozen.logit_reads(tokens, at)
        chances = frozen.chances[at, tokens]
        chosen = _chosen(tracer, rows, at, weighed(chances), max_nodes)
        tracer.choose(chosen)
        count, T, L = sum(len(c) for c in chosen), frozen.positions, len(units)
        edges = rows.new_zeros(count + len(tokens), count + (L + 1) * T)
        all_constants, all_values = rows.new_zeros(count + len(tokens)), rows.new_zeros(count + len(tokens))
        starts = [sum(len(c) for c in chosen[:i]) for i in range(L)]
        done = 0

        def put(first: int, layer: int, rows: Tensor, positions: Tensor, constants: Tensor, values: Tensor) -> None:
            nonlocal done
            for part, found in tracer.by_batch(layer, rows, positions):
                into = slice(first + part.start, first + part.stop)
                for i, e in found.units.items():
                    edges[into, starts[i] : starts[i] + e.shape[1]] = e
                for i, e in found.errors.items():
                    edges[into, count + i * T : count + i * T + e.shape[1]] = e
                edges[into, count + L * T : count + L * T + found.tokens.shape[1]] = found.tokens
                all_constants[into] = constants[part] + found.constant
                all_values[into] = values[part]
                done += part.stop - part.start
                if progress is not None:
                    progress(done, len(edges))

        put(count, -1, rows, votive.full((len(tokens),), at, dtype=votive.int64, device=rows.device), constants, values)
        for i in reversed(range(L)):
            if len(chosen[i]):
                u, c = units[i], chosen[i]
                put(starts[i], i, u.reads(c)[0], u.positions[c], u.reads(c)[1], u.values[c])
    args, kwargs = inputs_of(given)
    ids = kwargs["input_ids"] if "input_ids" in kwargs else ids_of(args, kwargs)
    known = [-1] * T if ids is None else ids[0].tolist()
    nodes = tuple(_nodes(units, chosen, known, tokens, chances, at))
    return AttributionGraph(nodes, edges, all_constants, all_values, L, T, tuple(known), tokenizer=tokenizer)


def _position(position: int, positions: int) -> int:
    if not -positions <= position < positions:
        raise IndexError(f"attribution_graph: position {position} is outside 0..{positions - 1}.")
    return position % positions


def _targets(frozen: FrozenDecoder, targets: int | Sequence[int] | None, at: int) -> list[int]:
    """Tokens whose logits are explained."""
    if targets is None:
        chances, order = frozen.chances[at].sort(descending=True)
        enough = int((chances.cumsum(0) < 0.95).sum()) + 1
        return [int(t) for t in order[: min(enough, 10)].tolist()]
    found = [targets] if isinstance(targets, int) else [int(t) for t in votive.as_tensor(targets).flatten().tolist()]
    vocabulary = frozen.W_U.shape[1]
    if not found or len(set(found)) < len(found) or not all(0 <= t < vocabulary for t in found):
        raise ValueError(f"attribution_graph: targets must be different tokens of 0..{vocabulary - 1}, got {found}.")
    return found


def _chosen(tracer: _Tracer, rows: Tensor, at: int, chances: Tensor, most: int) -> list[Tensor]:
    """Which units of each layer are kept: from the last layer on, those of most influence.

    A layer gets the share of what places are left that its units have of the influence found so far on all units
    that are not looked at yet. When its turn comes the influence of its units is known: only later ones read them.
    """
    units, device = tracer.units, rows.device
    if sum(len(u) for u in units) <= most:
        return [votive.arange(len(u), device=device) for u in units]
    spread = [rows.new_zeros(len(u)) for u in units]
    found_on = [0.0 for _ in units]

    def add(layer: int, rows: Tensor, positions: Tensor, weights: Tensor) -> None:
        for part, found in tracer.by_batch(layer, rows, positions):
            sizes = [e.abs() for e in (*found.units.values(), *found.errors.values(), found.tokens)]
            total = votive.stack([s.sum(1) for s in sizes]).sum(0)
            share = weights[part] / votive.where(total > 0, total, votive.ones_like(total))
            for i, size in zip(found.units, sizes, strict=False):
                more = share @ size
                spread[i][: size.shape[1]] += more
                found_on[i] += float(more.sum())

    add(-1, rows, votive.full((len(rows),), at, dtype=votive.int64, device=device), chances)
    chosen = [votive.zeros(0, dtype=votive.int64, device=device) for _ in units]
    for i in reversed(range(len(units))):
        share = found_on[i] / max(sum(found_on[: i + 1]), 1e-30)
        places = min(round(most * share + 0.5), most, int((spread[i] > 0).sum()))
        if not places:
            continue
        most -= places
        chosen[i] = spread[i].topk(places)[1].sort()[0]
        if i:
            add(i, units[i].reads(chosen[i])[0], units[i].positions[chosen[i]], spread[i][chosen[i]])
    return chosen


def _nodes(
    units: list[Units], chosen: list[Tensor], known: list[int], tokens: list[int], chances: Tensor, at: int
) -> Iterable[Node]:
    for i, (u, c) in enumerate(zip(units, chosen, strict=True)):
        rows = zip(u.positions[c].tolist(), u.numbers[c].tolist(), u.activations[c].tolist(), strict=True)
        for position, number, activation in rows:
            yield Node(u.kind, i, position, number, activation)
    for i in range(len(units)):
        for t in range(len(known)):
            yield Node("error", i, t)
    for t, token in enumerate(known):
        yield Node("token", -1, t, token)
    for token, chance in zip(tokens, chances.tolist(), strict=True):
        yield Node("logit", len(units), at, token, chance)
