"""A probe at every layer and position, judged by samples held out. Knows addresses, no model class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import votive

from ...core.dtype import bool_
from ...nn import Module
from ...tensor import Tensor
from .. import values
from ..address import Patterns
from ..capture import capture
from ..heatmap import Heatmap
from ..plots import Lines, Plottable
from ..sweep_runs import inputs_of
from ..table import Table
from .linear import LinearProbe, fit

Positions = int | Sequence[int] | str


@dataclass(frozen=True)
class Values:
    """Values by site, (samples, positions, features), all with the same samples."""

    sites: dict[str, Tensor]
    positions: tuple[str, ...]


def gather(model: Module, batches: Iterable[Any], at: Patterns, positions: Positions = -1) -> Values:
    """What a model has at sites for all samples of some batches.

    `positions` is one, several, "mean" over all, or "all", for which texts must be of one length. Where an
    `attention_mask` is among the inputs, positions are counted in what it leaves, and means go over that.

    >>> net = votive.nn.Sequential(votive.nn.Embedding(9, 4), votive.nn.Linear(4, 2))
    >>> found = votive.glass.probes.gather(net, [votive.zeros(3, 5, dtype=votive.int64)], "*", [0, -1])
    >>> {n: tuple(t.shape) for n, t in found.sites.items()}, found.positions
    ({'0': (3, 2, 4), '1': (3, 2, 2)}, ('0', '-1'))
    """
    if isinstance(positions, str) and positions not in ("all", "mean"):
        raise ValueError(f"gather: positions are numbers, 'all' or 'mean', got {positions!r}.")
    found: dict[str, list[Tensor]] = {}
    for batch in batches:
        args, kwargs = inputs_of(batch)
        mask = kwargs.get("attention_mask")
        with votive.no_grad(), capture(model, at) as seen:
            model(*args, **kwargs)
        for site in seen:
            value = values.first(seen[site])
            if value is None or value.dim() not in (2, 3):
                shape = None if value is None else tuple(value.shape)
                raise ValueError(
                    f"gather: {site!r} must be (samples, positions, features), is {shape}; name other sites."
                )
            with votive.no_grad():
                found.setdefault(site, []).append(_chosen(value.detach().cpu(), positions, mask))
    if not found:
        raise ValueError("gather: no batch was given.")
    try:
        joined = {site: votive.cat(parts) for site, parts in found.items()}
    except RuntimeError:
        raise ValueError("gather: texts differ in length; choose positions=, such as -1, or 'mean'.") from None
    length = next(iter(joined.values())).shape[1]
    if isinstance(positions, str):
        names = ("mean",) if positions == "mean" else tuple(map(str, range(length)))
    else:
        names = tuple(map(str, [positions] if isinstance(positions, int) else positions))
    return Values(joined, names)


def _chosen(value: Tensor, positions: Positions, mask: Any) -> Tensor:
    if value.dim() == 2:  # no positions
        return value.unsqueeze(1)
    if mask is None:
        if positions == "mean":
            return value.mean(1, keepdim=True)
        if positions == "all":
            return value
    elif positions == "all":
        raise ValueError("gather: with an attention_mask texts have different lengths; choose positions= or 'mean'.")
    if positions == "mean":
        weight = mask.cpu().to(value.dtype).unsqueeze(-1)
        return (value * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
    wanted = [positions] if isinstance(positions, int) else [int(p) for p in positions]
    rows = []
    for i in range(len(value)):
        there = list(range(value.shape[1])) if mask is None else mask[i].nonzero().flatten().tolist()
        bad = [p for p in wanted if not -len(there) <= p < len(there)]
        if bad:
            raise IndexError(f"gather: positions {bad} are outside a text of {len(there)}.")
        rows.append(value[i][votive.tensor([int(there[p]) for p in wanted])])
    return votive.stack(rows)


@dataclass(frozen=True)
class ProbeResults(Plottable):
    """Probes by site and position, with scores on what they learned from and on what was held out.

    `chance` is the score of always saying the commonest class among those learned from (of a ridge, the mean).

    >>> found = votive.glass.probes.ProbeResults(("0", "1"), ("-1",), [[0.9], [1.0]], [[0.5], [0.75]], 0.5)
    >>> found.best()
    ('1', '-1', 0.75)
    """

    sites: tuple[str, ...]
    positions: tuple[str, ...]
    train: list[list[float]]
    held_out: list[list[float]]
    chance: float
    probes: dict[tuple[str, str], LinearProbe] = field(default_factory=dict)
    samples: tuple[int, int] = (0, 0)

    def best(self) -> tuple[str, str, float]:
        """Where the score of what was held out is highest."""
        cells = [(v, i, j) for i, row in enumerate(self.held_out) for j, v in enumerate(row) if not math.isnan(v)]
        value, i, j = max(cells, key=lambda c: (c[0], -c[1], -c[2]))
        return self.sites[i], self.positions[j], value

    def __getitem__(self, key: str | tuple[str, str]) -> LinearProbe:
        """The probe at a site, or at a site and position."""
        site, position = key if isinstance(key, tuple) else (key, self.positions[-1])
        hits = [s for s in self.sites if s == site or s.endswith(f".{site}")]
        if len(hits) != 1 or (hits[0], str(position)) not in self.probes:
            raise KeyError(
                f"there is no probe at {site!r}, position {position}; there are {', '.join(self.sites[:6])}."
            )
        return self.probes[hits[0], str(position)]

    def table(self) -> Table:
        """A row for each site and position."""
        rows = [
            [s, p, self.train[i][j], self.held_out[i][j]]
            for i, s in enumerate(self.sites)
            for j, p in enumerate(self.positions)
        ]
        return Table(["site", ">position", ">train", ">held out"], rows, "probes", f"chance {self.chance:.3g}")

    def figure(self, what: str = "curves") -> Any:
        """The "curves" over sites, or a "map" of sites and positions."""
        if what == "map":
            return Heatmap(self.held_out, self.sites, self.positions, title="held-out score", x_name="position")
        if what != "curves":
            raise ValueError(f"ProbeResults: {what!r} is none of curves, map.")
        curves = {f"position {p}": [row[j] for row in self.held_out] for j, p in enumerate(self.positions)}
        curves["chance"] = [self.chance] * len(self.sites)
        return Lines(curves, self.sites, "held-out score of probes", y_name="score")

    def pictures(self) -> Any:
        return {"curves": lambda: [self.figure()], "map": lambda: [self.figure("map")], "table": lambda: [self.table()]}

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain values."""
        names = ("sites", "positions", "train", "held_out", "chance", "samples")
        return {n: getattr(self, n) for n in names}


