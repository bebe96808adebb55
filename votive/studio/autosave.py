"""Sessions that are kept without being asked: beside the user's own, found again after a crash.

Each session has one file, which is replaced in one step while it changes. How many there are, how
large they may be and how often they are written is bounded. Knows sessions; no sockets, no actions.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..serialization.atomic import replacing, sync_folder

if TYPE_CHECKING:
    from ..glass.session import Session


FOLDER, SUFFIX = "autosave", ".session"
# Seconds between two writings; when one takes long, twenty times as long.
EVERY, SHARE, SLOWEST = 2.0, 20.0, 60.0
# Bytes of one file, files, and bytes of all of them.
LARGEST, MOST, TOTAL = 64 << 20, 20, 256 << 20
# Seconds after which a file that was not finished will not be.
STALE = 600.0
# A page begins by itself with a prompt and a token; who has done nothing more has nothing to lose.
BEGUN = 2
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")


@dataclass(frozen=True)
class AutosavedSession:
    """One session that was kept, as it is told without being opened."""

    name: str
    bytes: int
    modified: str
    model: str = ""
    text: str = ""
    tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """What a page is told of it."""
        return asdict(self)


class AutosaveFolder:
    """The folder of kept sessions; one for all workspaces of a server. `None` keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder / FOLDER
        self.live: set[str] = set()  # names that workspaces of this server write
        if self.folder is not None and self.folder.is_dir() and not self.folder.is_symlink():
            _clear(self.folder)

    def path(self, name: str) -> Path:
        """Where a kept session lies; no name and no link leads out of the folder."""
        if self.folder is None or not _NAME.fullmatch(name):
            raise ValueError(f"no session {name!r:.60} was kept automatically.")
        path = self.folder / f"{name}{SUFFIX}"
        if self.folder.is_symlink() or path.is_symlink():
            raise ValueError(f"the session {name!r} leads out of the folder.")
        return path

    def orphans(self) -> list[AutosavedSession]:
        """What was kept and belongs to no tab of this server, the newest first."""
        return [one for one in self._all() if one.name not in self.live]

    def _all(self) -> list[AutosavedSession]:
        if self.folder is None or not self.folder.is_dir() or self.folder.is_symlink():
            return []
        found = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            name = path.name.removesuffix(SUFFIX)
            if _NAME.fullmatch(name) and path.is_file() and not path.is_symlink():
                with contextlib.suppress(OSError):  # another program may remove it meanwhile
                    found.append(_described(name, path))
        return sorted(found, key=lambda one: one.modified, reverse=True)

    def discard(self, name: str) -> None:
        """Remove what was kept under a name."""
        path = self.path(name)
        for one in (path, path.with_suffix(".json")):
            with contextlib.suppress(FileNotFoundError):
                one.unlink()

    def prune(self) -> None:
        """Remove the oldest of what is too much; never what a tab is writing."""
        total = 0
        for count, one in enumerate(self._all(), 1):
            total += one.bytes
            if (count > MOST or total > TOTAL) and one.name not in self.live:
                self.discard(one.name)


def _clear(folder: Path) -> None:
    """Remove what writers that were killed have left; what is young may be another studio's."""
    for path in [*folder.glob(".*.tmp"), *folder.glob("*.new")]:
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()


def _described(name: str, path: Path) -> AutosavedSession:
    stat = path.stat()
    when = datetime.datetime.fromtimestamp(stat.st_mtime, datetime.UTC).isoformat()
    facts: Any = None
    beside = path.with_suffix(".json")
    with contextlib.suppress(OSError, ValueError):
        if beside.stat().st_size < 10_000 and not beside.is_symlink():
            facts = json.loads(beside.read_bytes())
    facts = facts if isinstance(facts, dict) else {}
    tokens = facts.get("tokens")
    return AutosavedSession(
        name,
        stat.st_size,
        when,
        str(facts.get("model", ""))[:300],
        str(facts.get("text", ""))[:300],
        tokens if isinstance(tokens, int) else 0,
    )


