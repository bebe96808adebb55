"""Writing a whole tree again, for a page whose server was started anew. Knows no sockets."""

from __future__ import annotations

from typing import Annotated, Any

from ...glass.session import Session
from ..arguments import BadArgument, Index, Within
from ..jobs import Job
from ..telling import state
from . import action
from .session import _has_room, _ids, _prompt, _shown, checked_settings

_MOST = 5000


@action("session.again", changes=True)
def again(
    job: Job,
    nodes: Annotated[list[dict], Within(1, _MOST)],
    current: Index,
    settings: dict | None = None,
    seed: Annotated[int, Within(0, 2**53)] = 0,
) -> dict[str, Any]:
    """Begin a session with the nodes of another: {parent, token}, or {text} for a prompt.

    A parent is the number of a node before it in the list, and so is `current`. Tokens are chosen,
    not drawn; edits are made afterwards.
    """
    room = job.room
    found = _checked(nodes, current)
    known = checked_settings(settings or {})
    known.setdefault("do_sample", True)
    first = _ids(room, found[0][2])
    session = Session(room.loaded.model, room.loaded.tokenizer, first, seed=seed, top=20, memory_limit=1 << 29, **known)
    session.outlook()
    before, room.session = room._session, session
    room.log(job, f"session = glass.Session(model, tokenizer, {_prompt(session)}, seed={seed}{_shown(known)})")
    try:
        made = [session.node.id]
        for i, (parent, token, text) in enumerate(found[1:], 1):
            if parent is None:
                session.set_prompt(_ids(room, text))
                room.log(job, f"session.set_prompt({_prompt(session)})")
            else:
                _go(job, made[parent])
                _has_room(room, "session.again")
                session.choose(token)
                room.log(job, f"session.choose({token})")
            made.append(session.node.id)
            job.progress(i, len(found), "writing the text again")
            job.breathe()
    except BaseException:
        room.session = before
        raise
    _go(job, made[current])
    job.progress(len(found), len(found), "")
    return {**state(room), "numbers": made}


def _go(job: Job, node: int) -> None:
    if job.room.session.node.id != node:
        job.room.session.jump(node)
        job.room.log(job, f"session.jump({node})")


def _checked(nodes: list[dict[str, Any]], current: int) -> list[tuple[int | None, int, str]]:
    found: list[tuple[int | None, int, str]] = []
    for i, node in enumerate(nodes):
        parent, token, text = (node.get(n) for n in ("parent", "token", "text"))
        if parent is None and isinstance(text, str) and len(text) <= 500_000:
            found.append((None, -1, text))
        elif i and type(parent) is int and 0 <= parent < i and type(token) is int and token >= 0:
            found.append((parent, token, ""))
        else:
            raise BadArgument(
                f"session.again: node {i} must be a text, or a token with the number of a node "
                f"before it, got {node!r:.100}."
            )
    if current >= len(found):
        raise BadArgument(f"session.again: there is no node {current} among {len(found)}.")
    return found
