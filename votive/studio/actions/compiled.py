"""Actions that compile: the graph of the loaded model for a text, the rules that applied, and its kernels."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import votive

from ...compiler import explain
from ...compiler.explain import Explanation, Kernel
from ..arguments import Index
from ..jobs import Job
from . import action

_LINES = 4000  # of a graph that a page is told


@action("compiled.run", computes=False)  # which takes its turn without the probe that may cancel a run
def run(job: Job, node: Index | None = None) -> dict[str, Any]:
    """Compile the model for the node's text: graph, rules, kernels with their source and addresses, memory."""
    workspace = job.workspace
    at = workspace.session._node(node)
    model = workspace.loaded.model
    ids = votive.tensor([at.session.tokens_of(at)], device=model.device)
    compiled = votive.compile(model)
    with job.turn(), votive.no_grad():
        for i in range(2):  # traced, then run as a graph
            job.progress(i, 2, "compiling" if not i else "running the graph")
            compiled(ids, use_cache=False)
    found = explain(compiled)
    if not found.versions and not found.pieces:
        raise ValueError("The model runs as it is while a debugger or another job looks inside; end it and try again.")
    job.progress(2, 2)
    program = [
        "fast = votive.compile(model)",
        f"with votive.no_grad(): fast(votive.tensor([session.tokens_of({at.id})]), use_cache=False)",
        "print(votive.compiler.explain(fast).text())",
    ]
    for line in program:
        workspace.log(job, line)
    return {"node": at.id, "tokens": ids.shape[1], "python": "\n".join(program), **_told(found)}


def _told(found: Explanation) -> dict[str, Any]:
    """An explanation as a page shows it: versions of the model, and of its pieces where it is not one graph."""
    graphs: list[dict[str, Any]] = []

    def walk(one: Explanation, name: str) -> None:
        for v in one.versions:
            lines = v.forward.splitlines()
            graphs.append(
                {
                    "name": name,
                    "calls": max(len(lines) - 1, 0),
                    "text": "\n".join(lines[:_LINES]),
                    "inputs": list(v.inputs),
                    "peak": v.peak_bytes,
                    "runs": v.runs,
                    "sizes": [*v.symbols, *v.specialised],
                }
            )
        for i, piece in enumerate(one.pieces):
            walk(piece, f"{name}, piece {i}" if name else f"piece {i}")

    walk(found, "")
    return {
        "name": found.name,
        "eager": found.eager,
        "rules": [{"name": name, "count": n} for name, n in found.rules.items()],
        "kernels": [_kernel(k) for k in found.kernels],
        "operators": [{"name": n, "count": c} for n, c in _operators(graphs).most_common()],
        "graphs": graphs,
    }


def _operators(graphs: list[dict[str, Any]]) -> Counter[str]:
    """How often each operator is called, kernels of several calls aside."""
    found = Counter(re.findall(r"^[^=]*= (\w+)\(", "\n".join(g["text"] for g in graphs), re.MULTILINE))
    return Counter({n: c for n, c in found.items() if not n.endswith("_region")})


def _kernel(k: Kernel) -> dict[str, Any]:
    return {
        "name": k.name,
        "device": k.device,
        "calls": list(k.calls),
        "addresses": list(k.addresses),
        "bytes": k.bytes,
        "source": k.source,
    }
