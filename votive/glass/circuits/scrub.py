"""Causal scrubbing: a hypothesis says what may be exchanged without harm; exchange it, and measure the harm.

Chan et al. 2022, "Causal scrubbing: a method for rigorously testing interpretability hypotheses". Knows no family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import votive

from ...core.dtype import bool_
from ...nn import Module
from ...tensor import Tensor
from ..targets import uncompiled
from .edge_run import EdgeRun, Faithfulness, Metric, written
from .graph import Circuit, Graph, graph

# What a part of a model is claimed to compute: labels (samples,) or (samples, several) of ids (samples, positions).
Labels: TypeAlias = Callable[[Tensor], Any]


@dataclass(frozen=True, init=False)
class Claim:
    """That some writers compute no more than `by`: they may be run on any sample with the same labels.

    `writers` is one name of `graph(model).writers`, or several that are taken as one part. `reads` are claims about
    what it computes that from, and nothing else; None leaves that open. `into` says which inputs of the heads above
    it is meant for, as in "k" or "qk", None all; `positions` at which positions of the text, None all.

    >>> votive.glass.circuits.Claim("layers.0.mlp", by=lambda ids: ids[:, -1]).writers
    ('layers.0.mlp',)
    """

    writers: tuple[str, ...]
    by: Labels
    reads: tuple[Claim, ...] | None = None
    into: str | None = None
    positions: tuple[int, ...] | None = None

    def __init__(
        self,
        writers: str | Iterable[str],
        by: Labels,
        reads: Iterable[Claim] | None = None,
        *,
        into: str | None = None,
        positions: Iterable[int] | None = None,
    ) -> None:
        names = (writers,) if isinstance(writers, str) else tuple(writers)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"Claim: name different writers, got {names}.")
        if into is not None and (not into or set(into) - set("qkv")):
            raise ValueError(f"Claim: into must be of the letters q, k and v, got {into!r}.")
        object.__setattr__(self, "writers", names)
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "reads", None if reads is None else tuple(reads))
        object.__setattr__(self, "into", into)
        object.__setattr__(self, "positions", None if positions is None else tuple(positions))


@dataclass(frozen=True)
class Scrubbed:
    """A metric of the model as it is, scrubbed by a hypothesis, and with outputs of other samples altogether.

    >>> votive.glass.circuits.Scrubbed(clean=1.0, scrubbed=0.9, random=0.5).recovered
    0.8
    """

    clean: float
    scrubbed: float
    random: float

    @property
    def recovered(self) -> float:
        """The share of the metric that the hypothesis explains: 1 all of it, 0 none."""
        return (self.scrubbed - self.random) / (self.clean - self.random)


class Draws:
    """Which samples stand in for which: any, or those with the same labels."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.generator = count, votive.Generator().manual_seed(seed)

    def any(self) -> Tensor:
        """A sample for each."""
        return votive.randint(0, self.count, (self.count,), generator=self.generator)

    def agreeing(self, given: Tensor, labels: Sequence[object]) -> Tensor:
        """A sample for each of those given, with its label."""
        groups: dict[object, list[int]] = defaultdict(list)
        for i, label in enumerate(labels):
            groups[label].append(i)
        chances = votive.rand(self.count, generator=self.generator).tolist()
        found = []
        for i, chance in zip(given.tolist(), chances, strict=True):
            group = groups[labels[i]]
            found.append(group[min(int(chance * len(group)), len(group) - 1)])
        return votive.tensor(found)


class _Scrubbing:
    """One scrubbing of all samples."""

    def __init__(self, model: Module, of: Graph, ids: Tensor, values: Tensor, draws: Draws) -> None:
        self.model, self.graph, self.ids, self.values, self.draws = model, of, ids, values, draws

    def output(self, claims: tuple[Claim, ...]) -> Any:
        """The model's output where logits read what the claims leave of each sample."""
        return self._run(claims, (), votive.arange(len(self.ids)))[0]

    def _value(self, claim: Claim, samples: Tensor) -> Tensor:
        """What writers write, (writers, samples, positions, features)."""
        rows = [self.graph.writers.index(w) for w in claim.writers]
        if claim.reads is None:
            return self.values[rows][:, samples]
        return self._run(claim.reads, claim.writers, samples)[1][rows]

    def _run(self, claims: tuple[Claim, ...], writers: tuple[str, ...], samples: Tensor) -> tuple[Any, Tensor]:
        of = self.graph
        readers = readers_of(of, writers)
        rest = votive.zeros_like(of.allowed)
        rest[:, readers] = True
        for w in writers:
            rest[of.writers.index(w)] = False  # within the part, all is as the part computes it
        others = self.values[:, self.draws.any()]
        kept = []
        for claim in claims:
            labels = _labels(claim.by, self.ids)
            found = self._value(claim, self.draws.agreeing(samples, labels))
            rows = [of.writers.index(w) for w in claim.writers]
            if claim.positions is not None:
                here = votive.zeros(found.shape[2], dtype=bool_)
                here[list(claim.positions)] = True
                found = votive.where(here.to(found.device).view(1, 1, -1, 1), found, others[rows])
            mask, table = votive.zeros_like(of.allowed), votive.zeros_like(others)
            columns = [j for j in readers if _meant(of.readers[j], claim.into)]
            for row in rows:
                mask[row, columns] = True
            table[rows] = found
            mask = mask & rest
            rest = rest & ~mask
            kept.append((mask, table))
        with EdgeRun(self.model, of, rest, others) as run:
            for mask, table in kept:
                run.also(mask, table)
            output = self.model(self.ids)
        return output, run.values


def readers_of(of: Graph, writers: tuple[str, ...]) -> list[int]:
    """The readers that writers compute with; of none, the logits."""
    if not writers:
        return [of.readers.index("logits")]
    return [j for j, reader in enumerate(of.readers) if set(of.writer_of(reader)) & set(writers)]


