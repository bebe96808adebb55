"""Several pages do anything they can, for a while: no error that is not theirs, no leak, no drift.

It runs for a few seconds; with VOTIVE_SOAK=600 in the environment for ten minutes.
"""

from __future__ import annotations

import gc
import os
import random
import re
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from votive.glass.session import Session
from votive.studio.workspace import Workspace

from .client import AWAKE, Page, Refused, studio

SECONDS = float(os.environ.get("VOTIVE_SOAK", "6"))
MLPS = [f"model.layers.{i}.mlp" for i in range(4)]
# Actions that need a run of the debugger.
RUN = {f"debug.{n}" for n in ("step", "over", "out", "run", "back", "value", "replace", "skip")}
# Seconds in which a request is answered, however busy the machine is.
PATIENCE = 90.0


class Client(threading.Thread):
    """One page that does random things, and knows which of them cannot be done now."""

    def __init__(self, one: Any, seed: int, end: float) -> None:
        super().__init__(name=f"client {seed}")
        self.one, self.random, self.end = one, random.Random(seed), end
        self.done: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.trouble: list[str] = []
        self.slowest = 0.0
        self.forget()

    def forget(self) -> None:
        """A new session: nothing is debugged, skipped or saved."""
        self.where: dict[str, Any] = {"active": False}
        self.skipped = self.swapped = False

    def run(self) -> None:
        page = None
        try:
            page = self.begin(None)
            while time.monotonic() < self.end and not self.trouble:
                chance = self.random.random()
                if chance < 0.01:
                    page.close()
                    page = self.begin(page.workspace if self.random.random() < 0.5 else None)
                elif chance < 0.02:
                    self.same_as_ever(page)
                self.act(page)
                page.events.clear()
        except Exception as e:
            doing = [j.doing for r in self.one.workspaces._workspaces.values() if (j := r.working)]
            self.trouble.append(f"{type(e).__name__}: {e}\n{doing}\n{all_stacks()}")
        finally:
            if page is not None:
                page.close()

    def begin(self, workspace: str | None) -> Page:
        page = Page(self.one, workspace=workspace)
        if page.hello["fresh"]:
            page.ask("session.new", prompt="Once upon a time " * self.random.randint(1, 4))
            self.forget()
        return page

    def same_as_ever(self, page: Page) -> None:
        """What does not depend on what was done before comes out the same, bit by bit."""
        found = reference(page)
        self.forget()
        if found != self.one.reference:
            self.trouble.append(f"it drifts: {self.one.reference} became {found}")

    def act(self, page: Page) -> None:
        do, args = self.choice()
        self.done[do] = self.done.get(do, 0) + 1
        began = AWAKE.now
        try:
            state = page.ask(do, **args)
        except Refused as e:
            why = self.mine(do, e.error)
            if why is None:
                self.trouble.append(f"{do} {args} {self.where}: {e}")
            else:
                self.refused[why] = self.refused.get(why, 0) + 1
            if do.startswith("debug."):
                self.where = page.ask("debug.state")
            return
        finally:
            self.slowest = max(self.slowest, AWAKE.now - began)
        self.learn(do, args, state)
        if len(state.get("nodes", ())) > 80:
            page.ask("session.new", prompt="The fox " * self.random.randint(1, 4))
            self.forget()

    def learn(self, do: str, args: dict[str, Any], state: dict[str, Any]) -> None:
        """What the page knows after an action."""
        if do.startswith("debug.") and "active" in state:
            self.where = state
        if do == "debug.start":
            self.skipped = False
        elif do == "debug.skip":
            self.skipped = True
        elif do == "edits.swap":
            self.swapped = True
        elif do == "session.open":
            self.forget()
            self.swapped = True  # perhaps: it was saved after one

    def mine(self, do: str, error: dict[str, Any]) -> str | None:
        """Why the page itself is to blame for an error; None if it is not."""
        kind, said = error["type"], error["message"]
        at = self.where
        standing = at["active"] and not at["ended"]
        rules = [
            (do in RUN and not at["active"], "Missing", r"Nothing is being debugged; start the debugger first\."),
            (
                do in ("debug.value", "debug.replace") and at["active"],
                "LookupError",
                r"debug: there is no (input|result) '' here; there are \[\]\.",
            ),
            (
                do == "debug.skip" and standing and at.get("phase") == "leave",
                "ValueError",
                r"skip: the call at \S+ has run already; go back first\.",
            ),
            (
                do == "debug.replace" and standing and (at.get("kind"), at.get("phase")) == ("op", "enter"),
                "ValueError",
                r"replace: \S+ is an operator before it runs; skip\(value\) gives it a result\.",
            ),
            (
                do == "debug.skip" and standing and at.get("kind") == "op",
                "ValueError",
                r"skip: \S+ is an operator; replace its value instead\.",
            ),
            (
                do == "debug.skip" and standing and at.get("kind") == "module",
                "ValueError",
                r"skip: \S+ cannot pass its input on: .*",
            ),
            (
                do == "debug.skip" and at["active"] and at["ended"],
                "RuntimeError",
                r"the run has ended; go back to look at it\.",
            ),
            # What was skipped gives on its input, which may have another shape than its result.
            (do in RUN and self.skipped, "ShapeError", r"\w+: .*(differ|do not broadcast).*"),
            (do == "session.undo", "IndexError", r"undo: there are 0 moves to take back, not 1\."),
            (do == "session.redo", "IndexError", r"redo: there are 0 moves to make again, not 1\."),
            (do == "edits.remove", "IndexError", r"edits\.remove: there is no edit 0; there are 0\."),
            (
                do in ("value.window", "value.statistics") and self.swapped,
                "NoMatch",
                r"'model\.layers\.1\.mlp' is not called: a module around it is skipped or swapped "
                r"for another\.",
            ),
            (do == "session.open", "FileNotFoundError", r"There is no session 'soak\d-\d+' in the folder\."),
        ]
        for holds, wanted, text in rules:
            # The page leaves out which function says it.
            plain = re.sub(r"^[a-z]+(\\\.[a-z]+)?: ", "", text)
            if holds and kind == wanted and (re.fullmatch(text, said) or re.fullmatch(plain, said)):
                return text
        return None

    def choice(self) -> tuple[str, dict[str, Any]]:
        r = self.random
        name = f"soak{r.randrange(3)}-{self.name.split()[-1]}"
        table: list[tuple[str, dict[str, Any]]] = [
            ("session.step", {"n": r.randint(1, 3)}),
            ("session.auto", {"max_new_tokens": 4}),
            ("session.undo", {}),
            ("session.redo", {}),
            ("session.branch", {}),
            ("session.choose", {"token": r.randrange(300)}),
            ("session.jump", {"node": 0}),
            ("session.settings", {"temperature": r.uniform(0.1, 2), "top_k": r.randint(0, 50)}),
            ("session.top", {"k": r.randint(1, 50)}),
            ("session.state", {}),
            ("session.save", {"name": name}),
            ("session.open", {"name": name}),
            ("session.script", {}),
            ("session.prompt", {"text": "A bear " * r.randint(1, 5)}),
            ("edits.set", {"edits": [{"at": r.choice(MLPS), "do": "zero"}]}),
            ("edits.set", {"edits": [], "from_start": r.random() < 0.5}),
            ("edits.set", {"edits": [{"at": r.choice(MLPS), "do": "scale", "value": 2}], "from_start": False}),
            ("edits.swap", {"at": "model.layers.1", "with": r.choice(["model.layers.2", "identity"])}),
            ("edits.remove", {"index": 0}),
            ("lens.grid", {}),
            ("lens.cell", {"layer": 1, "position": 0}),
            ("attention.layer", {"layer": r.randrange(4)}),
            ("attention.heads", {}),
            ("attention.row", {"layer": 0, "head": 1, "query": 0}),
            ("layers.statistics", {}),
            ("value.window", {"address": r.choice(MLPS)}),
            ("profile.run", {"repeat": 1}),
            ("value.statistics", {"address": r.choice(MLPS)}),
            ("explain.op", {"name": "silu"}),
            ("debug.start", {}),
            ("debug.step", {}),
            ("debug.over", {}),
            ("debug.out", {}),
            ("debug.run", {"until": r.choice(MLPS)}),
            ("debug.back", {"n": r.randint(1, 9)}),
            ("debug.value", {}),
            ("debug.replace", {"zero": True}),
            ("debug.skip", {}),
            ("debug.break", {"at": r.choice(MLPS), "on": r.random() < 0.5}),
            ("debug.stop", {}),
            ("console.log", {}),
            ("session.files", {}),
            ("session.diff", {"a": 0, "b": 0}),
        ]
        return r.choice(table)


