"""Long work is told, can be cancelled, frees what it held, and no model call ends a page."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from votive.studio import connection, demo, jobs
from votive.studio.models import Loaded

from .client import Cancelled, Page, Refused, loaded, studio
from .test_server import PROMPT, until


class Slow:
    """A model whose third layer can be held up, and let go."""

    def __init__(self) -> None:
        self.loaded = loaded()
        layer = self.loaded.model.model.layers[2]
        whole = layer.forward
        self.go = threading.Event()
        self.go.set()
        self.reached = threading.Event()

        def forward(*args: Any, **kwargs: Any) -> Any:
            self.reached.set()
            assert self.go.wait(60)
            return whole(*args, **kwargs)

        layer.forward = forward

    def hold(self) -> None:
        """From now on calls stand still in the third layer."""
        self.go.clear()
        self.reached.clear()


@pytest.fixture(scope="module")
def slow() -> Slow:
    return Slow()


@pytest.fixture
def held(slow: Slow, tmp_path: Path) -> Iterator[Any]:
    with studio(tmp_path, slow.loaded) as one, Page(one) as page:
        page.ask("session.new", prompt=PROMPT)
        yield page
        slow.go.set()


LONG: list[tuple[str, dict[str, Any]]] = [
    ("session.step", {"n": 500}),
    ("session.auto", {"max_new_tokens": 500}),
    ("lens.grid", {}),
    ("attention.layer", {"layer": 1}),
    ("layers.statistics", {}),
    ("profile.run", {"repeat": 20}),
    ("value.window", {"address": "model.layers.3.mlp"}),
    ("edits.set", {"edits": [{"at": "model.layers.1.mlp", "do": "zero"}]}),
    ("session.new", {"prompt": "Another text"}),
]


@pytest.mark.parametrize(("do", "args"), LONG, ids=[do for do, _ in LONG])
def test_every_long_job_is_cancelled_and_the_page_goes_on(
    do: str, args: dict[str, Any], held: Page, slow: Slow
) -> None:
    slow.hold()
    id = held.send(do, args)
    assert slow.reached.wait(20)
    held.socket.send(f'{{"cancel": {id}}}')
    until(lambda: False, 0.1)
    slow.go.set()
    with pytest.raises(Cancelled):
        held.wait(id)
    state = held.ask("session.state")
    assert state["text"].startswith(PROMPT) or do == "session.new"
    assert held.ask("lens.grid")["ids"]
    held.ask("session.step")


def test_a_run_of_the_debugger_that_is_cancelled_stops_where_it_is(held: Page, slow: Slow) -> None:
    held.ask("debug.start")
    slow.hold()
    id = held.send("debug.run")
    assert slow.reached.wait(20)
    held.socket.send(f'{{"cancel": {id}}}')
    until(lambda: False, 0.1)
    slow.go.set()
    where = held.wait(id)  # what was done is told: the run stands elsewhere now
    assert where["address"].startswith("model.layers.2")
    assert not where["ended"]
    assert held.ask("debug.run")["ended"]


def test_a_long_run_tells_in_which_layer_it_is(held: Page, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "TELLING", 0.05)
    slow.hold()
    held.events.clear()
    id = held.send("lens.grid")
    assert slow.reached.wait(20)
    until(lambda: False, 0.2)
    slow.go.set()
    held.wait(id)
    reply = [d["text"] for name, d in held.events if name == "busy"]
    assert "running the logit lens: layer 4 of 4" in reply


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), MemoryError("no more"), RecursionError("too deep"), GeneratorExit()],
    ids=lambda e: type(e).__name__,
)
def test_whatever_a_model_call_raises_is_a_message(error: BaseException, tmp_path: Path) -> None:
    one = loaded()
    layer = one.model.model.layers[1]
    whole = layer.forward

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise error

    with studio(tmp_path, one) as served, Page(served) as page:
        page.ask("session.new", prompt=PROMPT)
        for do in ("session.step", "lens.grid", "profile.run"):
            layer.forward = fails
            with pytest.raises(Refused) as caught:
                page.ask(do)
            assert caught.value.error["type"] == type(error).__name__
            layer.forward = whole
            page.ask("session.step")
        page.ask("debug.start")
        layer.forward = fails
        if isinstance(error, Exception):  # it stops where it happened, to be looked at
            where = page.ask("debug.run")
            assert (where["phase"], where["error"]) == ("error", str(error))
        else:
            with pytest.raises(Refused, match=type(error).__name__):
                page.ask("debug.run")
        layer.forward = whole
        page.ask("debug.stop")
        page.ask("session.step")


def test_a_model_that_only_a_closed_tab_used_is_freed(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    demo.model().save_pretrained(folder / "other")
    demo.tokenizer().save_pretrained(folder / "other")
    first = Loaded("demo", demo.model(), demo.tokenizer())
    with studio(folder, first, grace=0.2) as one:
        with Page(one) as page:
            page.ask("model.load", name="other")
            page.ask("session.new", prompt=PROMPT)
            page.ask("lens.grid")
            model = weakref.ref(one.workspaces._workspaces[page.workspace].loaded.model)
            assert model() is not None
        assert until(lambda: (gc.collect(), model() is None)[1])
        with Page(one) as page:
            assert page.ask("model.info")["name"] == "demo"


def test_tabs_that_come_and_go_leave_no_memory_behind(tmp_path: Path) -> None:
    from votive.nn.global_hooks import GLOBAL

    from .test_soak import resident

    def visit() -> None:
        with Page(one) as page:
            page.ask("session.new", prompt="Once upon a time " * 60)
            page.ask("attention.heads")
            page.ask("lens.grid")
            page.ask("debug.start")
            page.ask("debug.run", until="model.layers.2")

    hooks = len(GLOBAL)
    with studio(tmp_path, grace=0.1) as one:
        for _ in range(4):
            visit()
        assert until(lambda: len(one.workspaces) == 0)
        before = resident()
        for _ in range(12):
            visit()
        assert until(lambda: len(one.workspaces) == 0 and len(GLOBAL) == hooks)
        gc.collect()
        # Each visit keeps some megabytes while it lasts.
        assert resident() < before + (16 << 20)


def test_a_page_that_is_slow_to_say_who_it_is_keeps_its_session(the_studio: Any) -> None:
    from websockets.sync.client import connect

    with Page(the_studio) as page:
        text = page.ask("session.new", prompt=PROMPT)["text"]
    cookie = {"cookie": f"votive_studio_{the_studio.port}={the_studio.token}"}
    with connect(
        f"ws://127.0.0.1:{the_studio.port}/ws",
        origin=f"http://127.0.0.1:{the_studio.port}",
        additional_headers=cookie,
        proxy=None,
    ) as ws:
        time.sleep(0.8)
        ws.send(f'{{"workspace": "{page.workspace}"}}')
        assert b'"fresh":false' in ws.recv(20)
    with Page(the_studio, workspace=page.workspace) as again:
        assert again.ask("session.state")["text"] == text


def test_a_page_that_never_says_who_it_is_gets_a_new_room(the_studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from websockets.sync.client import connect

    monkeypatch.setattr(connection, "FIRST", 0.1)
    cookie = {"cookie": f"votive_studio_{the_studio.port}={the_studio.token}"}
    with connect(
        f"ws://127.0.0.1:{the_studio.port}/ws",
        origin=f"http://127.0.0.1:{the_studio.port}",
        additional_headers=cookie,
        proxy=None,
    ) as ws:
        assert b'"fresh":true' in ws.recv(20)
