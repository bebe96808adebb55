"""Numbers about the values at many addresses of a run, and how the stream grows. Knows no model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import votive

from ..nn import Module
from . import values
from .address import Patterns
from .capture import capture
from .heatmap import Heatmap
from .parts import Parts, parts_of
from .plots import Lines, Plottable
from .residual_stream import run_stream
from .statistics import BINS, Statistics, statistics


@dataclass(frozen=True)
class LayerStatistics(Plottable):
    """Statistics by address, in the order of the calls.

    `growth` has, for the embedding and each layer, the norm of the stream at a position, averaged;
    it is empty for a model without layers.
    """

    rows: dict[str, Statistics]
    growth: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, address: str) -> Statistics:
        return self.rows[address]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"rows": {a: asdict(s) for a, s in self.rows.items()}, "growth": dict(self.growth)}

    def __str__(self) -> str:
        left = max((len(a) for a in self.rows), default=0)
        lines = [f"{'':<{left}}  {'mean':>10} {'std':>10} {'norm':>10} {'zeros':>7} {'bad':>5}"]
        for address, s in self.rows.items():
            zeros = s.zeros / s.count if s.count else 0.0
            lines.append(
                f"{address:<{left}}  {s.mean:>10.4g} {s.std:>10.4g} {s.norm:>10.4g} {zeros:>7.1%} {s.nan + s.inf:>5}"
            )
        return "\n".join(lines)

    def figure(self, what: str = "histogram") -> Any:
        """Histograms as a heat map ("histogram"), or lines of "growth", "mean", "std", "norm"."""
        if what == "histogram":
            bins = max((len(s.histogram) for s in self.rows.values()), default=0)
            table = [[c / max(s.count, 1) for c in s.histogram or [float("nan")] * bins] for s in self.rows.values()]
            names = ["min" if i == 0 else "max" if i == bins - 1 else "" for i in range(bins)]
            return Heatmap(
                table,
                list(self.rows),
                names,
                title="histograms",
                x_name="from min to max",
                y_name="address",
                legend="share",
                low=0.0,
            )
        if what == "growth":
            if not self.growth:
                raise ValueError("LayerStatistics: this model has no stream whose growth is known.")
            return Lines(
                {"norm": list(self.growth.values())},
                list(self.growth),
                x_name="layer",
                title="norm of the stream",
                y_name="norm",
            )
        if what not in ("mean", "std", "norm"):
            raise ValueError(f"LayerStatistics: {what!r} cannot be drawn.")
        found = [getattr(s, what) for s in self.rows.values()]
        return Lines({what: found}, list(self.rows), title=what, x_name="address", y_name=what)


def layer_statistics(
    model: Module,
    *args: object,
    at: Patterns | None = None,
    bins: int = BINS,
    parts: Parts | Mapping[str, Any] | None = None,
    **kwargs: object,
) -> LayerStatistics:
    """Run a model and describe the values at addresses; by default those of its layers.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 3), votive.nn.ReLU())
    >>> found = votive.glass.layer_statistics(net, votive.ones(1, 2), at="*")
    >>> list(found.rows), found["1"].count
    (['0', '1'], 3)
    """
    try:
        known = parts_of(model, parts)
    except LookupError:
        if at is None or parts is not None:
            raise
        known = None
    rows: dict[str, Statistics] = {}
    growth: dict[str, float] = {}
    with votive.no_grad():
        seen = None if at is None else capture(model, at)
        stream = None
        if seen is None:
            assert known is not None
            stream = run_stream(known, args, kwargs)
        else:
            with seen:
                if known is None:
                    model(*args, **kwargs)
                else:
                    stream = _stream(known, args, kwargs)
        if stream is not None:
            for name, state in zip(stream.names, stream.states, strict=True):
                growth[name] = float(state.float().norm(dim=-1).mean())
        if seen is None:
            assert stream is not None
            found: Any = zip(stream.names, stream.states, strict=True)
        else:
            found = ((a, values.first(seen[a])) for a in seen)
        for name, value in found:
            if value is not None:
                rows[name] = statistics(value, bins)
    return LayerStatistics(rows, growth)


def _stream(parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The stream, where the layers that were found are what runs."""
    try:
        return run_stream(parts, args, kwargs)
    except LookupError:
        return None
