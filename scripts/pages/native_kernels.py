"""Writes `docs/native_kernels.md`: which operators have native kernels on the CPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import votive
from votive.backends.base import TABLE
from votive.backends.cpu.native.program import FLOAT, INT, linearise
from votive.ops.registry import OPS, Op
from votive.ops.schema import REQUIRED

_SOURCE = Path(votive.__file__).parent / "backends" / "cpu" / "native" / "src"

HEAD = """# Native kernels

Written by `scripts/generate.py` from the kernel table; a test keeps it in step. Every kernel is
compiled for three levels, `baseline` (any x86-64 or other processor), `avx2` and `avx512`; the best
that the processor runs is chosen at start ([building](building.md)). What a kernel does not accept
(a dtype, a layout, an option) is served by the next row of the table, last of all by NumPy.
`votive.explain(name)` shows the rows of an operator.
"""


def _files() -> dict[str, str]:
    """The C++ file that defines each kernel."""
    found = {}
    for path in sorted(_SOURCE.rglob("*.cpp")):
        for name in re.findall(r"^\s*VT_\w*KERNEL\w*\(\s*(\w+)", path.read_text(), re.M):
            found[name] = path.relative_to(_SOURCE).as_posix()
    return found


def _elementwise(op: Op) -> str:
    """How the tile engine runs an elementwise operator: whole, in steps, or not at all."""
    static = [a for a in op.schema.args if not a.is_runtime]
    if any(a.default is REQUIRED for a in static):
        return "by its arguments"
    formula = op.formula(tuple(a.default for a in static))
    linear = linearise(formula.body, list(formula.params))
    if linear is None:
        return "no"
    names = [n for n, _ in linear.steps]
    kinds = [k for k, known in (("floats", FLOAT), ("integers", INT)) if set(names) <= set(known)]
    if not kinds:
        return "no"
    return f"{', '.join(kinds)}: {'one step' if len(names) <= 1 else f'{len(names)} steps'}"


def page() -> str:
    """The whole page."""
    files = _files()
    rows: dict[str, list[Any]] = {}
    for (op, device), found in TABLE.items():
        mine = [r for r in found if r.label == "native"]
        if device == "cpu" and mine:
            rows[op] = mine
    lines = [HEAD, "## Structured operators", "", "| operator | kernels | source |", "|---|---|---|"]
    for op in sorted(rows, key=lambda n: (n.lstrip("_"), n)):
        kernels = list(dict.fromkeys(r.kernel or r.fn.__name__ for r in rows[op]))
        sources = sorted({files[k] for k in kernels if k in files})
        shown = ", ".join(f"`{s}`" for s in sources)
        lines.append(f"| `{op}` | {', '.join(f'`{k}`' for k in kernels)} | {shown} |")
    engine = {n: _elementwise(o) for n, o in OPS.items() if o.kind == "pointwise"}
    served = {n: how for n, how in engine.items() if how != "no"}
    lines += [
        "",
        "## Elementwise operators",
        "",
        f"The tile engine (`elementwise.cpp`) runs {len(served)} of {len(engine)} formulas, and",
        "derivatives made of the same steps. Common formulas of several steps are compiled whole.",
        "",
        "| operator | on the engine |",
        "|---|---|",
        *(f"| `{n}` | {served[n]} |" for n in sorted(served, key=lambda n: (n.lstrip("_"), n))),
    ]
    left = [n for n in engine if n not in served and not n.startswith("_")]
    lines += ["", f"With NumPy: {', '.join(f'`{n}`' for n in sorted(left))}."]
    structured = [n for n, o in OPS.items() if o.kind == "structured" and not n.startswith("_")]
    missing = ", ".join(f"`{n}`" for n in sorted(structured) if n not in rows)
    lines += ["", "## Structured operators without one", "", f"{missing}."]
    return "\n".join(lines) + "\n"
