"""Loaders with worker processes: what comes, when something breaks, and what is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info

from .worker_datasets import Drawing, Stream, Trouble

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork"),
]

Pair = namedtuple("Pair", ["a", "b"])


def plain(batches: Any) -> Any:
    if isinstance(batches, (list, tuple)):
        return [plain(b) for b in batches]
    return batches.tolist() if hasattr(batches, "tolist") else batches


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def shared_blocks() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:votive")


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No process, no descriptor and no shared memory survives a test."""
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("no /proc on this system")
    gc.collect()
    before = descriptors()
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert shared_blocks() == 0
    assert descriptors() <= before


# --- what comes -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"prefetch_factor": 1}, {"prefetch_factor": 5}])
def test_batches_come_in_the_order_they_have_without_workers(options: dict[str, Any]) -> None:
    data = TensorDataset(votive.arange(22).view(11, 2), votive.arange(11.0))
    want = plain(list(DataLoader(data, 2)))
    for workers in (1, 2):
        assert plain(list(DataLoader(data, 2, num_workers=workers, **options))) == want


def test_shuffling_does_not_depend_on_the_number_of_workers() -> None:
    orders = []
    for workers in (0, 1, 2):
        votive.manual_seed(4)
        orders.append(plain(list(DataLoader(range(9), 2, shuffle=True, num_workers=workers))))
    assert orders[0] == orders[1] == orders[2]
    flat = [i for batch in orders[0] for i in batch]
    assert flat != sorted(flat) == list(range(9))


def test_tensors_arrive_as_they_were_sent_and_large_ones_in_shared_memory() -> None:
    image = votive.randn(2, 3, 96, 96).contiguous(memory_format=votive.channels_last)
    sent = {
        "image": image,
        "half": votive.randn(40_000).bfloat16(),
        "small": votive.tensor([1, 2], dtype=votive.int8),
        "number": votive.tensor(3.5),
        "none": votive.empty(0, 4),
        "rows": votive.arange(60_000).view(300, 200).t()[::2],
        "leaf": votive.ones(20_000, dtype=votive.float64, requires_grad=True),
        "array": np.arange(30_000),
        "pair": Pair("text", [1, None]),
    }
    (got,) = DataLoader([sent], batch_size=None, num_workers=1, collate_fn=lambda x: x)
    assert shared_blocks() == 1
    assert list(got) == list(sent)
    for name in ("image", "half", "small", "number", "none", "rows", "leaf"):
        a, b = sent[name], got[name]
        assert (a.shape, a.dtype, a.requires_grad) == (b.shape, b.dtype, b.requires_grad), name
        assert bool((a == b).all()), name
    assert got["image"].stride() == image.stride()
    assert got["image"].data_ptr() % 64 == 0
    np.testing.assert_array_equal(got["array"], sent["array"])
    assert got["pair"] == sent["pair"]
    got["half"][0] = 7.0  # the memory is this process's own to write
    kept = got["leaf"]
    del got, b
    gc.collect()
    assert shared_blocks() == 1
    assert float(kept.detach().sum()) == 20_000
    del kept
    gc.collect()
    assert shared_blocks() == 0


def test_a_worker_keeps_no_descriptor_of_what_it_has_sent() -> None:
    class Open(Dataset[Any]):
        def __len__(self) -> int:
            return 12

        def __getitem__(self, i: int) -> Any:
            return votive.zeros(50_000), descriptors()

    counts = [n for _, n in DataLoader(Open(), None, num_workers=1)]
    assert len(set(counts)) == 1


def test_a_stream_is_divided_among_workers_and_ends_when_all_have_ended() -> None:
    for workers in (1, 2):
        loader = DataLoader(Stream(7), 2, num_workers=workers, persistent_workers=True)
        for _ in range(2):
            seen = [i for batch, _ in loader for i in batch.tolist()]
            assert sorted(seen) == list(range(7))


def test_without_order_every_batch_still_comes_once() -> None:
    loader = DataLoader(range(12), 2, num_workers=2, in_order=False)
    assert sorted(i for batch in plain(list(loader)) for i in batch) == list(range(12))
    it = iter(loader)
    next(it)
    with pytest.raises(RuntimeError, match="in_order"):
        loader.state_dict()


def test_persistent_workers_live_on_and_a_broken_off_epoch_leaves_no_trace() -> None:
    class Where(Dataset[int]):
        def __len__(self) -> int:
            return 8

        def __getitem__(self, i: int) -> Any:
            return i, os.getpid()

    kept = DataLoader(Where(), 2, num_workers=2, persistent_workers=True)
    first = next(iter(kept))
    epochs = [list(kept) for _ in range(2)]
    assert [plain([i for i, _ in e]) for e in epochs] == [[[0, 1], [2, 3], [4, 5], [6, 7]]] * 2
    pids = {p for e in epochs for _, batch in e for p in batch.tolist()} | set(first[1].tolist())
    assert len(pids) == 2
    old = iter(kept)
    iter(kept)
    with pytest.raises(RuntimeError, match="newer iteration"):
        next(old)
    fresh = DataLoader(Where(), 2, num_workers=2)
    pids = {p for _ in range(2) for _, batch in fresh for p in batch.tolist()}
    assert len(pids) == 4


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_can_be_started_afresh_instead_of_forked(method: str) -> None:
    from multiprocessing import forkserver, resource_tracker

    data = TensorDataset(votive.arange(4.0))
    loader = DataLoader(data, 2, num_workers=1, multiprocessing_context=method)
    assert plain(list(loader)) == [[[0, 1]], [[2, 3]]]
    # These methods keep helper processes, each at the end of a pipe.
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


