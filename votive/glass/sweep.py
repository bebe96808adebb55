"""Activation patching at many places: a heat map of sites and positions. Knows no model class.

The corrupted run is repeated with the clean run's value at one site and position at a time: Meng et
al. 2022, arXiv:2202.05262; Zhang and Nanda 2023, arXiv:2309.16042. What lies before a site is not
computed again, and the positions of a site run together along the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from .address import Patterns
from .attribution_patching import correlation, estimated
from .heatmap import Heatmap
from .labelled import Labelled
from .labels import TokenNames, token_labels
from .plots import Plottable
from .residual_stream import ids_of
from .sweep_columns import Positions, chosen
from .sweep_runs import SweepRuns, check_inputs, fill, inputs_of
from .targets import modules_for, patterns


@dataclass(frozen=True)
class Sweep(Plottable):
    """What patching did: `values` (sites, positions) is the metric, averaged over samples.

    With heads, columns are heads and `positions` their numbers. `axes` are the labels of what was swept over besides
    sites, of which columns are all combinations, the last axis fastest.
    `per_sample` is (sites, positions, samples); `clean` and `corrupt` (samples,) are the metric of
    the two runs without patches; `estimate` is attribution patching's guess of `values`.
    """

    sites: list[str]
    positions: list[int]
    values: Any
    per_sample: Any
    clean: Any
    corrupt: Any
    tokens: Any = None  # of the corrupted text, (samples, length)
    tokenizer: Any = None
    estimate: Any = None
    runs: int = 0  # forward runs that were made
    columns: str = "position"
    axes: dict[str, list[Any]] = field(default_factory=dict)

    def labelled(self, what: str = "values") -> Labelled:
        """ "values", "recovered" or "estimate" with a named dimension for sites and for each axis."""
        if what not in ("values", "recovered", "estimate") or getattr(self, what) is None:
            raise ValueError(f"Sweep: there is no {what!r}; choose values or recovered.")
        axes = self.axes or {self.columns: list(self.positions)}
        dims = {"site": list(self.sites), **axes}
        found = getattr(self, what)
        return Labelled(found.reshape(tuple(len(x) for x in dims.values())), dims, what)

    def to_pandas(self, what: str = "values") -> Any:
        """The table as pandas has it."""
        return self.labelled(what).to_pandas()

    def to_xarray(self, what: str = "values") -> Any:
        """The table as xarray has it."""
        return self.labelled(what).to_xarray()

    def plot(self, what: str = "recovered") -> Any:
        """The heat map of a table, which notebooks show and `.save("x.svg")` writes."""
        return self.figure(what)

    @property
    def recovered(self) -> Tensor:
        """The share of the way from corrupted (0) to clean (1)."""
        span = (self.clean - self.corrupt).mean()
        return (self.values - self.corrupt.mean()) / span

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the estimate with the exact values."""
        if self.estimate is None:
            raise ValueError("Sweep: it has no estimate; run it with estimate=True.")
        return correlation(self.estimate, self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        tensors = {k: getattr(self, k) for k in ("values", "per_sample", "clean", "corrupt")}
        if self.estimate is not None:
            tensors["estimate"] = self.estimate
        plain = {k: v.tolist() for k, v in tensors.items()}
        return {"sites": list(self.sites), "positions": list(self.positions), **plain}

    def figure(self, what: str = "values", sample: int = 0) -> Heatmap:
        """A heat map of "values", of the share "recovered", or of the "estimate"."""
        if what not in ("values", "recovered", "estimate") or getattr(self, what) is None:
            raise ValueError(f"Sweep: {what!r} cannot be drawn; choose values or recovered.")
        shown = getattr(self, what)
        if what != "recovered":
            shown = shown - self.corrupt.mean()
        labels = [str(p) for p in self.positions]
        if self.axes:
            labels = [" ".join(map(str, c)) for c in product(*self.axes.values())]
        elif self.tokens is not None:
            row = self.tokens[sample].tolist()
            labels = token_labels([row[p] for p in self.positions], self.tokenizer)
        return Heatmap(
            shown.tolist(),
            list(self.sites),
            labels,
            title=f"activation patching: {what}",
            x_name=self.columns,
            y_name="site",
            signed=True,
            legend="share" if what == "recovered" else "change",
        )


def sweep(
    model: Module,
    clean: object,
    corrupt: object,
    *,
    metric: Callable[[Any], Any] | Sequence[Callable[[Any], Any]],
    sites: Patterns = "layers.*",
    positions: Positions = None,
    heads: int | Iterable[int] | None = None,
    by: str | Sequence[str] | None = None,
    neurons: Iterable[int] | None = None,
    batch: int = 32,
    estimate: bool = False,
    tokenizer: TokenNames | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Patch clean values into the corrupted run, one site and position at a time.

    `clean` and `corrupt` are inputs of the model: a tensor, a tuple of arguments, or a dict of
    named ones, of the same shapes. `metric` gives a number for each sample of a model's output.
    With `heads`, the number of them, columns are heads in place of positions: the last dimension of
    a site such as "layers.*.self_attn.o_proj:in" is split, and patched at all `positions`. `batch`
    is how many samples run at once. With `estimate`, attribution patching is made too.

    `by` names what else is swept over, at named places such as "layers.*.attn.z": "position",
    "head", "neuron", or several of them for all combinations; `positions`, `heads` and `neurons`
    then choose. Positions may have names: a dict of a label and a position from either end, the
    text of a token, or a function of a text's ids, looked up in each sample. Lists of inputs are a
    data set of pairs, whose lengths may differ if positions have names or count from the end;
    `metric` may then be a list too. `progress` is called with how many sites are done, and of how
    many.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> found = votive.glass.sweep(model, votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]]),
    ...     metric=lambda out: out.logits[:, -1, 4])
    >>> found.values.shape, found.sites
    (votive.Size([2, 3]), ['model.layers.0', 'model.layers.1'])
    >>> votive.allclose(found.values[1, 2], found.clean[0])  # the last position is all clean
    True
    >>> found = votive.glass.sweep(model, votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]]),
    ...     metric=lambda out: out.logits[:, -1, 4], sites="layers.*.attn.z", by=("head", "position"))
    >>> found.labelled()
    <values: site 2, head 2, position 3>
    """
    if batch < 1:
        raise ValueError(f"sweep: batch must be positive, got {batch}.")
    wanted = patterns(sites)
    if any(p.wants_ops and not p.wants_modules for p in wanted):
        raise ValueError(f"sweep: sites must be modules, got {sites!r}.")
    modules_for(model, wanted)
    if by is None and isinstance(positions, Mapping) and heads is None:
        by = "position"
    if by is None and (neurons is not None or isinstance(positions, Mapping) or not isinstance(heads, int | None)):
        raise ValueError("sweep: say what is swept over, such as by=('head', 'position').")
    if by is not None and isinstance(heads, int):
        raise ValueError("sweep: with by=, the heads are those of the place; heads= takes a list that chooses.")
    one = _Sweeping(model, wanted, sites, positions, heads, by, neurons, batch, estimate, tokenizer)
    if not isinstance(clean, list) and not isinstance(corrupt, list):
        if isinstance(metric, Sequence):
            raise ValueError("sweep: several metrics go with lists of inputs, one for each pair.")
        return one.pair(clean, corrupt, metric, progress)
    if not isinstance(clean, list) or not isinstance(corrupt, list) or len(clean) != len(corrupt) or not clean:
        raise ValueError("sweep: clean and corrupt must be lists of as many inputs, a pair at each place.")
    each = list(metric) if isinstance(metric, Sequence) else [metric] * len(clean)
    if len(each) != len(clean):
        raise ValueError(f"sweep: there are {len(each)} metrics for {len(clean)} pairs.")
    found = []
    for i, (a, b, m) in enumerate(zip(clean, corrupt, each, strict=True)):
        count = _counted(progress, i, len(clean))
        found.append(one.pair(a, b, m, count))
    return _merged(found)


def _counted(progress: Callable[[int, int], object] | None, i: int, pairs: int) -> Callable[[int, int], object] | None:
    """Progress of one of several pairs, as that of all."""
    return None if progress is None else lambda done, total: progress(i * total + done, pairs * total)


def _merged(found: list[Sweep]) -> Sweep:
    """Sweeps of several pairs as one of all samples."""
    first = found[0]
    for other in found[1:]:
        if (other.sites, other.positions, other.axes) != (first.sites, first.positions, first.axes):
            raise ValueError(
                "sweep: the pairs do not have the same positions; name them, or count from the end: "
                "positions={'last': -1}."
            )
    per_sample = votive.cat([f.per_sample for f in found], -1)
    sizes = [f.per_sample.shape[-1] for f in found]
    guess = None
    if first.estimate is not None:
        guess = sum(f.estimate * n for f, n in zip(found, sizes, strict=True)) / sum(sizes)
    return replace(
        first,
        values=per_sample.mean(-1),
        per_sample=per_sample,
        clean=votive.cat([f.clean for f in found]),
        corrupt=votive.cat([f.corrupt for f in found]),
        tokens=first.tokens if len(found) == 1 else None,
        estimate=guess,
        runs=sum(f.runs for f in found),
    )


@dataclass
class _Sweeping:
    """What is asked of each pair."""

    model: Any
    wanted: Any
    sites: Any
    positions: Any
    heads: Any
    by: Any
    neurons: Any
    batch: int
    estimate: bool
    tokenizer: Any

    def pair(
        self,
        clean: object,
        corrupt: object,
        metric: Callable[[Any], Any],
        progress: Callable[[int, int], object] | None,
    ) -> Sweep:
        given = inputs_of(clean), inputs_of(corrupt)
        check_inputs(*given)
        axes: dict[str, list[Any]] = {}
        with votive.no_grad():
            plan = SweepRuns(self.model, self.wanted, *given, metric)
            if self.by is None:
                columns = [plan.columns(site, self.positions, self.heads) for site in plan.sites]
            else:
                ids = ids_of(*given[1])
                asked = chosen(self.by, self.positions, self.heads, self.neurons, ids, self.tokenizer)
                columns = [plan.product(site, asked) for site in plan.sites]
                axes = {a: list(dict.fromkeys(c.labels[i] for c in columns[0])) for i, a in enumerate(asked.by)}
            if len({len(c) for c in columns}) != 1:
                sizes = ", ".join(f"{site.address} {len(c)}" for site, c in zip(plan.sites, columns, strict=True))
                raise ValueError(
                    f"sweep: all sites need the same columns, and have {sizes}; choose positions, and sweep sites "
                    "with different numbers of heads or neurons one after the other."
                )
            rows = []
            for site, own in zip(plan.sites, columns, strict=True):
                rows.append(fill(plan, site, own, self.batch))
                if progress is not None:
                    progress(len(rows), len(columns))
            per_sample = votive.stack(rows)
        guess = None
        if self.estimate:
            guess = estimated(self.model, plan.sites, given[1], plan.clean.values, metric, columns)
        plain = self.by is None and self.heads is None
        return Sweep(
            [s.name for s in plan.sites],
            [c.number for c in columns[0]],
            per_sample.mean(-1),
            per_sample,
            plan.goal,
            plan.base,
            ids_of(*given[1]) if plain else None,
            self.tokenizer,
            guess,
            plan.runs,
            "position" if plain else "head" if self.by is None else " · ".join(axes),
            axes,
        )
