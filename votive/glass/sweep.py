"""Activation patching at many places: a heat map of sites and positions. Knows no model class.

The corrupted run is repeated with the clean run's value at one site and position at a time: Meng et
al. 2022, arXiv:2202.05262; Zhang and Nanda 2023, arXiv:2309.16042. What lies before a site is not
computed again, and the positions of a site run together along the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from .address import Patterns
from .attribution_patching import correlation, estimated
from .heatmap import Heatmap
from .labels import TokenNames, token_labels
from .plots import Plottable
from .residual_stream import ids_of
from .sweep_runs import SweepRuns, check_inputs, fill, inputs_of
from .targets import modules_for, patterns


@dataclass(frozen=True)
class Sweep(Plottable):
    """What patching did: `values` (sites, positions) is the metric, averaged over samples.

    With heads, columns are heads and `positions` their numbers.
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
        if self.tokens is not None:
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
    metric: Callable[[Any], Any],
    sites: Patterns = "layers.*",
    positions: int | Iterable[int] | None = None,
    heads: int | None = None,
    batch: int = 32,
    estimate: bool = False,
    tokenizer: TokenNames | None = None,
) -> Sweep:
    """Patch clean values into the corrupted run, one site and position at a time.

    `clean` and `corrupt` are inputs of the model: a tensor, a tuple of arguments, or a dict of
    named ones, of the same shapes. `metric` gives a number for each sample of a model's output.
    With `heads`, the number of them, columns are heads in place of positions: the last dimension of
    a site such as "layers.*.self_attn.o_proj:in" is split, and patched at all `positions`. `batch`
    is how many samples run at once. With `estimate`, attribution patching is made too.

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
    """
    if batch < 1:
        raise ValueError(f"sweep: batch must be positive, got {batch}.")
    wanted = patterns(sites)
    if any(p.wants_ops and not p.wants_modules for p in wanted):
        raise ValueError(f"sweep: sites must be modules, got {sites!r}.")
    modules_for(model, wanted)
    given = inputs_of(clean), inputs_of(corrupt)
    check_inputs(*given)
    with votive.no_grad():
        plan = SweepRuns(model, wanted, *given, metric)
        columns = [plan.columns(site, positions, heads) for site in plan.sites]
        if len({len(c) for c in columns}) != 1:
            raise ValueError("sweep: the sites have different lengths; choose positions.")
        per_sample = votive.stack([fill(plan, site, c, batch) for site, c in zip(plan.sites, columns, strict=True)])
    guess = None
    if estimate:
        guess = estimated(model, plan.sites, given[1], plan.clean.values, metric, columns)
    return Sweep(
        [s.name for s in plan.sites],
        [c.number for c in columns[0]],
        per_sample.mean(-1),
        per_sample,
        plan.goal,
        plan.base,
        ids_of(*given[1]) if heads is None else None,
        tokenizer,
        guess,
        plan.runs,
        "position" if heads is None else "head",
    )
