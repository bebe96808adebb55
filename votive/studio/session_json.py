"""A session in plain values, as pages read it. Knows no actions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..glass.edits import Edit
from ..glass.module_swap import IDENTITY
from ..glass.session_file import SharedTable
from ..glass.session_sampling import outlook_of
from . import replay

if TYPE_CHECKING:
    from ..generation.config import GenerationConfig
    from ..glass.session_tree import SessionNode
    from ..tensor import Tensor
    from .workspace import Workspace


def session_state(workspace: Workspace) -> dict[str, Any]:
    """The whole tree, where it stands, and the settings in force."""
    if not workspace.has_session:
        return {
            "nodes": [],
            "current": None,
            "prompt": [],
            "text": "",
            "settings": {},
            "seed": 0,
            "undo": 0,
            "redo": 0,
            "branch": 0,
            "settings_table": [],
            "edits_table": [],
        }
    session, loaded = workspace.session, workspace.loaded
    session.outlook()  # what it says of the next token is always shown
    settings, edits = SharedTable(), SharedTable()
    nodes = [node_json(workspace, n, settings, edits) for n in session.nodes]
    root = session.path()[0]
    chances, entropies = _prompt_chances(workspace, root)
    return {
        "nodes": nodes,
        "current": session.node.id,
        "prompt": [
            {"id": t, "text": loaded.text(t), "p": p, "entropy": h}
            for t, p, h in zip(root.tokens, chances, entropies, strict=True)
        ],
        "text": session.text,
        "settings": settings_json(session.settings),
        "seed": session.seed,
        "undo": session._at,
        "redo": len(session._history) - 1 - session._at,
        "branch": session.cursor.salt,
        "settings_table": settings.rows,
        "edits_table": edits.rows,
    }


def _prompt_chances(workspace: Workspace, root: SessionNode) -> Any:
    def make() -> tuple[Any, int]:
        found = replay.next_token_chances(workspace.loaded, root)
        return found, 64 * len(root.tokens)

    return workspace.cached(("prompt", root.id), make)


def node_json(
    workspace: Workspace, node: SessionNode, settings: SharedTable | None = None, edits: SharedTable | None = None
) -> dict[str, Any]:
    """One node."""
    known = node._outlook
    text = workspace.loaded.text(node.token) if node.token is not None else None
    fields: dict[str, Any] = {
        "id": node.id,
        "parent": node.parent_id,
        "token": node.token,
        "text": node.session.decode(node.tokens) if text is None else text,
        "p": None if node.logprob is None else math.exp(node.logprob),
        "entropy": None if known is None else known.entropy,
        "how": node.how,
        "salt": node.salt,
        "variant_of": node.variant_of,
    }
    if settings is not None and edits is not None:
        # Configurations are shared by the nodes drawn under them.
        fields["settings"] = settings.put(id(node.settings), lambda: settings_json(node.settings))
        fields["edits"] = edits.put(
            id(node.plan), lambda: [edit_json(timed.edit) for timed in node.plan if timed.in_force]
        )
    return fields


# What a page can set, and so is told.
SETTINGS = (
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "no_repeat_ngram_size",
    "max_new_tokens",
    "stop_strings",
)


def settings_json(config: GenerationConfig) -> dict[str, Any]:
    """The settings that a page knows; they may be given to a session as they are."""
    return {n: v for n in SETTINGS if (v := getattr(config, n)) is not None}


def candidates(workspace: Workspace, ids: Iterable[int], chances: Iterable[float]) -> list[dict[str, Any]]:
    """Tokens with texts and probabilities."""
    return [
        {"id": int(i), "text": workspace.loaded.text(int(i)), "p": float(p)} for i, p in zip(ids, chances, strict=True)
    ]


def top_of(workspace: Workspace, logits: Tensor, k: int) -> list[dict[str, Any]]:
    """The best tokens of logits (vocabulary,)."""
    found = outlook_of(logits, k, digest=False)
    return candidates(workspace, found.ids, found.probabilities)


def edit_json(edit: Edit) -> dict[str, Any]:
    """An edit without tensors and code: these are told by what they are."""
    fields: dict[str, Any] = {"at": edit.at, "do": edit.do}
    if edit.do == "swap" and edit.value == IDENTITY:
        fields["do"] = "skip"
    elif edit.do == "swap":
        named = isinstance(edit.value, str)
        fields["with"] = edit.value if named else type(edit.value).__name__
    elif isinstance(edit.value, (int, float)):
        fields["value"] = edit.value
    elif edit.value is not None:
        fields["value"] = f"{type(edit.value).__name__} {tuple(getattr(edit.value, 'shape', ()))}"
    for name in ("positions", "features", "samples", "heads"):
        if getattr(edit, name) is not None:
            fields[name] = list(getattr(edit, name))
    return fields
