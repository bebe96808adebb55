"""The state of one tab: its model, session, debugger, console and what was computed for its views.

A workspace has a thread of its own, in which all its work is done: a debugger lives in one thread only.
Knows no sockets.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import votive

from ..glass.debugger import Debugger
from ..glass.session import Session
from .actions import Action
from .autosave import AutosaveFolder, Autosaver
from .jobs import Cancelled, Job
from .models import Loaded, Loading, ModelLibrary

# Bytes of runs that are kept for the views, and lines of the console.
CACHE_BYTES, CONSOLE_LINES = 256 << 20, 2000
# Actions that change what a session's file holds.
_CHANGING = {
    *(
        f"session.{n}"
        for n in ("new", "prompt", "step", "auto", "undo", "redo", "choose", "jump", "branch", "settings", "rebuild")
    ),
    *(f"edits.{n}" for n in ("set", "remove", "swap")),
    "chat.say",
    "laboratory.steer",
}
Answer = Callable[[dict[str, Any], dict[str, Any] | None], None]


class Missing(RuntimeError):
    """Something that must be begun first."""


class Workspace:
    """One tab's state, and the thread that works on it."""

    def __init__(self, id: str, library: ModelLibrary, folder: Path, autosaves: AutosaveFolder | None = None) -> None:
        self.id, self.library, self.folder = id, library, folder
        self.autosaves = AutosaveFolder(None) if autosaves is None else autosaves
        self.autosaver = Autosaver(self.autosaves, self._tell_trouble)
        self.loading: Loading | None = None
        self._session: Session | None = None
        self.debugger: Debugger | None = None
        self.debugged: int | None = None  # the node that is debugged
        self.breakpoints: list[str] = []
        self.chats: dict[tuple[int, ...], list[dict[str, str]]] = {}  # messages, by the prompt they became
        self.lines: list[str] = []
        self.cache: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self.left_at: float | None = None  # when its tab went away
        self.working: Job | None = None
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self.closed = False
        self.connection: Any = None  # of the tab that is looking

    # --- what actions use ---------------------------------------------------------------------

    @property
    def loaded(self) -> Loaded:
        if self.loading is None or self.loading.loaded is None:
            raise Missing("No model is loaded yet; choose one.")
        return self.loading.loaded

    @property
    def session(self) -> Session:
        if self._session is None:
            raise Missing("There is no session yet; begin with a prompt.")
        return self._session

    @session.setter
    def session(self, session: Session | None) -> None:
        self.stop_debugging()
        self.cache.clear()
        self.chats.clear()
        self.autosave(last=True)
        self.autosaver.begin()
        self._session = session

    def autosave(self, *, last: bool = False) -> None:
        """Write the session where it is kept without being asked, if it is time or the `last`."""
        if self._session is None:
            return
        name = self.loading.name if self.loading is not None else ""
        if last:
            self.autosaver.close(self._session, name)
        else:
            self.autosaver.look(self._session, name)

    def step_made(self) -> None:
        """Between two steps of something long: what was made so far is kept."""
        self.autosaver.grown()
        self.autosave()

    def _tell_trouble(self, text: str) -> None:
        connection = self.connection
        if connection is not None:
            connection.tell_from_thread("autosave", {"text": text})

    @property
    def has_session(self) -> bool:
        return self._session is not None

    def stop_debugging(self) -> None:
        """Close the debugger, if there is one."""
        debugger, self.debugger, self.debugged = self.debugger, None, None
        if debugger is not None:
            debugger.close()

    def cached(self, key: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        """What was computed for a key, or what `make` gives now: a value and its bytes."""
        if key in self.cache:
            self.cache.move_to_end(key)
            return self.cache[key][0]
        value, size = make()
        self.cache[key] = (value, size)
        while len(self.cache) > 1 and sum(s for _, s in self.cache.values()) > CACHE_BYTES:
            self.cache.popitem(last=False)
        return value

    def log(self, job: Job, line: str) -> None:
        """Keep an action as a line of Python, and show it."""
        self.lines.append(line)
        del self.lines[:-CONSOLE_LINES]
        job.tell("console", {"line": line})

    # --- work ---------------------------------------------------------------------------------

    def submit(self, job: Job, action: Action, args: dict[str, Any], answer: Answer) -> None:
        """Do an action after those before it; `answer` is called in the workspace's thread."""
        if self.closed:
            raise Missing("the workspace is closed.")
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, args=(self._queue,), name=f"workspace {self.id[:6]}", daemon=True
            )
            self._thread.start()
        self._queue.put((job, action, args, answer))

    def _work(self, jobs: queue.SimpleQueue[Any]) -> None:
        with votive.no_grad():
            while (item := self._next(jobs)) is not None:
                job, action, args, answer = item
                self.working = job
                try:
                    header, blobs = self._done(job, action, args)
                finally:
                    self.working = None
                # Also where it was cancelled: what was made stays.
                if action.name in _CHANGING and "error" not in header:
                    self.autosaver.changed()
                answer(header, blobs)
                del item, job, action, args, answer, header, blobs
            self.autosave(last=True)
            self.stop_debugging()
            self.cache.clear()
            self._session = self.loading = None

    def _next(self, jobs: queue.SimpleQueue[Any]) -> Any:
        """What is to be done next; what has changed is kept when there is a pause, or in time."""
        while True:
            self.autosave()
            try:
                return jobs.get(timeout=self.autosaver.due)
            except queue.Empty:
                continue

    def _done(self, job: Job, action: Action, args: dict[str, Any]) -> tuple[Any, Any]:
        """Header and blobs of the reply."""
        try:
            job.check()
            job.doing = action.doing
            if action.needs_model:
                self.await_model(job)
            if action.computes:
                with job.turn(), job.cancellable(self.loaded.parts):
                    data, blobs = action.run(job, args)
            else:
                data, blobs = action.run(job, args)
            if job.cancelled and not action.changes:
                raise Cancelled
            return {"ok": True, "data": data}, blobs
        except Cancelled:
            return {"cancelled": True}, None
        except BaseException as e:  # code of a model may even exit; the workspace's thread must not
            return {"ok": False, "error": error_json(e)}, None

    def await_model(self, job: Job) -> Loaded:
        """The workspace's model; where it is on its way, that is told while it is awaited."""
        if self.loading is None:
            self.loading = self.library.request()
        if self.loading.finished and self.loading.error is None:
            return self.loaded
        said = ""

        def look(loading: Loading) -> None:
            nonlocal said
            job.check()
            if loading.text != said or loading.finished:
                said = loading.text
                job.tell("progress", loading.to_json())

        try:
            return self.loading.wait(look)
        except Exception:
            self.loading = None  # the next request tries again
            raise

    def close(self) -> None:
        """Free everything, when the work at hand has ended."""
        self.closed = True
        working = self.working
        if working is not None:
            working.cancel()
        self._queue.put(None)

    def join(self, timeout: float = 10.0) -> bool:
        """Wait until the thread has ended; gives whether it has."""
        thread = self._thread
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    @property
    def away(self) -> float:
        """Seconds since its tab went away; 0 while it is there."""
        return 0.0 if self.left_at is None else time.monotonic() - self.left_at


_CALLED = re.compile(
    r"^(?:[a-z_]+\.[a-z_]+|attention|auto|choose|debug|edit|explain|jump|lens|redo|save_html|Session|step|undo|value"
    r"|votive studio): "
)


def error_json(error: BaseException) -> dict[str, Any]:
    """An error as a reply tells it: its type, what it says in plain words, and the module where it happened.

    >>> from votive.studio.workspace import error_json
    >>> error_json(KeyError("no node 7"))
    {'type': 'KeyError', 'message': 'no node 7', 'address': None}
    """
    only = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else error
    notes = " ".join(getattr(error, "__notes__", ()))
    found = re.search(r"in module '([^']*)'", notes)
    # Who stands before a page has called no function: its name says nothing there.
    text = _CALLED.sub("", str(only)[:4000], count=1)
    return {
        "type": type(error).__name__,
        "message": text or type(error).__name__,
        "address": found.group(1) if found else None,
    }
