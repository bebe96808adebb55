"""What was not saved is kept, bounded and whole, and found again after the studio was killed."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from votive.glass.session import Session
from votive.studio import autosave, demo
from votive.studio.autosave import AutosaveFolder, Autosaver

from .client import Page, Refused, studio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change is written at once."""
    monkeypatch.setattr(autosave, "EVERY", 0.01)
    monkeypatch.setattr(autosave, "SHARE", 0.0)


def until(what: Any, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(what())


def files(folder: Path, suffix: str = ".session") -> list[Path]:
    return sorted((folder / "autosave").glob(f"*{suffix}"))


def written(page: Page, steps: int = 4) -> str:
    """A session with something to lose; gives its text."""
    page.ask("session.new", prompt="Once upon a time")
    page.ask("session.step", n=1)
    return page.ask("session.step", n=steps)["text"]


def test_a_session_is_found_again_after_its_server(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page:
        assert page.hello["autosaved"] == []
        text = written(page)
        assert until(lambda: files(tmp_path))
        assert page.ask("session.autosaved") == {"on": True, "autosaved": []}  # it is this tab's own
    with studio(tmp_path) as two, Page(two) as page:
        (kept,) = page.hello["autosaved"]
        assert kept["model"] == "demo"
        assert text.startswith(kept["text"][:20])
        assert kept["tokens"] > 5
        assert page.ask("session.recover", name=kept["name"])["text"] == text
        assert page.ask("session.autosaved")["autosaved"] == []
        assert len(files(tmp_path)) == 1
        # It goes on being kept from its first change.
        longer = page.ask("session.step", n=1)["text"]
    with studio(tmp_path) as three, Page(three) as page:
        (kept,) = page.hello["autosaved"]
        assert page.ask("session.recover", name=kept["name"])["text"] == longer


def test_what_a_page_begins_by_itself_is_not_kept(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page:
        page.ask("session.new", prompt="Once upon a time")
        page.ask("session.step", n=1)
        page.ask("session.state")
    assert not (tmp_path / "autosave").exists()


def test_what_was_saved_is_not_offered_and_never_overwritten(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page:
        written(page)
        assert until(lambda: files(tmp_path))
        page.ask("session.save", name="mine")
        saved = (tmp_path / "mine.session").read_bytes()
        assert files(tmp_path) == files(tmp_path, ".json") == []
        page.ask("session.step", n=2)
        assert until(lambda: files(tmp_path))
        assert (tmp_path / "mine.session").read_bytes() == saved
        assert [f["name"] for f in page.ask("session.files")["files"]] == ["mine"]
        page.ask("session.open", name="mine")
        assert len(files(tmp_path)) == 1  # what was made since is still there
    assert (tmp_path / "mine.session").read_bytes() == saved


def test_a_long_job_is_kept_while_it_runs(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page:
        written(page, 1)
        page.send("session.auto", {"max_new_tokens": 200})
        page.event("token")
        assert until(lambda: files(tmp_path))
        sizes = {files(tmp_path)[0].stat().st_size}
        assert until(lambda: sizes.add(files(tmp_path)[0].stat().st_size) or len(sizes) > 3)


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with studio(tmp_path, autosave=False) as one, Page(one) as page:
        written(page)
        assert page.hello["autosaved"] == []
        assert page.ask("session.autosaved") == {"on": False, "autosaved": []}
    assert not (tmp_path / "autosave").exists()


def test_what_was_kept_can_be_discarded(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page:
        written(page)
    with studio(tmp_path) as one, Page(one) as page:
        (kept,) = page.hello["autosaved"]
        assert page.ask("session.discard", name=kept["name"])["autosaved"] == []
        assert files(tmp_path) == files(tmp_path, ".json") == []
        with pytest.raises(Refused, match="no longer there"):
            page.ask("session.recover", name=kept["name"])


def test_a_session_of_another_tab_is_left_alone(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page, Page(one) as other:
        written(page)
        assert until(lambda: files(tmp_path))
        name = files(tmp_path)[0].stem
        for do in ("session.recover", "session.discard"):
            with pytest.raises(Refused, match="open in another tab"):
                other.ask(do, name=name)
        assert other.ask("session.autosaved")["autosaved"] == []


@pytest.mark.parametrize("name", ["../mine", "x", "a" * 40, "20000101-000000-0000000g", "."])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.session").write_bytes(b"mine")
    with studio(tmp_path) as one, Page(one) as page:
        for do in ("session.recover", "session.discard"):
            with pytest.raises(Refused, match="was kept"):
                page.ask(do, name=name)
    assert (tmp_path / "mine.session").read_bytes() == b"mine"


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "autosave").symlink_to(elsewhere)
    with studio(folder) as one, Page(one) as page:
        written(page)
        assert "is a link" in page.event("autosave")["text"]
    assert list(elsewhere.iterdir()) == []


def test_damaged_files_are_told_and_stay(tmp_path: Path) -> None:
    with studio(tmp_path) as one, Page(one) as page:
        written(page)
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    path.with_suffix(".json").write_text('{"text": ["x"], "tokens": "many"')
    with studio(tmp_path) as one, Page(one) as page:
        (kept,) = page.hello["autosaved"]
        assert (kept["text"], kept["tokens"]) == ("", 0)
        page.ask("session.new", prompt="Once")
        with pytest.raises(Refused):
            page.ask("session.recover", name=kept["name"])
        assert page.ask("session.state")["text"] == "Once"
    assert path.is_file()


def test_a_full_disk_is_told_once_and_the_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save, full = Session.save, [True]

    def failing(self: Any, path: Any) -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        save(self, path)

    monkeypatch.setattr(Session, "save", failing)
    with studio(tmp_path) as one, Page(one) as page:
        written(page)
        reply = page.event("autosave")["text"]
        assert "No space left on device" in reply
        assert "Save it under Sessions" in reply
        assert len(page.ask("session.step", n=1)["nodes"]) == 7
        page.events.clear()
        page.ask("session.step", n=1)
        assert not [e for e in page.events if e[0] == "autosave"]
        full[0] = False
        page.ask("session.step", n=1)
        assert until(lambda: files(tmp_path))
    assert not files(tmp_path, ".new")


# --- bounds -----------------------------------------------------------------------------------


@pytest.fixture
def session() -> Session:
    return Session(demo.model(), demo.tokenizer(), "Once upon a time", do_sample=True)


def test_files_are_bounded_in_number_and_size(
    tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autosave, "MOST", 3)
    autosaves = AutosaveFolder(tmp_path)
    for i in range(6):
        autosaver = Autosaver(autosaves)
        assert autosaver.write(session, "demo")
        os.utime(autosaves.path(autosaver.name or ""), (i, i))
        autosaver.close(session, "demo")
    assert len(autosaves.orphans()) == 3
    # The oldest were removed; a file that is being written is none of them.
    living = Autosaver(autosaves)
    living.write(session, "demo")
    os.utime(autosaves.path(living.name or ""), (0, 0))
    monkeypatch.setattr(autosave, "TOTAL", 1)
    autosaves.prune()
    assert [one.name for one in autosaves._all()] == [living.name]


def test_one_that_is_too_large_does_not_replace_the_last_good_one(
    tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    autosaver = Autosaver(AutosaveFolder(tmp_path), said.append)
    assert autosaver.write(session, "demo")
    (path,) = files(tmp_path)
    before = path.read_bytes()
    session.step(3)
    monkeypatch.setattr(autosave, "LARGEST", 100)
    assert not autosaver.write(session, "demo")
    assert path.read_bytes() == before
    assert "keeps up to 100" in said[0]
    assert files(tmp_path) == [path]
    assert not files(tmp_path, ".new")


def test_a_slow_disk_is_written_to_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autosave, "SHARE", 20.0)
    monkeypatch.setattr(autosave, "EVERY", 2.0)
    autosaver = Autosaver(AutosaveFolder(tmp_path))
    monkeypatch.setattr(autosaver, "_write", lambda *_: time.sleep(0.3))
    for _ in range(autosave.BEGUN + 1):
        autosaver.changed()
    assert autosaver.due == 0.0
    autosaver.look(None, "")
    assert autosaver.due is None  # nothing has changed since
    autosaver.changed()
    assert 5.0 < (autosaver.due or 0.0) <= 7.0


def test_what_a_writer_that_was_killed_has_left_is_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "autosave"
    folder.mkdir()
    for name in (".x.session.abc.tmp", "20000101-000000-00000000.new"):
        (folder / name).write_bytes(b"half")
    AutosaveFolder(tmp_path)
    assert len(list(folder.iterdir())) == 2  # another studio may be writing them now
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    AutosaveFolder(tmp_path)
    assert list(folder.iterdir()) == []


# --- killed -----------------------------------------------------------------------------------


@contextmanager
def program(folder: Path) -> Iterator[Any]:
    env = {**os.environ, "VOTIVE_STUDIO_DEMO": "1"}
    words = [sys.executable, "-m", "votive", "studio", "--no-browser", "--folder", str(folder)]
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert started.stderr is not None
        line = started.stderr.readline()
        found = re.search(r":(\d+)/\?token=(\S+)", line)
        assert found is not None, line
        yield SimpleNamespace(process=started, port=int(found[1]), token=found[2])
    finally:
        started.kill()
        started.wait()
        assert started.stderr is not None
        started.stderr.close()


def test_a_studio_that_was_killed_loses_nothing_that_is_older_than_a_few_seconds(tmp_path: Path) -> None:
    with program(tmp_path) as one, Page(one) as page:
        text = written(page, 12)
        edited = page.ask("edits.set", edits=[{"at": "model.layers.1", "do": "scale", "value": 0.5}])
        assert edited
        last = time.time_ns()  # what is written after this holds all of it
        assert until(lambda: any(f.stat().st_mtime_ns > last for f in files(tmp_path)), 60)
        one.process.send_signal(signal.SIGKILL)
        one.process.wait()
    with program(tmp_path) as two, Page(two) as page:
        (kept,) = page.hello["autosaved"]
        assert json.loads(files(tmp_path, ".json")[0].read_bytes())["model"] == "demo"
        page.ask("session.new", prompt="x")
        assert page.ask("session.recover", name=kept["name"])["text"] == text
        assert len(page.ask("edits.list")["edits"]) == 1
