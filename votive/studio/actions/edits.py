"""Actions of interventions: which edits are in force, setting them, what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from ...glass.edits import Edit
from ...glass.module_swap import IDENTITY, replacement_for
from ...glass.patch import Patch
from .. import replay
from ..arguments import Address, BadArgument, Bounds, Index, signature_of
from ..jobs import Job
from ..session_json import edit_json, session_state
from . import action

if TYPE_CHECKING:
    from ...glass.session_tree import SessionNode
    from ..workspace import Workspace


Indices = Annotated[list[Index], Bounds(1, 10_000)]


def _edit(
    job: Job,
    at: Address,
    do: Literal["replace", "add", "scale", "zero", "skip", "swap"],
    value: float | None = None,
    positions: Indices | None = None,
    features: Indices | None = None,
    heads: Indices | None = None,
    with_: Address | None = None,
) -> None:
    """Never called: its annotations say what an edit from a page may hold."""


_EDIT = signature_of("edits.set: edit", _edit)


def _made(workspace: Workspace, given: dict[str, Any], kept: list[Edit]) -> Edit:
    """An edit as a page tells it; one that is in force already may hold what no page can tell."""
    given = {k: v for k, v in given.items() if v is not None}
    again = next((e for e in kept if edit_json(e) == given), None)
    if again is not None:
        return again
    found = _EDIT.check(given)
    if found["do"] == "swap":
        return _swap(workspace, found["at"], found.get("with", ""))
    if "with" in found:
        raise BadArgument("edits.set: only a swap has 'with'.")
    if found["do"] == "skip" and len(found) == 2:
        return _skip(workspace, found["at"])
    return Edit(**found)


def _skip(workspace: Workspace, at: str) -> Edit:
    """Skip a module; one with a part of a key-value cache must fill that all the same."""
    names = dict(workspace.loaded.model.named_modules())
    if at in names and replacement_for(workspace.loaded.model, at, IDENTITY) is not None:
        return Edit(at, "swap", IDENTITY)
    return Edit(at, "skip")


def _swap(workspace: Workspace, at: str, other: str) -> Edit:
    names = dict(workspace.loaded.model.named_modules())
    for name in (at, other):
        if (name not in names or not name) and (name is at or name != IDENTITY):
            raise LookupError(f"edits.swap: there is no module {name!r}.")
    return _skip(workspace, at) if other == IDENTITY else Edit(at, "swap", other)


def set_edits(job: Job, edits: list[Edit], from_start: bool, *, log: bool = True) -> dict[str, Any]:
    """Put these edits into force, and give them with their receipts and the state of the session."""
    workspace = job.workspace
    if edits:
        Patch(workspace.loaded.model, edits)  # a pattern that can match nothing is told here
    workspace.session.set_edits(edits, from_start=from_start)
    start = ", from_start=True" if from_start else ""
    if log:
        workspace.log(job, f"session.set_edits([{', '.join(map(edit_line, edits))}]{start})")
    return {**_listed(workspace), "state": session_state(workspace)}


def edit_line(edit: Edit) -> str:
    """An edit as Python."""
    fields = edit_json(edit)
    at, do = fields.pop("at"), fields.pop("do")
    if edit.do == "swap":
        return f"glass.Edit({at!r}, 'swap', {edit.value!r})"
    return f"glass.Edit({at!r}, {do!r}{''.join(f', {k}={v!r}' for k, v in fields.items())})"


def _listed(workspace: Workspace) -> dict[str, Any]:
    if not workspace.has_session:
        return {"edits": [], "receipts": []}
    edits, node = workspace.session.edits, workspace.session.node

    def make() -> tuple[Any, int]:
        return _receipts(workspace, node), 1000

    receipts = workspace.cached(("receipts", node.id), make) if edits else []
    return {"edits": [edit_json(e) for e in edits], "receipts": receipts}


def _receipts(workspace: Workspace, node: SessionNode) -> list[dict[str, Any]]:
    """What each edit in force does while the node's text is read."""
    rows: dict[int, dict[str, Any]] = {}
    order = {id(e): i for i, e in enumerate(workspace.session.edits)}
    for part in replay.parts_of(workspace.loaded, node, measure=True):
        part.model(part.ids, **part.given)
        receipt = getattr(part.model, "receipt", None) if part.model is not workspace.loaded.model else None
        if receipt is None:
            continue
        for edit, fired in zip(part.model.edits, receipt.edits, strict=True):
            if id(edit) in order:
                row = rows.setdefault(id(edit), {"count": 0, "sites": {}})
                row["count"] += sum(fired.values())
                for address in fired:
                    site = receipt.sites[address]
                    old = row["sites"].get(address)
                    if old is None:
                        old = {"largest": 0.0, "relative": 0.0, "reached": False, "why": site.why}
                    if site.reached or old["reached"] is False:
                        old["reached"], old["why"] = site.reached, site.why
                    old["largest"] = max(old["largest"], site.largest)
                    old["relative"] = max(old["relative"], site.relative)
                    row["sites"][address] = old
    out = []
    for edit in workspace.session.edits:
        row = rows.get(id(edit), {"count": 0, "sites": {}})
        sites = row["sites"]
        largest = max((s["largest"] for s in sites.values()), default=0.0)
        relative = max((s["relative"] for s in sites.values()), default=0.0)
        text = f"made in {row['count']} call{'' if row['count'] == 1 else 's'}"
        if edit.do not in ("skip", "swap"):
            text += f", largest change {largest:.4g} ({relative:.1%} of the norm)"
        unread = [s["why"] for s in sites.values() if s["reached"] is False]
        if unread and len(unread) == len(sites):
            text += f"; no effect: {unread[0]}"
        out.append(
            {
                **edit_json(edit),
                "text": text,
                "count": row["count"],
                "largest": largest,
                "relative": relative,
                "sites": [{"address": a, **s} for a, s in sites.items()],
            }
        )
    return out


@action("edits.list")
def listed(job: Job) -> dict[str, Any]:
    """The edits in force, and what they do."""
    return _listed(job.workspace)


@action("edits.set", changes=True)
def set_(job: Job, edits: Annotated[list[dict], Bounds(0, 200)], from_start: bool = True) -> dict[str, Any]:
    """Make these edits and no others: for the whole text, or from the last token on."""
    workspace = job.workspace
    kept = workspace.session.edits
    return set_edits(job, [_made(workspace, e, kept) for e in edits], from_start)


@action("edits.remove", changes=True)
def remove(job: Job, index: Index, from_start: bool = True) -> dict[str, Any]:
    """Make all edits but one."""
    kept = list(job.workspace.session.edits)
    if index >= len(kept):
        raise IndexError(f"edits.remove: there is no edit {index}; there are {len(kept)}.")
    del kept[index]
    return set_edits(job, kept, from_start)


@action("edits.swap", changes=True)
def swap(job: Job, at: Address, with_: Address, from_start: bool = True) -> dict[str, Any]:
    """Let another module of the model run in the place of one; "identity" passes its input on."""
    kept = [e for e in job.workspace.session.edits if not (e.at == at and e.do in ("swap", "skip"))]
    return set_edits(job, [*kept, _swap(job.workspace, at, with_)], from_start)
