"""Which pictures there are of runs, and of what was changed in them. Draws nothing."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import Any

import votive

from . import values
from .debugger import Debugger
from .difference import Difference
from .display import Pictures
from .edits import Edit
from .flame import Flame
from .health import METRICS, Health
from .lockstep import Lockstep
from .patch import Patch
from .pictures import figures_of, shows, summary
from .plots import Lines
from .profile import Profile, Span
from .receipt import Receipt
from .table import Table
from .text_table import size
from .tree import Node
from .watch import Finding, Watch


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
            [
                c.address or "(model)",
                c.name,
                c.calls,
                f"{c.seconds * 1e3:.3f} ms",
                f"{c.own * 1e3:.3f} ms",
                size(c.allocated),
                size(c.peak),
            ]
            for c in rows
        ]
        columns = ["address", "class", ">calls", ">time", ">own", ">allocated", ">peak"]
        return [Table(columns, cells, kind, shares=[c.seconds / most for c in rows])]

    run: Span = found.run
    return {
        "flame": lambda: [Flame.of(run)],
        "modules": lambda: table("modules"),
        "operators": lambda: table("operators"),
    }


@shows(Debugger)
def _debugger(d: Debugger) -> Pictures:
    def stands() -> list[Any]:
        if d.frame is None:
            what = f"an error: {d.error}" if d.error is not None else "the run has ended"
            return [Table(["", ""], [["state", what], ["events", d.index]], "debugger")]
        rows = [[str(a) or "(model)"] for a in d.stack]
        title = f"{d.phase} {d.address}, event {d.index}"
        found: list[Any] = [Table(["call"], rows, title, depths=list(range(len(rows))))]
        value = values.first(d.value)
        return found + (figures_of(value, str(d.address) or "(model)") if value is not None else [])

    return {"where it stands": stands}


@shows(Receipt)
def _receipt(receipt: Receipt) -> Pictures:
    said = {True: "yes", False: "no", None: "unknown"}
    rows = [
        [
            a or "(model)",
            s.times,
            s.largest if s.measured else "",
            f"{s.relative:.2%}" if s.measured else "",
            said[s.reached] + (f": {s.why}" if s.why else ""),
        ]
        for a, s in receipt.sites.items()
    ]
    sizes = [s.relative if math.isfinite(s.relative) else 0.0 for s in receipt.sites.values()]
    most = max(sizes, default=0.0) or 1.0
    shares = [size / most for size in sizes]
    title = f"changed {receipt.fired} times" if rows else "nothing was changed"
    columns = ["address", ">times", ">largest change", ">of the norm", "reaches the result"]
    return {"receipt": lambda: [Table(columns, rows, title, shares=shares)]}


@shows(Patch)
def _patch(patch: Patch) -> Pictures:
    def edits() -> list[Any]:
        rows = [
            [e.at, e.do, _value_text(e), sum(fired.values())]
            for e, fired in zip(patch.edits, patch.receipt.edits, strict=True)
        ]
        return [Table(["at", "do", "value", ">times"], rows, "edits"), *patch.receipt.figures()]

    return {"edits": edits}


@shows(Edit)
def _edit(edit: Edit) -> Pictures:
    rows = [["at", edit.at], ["do", edit.do], ["value", _value_text(edit)]]
    rows += [
        [n, str(list(getattr(edit, n)))]
        for n in ("positions", "features", "samples", "runs")
        if getattr(edit, n) is not None
    ]
    return {"edit": lambda: [Table(["", ""], rows)]}


def _value_text(edit: Edit) -> str:
    value = edit.value
    if isinstance(value, votive.Tensor):
        return f"tensor {tuple(value.shape)}"
    return "" if value is None else repr(value)[:80]


@shows(Difference)
def _difference(found: Difference) -> Pictures:
    rows = [[k, cell if isinstance(cell, (int, float, str)) else str(cell)] for k, cell in asdict(found).items()]
    return {"difference": lambda: [Table(["", ">value"], rows)]}


@shows(Lockstep)
def _lockstep(found: Lockstep) -> Pictures:
    rows = [
        [r.address or "(model)", r.error, r.relative, r.max, r.cosine, "" if r.within else r.note or "diverges"]
        for r in found.rows
    ]
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
    rows = [summary(name, s) for name, s in named]
    columns = ["", "shape", "dtype", ">mean", ">std", ">min", ">max", ">bad"]
    return {"finding": lambda: [Table(columns, rows, str(found).partition("\n")[0])]}


@shows(Watch)
def _watch(watch: Watch) -> Pictures:
    rows = [[f.kind, str(f.address), f.phase, f.run, f.module] for f in watch.findings]
    title = f"{watch.checked:,} results of {watch.runs} runs, {len(rows)} bad"
    columns = ["what", "address", "phase", ">run", "module"]
    return {"findings": lambda: [Table(columns, rows, title)]}
