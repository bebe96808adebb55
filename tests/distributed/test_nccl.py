"""NCCL without a GPU: how it is found, what it is told, and what becomes of its errors. `tests/cuda` has the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive.distributed as dist
from tests import docstrings
from tests.cuda.fake_nccl import FakeNccl
from votive.backends.cuda.libraries import cublas
from votive.distributed import nccl as calls
from votive.distributed.transports import nccl

DOCS = docstrings.examples([nccl, calls])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "library", nccl.Library())
    monkeypatch.setattr(cublas, "opened", lambda names: None)
    assert not dist.is_nccl_available()
    assert not dist.is_backend_available("nccl")
    with pytest.raises(dist.DistBackendError, match=r"pip install nvidia-nccl.*\"mpi\" takes GPU tensors too"):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNccl:
    found = FakeNccl()
    monkeypatch.setattr(nccl.library, "lib", found)
    return found


def test_ranks_are_connected_by_an_id(fake: FakeNccl) -> None:
    unique_id = nccl.library.unique_id()
    assert len(unique_id) == 128
    assert b"\0" in unique_id.rstrip(b"\0")  # whole, not up to the first zero

    def run() -> Any:
        rank = dist.get_rank()
        comm = nccl.Communicator(unique_id, 2, rank)
        x = np.arange(4, dtype=np.float32) + rank
        comm.all_reduce(x.ctypes.data, x.ctypes.data, 4, "float32", dist.ReduceOp.SUM, 0)
        z, found = np.array([1 + 2j * rank], np.complex64), np.empty(2, np.complex64)
        comm.all_gather(z.ctypes.data, found.ctypes.data, 1, "complex64", 0)
        truth = np.array([rank == 1, False])
        comm.all_reduce(truth.ctypes.data, truth.ctypes.data, 2, "bool", dist.ReduceOp.SUM, 0)
        other = np.empty(1, np.complex64)
        comm.exchange([(1 - rank, z.ctypes.data, 1)], [(1 - rank, other.ctypes.data, 1)], "complex64", 0)
        assert comm.failure() is None
        comm.close()
        comm.close()
        with pytest.raises(dist.DistBackendError, match="was destroyed"):
            comm.broadcast(0, 0, 1, "float32", 0, 0)
        return x.tolist(), found.tolist(), truth.tolist(), other.item()

    first, second = dist.simulate(run, 2)
    assert first == ([1.0, 3.0, 5.0, 7.0], [1 + 0j, 1 + 2j], [True, False], 1 + 2j)
    assert second[3] == 1 + 0j
    assert fake.ended == ["destroy"] * 2


def test_errors_and_versions(fake: FakeNccl) -> None:
    assert nccl.library.version() == (2, 27, 3)

    def older(version: Any) -> int:
        version._obj.value = 2804
        return 0

    fake.ncclGetVersion = older  # type: ignore[method-assign]
    assert nccl.library.version() == (2, 8, 4)
    nccl.library.check(nccl.IN_PROGRESS, "anything")
    with pytest.raises(dist.DistBackendError, match=r"ncclSend: NCCL says 'invalid argument': a word more \(error 4\)"):
        nccl.library.check(4, "ncclSend")
    comm = nccl.Communicator(nccl.library.unique_id(), 1, 0)
    fake.later = 6
    assert "unhandled system error" in (comm.failure() or "")
    comm.close(abort=True)
    assert fake.ended == ["abort"]
    assert comm.failure() == "the communicator was destroyed"


def test_what_it_does_not_have_goes_another_way() -> None:
    assert nccl.supports("float16", dist.ReduceOp.AVG)
    assert not nccl.supports("int16")
    assert not nccl.supports("int64", dist.ReduceOp.BAND)
    assert not nccl.supports("bool", dist.ReduceOp.AVG)
    assert not nccl.supports("complex64", dist.ReduceOp.PRODUCT)