# --- random numbers ---------------------------------------------------------------------------


def test_a_run_with_workers_is_repeatable_and_workers_differ() -> None:
    def run(**options: Any) -> Any:
        votive.data.seed_everything(5)
        loader = DataLoader(Drawing(8), 2, shuffle=True, num_workers=2, **options)
        return [plain(list(loader)) for _ in range(2)]

    once = run()
    assert run() == once
    assert run(persistent_workers=True) == once
    draws = [tuple(batch[k]) for epoch in once for batch in epoch for k in (1, 2, 3)]
    assert len(set(draws)) == len(draws)


def test_a_worker_knows_itself_and_its_seed_is_the_base_seed_plus_its_number() -> None:
    class Who(Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> Any:
            info = get_worker_info()
            assert info is not None
            assert type(info.dataset) is Who
            return info.id, info.num_workers, info.seed, votive.initial_seed()

    g = votive.Generator().manual_seed(11)
    base = int(votive.empty((), dtype=votive.int64).random_(generator=g).item())
    g.manual_seed(11)
    rows = list(DataLoader(Who(), None, num_workers=2, generator=g))
    assert rows == [[w, 2, base + w, base + w] for w in (0, 1, 0, 1)]
    assert get_worker_info() is None


def test_worker_init_fn_runs_once_per_worker_before_the_first_sample() -> None:
    class Counted(Dataset[int]):
        calls: list[int] = []

        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> str:
            return str(Counted.calls)

    def init(worker: int) -> None:
        Counted.calls.append(worker)

    loader = DataLoader(Counted(), None, num_workers=2, worker_init_fn=init, persistent_workers=True)
    for _ in range(2):
        assert list(loader) == ["[0]", "[1]", "[0]", "[1]"]
    assert Counted.calls == []

    def bad(worker: int) -> None:
        raise ValueError("cannot begin")

    with pytest.raises(ValueError, match="cannot begin"):
        list(DataLoader(range(4), num_workers=1, worker_init_fn=bad))


# --- when something breaks --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("key", KeyError, "KeyError: 'no sample five'"),
        ("local", RuntimeError, "cannot be found by name"),
        ("own", RuntimeError, r"Own: \(1, 2\)"),
    ],
)
def test_an_error_in_a_worker_reaches_the_user_with_its_traceback(kind: str, error: type[Exception], text: str) -> None:
    it = iter(DataLoader(Trouble(kind), 2, num_workers=2))
    assert plain([next(it), next(it)]) == [[0, 1], [2, 3]]
    with pytest.raises(error, match=text) as seen:
        next(it)
    message = str(seen.value)
    assert "in DataLoader worker process 0" in message
    assert "worker_datasets.py" in message
    assert "\n" in message
    # As in torch, the batches behind it can still be had.
    assert plain(list(it)) == [[6, 7], [8, 9], [10, 11]]


def test_a_batch_that_cannot_be_sent_is_an_error_not_a_hang() -> None:
    with pytest.raises(Exception, match="pickle"):
        list(DataLoader(range(2), num_workers=1, collate_fn=lambda batch: lambda: batch))


@pytest.mark.parametrize(
    ("kind", "text"), [("kill", r"worker 0 \(pid \d+\) was killed by signal SIGKILL"), ("exit", "with code 3")]
)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_dead_worker_is_an_error_that_names_it(kind: str, text: str, persistent: bool) -> None:
    loader = DataLoader(Trouble(kind), 2, num_workers=2, persistent_workers=persistent)
    it = iter(loader)
    assert plain([next(it), next(it)]) == [[0, 1], [2, 3]]
    start = time.monotonic()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=text):
            next(it)
    assert time.monotonic() - start < 5
    assert plain(next(iter(loader))) == [0, 1]  # another epoch gets new workers


def test_workers_killed_from_outside_while_idle_are_noticed() -> None:
    it = iter(DataLoader(range(100), num_workers=2))
    next(it)
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        list(it)


def test_a_batch_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.data.pool.GRACE_S", 0.1)
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        list(DataLoader(Trouble("hang"), 2, num_workers=1, timeout=0.2))


def run_script(text: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


SLOW = """
    import time, os, sys
    from votive.utils.data import DataLoader, Dataset
    class Slow(Dataset):
        def __len__(self): return 1000
        def __getitem__(self, i):
            time.sleep(0.01)
            return i, os.getpid()
    for k, (i, pid) in enumerate(DataLoader(Slow(), num_workers=2)):
        print(int(pid))
        if k == 3:
            print("ready")
"""


def pids_until_ready(process: subprocess.Popen[str]) -> set[int]:
    assert process.stdout is not None
    pids = set()
    for line in process.stdout:
        if line == "ready\n":
            break
        pids.add(int(line))
    return pids


def gone(pid: int) -> bool:
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_control_c_ends_a_run_and_its_workers_quietly() -> None:
    process = run_script(SLOW)
    pids = pids_until_ready(process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_workers_end_when_the_main_process_is_killed() -> None:
    process = run_script(SLOW)
    pids = pids_until_ready(process)
    process.kill()
    process.communicate(timeout=20)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)