def probe_layers(
    model: Module,
    batches: Iterable[Any],
    labels: Any,
    *,
    at: Patterns = "layers.*",
    positions: Positions = -1,
    kind: str = "logistic",
    penalty: float = 1.0,
    held_out: float = 0.25,
    seed: int = 0,
) -> ProbeResults:
    """Fit a probe at every site and position, and score it by samples that were held out.

    `labels` has one for each sample of all batches. Which samples are held out follows from `seed`, and of each class
    about the same share is.

    >>> _ = votive.manual_seed(0)
    >>> net = votive.nn.Sequential(votive.nn.Embedding(9, 4), votive.nn.Linear(4, 4))
    >>> ids = votive.randint(0, 9, (40, 3))
    >>> found = votive.glass.probes.probe_layers(net, [ids], ids[:, -1] > 4, at="*", penalty=1e-3)
    >>> found.sites, found.held_out[0][0] >= 0.9
    (('0', '1'), True)
    """
    y = votive.as_tensor(labels).cpu()
    y = y.to(votive.int64) if y.dtype is bool_ else y
    return probe_values(
        gather(model, batches, at, positions), y, kind=kind, penalty=penalty, held_out=held_out, seed=seed
    )


def probe_values(
    found: Values, y: Tensor, *, kind: str = "logistic", penalty: float = 1.0, held_out: float = 0.25, seed: int = 0
) -> ProbeResults:
    """The same for values that `gather` has collected.

    >>> rows = votive.tensor([[-1.0], [1.0]]).repeat(8, 1)
    >>> found = votive.glass.probes.layers.Values({"0": rows.unsqueeze(1)}, ("0",))
    >>> votive.glass.probes.probe_values(found, votive.tensor([0, 1]).repeat(8)).held_out
    [[1.0]]
    """
    if not 0 < held_out < 1:
        raise ValueError(f"probe: held_out is a share between 0 and 1, got {held_out}.")
    count = len(next(iter(found.sites.values())))
    if len(y) != count:
        raise ValueError(f"probe: {count} samples have {len(y)} labels.")
    learn, test = split(y if kind == "logistic" else votive.zeros(count, dtype=votive.int64), held_out, seed)
    train, scores, probes = [], [], {}
    for site, rows in found.sites.items():
        train.append([0.0] * rows.shape[1])
        scores.append([0.0] * rows.shape[1])
        for j in range(rows.shape[1]):
            x = rows[:, j].double()
            probe = fit(x[learn], y[learn], kind=kind, penalty=penalty)
            train[-1][j], scores[-1][j] = probe.score(x[learn], y[learn]), probe.score(x[test], y[test])
            probes[site, found.positions[j]] = probe
    chance = 0.0
    if kind == "logistic":
        classes, counts = y[learn].unique(return_counts=True)
        chance = float((y[test] == classes[counts.argmax()]).double().mean())
    return ProbeResults(tuple(found.sites), found.positions, train, scores, chance, probes, (len(learn), len(test)))


def split(y: Tensor, held_out: float, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers of samples to learn from and to hold out, of each class its share.

    >>> learn, test = votive.glass.probes.layers.split(votive.tensor([0, 0, 0, 0, 1, 1, 1, 1]), 0.25, 0)
    >>> len(learn), len(test)
    (6, 2)
    """
    rng = np.random.default_rng(seed)
    labels = y.numpy()
    learn, test = [], []
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        cut = min(max(1, round(len(own) * held_out)), len(own) - 1)
        test += own[:cut].tolist()
        learn += own[cut:].tolist()
    if not test or not learn:
        raise ValueError(f"probe: {len(labels)} samples are too few to hold some out.")
    return votive.tensor(sorted(learn)), votive.tensor(sorted(test))