def _meant(reader: str, into: str | None) -> bool:
    kind = reader.split(".")[2] if reader.count(".") == 3 else ""
    return into is None or (kind in into and bool(kind))


def _labels(by: Labels, ids: Tensor) -> list[object]:
    """A label for each sample, that can be compared."""
    found = votive.as_tensor(by(ids))
    if found.dim() == 0 or found.shape[0] != ids.shape[0]:
        raise ValueError(f"scrub: by= must give a label for each of {ids.shape[0]} samples, got {tuple(found.shape)}.")
    rows = found.reshape(found.shape[0], -1).tolist()
    return [tuple(row) for row in rows]


def _check(of: Graph, claims: tuple[Claim, ...], writers: tuple[str, ...]) -> None:
    """Refuse claims that name nobody, what cannot be read, or one edge twice."""
    readers = readers_of(of, writers)
    said: set[tuple[str, int, int | None]] = set()
    above = ", ".join(writers) or "the logits"
    for claim in claims:
        for w in claim.writers:
            if w not in of.writers:
                raise KeyError(f"{w!r} is none of {', '.join(of.writers[:6])}, …")
            meant = [j for j in readers if _meant(of.readers[j], claim.into) and of.allowed[of.writers.index(w), j]]
            if not meant or w in writers:
                into = f" by {claim.into}" if claim.into else ""
                raise ValueError(f"scrub: {above} cannot read {w}{into}.")
            edges = {(w, j, p) for j in meant for p in (claim.positions or (None,))}
            if edges & said or (claim.positions is not None and {(w, j, None) for j in meant} & said):
                raise ValueError(f"scrub: two claims are of what {above} reads of {w}.")
            said |= edges
        if claim.reads is not None:
            _check(of, claim.reads, claim.writers)


def _one_length(ids: Tensor) -> Tensor:
    if not isinstance(ids, Tensor) or ids.dim() != 2 or len(ids) < 2:
        raise ValueError("scrub: give ids (samples, positions) of at least two texts of one length.")
    return ids


def scrub(
    model: Module, ids: Tensor, claims: Iterable[Claim], *, metric: Metric, draws: int = 1, seed: int = 0
) -> Scrubbed:
    """How much of a metric is left if all is exchanged that a hypothesis says does not matter.

    `claims` are about what the logits read; all else that they read comes from some other sample, and so on for
    what each part reads, down to claims that leave open what they read. `ids` are texts of one length, and `metric`
    gives a number for each of them, from the output in their order. The whole is done `draws` times.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model, ids = votive.models.LlamaForCausalLM(config).eval(), votive.randint(0, 9, (8, 3))
    >>> everything = votive.glass.circuits.graph(model).writers
    >>> right = lambda out: out.logits[:, -1, 4]
    >>> same = [votive.glass.circuits.Claim(everything, by=lambda ids: ids)]  # only texts that are equal
    >>> found = votive.glass.circuits.scrub(model, ids, same, metric=right)
    >>> abs(found.scrubbed - found.clean) < 1e-6
    True
    """
    if draws < 1:
        raise ValueError(f"scrub: draws must be positive, got {draws}.")
    model, ids, claims = uncompiled(model), _one_length(ids), tuple(claims)
    of = graph(model)
    _check(of, claims, ())
    chosen = Draws(len(ids), seed)
    with votive.no_grad():
        values, output = written(model, of, ids)
        clean = _mean(metric, output, len(ids))
        scrubbed = random = 0.0
        for _ in range(draws):
            run = _Scrubbing(model, of, ids, values, chosen)
            scrubbed += _mean(metric, run.output(claims), len(ids)) / draws
            random += _mean(metric, run.output(()), len(ids)) / draws
    return Scrubbed(clean, scrubbed, random)


def _mean(metric: Metric, output: object, samples: int) -> float:
    found = votive.as_tensor(metric(output))
    if tuple(found.shape) != (samples,):
        raise ValueError(f"scrub: metric must give a number for each of {samples} samples, got {tuple(found.shape)}.")
    return float(found.double().mean())


def resample_ablation(
    model: Module, ids: Tensor, circuit: Circuit, *, metric: Metric, draws: int = 1, seed: int = 0
) -> Faithfulness:
    """What is left of a metric where edges outside a circuit, or inside it, carry what they do in another text.

    As `faithfulness`, but with each text's own other one, drawn `draws` times from the same data: so what stays is
    what texts have in common.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model, ids = votive.models.LlamaForCausalLM(config).eval(), votive.randint(0, 9, (8, 3))
    >>> g = votive.glass.circuits.graph(model)
    >>> whole = votive.glass.circuits.Circuit(g, g.allowed)
    >>> left = votive.glass.circuits.resample_ablation(model, ids, whole, metric=lambda out: out.logits[:, -1, 4])
    >>> round(left.faithfulness, 3), round(left.completeness, 3)
    (1.0, 1.0)
    """
    if draws < 1:
        raise ValueError(f"resample_ablation: draws must be positive, got {draws}.")
    model, ids, of = uncompiled(model), _one_length(ids), circuit.graph
    chosen = Draws(len(ids), seed)
    with votive.no_grad():
        values, output = written(model, of, ids)
        clean, totals = _mean(metric, output, len(ids)), [0.0, 0.0, 0.0]
        for _ in range(draws):
            others = values[:, chosen.any()]
            for i, cut in enumerate((of.allowed, ~circuit.mask, circuit.mask)):
                with EdgeRun(model, of, cut, others):
                    totals[i] += _mean(metric, model(ids), len(ids)) / draws
    return Faithfulness(clean, *totals)
