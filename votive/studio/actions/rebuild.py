"""Writing a whole tree again, for a page whose server was started anew. Knows no sockets."""

from __future__ import annotations

from typing import Annotated, Any

from ...glass.session import Session
from ..arguments import BadArgument, Bounds, Index
from ..jobs import Job
from ..session_json import session_state
from . import action
from .session import _check_context, _ids, _prompt, _shown, checked_settings

_MOST = 5000


@action("session.rebuild", changes=True)
def again(
    job: Job,
    nodes: Annotated[list[dict], Bounds(1, _MOST)],
    current: Index,
    settings: dict | None = None,
    seed: Annotated[int, Bounds(0, 2**53)] = 0,
) -> dict[str, Any]:
    """Begin a session with the nodes of another: {parent, token}, or {text} for a prompt.

    A parent is the number of a node before it in the list, and so is `current`. Tokens are chosen,
    not drawn; edits are made afterwards.
    """
    workspace = job.workspace
    found = _checked(nodes, current)
    known = checked_settings(settings or {})
    known.setdefault("do_sample", True)
    first = _ids(workspace, found[0][2])
    session = Session(
        workspace.loaded.model, workspace.loaded.tokenizer, first, seed=seed, top=20, memory_limit=1 << 29, **known
    )
    session.outlook()
    before, workspace.session = workspace._session, session
    workspace.log(job, f"session = glass.Session(model, tokenizer, {_prompt(session)}, seed={seed}{_shown(known)})")
    try:
        made = [session.node.id]
        for i, (parent, token, text) in enumerate(found[1:], 1):
            if parent is None:
                session.set_prompt(_ids(workspace, text))
                workspace.log(job, f"session.set_prompt({_prompt(session)})")
            else:
                _go(job, made[parent])
                _check_context(workspace)
                session.choose(token)
                workspace.log(job, f"session.choose({token})")
            made.append(session.node.id)
            job.progress(i, len(found), "writing the text again")
            job.yield_turn()
    except BaseException:
        workspace.session = before
        raise
    _go(job, made[current])
    job.progress(len(found), len(found), "")
    return {**session_state(workspace), "numbers": made}


def _go(job: Job, node: int) -> None:
    if job.workspace.session.node.id != node:
        job.workspace.session.jump(node)
        job.workspace.log(job, f"session.jump({node})")


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
                f"session.rebuild: node {i} must be a text, or a token with the number of a node "
                f"before it, got {node!r:.100}."
            )
    if current >= len(found):
        raise BadArgument(f"session.rebuild: there is no node {current} among {len(found)}.")
    return found
