"""Which pictures there are of values and of runs. Draws nothing; knows no model class.

Text is what `text_pictures.py` is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import votive

from . import values
from .capture import Capture
from .debugger import Debugger
from .difference import Difference
from .edits import Edit
from .flame import Flame
from .gradients import Gradients
from .health import METRICS, Health
from .heatmap import Heatmap
from .layer_statistics import LayerStatistics
from .lockstep import Lockstep
from .patch import Patch, Receipt
from .plots import Drawn, Lines
from .predict import Prediction
from .profile import Profile, Span
from .rendering import size
from .shown import Pictures
from .statistics import Statistics, statistics
from .table import Table
from .tree import Node
from .watch import Finding, Watch

# Addresses of a capture with a picture of their own, numbers of a value that are looked at, and
# bytes of a capture whose statistics are made at once.
MOST_VALUES, MOST_NUMBERS, MOST_BYTES = 500, 1 << 16, 1 << 28

_KNOWN: dict[type, Callable[[Any], Pictures]] = {}
F = TypeVar("F", bound=Callable[[Any], Pictures])


def shows(*kinds: type) -> Callable[[F], F]:
    """Let a function say which pictures there are of these classes."""

    def declared(fn: F) -> F:
        _KNOWN.update(dict.fromkeys(kinds, fn))
        return fn

    return declared


def pictures_of(thing: Any) -> Pictures:
    """The pictures of an object, by name."""
    from . import sound_pictures, text_pictures, vision_pictures  # noqa: F401 - declare more

    for kind in type(thing).__mro__:
        if kind in _KNOWN:
            return _KNOWN[kind](thing)
    if isinstance(thing, Drawn):
        return {type(thing).__name__.lower(): lambda: [thing.figure()]}
    raise TypeError(f"pictures: there are none of a {type(thing).__name__}.")


def chosen(drawn: Any, names: Sequence[str]) -> Pictures:
    """The figures of these names."""
    return {n: partial(lambda n: [drawn.figure(n)], n) for n in names}


# --- values -------------------------------------------------------------------------------------


def table_of(found: Statistics, title: str = "") -> Table:
    """Statistics as a table."""
    told = asdict(found)
    rows = [[k, told[k]] for k in ("count", "mean", "std", "min", "max", "norm", "zeros")]
    rows += [[k, told[k]] for k in ("nan", "inf") if told[k]]
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
        title="histogram", x_name="value", y_name="count",
    )  # fmt: skip


def figures_of(value: Any, title: str = "") -> list[Any]:
    """A tensor, or statistics of one, in figures; of a large one a part is drawn, and told."""
    if isinstance(value, Statistics):
        return [f for f in (table_of(value, title), histogram_of(value)) if f is not None]
    with votive.no_grad():
        found = statistics(value)
        figures = figures_of(found, f"{title}  {found.dtype} {tuple(found.shape)}".strip())
        return [matrix_of(value, title), *figures] if value.numel() else figures


def matrix_of(value: Any, title: str = "") -> Heatmap:
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
        x.tolist(), names, [str(i) for i in range(columns)], title=title, signed=True, note=note,
        legend="size" if value.is_complex() else "value",
    )  # fmt: skip
    return made.within(4096, MOST_NUMBERS // max(1, min(x.shape[0], 4096)))


def _place(row: int, shape: tuple[int, ...]) -> str:
    """A row of the matrix as an index of the tensor."""
    at: list[int] = []
    for n in reversed(shape):
        at.insert(0, row % n)
        row //= n
    return ", ".join(map(str, at)) or "0"


def _summary(address: str, value: Any, heavy: bool = False) -> list[Any]:
    first = value if isinstance(value, Statistics) else values.first(value)
    if first is None:
        found = next((x for x in _leaves(value) if isinstance(x, Statistics)), None)
        if found is None:
            return [address, type(value).__name__, "", *[None] * 5]
        first = found
    if heavy and not isinstance(first, Statistics):
        dtype = str(first.dtype).removeprefix("votive.")
        return [address, " x ".join(map(str, first.shape)), dtype, *[None] * 5]
    told = first if isinstance(first, Statistics) else statistics(first, 0)
    bad = told.nan + told.inf
    shape = " x ".join(map(str, told.shape)) or "scalar"
    return [address, shape, told.dtype, told.mean, told.std, told.min, told.max, bad or None]


def _leaves(value: Any) -> list[Any]:
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
            rows = [_summary(a or "(model)", seen[a], heavy) for a in list(seen)[:MOST_VALUES]]
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


# --- runs ---------------------------------------------------------------------------------------


@shows(Node)
def _tree(root: Node) -> Pictures:
    rows: list[list[Any]] = []
    depths: list[int] = []
    todo = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        name = str(node.address).rpartition("/" if node.kind != "module" else ".")[2] or "(model)"
        rows.append([name, node.name, node.output, f"{node.seconds * 1e3:.3f} ms", node.bytes])
        depths.append(depth)
        todo += [(c, depth + 1) for c in reversed(node.children)]
    columns = ["call", "class", "result", ">time", ">bytes"]
    return {"tree": lambda: [Table(columns, rows, "calls of one run", depths=depths)]}


@shows(Profile)
def _profile(found: Profile) -> Pictures:
    def table(kind: str) -> list[Any]:
        rows = [c for c in found.rows("seconds") if (c.kind == "op") == (kind == "operators")]
        most = max((c.seconds for c in rows), default=0.0) or 1.0
        cells = [
            [c.address or "(model)", c.name, c.calls, f"{c.seconds * 1e3:.3f} ms",
             f"{c.own * 1e3:.3f} ms", size(c.allocated), size(c.peak)] for c in rows
        ]  # fmt: skip
        columns = ["address", "class", ">calls", ">time", ">own", ">allocated", ">peak"]
        return [Table(columns, cells, kind, shares=[c.seconds / most for c in rows])]

    run: Span = found.run
    return {
        "flame": lambda: [Flame.of(run)], "modules": lambda: table("modules"),
        "operators": lambda: table("operators"),
    }  # fmt: skip


@shows(Debugger)
def _debugger(d: Debugger) -> Pictures:
    def stands() -> list[Any]:
        if d.frame is None:
            what = f"an error: {d.error}" if d.error is not None else "the run has ended"
            return [Table(["", ""], [["state", what], ["events", d.index]], "debugger")]
        rows = [[str(a) or "(model)"] for a in d.stack]
        told = f"{d.phase} {d.address}, event {d.index}"
        found: list[Any] = [Table(["call"], rows, told, depths=list(range(len(rows))))]
        value = values.first(d.value)
        return found + (figures_of(value, str(d.address) or "(model)") if value is not None else [])

    return {"where it stands": stands}


@shows(Receipt)
def _receipt(receipt: Receipt) -> Pictures:
    rows = [
        [a or "(model)", s.times, s.largest, f"{s.relative:.2%}"] for a, s in receipt.sites.items()
    ]
    most = max((s.relative for s in receipt.sites.values()), default=0.0) or 1.0
    shares = [s.relative / most for s in receipt.sites.values()]
    title = f"changed {receipt.fired} times" if rows else "nothing was changed"
    columns = ["address", ">times", ">largest change", ">of the norm"]
    return {"receipt": lambda: [Table(columns, rows, title, shares=shares)]}


@shows(Patch)
def _patch(patch: Patch) -> Pictures:
    def edits() -> list[Any]:
        rows = [[e.at, e.do, _told(e), sum(fired.values())]
                for e, fired in zip(patch.edits, patch.receipt.edits, strict=True)]  # fmt: skip
        return [Table(["at", "do", "value", ">times"], rows, "edits"), *patch.receipt.figures()]

    return {"edits": edits}


@shows(Edit)
def _edit(edit: Edit) -> Pictures:
    rows = [["at", edit.at], ["do", edit.do], ["value", _told(edit)]]
    rows += [[n, str(list(getattr(edit, n)))] for n in ("positions", "features", "samples", "runs")
             if getattr(edit, n) is not None]  # fmt: skip
    return {"edit": lambda: [Table(["", ""], rows)]}


def _told(edit: Edit) -> str:
    value = edit.value
    if isinstance(value, votive.Tensor):
        return f"tensor {tuple(value.shape)}"
    return "" if value is None else repr(value)[:80]


@shows(Difference)
def _difference(found: Difference) -> Pictures:
    rows = [[k, cell if isinstance(cell, (int, float, str)) else str(cell)]
            for k, cell in asdict(found).items()]  # fmt: skip
    return {"difference": lambda: [Table(["", ">value"], rows)]}


@shows(Lockstep)
def _lockstep(found: Lockstep) -> Pictures:
    rows = [
        [r.address or "(model)", r.error, r.relative, r.max, r.cosine,
         "" if r.within else r.note or "diverges"] for r in found.rows
    ]  # fmt: skip
    columns = ["address", ">error", ">relative", ">max", ">cosine", ""]
    errors = [e if math.isfinite(e) else math.nan for _, e in found.growth]
    names = [a or "(model)" for a, _ in found.growth]
    note = "" if found.first is None else f"{found.first.address or '(model)'} diverges first"
    growth = Lines({"error": errors}, names, title="error by address", y_name="error", note=note)
    return {"error": lambda: [growth], "values": lambda: [Table(columns, rows, note)]}


@shows(Health)
def _health(health: Health) -> Pictures:
    def lines(metric: str) -> list[Any]:
        found = {a or "(model)": health.series(a, metric) for a in health.addresses}
        found = {a: s for a, s in found.items() if any(math.isfinite(v) for _, v in s)}
        if not found:
            return [Table(["address"], [], f"{metric}: no readings")]
        steps = sorted({step for series in found.values() for step, _ in series})
        curves = {a: [dict(s).get(i, math.nan) for i in steps] for a, s in found.items()}
        name = metric.replace("_", " ")
        return [Lines(curves, [str(i) for i in steps], name, "step", name)]

    return {m.replace("_", " "): partial(lines, m) for m in METRICS}


@shows(Finding)
def _finding(found: Finding) -> Pictures:
    named = [*((f"input {i}", s) for i, s in enumerate(found.inputs)), *found.parameters.items()]
    named += [("result", found.output)] if found.output is not None else []
    rows = [_summary(name, s) for name, s in named]
    columns = ["", "shape", "dtype", ">mean", ">std", ">min", ">max", ">bad"]
    return {"finding": lambda: [Table(columns, rows, str(found).partition("\n")[0])]}


@shows(Watch)
def _watch(watch: Watch) -> Pictures:
    rows = [[f.kind, str(f.address), f.phase, f.run, f.module] for f in watch.findings]
    title = f"{watch.checked:,} results of {watch.runs} runs, {len(rows)} bad"
    columns = ["what", "address", "phase", ">run", "module"]
    return {"findings": lambda: [Table(columns, rows, title)]}
