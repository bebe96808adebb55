"""Actions that measure: where time and memory go, by address."""

from __future__ import annotations

from typing import Annotated, Any

from ...glass.profile import profile
from .. import replay
from ..arguments import Bounds, Index
from ..jobs import Job
from . import action

_ROWS = 2000


@action("profile.run")
def run(
    job: Job, node: Index | None = None, repeat: Annotated[int, Bounds(1, 20)] = 3, ops: bool = False
) -> dict[str, Any]:
    """Time and bytes of each call while the node's text is read; with `ops` of operators too."""
    workspace = job.workspace
    at = workspace.session._node(node)
    part = next(iter(replay.parts_of(workspace.loaded, at)))  # under edits, up to their first change
    job.progress(0, 1, "measuring")
    # Bytes are those that operators make, and watching these takes time: it is done apart.
    memory = profile(part.model, part.ids, repeat=1, warmup=0, ops=True, **part.given)
    found = profile(part.model, part.ids, repeat=repeat, ops=ops, memory=False, **part.given)
    made = {(c.kind, c.address): c for c in memory.costs}
    rows = []
    for c in found.costs[:_ROWS]:
        bytes = made.get((c.kind, c.address), c)
        rows.append(
            {
                "address": c.address,
                "class": c.name,
                "kind": c.kind,
                "calls": c.calls,
                "seconds": c.seconds,
                "own": c.own,
                "bytes": bytes.allocated,
                "peak": bytes.peak,
            }
        )
    job.progress(1, 1)
    workspace.log(
        job, f"print(glass.profile(model, votive.tensor([session.tokens_of({at.id})]), repeat={repeat}, ops={ops}))"
    )
    return {"node": at.id, "rows": rows, "seconds": found.seconds, "tokens": part.stop}
