"""Actions that tell what edits change: a value, the next token and the text, with and without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ...glass.session_sampling import outlook_of
from ...glass.targets import NoMatch
from .. import replay, windows
from ..arguments import Address, Bounds, Index
from ..jobs import Job
from . import action
from .edits import edit_line

if TYPE_CHECKING:
    from ...glass.edit_plan import EditPlan
    from ...glass.session_tree import SessionNode
    from ...tensor import Tensor


# Which edits are left out for the comparison; without a list, all that are in force.
Without = Annotated[list[Index], Bounds(1, 200)]


def _plain(node: SessionNode, without: list[int] | None) -> EditPlan:
    """The plan of a node without some of the edits in force, or without any."""
    if without is None:
        return tuple(e for e in node.plan if not e.in_force)
    live = [e for e in node.plan if e.in_force]
    for i in without:
        if i >= len(live):
            raise IndexError(f"There is no edit {i}; there are {len(live)}.")
    out = {id(live[i]) for i in without}
    return tuple(e for e in node.plan if id(e) not in out)


def _logits(node: SessionNode, tokens: list[int], plan: EditPlan) -> Tensor:
    """The logits after these tokens as the node's session computes them, under a plan."""
    session = node.session
    found: Tensor = session.runner.logits(session.runner.prefix(tokens, len(session.root_of(node).tokens), plan))
    return found


@action("consequence.next")
def next_(
    job: Job, node: Index | None = None, k: Annotated[int, Bounds(1, 50)] = 8, without: Without | None = None
) -> dict[str, Any]:
    """The likeliest next tokens with the edits and without, the largest changes and the divergence."""
    workspace, session = job.workspace, job.workspace.session
    at = session._node(node)
    tokens = session.tokens_of(at)
    after = _logits(at, tokens, at.plan).float()
    before = _logits(at, tokens, _plain(at, without)).float()
    p, q = before.softmax(-1).numpy().astype(np.float64), after.softmax(-1).numpy().astype(np.float64)
    wanted = {int(i) for x in (p, q) for i in np.argsort(-x, kind="stable")[:k]}
    rows = [
        {"id": i, "text": workspace.loaded.text(i), "before": float(p[i]), "after": float(q[i])}
        for i in sorted(wanted, key=lambda i: -max(p[i], q[i]))
    ]
    seen = p > 0
    with np.errstate(divide="ignore"):
        kl = float((p[seen] * (np.log(p[seen]) - np.log(np.maximum(q[seen], 1e-300)))).sum())
    return {
        "node": at.id,
        "rows": rows,
        "kl": kl,
        "entropy_before": outlook_of(before, 1, digest=False).entropy,
        "entropy_after": outlook_of(after, 1, digest=False).entropy,
    }


@action("consequence.text")
def text(
    job: Job, node: Index | None = None, n: Annotated[int, Bounds(1, 64)] = 16, without: Without | None = None
) -> dict[str, Any]:
    """How the text goes on with the likeliest tokens: with the edits and without; nothing of it is kept."""
    workspace, session = job.workspace, job.workspace.session
    at = session._node(node)
    context = workspace.loaded.info()["context"]
    count = max(0, min(n, context - at.stop)) if context else n
    found: dict[str, Any] = {"node": at.id}
    for name, plan in (("before", _plain(at, without)), ("after", at.plan)):
        tokens = list(session.tokens_of(at))
        start, chances = len(tokens), []
        for _ in range(count):
            job.check()
            scores = _logits(at, tokens, plan).float()
            best = int(scores.argmax())
            chances.append(float(scores.softmax(-1)[best]))
            tokens.append(best)
        texts = workspace.loaded.texts(tokens[start:])
        rows = zip(tokens[start:], texts, chances, strict=True)
        found[name] = [{"id": i, "text": t, "p": p} for i, t, p in rows]
    same = [a["id"] == b["id"] for a, b in zip(found["before"], found["after"], strict=True)]
    found["alike"] = same.index(False) if False in same else len(same)
    ids = f"votive.tensor([session.tokens_of({at.id})])"
    line = f"print(tokenizer.decode(model.generate({ids}, max_new_tokens={count}, do_sample=False)[0].tolist()))"
    workspace.log(job, line)
    if at.edits:
        workspace.log(job, f"with glass.patch(model, [{', '.join(map(edit_line, at.edits))}]): {line}")
    return found


@action("consequence.value")
def value(job: Job, address: Address, node: Index | None = None, without: Without | None = None) -> Any:
    """The value at an address with the edits and without, at one scale, and what differs."""
    workspace = job.workspace
    at = workspace.session._node(node)
    plan = _plain(at, without)
    made: list[np.ndarray] = []
    shape: list[int] = []
    for one in (plan, at.plan):
        try:
            found = replay.captured(workspace.loaded, at, address, plan=one)
        except NoMatch as e:
            raise NoMatch(f"{address} does not run under these edits, so it has no value to compare.") from e
        if not found:
            raise LookupError(f"{address} gives no tensor.")
        tensor = found[address] if address in found else next(iter(found.values()))
        made.append(windows.matrix(tensor).copy())
        shape = list(tensor.shape)
    before, after = made
    if before.shape != after.shape:
        raise ValueError(f"{address} has another shape under the edits: {before.shape} became {after.shape}.")
    with np.errstate(invalid="ignore"):
        difference = after - before
    changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
    rows, cols = (np.flatnonzero(changed.any(axis)) for axis in (1, 0))
    scale = float(np.linalg.norm(np.nan_to_num(before)))
    data = {
        "address": address,
        "node": at.id,
        "shape": shape,
        "total": list(before.shape),
        "share": float(changed.mean()) if changed.size else 0.0,
        "relative": float(np.linalg.norm(np.nan_to_num(difference))) / scale if scale else 0.0,
        "largest": float(np.nanmax(np.abs(difference), initial=0.0)),
        "changed": [int(rows[0]), int(rows[-1]) + 1, int(cols[0]), int(cols[-1]) + 1] if rows.size else None,
        "exact": before.size <= windows.EXACT,
    }
    parts = {"before": before, "after": after, "difference": difference}
    if before.size > windows.EXACT:
        parts = {n: windows.overview(x, "absmax") for n, x in parts.items()}
    return data, {n: x.astype(np.float32) for n, x in parts.items()}
