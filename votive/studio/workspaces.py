"""All workspaces of a server: found again after a lost connection, freed some time after their tab went.

Knows no sockets.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from .autosave import AutosaveFolder
from .models import ModelLibrary
from .workspace import Workspace

# Seconds that a workspace waits for its tab to come back.
GRACE = 120.0
# Workspaces whose tabs are away; beyond it those that wait longest are freed.
WAITING = 64


class Workspaces:
    """Workspaces by id. Ids are made here, so that no page can know another one's."""

    def __init__(self, library: ModelLibrary, folder: Path, grace: float = GRACE, *, autosave: bool = True) -> None:
        self.library, self.folder, self.grace = library, folder, grace
        self.autosaves = AutosaveFolder(folder if autosave else None)
        self._workspaces: dict[str, Workspace] = {}
        self._closing: list[Workspace] = []

    def enter(self, id: str | None) -> tuple[Workspace, bool]:
        """The workspace of this id, and whether it is new; an id that is not known gives a new one."""
        workspace = None if id is None else self._workspaces.get(id)
        fresh = workspace is None
        if workspace is None:
            workspace = Workspace(secrets.token_urlsafe(16), self.library, self.folder, self.autosaves)
            self._workspaces[workspace.id] = workspace
        workspace.left_at = None
        return workspace, fresh

    def leave(self, workspace: Workspace) -> None:
        """The workspace's tab is gone, perhaps not for long."""
        workspace.left_at = time.monotonic()

    def sweep(self) -> None:
        """Free the workspaces whose tabs have been away for too long."""
        away = sorted((r for r in self._workspaces.values() if r.left_at is not None), key=lambda r: -r.away)
        surplus = len(away) - WAITING
        for i, workspace in enumerate(away):
            if workspace.away >= self.grace or i < surplus:
                self.close(workspace)
        self._closing = [r for r in self._closing if not r.join(0)]

    def close(self, workspace: Workspace) -> None:
        """Free a workspace."""
        self._workspaces.pop(workspace.id, None)
        workspace.close()
        self._closing.append(workspace)

    def close_all(self, timeout: float = 5.0) -> None:
        """Free all, and wait a moment for their work to end."""
        for workspace in list(self._workspaces.values()):
            self.close(workspace)
        end = time.monotonic() + timeout
        self._closing = [r for r in self._closing if not r.join(max(0.0, end - time.monotonic()))]

    def __len__(self) -> int:
        return len(self._workspaces)
