"""Checkpoints beside the program, and folders of them: whole or not there, whatever happens while they are written."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from votive import nn
from votive.distributed import checkpoint
from votive.distributed.checkpoint import background, files, folders
from votive.distributed.fsdp import fully_shard
from votive.io import safetensors

DOCS = docstrings.examples([background, folders])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Writing waits until this is set."""
    go, save_file = threading.Event(), safetensors.save_file

    def late(*args: Any) -> None:
        assert go.wait(60)
        save_file(*args)

    monkeypatch.setattr(safetensors, "save_file", late)
    yield go
    go.set()


def of_rank(value: float) -> dict[str, Any]:
    return {"w": fully_shard(_filled(value)).state_dict(), "step": int(value)}


def _filled(value: float) -> nn.Linear:
    layer = nn.Linear(2, 6)
    for p in layer.parameters():
        nn.init.constant_(p, value)
    return layer


def loaded(path: Any) -> tuple[float, int]:
    alone = nn.Linear(2, 6)
    state = {"w": alone.state_dict(), "step": 0}
    checkpoint.load(state, checkpoint_id=path, no_dist=True)
    assert len(set(alone.weight.flatten().tolist())) == 1
    return alone.weight[0, 0].item(), state["step"]  # type: ignore[return-value]


def test_what_is_written_later_is_not_seen(tmp_path: Path, held: threading.Event) -> None:
    def run() -> bool:
        model = fully_shard(_filled(3.0))
        saved = checkpoint.async_save({"w": model.state_dict(), "step": 7}, checkpoint_id=tmp_path / "a")
        with votive.no_grad():
            for p in model.parameters():
                p.fill_(9.0)
        was_done = saved.done()
        dist.barrier()  # the program's own calls go on
        assert not (tmp_path / "a").exists()
        held.set()
        assert saved.result(60) is None
        return was_done

    assert dist.simulate(run, 3) == [False] * 3
    assert loaded(tmp_path / "a") == (3.0, 7)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_one_is_written_at_a_time(tmp_path: Path, held: threading.Event) -> None:
    first = checkpoint.async_save({"x": votive.zeros(2)}, checkpoint_id=tmp_path / "a", no_dist=True)
    second: list[Future[None]] = []
    thread = threading.Thread(target=lambda: second.append(_saved_after(first, tmp_path / "b")))
    thread.start()
    assert not first.done()
    held.set()
    thread.join(60)
    assert second[0].result(60) is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def _saved_after(first: Future[None], path: Path) -> Future[None]:
    background._under_way.future = first  # of this thread
    found = checkpoint.async_save({"x": votive.ones(2)}, checkpoint_id=path, no_dist=True)
    assert first.done()
    return found


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "part")


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_full_disk_is_an_error_of_all_and_leaves_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int
) -> None:
    save_file = safetensors.save_file
    broken = [False]

    def of_last_rank(tensors: Any, path: Any) -> None:
        if broken[0] and f"part-{ranks - 1:05}" in str(path):
            full()
        save_file(tensors, path)

    monkeypatch.setattr(safetensors, "save_file", of_last_rank)

    def run() -> list[str]:
        folder = checkpoint.StepFolders(tmp_path, keep_last=1)
        folder.save(1, of_rank(1.0))
        dist.barrier()
        broken[0] = True
        dist.barrier()
        said = []
        for save in (folder.save, lambda step, state: folder.async_save(step, state).result()):
            with pytest.raises((OSError, dist.DistError), match="No space left") as found:
                save(2, of_rank(2.0))
            said.append(type(found.value).__name__)
        folder._pending = None
        dist.barrier()
        assert folder.steps() == [1]
        broken[0] = False
        dist.barrier()
        folder.async_save(3, of_rank(3.0))  # the group is not given up
        folder.wait()
        dist.barrier()
        assert folder.steps() == [3]
        return said

    found = dist.simulate(run, ranks)
    assert found[-1] == ["OSError"] * 2
    assert found[:-1] == [["DistError"] * 2] * (ranks - 1)
    assert loaded(tmp_path / "step-00000003") == (3.0, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000003"]


class Killed(BaseException):
    """As if the process had ended here."""


POINTS = ("rmtree", "mkdir", "save_file", "half a file", "index", "before the swap", "within the swap",
          "after the swap", "removing")  # fmt: skip


@pytest.mark.parametrize(("rank", "point"), [(0, p) for p in POINTS] + [(1, p) for p in POINTS[2:4]])
def test_whoever_is_killed_when_it_suits_least_finds_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, rank: int
) -> None:
    def write(step: int, kill: bool) -> None:
        def run() -> None:
            checkpoint.StepFolders(tmp_path, keep_last=2).save(step, of_rank(step))

        if not kill:
            dist.simulate(run, 2)
            return
        with monkeypatch.context() as patched:
            _kill_at(patched, point, rank)
            with pytest.raises(Killed):
                dist.simulate(run, 2)

    write(1, False)
    write(2, False)
    write(3, True)
    survived = checkpoint.StepFolders(tmp_path, no_dist=True)
    step = survived.steps()[-1]
    assert step in (2, 3)
    assert loaded(survived.path(step)) == (step, step)
    write(4, False)
    assert loaded(survived.path(4)) == (4, 4)
    assert not list(tmp_path.glob("*.writing"))