def reference(page: Page) -> tuple[Any, ...]:
    """A session from the beginning, and what it says."""
    page.ask("session.new", prompt="The king", seed=3, settings={"temperature": 0.8})
    text = page.ask("session.step", n=6)["text"]
    grid = page.ask("lens.grid")
    top = page.ask("session.top", k=5)["before"]
    return text, grid["ids"], grid["p"].tobytes(), [(t["id"], t["p"]) for t in top]


def all_stacks() -> str:
    """Where each thread stands: what never ends is else hard to explain."""
    names = {t.ident: t.name for t in threading.enumerate()}
    return "\n".join(
        f"--- {names.get(id)}\n{''.join(traceback.format_stack(frame)[-8:])}"
        for id, frame in sys._current_frames().items()
    )


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def files() -> int:
    """Files and sockets that this process holds open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def alive(*kinds: type) -> int:
    """How many objects of some kinds there are."""
    gc.collect()
    # By type: asking an object for its class can run its code, and warn.
    return sum(issubclass(type(o), kinds) for o in gc.get_objects())


def test_four_pages_that_do_anything_leave_neither_errors_nor_memory_behind(tmp_path: Path) -> None:
    from votive.nn.global_hooks import GLOBAL

    hooks, objects, open_files = len(GLOBAL), alive(Workspace, Session), files()
    with studio(tmp_path, grace=0.5) as one:
        with Page(one) as page:
            one.reference = reference(page)
        begun, end = resident(), time.monotonic() + SECONDS
        clients = [Client(one, seed, end) for seed in range(4)]
        for c in clients:
            c.start()
        marks: list[int] = []
        stood = AWAKE.stopped
        while any(c.is_alive() for c in clients):
            time.sleep(min(1.0, SECONDS / 10))
            if time.monotonic() > end - SECONDS * 0.7:
                marks.append(resident())
            late = time.monotonic() - end - (AWAKE.stopped - stood)
            assert late < 2 * PATIENCE, all_stacks()
        trouble = "\n\n".join(t for c in clients for t in c.trouble)
        assert not trouble, trouble
        assert min(sum(c.done.values()) for c in clients) > 3
        late = AWAKE.now + 20
        while len(one.workspaces) and AWAKE.now < late:
            time.sleep(0.05)
        assert len(one.workspaces) == 0
        with Page(one) as page:
            assert reference(page) == one.reference
        third = max(1, len(marks) // 3)
        early, last = max(marks[:third]), min(marks[-third:])
        print(
            f"{sum(sum(c.done.values()) for c in clients)} actions, "
            f"{sum(sum(c.refused.values()) for c in clients)} refused, slowest "
            f"{max(c.slowest for c in clients):.1f} s (the whole process was stopped for "
            f"{AWAKE.stopped - stood:.1f} s); memory {begun >> 20} MiB at the start, "
            f"{early >> 20} after 30 to 53 %, {last >> 20} at the end"
        )
        if SECONDS >= 60:
            assert last < early * 1.15, f"memory grows: {early:,} to {last:,}"
    assert len(GLOBAL) == hooks
    assert alive(Workspace, Session) <= objects
    assert files() <= open_files + 2
