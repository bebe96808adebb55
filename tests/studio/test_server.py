"""Tabs have workspaces of their own; work can be cancelled; no error ends a connection."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import weakref
from pathlib import Path
from typing import Any

import pytest

from votive.studio.jobs import Cancelled as Stopped
from votive.studio.jobs import FairLock, Job
from votive.studio.models import DEFAULT, Loaded, ModelLibrary

from .client import Cancelled, ConnectionClosed, Page, Refused, loaded, rooms_at_work, studio

PROMPT = "Once upon a time there was a fox"


def until(what: Any, seconds: float = 20.0) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def test_a_page_is_greeted_with_its_room_and_the_model(page: Page) -> None:
    assert page.hello["fresh"] is True
    assert page.hello["model"]["name"] == "demo"
    assert page.hello["loading"] is None


def test_two_tabs_have_sessions_of_their_own_on_one_model(the_studio: Any, page: Page) -> None:
    with Page(the_studio) as other:
        page.ask("session.new", prompt="Once upon", seed=1)
        other.ask("session.new", prompt="The king", seed=2)
        page.ask("edits.set", edits=[{"at": "model.layers.1.mlp", "do": "zero"}])
        page.ask("debug.start")
        page.ask("debug.run", until="model.layers.2")
        before = other.ask("session.step", n=3)["text"]
        assert other.ask("edits.list")["edits"] == []
        page.ask("session.step")
        other.ask("session.new", prompt="The king", seed=2)
        assert other.ask("session.step", n=3)["text"] == before
        assert page.ask("session.state")["text"].startswith("Once upon")
        assert page.ask("debug.state")["address"] == "model.layers.2"


def test_tabs_that_work_at_once_get_the_same_as_one_after_the_other(the_studio: Any) -> None:
    def work(found: list[Any], seed: int) -> None:
        with Page(the_studio) as one:
            one.ask("session.new", prompt=PROMPT, seed=seed)
            one.ask("edits.set", edits=[{"at": "model.layers.2", "do": "scale", "value": seed}])
            one.ask("session.auto", max_new_tokens=12)
            lens = one.ask("lens.grid")
            found.append((seed, one.ask("session.state")["text"], lens["ids"]))

    alone: list[Any] = []
    for seed in range(1, 4):
        work(alone, seed)
    together: list[Any] = []
    threads = [threading.Thread(target=work, args=(together, s)) for s in range(1, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(together) == alone


def test_generating_is_cancelled_between_tokens_and_what_was_written_stays(page: Page) -> None:
    page.ask("session.new", prompt=PROMPT)
    id = page.send("session.auto", {"max_new_tokens": 1500})
    page.event("token")
    page.socket.send(f'{{"cancel": {id}}}')
    with pytest.raises(Cancelled):
        page.wait(id)
    state = page.ask("session.state")
    assert 1 < len(state["nodes"]) < 1400
    assert "".join(n["text"] for n in state["nodes"]).startswith(PROMPT)
    page.ask("session.step")


def test_the_newest_request_of_a_slot_wins(page: Page) -> None:
    page.ask("session.new", prompt=PROMPT)
    busy = page.send("session.auto", {"max_new_tokens": 40})
    page.event("token")
    old = [page.send("lens.grid", {"target": i}, slot="lens") for i in range(5)]
    new = page.send("lens.grid", {"target": 9}, slot="lens")
    other = page.send("session.top", {}, slot="top")
    assert page.wait(busy)["nodes"]
    for id in old:
        with pytest.raises(Cancelled):
            page.wait(id)
    assert page.wait(new)["target"] == 9
    assert page.wait(other)["before"]


def test_a_request_with_an_id_that_is_at_work_is_refused(page: Page) -> None:
    page.ask("session.new", prompt=PROMPT)
    id = page.send("session.auto", {"max_new_tokens": 300})
    page.event("token")
    page._next -= 1
    assert page.send("session.state") == id
    with pytest.raises(Refused, match="still being worked on"):
        page.wait(id)
    assert page.wait(id)["nodes"]


def test_more_requests_than_a_page_needs_are_told_to_slow_down(page: Page) -> None:
    ids = [page.send("console.log") for _ in range(1000)]
    while len(page.replies) < len(ids):
        page.take()
    reply = [page.replies.pop(id)[0].get("error", {}).get("type") for id in ids]
    assert set(reply) == {None, "SlowDown"}
    assert reply[:100] == [None] * 100
    time.sleep(1.1)
    assert page.ask("console.log")["lines"] == []


def test_an_error_in_the_model_becomes_a_reply_with_its_address(tmp_path: Path) -> None:
    broken = loaded()
    layer = broken.model.model.layers[2].mlp
    whole = layer.forward

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("it is broken")

    with studio(tmp_path, broken) as one, Page(one) as page:
        page.ask("session.new", prompt=PROMPT)
        page.ask("session.step")
        layer.forward = fails
        with pytest.raises(Refused) as caught:
            page.ask("session.step")
        error = caught.value.error
        assert (error["type"], error["message"]) == ("RuntimeError", "it is broken")
        assert error["address"] == "model.layers.2.mlp"
        with pytest.raises(Refused, match="it is broken"):
            page.ask("lens.grid")
        layer.forward = whole
        page.ask("session.step")
        page.ask("lens.grid")


def test_a_lost_connection_finds_its_session_again(the_studio: Any) -> None:
    page = Page(the_studio)
    page.ask("session.new", prompt=PROMPT)
    text = page.ask("session.step", n=2)["text"]
    page.ask("debug.start")
    page.send("session.auto", {"max_new_tokens": 1500})
    page.event("token")
    page.socket.socket.close()  # no farewell
    with Page(the_studio, workspace=page.workspace) as again:
        assert again.hello["fresh"] is False
        assert again.workspace == page.workspace
        state = again.ask("session.state")
        assert state["text"].startswith(text)
        assert len(state["nodes"]) < 1400  # what nobody waited for has ended
        assert again.ask("debug.state")["active"]


def test_a_room_that_is_not_known_is_a_new_one(the_studio: Any) -> None:
    with Page(the_studio, workspace="../../etc/passwd") as page:
        assert page.hello["fresh"] is True
        assert page.workspace != "../../etc/passwd"


def test_a_room_opened_twice_belongs_to_the_newer_tab(the_studio: Any) -> None:
    with Page(the_studio) as old:
        old.ask("session.new", prompt=PROMPT)
        with Page(the_studio, workspace=old.workspace) as new:
            assert "another window" in old.event("bye")["text"]
            with pytest.raises(ConnectionClosed):
                old.take()
            assert new.ask("session.state")["text"] == PROMPT


def test_a_closed_tab_frees_its_session_after_a_while(tmp_path: Path) -> None:
    before = rooms_at_work()
    with studio(tmp_path, grace=0.2) as one:
        with Page(one) as page:
            page.ask("session.new", prompt=PROMPT)
            page.ask("debug.start")
            page.ask("lens.grid")
            workspace = one.workspaces._workspaces[page.workspace]
            session, runs = weakref.ref(workspace.session), workspace.cache
        del workspace
        assert until(lambda: len(one.workspaces) == 0)
        assert until(lambda: (gc.collect(), session() is None)[1])
        assert not runs
        assert until(lambda: rooms_at_work() <= before)


def test_work_of_the_model_is_cancelled_at_the_next_layer() -> None:
    one = loaded()
    job = Job(None, "test")
    ids = one.tokenizer("Once upon a time", return_tensors="vt").input_ids
    with job.cancellable(one.parts):
        one.model(ids)
        job.cancel()
        with pytest.raises(Stopped):
            one.model(ids)
    one.model(ids)


def test_turns_are_given_in_the_order_they_were_asked_for() -> None:
    turns, order = FairLock(), []
    turns.acquire()

    def wait(i: int) -> None:
        with turns:
            order.append(i)

    threads = []
    for i in range(4):
        threads.append(threading.Thread(target=wait, args=(i,)))
        threads[-1].start()
        assert until(lambda: len(turns._waiting) == len(threads))
    assert turns.acquire(lambda: False) is False
    turns.release()
    for t in threads:
        t.join()
    assert order == [0, 1, 2, 3]
    assert not turns.held


def test_a_model_is_loaded_with_progress_after_the_page_is_there(tmp_path: Path) -> None:
    from votive.studio import demo

    folder = tmp_path / "sessions"
    place = folder / "small"
    demo.model().save_pretrained(place)
    demo.tokenizer().save_pretrained(place)
    with studio(folder, place) as one, Page(one) as page:
        info = page.ask("model.info")
        assert (info["name"], info["parameters"]) == ("small", demo.model().num_parameters())
        page.ask("session.new", prompt=PROMPT, settings={"temperature": 0})
        (folder / "other").symlink_to(place)
        names = [m["name"] for m in page.ask("model.list")["models"]]
        assert {"small", "other"} <= set(names)
        assert page.ask("model.load", name="other")["name"] == "other"
        reply = [d for name, d in page.events if name == "progress"]
        assert all(0 <= d["done"] <= d["total"] for d in reply)
        assert page.ask("session.state")["nodes"] == []
        page.ask("session.new", prompt=PROMPT)
        for name in ("../small", "/etc", str(place), "nobody/nothing"):
            with pytest.raises(Refused, match="no model"):
                page.ask("model.load", name=name)
        assert page.ask("session.step")["text"].startswith(PROMPT)


def test_loading_tells_how_many_bytes_were_read(tmp_path: Path) -> None:
    from votive.studio import demo

    demo.model().save_pretrained(tmp_path / "m")
    demo.tokenizer().save_pretrained(tmp_path / "m")
    library = ModelLibrary(tmp_path, tmp_path / "m")
    loading = library.request()
    found = loading.wait()
    assert loading.done == loading.total >= 4 * found.model.num_parameters()
    assert library.request() is loading


def test_a_model_that_is_missing_is_told_and_asked_for_again(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with studio(tmp_path, tmp_path / "empty") as one, Page(one) as page:
        for _ in range(2):
            with pytest.raises(Refused, match="FileNotFoundError"):
                page.ask("model.info")
        assert page.ask("console.log")["lines"] == []


def test_without_a_model_the_bundled_one_is_taken_or_its_absence_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from votive.models.checkpoint import bundled

    monkeypatch.delenv("VOTIVE_STUDIO_DEMO", raising=False)
    loading = ModelLibrary(tmp_path).request()
    assert loading.name == DEFAULT
    if DEFAULT in bundled():
        assert isinstance(loading.wait(), Loaded)
    else:
        with pytest.raises(FileNotFoundError, match="votive studio MODEL"):
            loading.wait()


def test_a_token_of_ones_own_and_a_fixed_port_let_a_restarted_server_be_found(tmp_path: Path) -> None:
    with studio(tmp_path, token="t" * 32) as one:
        port = one.port
        with Page(one) as page:
            workspace = page.workspace
    with studio(tmp_path, token="t" * 32, port=port) as two, Page(two, workspace=workspace) as page:
        assert page.hello["fresh"] is True
        assert page.workspace != workspace


def test_a_port_that_is_taken_is_told(the_studio: Any, tmp_path: Path) -> None:
    from votive.studio.server import Studio

    with pytest.raises(OSError, match="--port"):
        Studio(loaded(), port=the_studio.port, folder=tmp_path)


def test_the_command_serves_a_page_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    env = {**os.environ, "VOTIVE_STUDIO_DEMO": "1"}
    program = subprocess.Popen(
        [sys.executable, "-m", "votive", "studio", "--no-browser", "--folder", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        # Shells let programs in the background ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert program.stderr is not None
        line = program.stderr.readline()
        url = line.split()[-1]
        assert url.startswith("http://127.0.0.1:")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def up() -> bool:
            try:
                with opener.open(url, timeout=20) as reply:
                    return reply.status == 200
            except urllib.error.URLError:
                return False

        assert until(up, 60)
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 0
        reply = program.stderr.read()
        assert reply.endswith("\nStopped by Ctrl-C.\n")
        assert "Traceback" not in reply
    finally:
        program.kill()
        program.wait()
        program.stderr.close()


@pytest.mark.parametrize("args", [["--port", "70000"], ["--port", "x"], ["a", "b"]])
def test_wrong_usage_of_the_command_is_told(args: list[str], capsys: Any) -> None:
    from votive.cli import main

    assert main(["studio", *args]) == 2
    assert capsys.readouterr().err.startswith("votive:")
