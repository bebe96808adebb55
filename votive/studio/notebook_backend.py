"""SessionBackend to the views of a notebook, in the thread of whoever asks. Knows no widgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from ..core.plain import plain
from ..glass.display import Displayable
from . import results
from .actions import actions
from .jobs import Job
from .models import Loaded, ModelLibrary
from .workspace import Workspace, error_json

if TYPE_CHECKING:
    from ..glass.session import Session


Reply = tuple[dict[str, Any], dict[str, Any]]


class SessionBackend:
    """SessionBackend the actions of a view for one session."""

    def __init__(self, session: Session) -> None:
        name = getattr(session.model, "name_or_path", "") or type(session.model).__name__
        folder = Path("votive-sessions")
        loaded = Loaded(str(name), session.model, session.tokenizer)
        self.workspace = Workspace("notebook", ModelLibrary(folder, loaded), folder)
        self.workspace.loading = self.workspace.library.request()
        self.workspace.session = session

    def answer(self, do: str, args: dict[str, Any]) -> Reply:
        """Header and arrays of the reply."""
        action = actions().get(do)
        if action is None:
            return _refused(LookupError(f"there is no action {do!r}."))
        with votive.no_grad():
            header, blobs = self.workspace._done(Job(self.workspace, do), action, args)
        found: dict[str, Any] = plain(header, null=True)
        return found, {n: np.ascontiguousarray(b) for n, b in (blobs or {}).items()}


class ResultBackend:
    """SessionBackend what the view of a result asks for: its pictures, and moves of a debugger."""

    def __init__(self, thing: Displayable) -> None:
        self.thing = thing

    def answer(self, do: str, args: dict[str, Any]) -> Reply:
        """Header of the reply; there are no arrays."""
        name = args.get("name")
        if do not in ("picture", "move") or not isinstance(name, str):
            return _refused(LookupError(f"there is no action {do!r}."))
        try:
            if do == "move":
                return {"ok": True, "data": {"result": results.move_debugger(self.thing, name)}}, {}
            return {"ok": True, "data": {"figures": results.picture_json(self.thing, name)}}, {}
        except Exception as e:  # a message in the view, not in a log that nobody reads
            return _refused(e)


def _refused(error: Exception) -> Reply:
    return {"ok": False, "error": error_json(error)}, {}
