"""Actions that explain operators: schema, formula, gradient, kernels."""

from __future__ import annotations

from typing import Annotated, Any

from ...ops.registry import COMPOSITES, OPS
from ...surface.explain import explanation
from ..arguments import Bounds
from ..jobs import Job
from . import action


@action("explain.op", needs_model=False, computes=False)
def op(job: Job, name: Annotated[str, Bounds(1, 100)]) -> dict[str, Any]:
    """What an operator is, in titled parts; `name` may be an address such as "layers.0/gelu#0"."""
    short = name.rpartition("/")[2].partition("#")[0]
    text = explanation(short if short in OPS or f"_{short}" not in OPS else f"_{short}")
    head, *rest = text.rstrip().splitlines()
    parts: list[dict[str, str]] = [{"title": "Schema", "text": "", "code": head}]
    lines: list[str] = []
    for line in rest:
        if line and not line.startswith(" "):
            _close(parts, lines)
            parts.append({"title": line.rstrip(":")})
        else:
            lines.append(line)
    _close(parts, lines)
    job.workspace.log(job, f"votive.explain({short!r})")
    return {"name": short, "parts": parts, "text": text}


def _close(parts: list[dict[str, str]], lines: list[str]) -> None:
    """Give the lines to the part before; that of the schema is prose, the others are code."""
    body = "\n".join(line.removeprefix("    ") for line in lines).strip("\n")
    lines.clear()
    if parts[-1]["title"] == "Schema":
        parts[-1]["text"] = body
    else:
        parts[-1].update(text="", code=body)


@action("explain.names", needs_model=False, computes=False)
def names(job: Job) -> dict[str, Any]:
    """The names of all operators."""
    return {"names": sorted(n for n in {*OPS, *COMPOSITES} if not n.startswith("_"))}
