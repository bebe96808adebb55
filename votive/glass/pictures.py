"""Which pictures there are of values, and of all else that declares some. Draws nothing.

Runs, text and vision have files of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import votive

from ..tensor import Tensor
from . import values
from .capture import Capture
from .display import Pictures
from .gradients import Gradients
from .heatmap import Heatmap
from .layer_statistics import LayerStatistics
from .plots import Lines, Plottable
from .predict import Prediction
from .quantization_error import QuantizationError
from .statistics import Statistics, statistics
from .table import Table
from .text_table import size

# Addresses of a capture with a picture of their own, numbers of a value that are looked at, and
# bytes of a capture whose statistics are made at once.
MOST_VALUES, MOST_NUMBERS, MOST_BYTES = 500, 1 << 16, 1 << 28

# Samples, and maps or heads in all, with a picture of their own.
SAMPLES, MAPS = 16, 500

_KNOWN: dict[type, Callable[[Any], Pictures]] = {}
F = TypeVar("F", bound=Callable[[Any], Pictures])


def shows(*kinds: type) -> Callable[[F], F]:
    """Let a function say which pictures there are of these classes."""

    def declared(fn: F) -> F:
        _KNOWN.update(dict.fromkeys(kinds, fn))
        return fn

    return declared


def pictures_of(thing: object) -> Pictures:
    """The pictures of an object, by name."""
    from . import media_pictures, run_pictures, text_pictures  # noqa: F401 - declare more

    for kind in type(thing).__mro__:
        if kind in _KNOWN:
            return _KNOWN[kind](thing)
    if isinstance(thing, Plottable):
        return {type(thing).__name__.lower(): lambda: [thing.figure()]}
    raise TypeError(f"pictures: there are none of a {type(thing).__name__}.")


def sample_names(count: int) -> list[tuple[int, str]]:
    """The samples that have pictures, and what follows the names of these."""
    return [(s, "" if count == 1 else f", sample {s}") for s in range(min(count, SAMPLES))]


def chosen(drawn: Plottable, names: Sequence[str]) -> Pictures:
    """The figures of these names."""
    return {n: partial(lambda n: [drawn.figure(n)], n) for n in names}


# --- values -------------------------------------------------------------------------------------


def table_of(found: Statistics, title: str = "") -> Table:
    """Statistics as a table."""
    fields = asdict(found)
    rows = [[k, fields[k]] for k in ("count", "mean", "std", "min", "max", "norm", "zeros")]
    rows += [[k, fields[k]] for k in ("nan", "inf") if fields[k]]
    return Table(["", ">value"], rows, title or f"{found.dtype} {tuple(found.shape)}")


def histogram_of(found: Statistics) -> Lines | None:
    """How often values lie where."""
    count = len(found.histogram)
    if count < 2 or not math.isfinite(found.max - found.min) or found.max == found.min:
        return None
    step = (found.max - found.min) / count
    return Lines(
        {"count": list(map(float, found.histogram))},
        [f"{found.min + step * (i + 0.5):.3g}" for i in range(count)],
        title="histogram",
        x_name="value",
        y_name="count",
    )


def figures_of(value: Tensor | Statistics, title: str = "") -> list[Any]:
    """A tensor, or statistics of one, in figures; of a large one a part is drawn, and told."""
    if isinstance(value, Statistics):
        return [f for f in (table_of(value, title), histogram_of(value)) if f is not None]
    with votive.no_grad():
        found = statistics(value)
        figures = figures_of(found, f"{title}  {found.dtype} {tuple(found.shape)}".strip())
        return [matrix_of(value, title), *figures] if value.numel() else figures


def matrix_of(value: Tensor, title: str = "") -> Heatmap:
    """A tensor as a heat map: its last dimension across, all others down."""
    x = value.detach()
    x = x.abs() if x.is_complex() else x
    x = x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)
    note, (rows, columns) = "", x.shape
    if x.numel() > MOST_NUMBERS:
        # Many rows are mostly many samples: the first of them, rather than a mixture of all.
        keep = max(1, MOST_NUMBERS // columns)
        note = f"the first {keep:,} of {rows:,} rows" if keep < rows else ""
        x = x[:keep]
    x = x.cpu().float()
    names = [_place(i, tuple(value.shape[:-1])) for i in range(x.shape[0])]
    made = Heatmap(
        x.tolist(),
        names,
        [str(i) for i in range(columns)],
        title=title,
        signed=True,
        note=note,
        legend="size" if value.is_complex() else "value",
    )
    return made.within(4096, MOST_NUMBERS // max(1, min(x.shape[0], 4096)))


def _place(row: int, shape: tuple[int, ...]) -> str:
    """A row of the matrix as an index of the tensor."""
    at: list[int] = []
    for n in reversed(shape):
        at.insert(0, row % n)
        row //= n
    return ", ".join(map(str, at)) or "0"


def summary(address: str, value: object, heavy: bool = False) -> list[Any]:
    """A row of a table about a value; of `heavy` ones without reading them."""
    first = value if isinstance(value, Statistics) else values.first(value)
    if first is None:
        found = next((x for x in _leaves(value) if isinstance(x, Statistics)), None)
        if found is None:
            return [address, type(value).__name__, "", *[None] * 5]
        first = found
    if heavy and not isinstance(first, Statistics):
        dtype = first.dtype.name
        return [address, " x ".join(map(str, first.shape)), dtype, *[None] * 5]
    stats = first if isinstance(first, Statistics) else statistics(first, 0)
    bad = stats.nan + stats.inf
    shape = " x ".join(map(str, stats.shape)) or "scalar"
    return [address, shape, stats.dtype, stats.mean, stats.std, stats.min, stats.max, bad or None]


def _leaves(value: object) -> list[Any]:
    if isinstance(value, Statistics):
        return [value]
    return [leaf for _, part in values.children(value) for leaf in _leaves(part)]


@shows(Statistics)
def _statistics(found: Statistics) -> Pictures:
    return {"statistics": lambda: figures_of(found)}


@shows(Capture)
def _capture(seen: Capture) -> Pictures:
    columns = ["address", "shape", "dtype", ">mean", ">std", ">min", ">max", ">bad"]

    def overview() -> list[Any]:
        heavy = seen.bytes > MOST_BYTES
        with votive.no_grad():
            rows = [summary(a or "(model)", seen[a], heavy) for a in list(seen)[:MOST_VALUES]]
        notes = [f"the first {len(rows):,} of {len(seen):,} values"] * (len(seen) > len(rows))
        notes += [f"statistics of {size(seen.bytes)} are made when a value is chosen"] * heavy
        runs = f"captured in {seen.runs} run{'' if seen.runs == 1 else 's'}"
        return [Table(columns, rows, runs, "; ".join(notes))]

    def at(address: str) -> list[Any]:
        value = seen[address]
        found = [value] if isinstance(value, Statistics) else _leaves(value)
        found = found or [t for _, t in values.tensors(value)]
        return [f for x in found for f in figures_of(x, address or "(model)")] or [
            Table(["address", "value"], [[address, repr(value)[:200]]])
        ]

    some = list(seen)[:MOST_VALUES]
    return {"all values": overview, **{a or "(model)": partial(at, a) for a in some}}


@shows(QuantizationError)
def _quantization_error(found: QuantizationError) -> Pictures:
    kinds = ["stream", "weight"] + (["kl"] if all(x.kl is not None for x in found.layers) else []) + ["output"]
    rows = [[s.name, s.format, s.bits, s.weight, s.output] for s in found.sites]
    columns = ["weight", "format", ">bits", ">error", ">of output"]
    return {**chosen(found, kinds), "table": lambda: [Table(columns, rows, title="error by weight")]}


@shows(LayerStatistics)
def _layer_statistics(found: LayerStatistics) -> Pictures:
    names = ["histogram", *(["growth"] if found.growth else []), "mean", "std", "norm"]
    return chosen(found, names)


@shows(Gradients)
def _gradients(found: Gradients) -> Pictures:
    return chosen(found, ["totals", "norms", "gradient_norms"])


@shows(Prediction)
def _prediction(found: Prediction) -> Pictures:
    most = max(found.sites.values(), default=0) or 1
    rows = [[a or "(model)", size(b)] for a, b in found.sites.items()]
    shares = [b / most for b in found.sites.values()]
    return {"bytes": lambda: [Table(["address", ">bytes"], rows, str(found), shares=shares)]}
