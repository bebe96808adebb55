"""Several pages do anything they can, for a while: no error that is not theirs, and no leak.

It runs for a few seconds; with VOTIVE_SOAK=600 in the environment for ten minutes.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

from .client import Page, Refused, studio

SECONDS = float(os.environ.get("VOTIVE_SOAK", "6"))
MLPS = [f"model.layers.{i}.mlp" for i in range(4)]
# What a page may do wrong without knowing: there may be nothing to take back, or to debug.
THEIRS = ("IndexError", "Missing", "ValueError", "LookupError", "RuntimeError", "TypeError",
          "NoMatch")  # fmt: skip
KNOWN = (
    "undo:", "redo:", "nothing is being debugged", "there is no result", "there is no input",
    "has run already", "is an operator", "the run has ended", "only what goes on", "no tokens",
    "an operator before it runs", "there is no edit", "holds code", "the index",
    "a module around it is skipped",
)  # fmt: skip


class Client(threading.Thread):
    """One page that does random things."""

    def __init__(self, one: Any, seed: int, end: float) -> None:
        super().__init__(name=f"client {seed}")
        self.one, self.random, self.end = one, random.Random(seed), end
        self.done: dict[str, int] = {}
        self.trouble: list[str] = []

    def run(self) -> None:
        page = self.begin(None)
        try:
            while time.monotonic() < self.end and not self.trouble:
                if self.random.random() < 0.01:
                    page.close()
                    page = self.begin(page.room if self.random.random() < 0.5 else None)
                self.act(page)
                page.events.clear()
        except Exception as e:
            self.trouble.append(f"{type(e).__name__}: {e}")
        finally:
            page.close()

    def begin(self, room: str | None) -> Page:
        page = Page(self.one, room=room)
        if page.hello["fresh"]:
            page.ask("session.new", prompt="Once upon a time " * self.random.randint(1, 4))
        return page

    def act(self, page: Page) -> None:
        do, args = self.choice()
        self.done[do] = self.done.get(do, 0) + 1
        try:
            state = page.ask(do, **args)
        except Refused as e:
            mine = e.error["type"] in THEIRS and any(k in e.error["message"] for k in KNOWN)
            # A call that was skipped may have changed the shape of what it got.
            mine |= do.startswith("debug.") and e.error["type"] == "ShapeError"
            if not mine:
                self.trouble.append(f"{do} {args}: {e}")
            return
        if len(state.get("nodes", ())) > 80:
            page.ask("session.new", prompt="The fox " * self.random.randint(1, 4))

    def choice(self) -> tuple[str, dict[str, Any]]:
        r = self.random
        table: list[tuple[str, dict[str, Any]]] = [
            ("session.step", {"n": r.randint(1, 3)}), ("session.auto", {"max_new_tokens": 4}),
            ("session.undo", {}), ("session.redo", {}), ("session.branch", {}),
            ("session.choose", {"token": r.randrange(300)}), ("session.jump", {"node": 0}),
            ("session.settings", {"temperature": r.uniform(0.1, 2), "top_k": r.randint(0, 50)}),
            ("session.top", {"k": r.randint(1, 50)}), ("session.state", {}),
            ("session.save", {"name": f"soak{r.randrange(3)}-{self.name[-1]}"}),
            ("session.prompt", {"text": "A bear " * r.randint(1, 5)}),
            ("edits.set", {"edits": [{"at": r.choice(MLPS), "do": "zero"}]}),
            ("edits.set", {"edits": [], "from_start": r.random() < 0.5}),
            ("edits.set", {"edits": [{"at": r.choice(MLPS), "do": "scale", "value": 2}],
                           "from_start": False}),
            ("edits.swap", {"at": "model.layers.1", "with": r.choice(["model.layers.2",
                                                                      "identity"])}),
            ("edits.remove", {"index": 0}), ("lens.grid", {}), ("lens.cell", {"layer": 1,
                                                                              "position": 0}),
            ("attention.layer", {"layer": r.randrange(4)}), ("attention.heads", {}),
            ("attention.row", {"layer": 0, "head": 1, "query": 0}), ("layers.statistics", {}),
            ("value.window", {"address": r.choice(MLPS)}), ("profile.run", {"repeat": 1}),
            ("value.statistics", {"address": r.choice(MLPS)}), ("explain.op", {"name": "silu"}),
            ("debug.start", {}), ("debug.step", {}), ("debug.over", {}), ("debug.out", {}),
            ("debug.run", {"until": r.choice(MLPS)}), ("debug.back", {"n": r.randint(1, 9)}),
            ("debug.value", {}), ("debug.replace", {"zero": True}), ("debug.skip", {}),
            ("debug.break", {"at": r.choice(MLPS), "on": r.random() < 0.5}), ("debug.stop", {}),
            ("console.log", {}), ("session.files", {}), ("session.diff", {"a": 0, "b": 0}),
        ]  # fmt: skip
        return r.choice(table)


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_four_pages_that_do_anything_leave_neither_errors_nor_memory_behind(
    tmp_path: Path,
) -> None:
    from votive.nn.global_hooks import GLOBAL

    hooks = len(GLOBAL)
    with studio(tmp_path, grace=0.5) as one:
        end = time.monotonic() + SECONDS
        clients = [Client(one, seed, end) for seed in range(4)]
        for c in clients:
            c.start()
        marks: list[int] = []
        while any(c.is_alive() for c in clients):
            time.sleep(min(1.0, SECONDS / 10))
            if time.monotonic() > end - SECONDS * 0.7:
                marks.append(resident())
        assert [t for c in clients for t in c.trouble] == []
        assert min(sum(c.done.values()) for c in clients) > 3
        late = time.monotonic() + 20
        while len(one.rooms) and time.monotonic() < late:
            time.sleep(0.05)
        assert len(one.rooms) == 0
        if SECONDS >= 60:
            third = len(marks) // 3
            early, last = max(marks[:third]), min(marks[-third:])
            assert last < early * 1.15, f"memory grows: {early:,} to {last:,}"
    gc.collect()
    assert len(GLOBAL) == hooks
