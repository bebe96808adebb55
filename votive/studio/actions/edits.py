"""Actions of interventions: which edits are in force, setting them, what they did."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...glass.edits import Edit
from ...glass.patch import Patch
from ...glass.stand_in import IDENTITY, instead_of
from .. import replay
from ..arguments import Address, BadArgument, Index, Within, signature_of
from ..jobs import Job
from ..telling import edit_told, state
from . import action

Indices = Annotated[list[Index], Within(1, 10_000)]


def _edit(
    job: Job,
    at: Address,
    do: Literal["replace", "add", "scale", "zero", "skip", "swap"],
    value: float | None = None,
    positions: Indices | None = None,
    features: Indices | None = None,
    with_: Address | None = None,
) -> None:
    """Never called: its annotations say what an edit from a page may hold."""


_EDIT = signature_of("edits.set: edit", _edit)


def _made(room: Any, given: dict[str, Any], kept: list[Edit]) -> Edit:
    """An edit as a page tells it; one that is in force already may hold what no page can tell."""
    given = {k: v for k, v in given.items() if v is not None}
    again = next((e for e in kept if edit_told(e) == given), None)
    if again is not None:
        return again
    found = _EDIT.check(given)
    if found["do"] == "swap":
        return _swap(room, found["at"], found.get("with", ""))
    if "with" in found:
        raise BadArgument("edits.set: only a swap has 'with'.")
    if found["do"] == "skip" and len(found) == 2:
        return _skip(room, found["at"])
    return Edit(**found)


def _skip(room: Any, at: str) -> Edit:
    """Skip a module; one with a part of a key-value cache must fill that all the same."""
    names = dict(room.loaded.model.named_modules())
    if at in names and instead_of(room.loaded.model, at, IDENTITY) is not None:
        return Edit(at, "swap", IDENTITY)
    return Edit(at, "skip")


def _swap(room: Any, at: str, other: str) -> Edit:
    names = dict(room.loaded.model.named_modules())
    for name in (at, other):
        if (name not in names or not name) and (name is at or name != IDENTITY):
            raise LookupError(f"edits.swap: there is no module {name!r}.")
    return _skip(room, at) if other == IDENTITY else Edit(at, "swap", other)


def _set(job: Job, edits: list[Edit], from_start: bool) -> dict[str, Any]:
    room = job.room
    if edits:
        Patch(room.loaded.model, edits)  # a pattern that can match nothing is told here
    room.session.set_edits(edits, from_start=from_start)
    start = ", from_start=True" if from_start else ""
    room.log(job, f"session.set_edits([{', '.join(map(_line, edits))}]{start})")
    return {**_listed(room), "state": state(room)}


def _line(edit: Edit) -> str:
    told = edit_told(edit)
    at, do = told.pop("at"), told.pop("do")
    if edit.do == "swap":
        return f"glass.Edit({at!r}, 'swap', {edit.value!r})"
    return f"glass.Edit({at!r}, {do!r}{''.join(f', {k}={v!r}' for k, v in told.items())})"


def _listed(room: Any) -> dict[str, Any]:
    if not room.has_session:
        return {"edits": [], "receipts": []}
    edits, node = room.session.edits, room.session.node

    def make() -> tuple[Any, int]:
        return _receipts(room, node), 1000

    receipts = room.kept(("receipts", node.id), make) if edits else []
    return {"edits": [edit_told(e) for e in edits], "receipts": receipts}


def _receipts(room: Any, node: Any) -> list[dict[str, Any]]:
    """What each edit in force does while the node's text is read."""
    rows: dict[int, dict[str, Any]] = {}
    order = {id(e): i for i, e in enumerate(room.session.edits)}
    for part in replay.parts_of(room.loaded, node, measure=True):
        part.model(part.ids, **part.given)
        receipt = getattr(part.model, "receipt", None) if part.model is not room.loaded.model else None
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
    for edit in room.session.edits:
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
                **edit_told(edit),
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
    return _listed(job.room)


@action("edits.set", changes=True)
def set_(job: Job, edits: Annotated[list[dict], Within(0, 200)], from_start: bool = True) -> dict[str, Any]:
    """Make these edits and no others: for the whole text, or from the last token on."""
    room = job.room
    kept = room.session.edits
    return _set(job, [_made(room, e, kept) for e in edits], from_start)


@action("edits.remove", changes=True)
def remove(job: Job, index: Index, from_start: bool = True) -> dict[str, Any]:
    """Make all edits but one."""
    kept = list(job.room.session.edits)
    if index >= len(kept):
        raise IndexError(f"edits.remove: there is no edit {index}; there are {len(kept)}.")
    del kept[index]
    return _set(job, kept, from_start)


@action("edits.swap", changes=True)
def swap(job: Job, at: Address, with_: Address, from_start: bool = True) -> dict[str, Any]:
    """Let another module of the model run in the place of one; "identity" passes its input on."""
    kept = [e for e in job.room.session.edits if not (e.at == at and e.do in ("swap", "skip"))]
    return _set(job, [*kept, _swap(job.room, at, with_)], from_start)