def _kill_at(patched: pytest.MonkeyPatch, point: str, rank: int) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise Killed(point)

    def die_first(original: Callable[..., Any], when: Callable[..., bool], after: bool = False) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if when(*args, **kwargs):
                if after:
                    original(*args, **kwargs)
                die()
            return original(*args, **kwargs)

        return call

    part = f"part-{rank:05}"
    # What is left on disk stays there: nobody cleans up behind a killed process.
    patched.setattr(files.Writing, "abandon", lambda self: None)
    if point in ("rmtree", "mkdir"):
        prepare = die_first(files.Writing.prepare, lambda w: w.rank == 0, point == "mkdir")
        patched.setattr(files.Writing, "prepare", prepare)
    elif point == "save_file":
        patched.setattr(safetensors, "save_file", die_first(safetensors.save_file, lambda t, p: part in str(p)))
    elif point == "half a file":

        def half(tensors: Any, path: Any) -> None:
            if part in str(path):
                Path(path).write_bytes(b"half")
                die()
            safetensors_save(tensors, path)

        safetensors_save = safetensors.save_file
        patched.setattr(safetensors, "save_file", half)
    elif point == "index":
        patched.setattr(files, "replacing", die)
    elif point in ("before the swap", "after the swap"):
        patched.setattr(files, "_swap", die_first(files._swap, lambda *_: True, point == "after the swap"))
    elif point == "within the swap":
        patched.setattr(files, "sync_folder", die)
    else:
        remove = die_first(shutil.rmtree, lambda path, **_: "step-00000001" in str(path))
        patched.setattr(shutil, "rmtree", remove)


def test_a_checkpoint_that_is_replaced_is_found_between_two_renames(tmp_path: Path) -> None:
    kept = checkpoint.StepFolders(tmp_path, no_dist=True)
    kept.save(5, {"x": votive.ones(1)})
    kept.path(5).rename(tmp_path / "step-00000005.old")
    assert kept.steps() == [5]
    state = {"x": votive.zeros(1)}
    kept.load(5, state)
    assert state["x"].item() == 1.0


def test_tensors_of_any_size_are_read_by_name(tmp_path: Path) -> None:
    def run() -> None:
        mine = {f"of {dist.get_rank()}": votive.arange(dist.get_rank() + 2)}
        checkpoint.save(mine, checkpoint_id=tmp_path / "a")

    dist.simulate(run, 2)
    np.testing.assert_array_equal(files.read_whole(tmp_path / "a", "of 1"), [0, 1, 2])
    with pytest.raises(KeyError, match="is not in the checkpoint"):
        files.read_whole(tmp_path / "a", "of 2")


def test_how_many_are_kept_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        checkpoint.StepFolders(tmp_path, keep_last=0)