class Autosaver:
    """Keeps the session of one workspace: is told of changes, and writes when it is time."""

    def __init__(self, autosaves: AutosaveFolder, tell: Callable[[str], None] | None = None) -> None:
        self.autosaves, self.tell = autosaves, tell
        self.name: str | None = None
        self._changes, self._unsaved = 0, False
        self._wait, self._next = EVERY, 0.0
        self._trouble = ""

    def begin(self) -> None:
        """Another session begins; what was kept of the one before stays."""
        self._leave()
        self._changes, self._unsaved, self._trouble = 0, False, ""
        self._wait, self._next = EVERY, 0.0

    def grown(self) -> None:
        """The session has changed, and what changes it goes on."""
        if self.autosaves.folder is not None and self._changes >= BEGUN:
            self._unsaved = True

    def changed(self) -> None:
        """Something has changed the session."""
        self.grown()
        self._changes += 1

    def saved(self) -> None:
        """It is in a file of the user's: what was kept is needed no more, until it changes."""
        name = self.name
        self._leave()
        self._unsaved, self._changes = False, BEGUN
        if name is not None:
            self.autosaves.discard(name)

    def _leave(self) -> None:
        if self.name is not None:
            self.autosaves.live.discard(self.name)
        self.name = None

    @property
    def due(self) -> float | None:
        """Seconds until it should be written; None where there is nothing to write."""
        return max(0.0, self._next - time.monotonic()) if self._unsaved else None

    def look(self, session: Session, model: str) -> None:
        """Write the session if it is time."""
        if self.due == 0.0:
            self.write(session, model)

    def write(self, session: Session, model: str) -> bool:
        """Write the session now; what goes wrong is told, once, and tried again later."""
        began = time.monotonic()
        self._unsaved = False
        try:
            self._write(session, model)
            self._wait, self._changes = EVERY, max(self._changes, BEGUN)
            trouble = ""
        except Exception as e:  # nothing that goes wrong here may end the work itself
            trouble = _warning(e)
            self._unsaved = isinstance(e, OSError)
            self._wait = min(2 * self._wait, SLOWEST)
        took = time.monotonic() - began
        self._next = time.monotonic() + max(self._wait, SHARE * took)
        if trouble and trouble != self._trouble and self.tell is not None:
            self.tell(trouble)
        self._trouble = trouble
        return not trouble

    def _write(self, session: Session, model: str) -> None:
        autosaves = self.autosaves
        assert autosaves.folder is not None
        if autosaves.folder.is_symlink():
            raise ValueError(f"{autosaves.folder} is a link.")
        autosaves.folder.mkdir(parents=True, exist_ok=True)
        name = self.name or _new_name()
        path = autosaves.path(name)
        # Written beside, so that one which has grown too large does not replace the last good one.
        fresh = path.with_suffix(".new")
        try:
            session.save(fresh)
            size = fresh.stat().st_size
            if size > LARGEST:
                raise ValueError(f"the session has {size:,} bytes, and autosave keeps up to {LARGEST:,}")
            os.replace(fresh, path)
            sync_folder(autosaves.folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                fresh.unlink()
        self.name = name
        autosaves.live.add(name)
        text = session.decode([t for node in session.path() for t in node.tokens])
        facts = {"model": model, "text": text[:200], "tokens": session.node.stop}
        with replacing(path.with_suffix(".json")) as f:
            f.write(json.dumps(facts).encode())
        autosaves.prune()

    def close(self, session: Session, model: str) -> None:
        """The workspace ends: what was not written yet is."""
        if self._unsaved and session is not None:
            self.write(session, model)
        self._leave()


def _new_name() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def _warning(error: Exception) -> str:
    cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"Autosave failed: {cause}. Save it under Sessions, or it is lost if the studio ends."
