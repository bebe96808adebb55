"""Keys and values that processes share, and who takes part."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import votive.distributed as dist
from votive.distributed import rendezvous
from votive.distributed.rendezvous import find_place

TIMEOUT = timedelta(seconds=10)
KINDS = ("hash", "file", "tcp", "prefix")


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], dist.Store]:
    """Opens the same store again and again, as several processes would."""
    kind = request.param
    if kind == "file":
        return lambda: dist.FileStore(tmp_path / "store", 2)
    shared = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=TIMEOUT) if kind == "tcp" else dist.HashStore()
    if isinstance(shared, dist.TCPStore):
        return lambda: dist.TCPStore("127.0.0.1", shared.port, timeout=TIMEOUT)
    return lambda: dist.PrefixStore("p", shared) if kind == "prefix" else shared


def test_values_are_seen_by_all(open_store: Callable[[], dist.Store]) -> None:
    a, b = open_store(), open_store()
    a.set("k", "v")
    assert b.get("k") == b"v"
    a.set("k", b"\x00\n \xff")
    assert b.get("k") == b"\x00\n \xff"
    assert [a.add("n", 2), b.add("n", 3), a.add("n", -1)] == [2, 5, 4]
    assert b.get("n") == b"4"
    b.append("k2", "x")
    a.append("k2", "y")
    assert a.multi_get(["k2", "n"]) == [b"xy", b"4"]
    b.multi_set(["m1", "m2"], ["1", "2"])
    assert a.check(["m1", "m2"])
    assert not a.check(["m1", "m3"])
    assert a.compare_set("c", "", "first") == b"first"
    assert b.compare_set("c", "other", "second") == b"first"
    assert b.compare_set("c", "first", "second") == b"second"
    assert a.num_keys() == 6
    assert b.delete_key("c")
    assert not a.delete_key("c")


def test_waiting_ends_when_somebody_sets_the_key(open_store: Callable[[], dist.Store]) -> None:
    a, b = open_store(), open_store()
    thread = threading.Thread(target=lambda: (time.sleep(0.1), b.set("late", "1")))
    thread.start()
    assert a.get("late") == b"1"
    thread.join()
    with pytest.raises(dist.DistStoreError, match="keys: never"):
        a.wait(["late", "never"], timedelta(seconds=0.1))


def test_numbers_that_many_add_to_at_once_lose_nothing(open_store: Callable[[], dist.Store]) -> None:
    stores = [open_store() for _ in range(4)]
    threads = [threading.Thread(target=lambda s=s: [s.add("n", 1) for _ in range(20)]) for s in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].get("n") == b"80"


def test_a_server_survives_what_is_no_request() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=TIMEOUT)
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x01\x00\x00\x00\x08\x00\x00\x00\xff\xff\xff\xffabcd"):
        with socket.create_connection(("127.0.0.1", store.port), timeout=5) as connection:
            connection.sendall(noise)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(10) == b""
    store.set("k", "v")
    assert store.get("k") == b"v"
    store.close()


def test_a_port_in_use_and_a_server_that_is_not_there_are_errors() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=TIMEOUT)
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("127.0.0.1", store.port, is_master=True)
    store.close()
    with pytest.raises(dist.DistNetworkError, match="timed out after"):
        dist.TCPStore("127.0.0.1", 1, timeout=timedelta(seconds=0.1))


def test_the_place_of_a_process_is_what_its_launcher_says(monkeypatch: pytest.MonkeyPatch) -> None:
    served = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=TIMEOUT)
    for rank, size in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        with monkeypatch.context() as m:
            m.setenv(rank, "1")
            m.setenv(size, "4")
            m.setenv("MASTER_ADDR", "127.0.0.1")
            m.setenv("MASTER_PORT", str(served.port))
            place = find_place(None, -1, -1, None, TIMEOUT, uses_mpi=True)
            assert place[:2] == (1, 4)
            assert isinstance(place.store, dist.TCPStore)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu[003-007,9],cpu1", "gpu003"), ("n7,n8", "n7"), ("alone", "alone"), ("r[12,14]-ib[0-3]", "r12-ib0"),
     ("a-b[8].site", "a-b8.site")],
)  # fmt: skip
def test_ranks_of_slurm_meet_on_their_first_machine(nodes: str, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "20001",
        "SLURM_STEP_ID": "2", "SLURM_JOB_NODELIST": "other", "SLURM_STEP_NODELIST": nodes,
    }  # fmt: skip
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    asked: list[object] = []
    monkeypatch.setattr(rendezvous, "_by_tcp", lambda *args: asked.append(args))
    rendezvous.find_place(None, -1, -1, None, TIMEOUT, uses_mpi=True)
    assert asked == [(first, 12_018, 3, 4, TIMEOUT)]
    monkeypatch.setenv("MASTER_ADDR", "chosen")
    monkeypatch.setenv("MASTER_PORT", "5")
    rendezvous.find_place(None, -1, -1, None, TIMEOUT, uses_mpi=True)
    assert asked[1] == ("chosen", 5, 3, 4, TIMEOUT)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find(method: str | None = None, rank: int = -1, size: int = -1) -> object:
        return find_place(method, rank, size, None, TIMEOUT, uses_mpi=True)

    with pytest.raises(ValueError, match="RANK expected"):
        find()
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="WORLD_SIZE expected"):
        find()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="MASTER_ADDR expected"):
        find()
    with pytest.raises(ValueError, match="rank=3 is not among the 2"):
        find(None, 3)
    with pytest.raises(ValueError, match="port number missing"):
        find("tcp://127.0.0.1", 0, 2)
    with pytest.raises(RuntimeError, match="No rendezvous handler for smoke"):
        find("smoke://x", 0, 2)
    places = [find(f"file://{tmp_path}/f?rank={r}&world_size=2") for r in (0, 1)]
    assert [p[:2] for p in places] == [(0, 2), (1, 2)]
    places[0].store.set("k", "v")
    assert places[1].store.get("k") == b"v"
