"""Ranks that are processes which MPI connects, by mpi4py. Knows arrays, not tensors.

Collectives block without holding Python's lock. That all ranks are there, and mean the same, was found out before, by
short messages on a communicator of their own: MPI itself would wait for ever, or answer with wrong numbers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import DistBackendError
from ..launched import ATTENDED
from ..pmi import managed
from ..reduce_op import ReduceOp, averaged, widened
from .base import Array
from .liveness import Watch, identity, last_words

_MISSING = (
    "this needs mpi4py and an MPI: pip install 'votive[distributed]', which brings MPICH, or use the cluster's own"
)


def mpi_available() -> bool:
    """Whether mpi4py and an MPI library can be loaded.

    >>> votive.distributed.transports.mpi.mpi_available() in (True, False)
    True
    """
    try:
        load()
    except (ImportError, RuntimeError):
        return False
    return True


def load() -> Any:
    """mpi4py's MPI, not started yet.

    >>> from votive.distributed.transports import mpi
    >>> mpi.load().__name__ if mpi.mpi_available() else "mpi4py.MPI"
    'mpi4py.MPI'
    """
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except ImportError as e:
        raise ImportError(f"{_MISSING} ({e}).") from None
    return MPI


def start(limit: float = 1800.0) -> Any:
    """MPI, started so that any thread may call it; if other processes do not come within the limit, this one ends."""
    MPI = load()
    if MPI.Is_finalized():
        raise RuntimeError("MPI has been ended in this process, and can be started only once.")
    if not MPI.Is_initialized():
        # Processes that share cores would otherwise spin against one another.
        if os.cpu_count() is not None and _local_size() > (os.cpu_count() or 1):
            os.environ.setdefault("MPIR_CVAR_POLLS_BEFORE_YIELD", "0")
        with _bounded(limit):
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            "this MPI was started, or built, for one thread only; votive.distributed needs MPI_THREAD_MULTIPLE. "
            "Import votive.distributed before mpi4py.MPI."
        )
    return MPI


@contextlib.contextmanager
def _bounded(limit: float) -> Iterator[None]:
    """End this process if the block takes longer: MPI starts with Python's lock held, so nothing else could."""
    bounded = False
    with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):  # there is no stderr
        faulthandler.dump_traceback_later(limit, exit=True)
        bounded = True
    try:
        yield
    finally:
        if bounded:
            faulthandler.cancel_dump_traceback_later()


def connected(limit: float) -> MPITransport:
    """All processes, with communicators of their own."""
    MPI = load()
    comm = MPI.COMM_WORLD
    own, everyone = np.zeros(256, "u1"), np.zeros((comm.Get_size(), 256), "u1")
    text = json.dumps(identity()).encode()
    own[: len(text)] = np.frombuffer(text, "u1")
    _await(comm.Iallgather(own, everyone), limit, None)
    watch = Watch([tuple(json.loads(row.tobytes().rstrip(b"\0"))) for row in everyone], comm.Get_rank())
    _watches[:] = [watch]
    (data, copied), (words, too) = comm.Idup(), comm.Idup()
    _await(copied, limit, watch)
    _await(too, limit, watch)
    return MPITransport(data, words, watch)


def _await(request: Any, limit: float, watch: Watch | None) -> None:
    """Return when something that all processes do is done."""
    end, pause = time.monotonic() + limit, 0.0
    while not request.Test():
        wrong = None if watch is None else watch.failure()
        if wrong is None and time.monotonic() > end:
            wrong = f"Timed out after {limit:.1f} seconds; not all processes are there"
        if wrong:
            raise DistBackendError(f"init_process_group: {wrong}.")
        time.sleep(pause)
        pause = min(pause + 1e-4, 0.01)


_watches: list[Watch] = []  # that of this process
_words: list[Any] = []  # communicators beside the data


def end() -> None:
    """End MPI, if it was started here and nobody has ended it; waits for the other processes to do so, too."""
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is None or not _watches or not MPI.Is_initialized() or MPI.Is_finalized():
        return
    # MPI's own end would wait with Python's lock held, and for ever if another process has died.
    here, pause = MPI.COMM_WORLD.Ibarrier(), 1e-4
    while not here.Test():
        wrong = _watches[0].failure()
        if wrong:
            last_words(f"rank {_watches[0].rank} has ended its program: {wrong}.")
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    # Words of leaving that nobody has waited for; some libraries complain of what is left.
    for words in _words:
        while words.Iprobe(MPI.ANY_SOURCE, 0, status := MPI.Status()):
            words.Recv(np.empty(status.Get_count(MPI.BYTE), "u1"), status.Get_source(), 0)
    MPI.Finalize()


def _local_size() -> int:
    for name in ("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE"):
        with contextlib.suppress(KeyError, ValueError):
            return int(os.environ[name])
    return 1


def abort(code: int) -> NoReturn:
    """End this process, and all others by way of what has started them."""
    sys.stdout.flush()
    sys.stderr.flush()
    MPI = sys.modules.get("mpi4py.MPI")
    # `votive launch` ends the others when this one has ended, and takes what it has written before. Without a process
    # manager nobody is there to be asked; the others see for themselves.
    is_attended = os.environ.get(ATTENDED) == str(os.getppid())
    if managed() and "PMI_ID" not in os.environ and not is_attended and MPI is not None and MPI.Is_initialized():
        MPI.COMM_WORLD.Abort(code)
    os._exit(code)


class _Message:
    """A message of MPI's on its way, and what became of it."""

    def __init__(self, transport: MPITransport, request: Any, x: Array, source: int | None) -> None:
        self.transport, self.request, self.x, self.source = transport, request, x, -1
        self.receiving = source is not None
        self.status = transport.MPI.Status()

    def done(self) -> bool:
        try:
            if not self.request.Test(self.status):
                return False
        except self.transport.MPI.Exception as e:
            MPI, watch = self.transport.MPI, self.transport.watch
            if e.Get_error_class() == MPI.ERR_TRUNCATE:
                raise DistBackendError(f"recv: a rank sent more than the {self.x.nbytes:,} bytes asked for.") from None
            wrong = None if watch is None else watch.failure(0.0)
            raise DistBackendError(f"{'recv' if self.receiving else 'send'}: {wrong or 'MPI failed'} ({e}).") from None
        if self.receiving:
            self.source = self.status.Get_source()
            size = self.status.Get_count(self.transport.MPI.BYTE)
            if size != self.x.nbytes:
                raise DistBackendError(
                    f"recv: rank {self.source} sent {size:,} bytes, and the tensor of rank {self.transport.rank} "
                    f"takes {self.x.nbytes:,}."
                )
        return True


class MPITransport:
    """A communicator for data, and one for words beside it."""

    def __init__(self, comm: Any, words: Any, watch: Watch | None = None) -> None:
        self.MPI, self.comm, self.words, self.watch = load(), comm, words, watch
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._said: list[Any] = []
        _words.append(words)
        self._status = self.MPI.Status()

    def barrier(self) -> None:
        self.comm.Barrier()

    def broadcast(self, x: Array, root: int) -> None:
        self.comm.Bcast(_bytes(x), root)

    def all_reduce(self, x: Array, op: ReduceOp) -> None:
        wide = widened(x)
        self.comm.Allreduce(self.MPI.IN_PLACE, _numbers(wide), self._op(op, x))
        self._finish(x, wide, op)

    def reduce(self, x: Array, root: int, op: ReduceOp) -> None:
        wide = widened(x)
        if self.rank != root:
            self.comm.Reduce(_numbers(wide), None, self._op(op, x), root)
            return
        self.comm.Reduce(self.MPI.IN_PLACE, _numbers(wide), self._op(op, x), root)
        self._finish(x, wide, op)

    def all_gather(self, out: Array, x: Array) -> None:
        self.comm.Allgather(_bytes(x), _bytes(out))

    def reduce_scatter(self, out: Array, x: Array, op: ReduceOp) -> None:
        wide = widened(x)
        made = np.empty(out.shape, wide.dtype)
        self.comm.Reduce_scatter_block(_numbers(wide), _numbers(made), self._op(op, x))
        if op is ReduceOp.AVG:
            averaged(made, self.size)
        out[...] = made

    def all_to_all(self, outs: Sequence[Array], parts: Sequence[Array]) -> None:
        sends, takes = [p.nbytes for p in parts], [o.nbytes for o in outs]
        joined = np.concatenate([_bytes(p) for p in parts]) if parts else np.empty(0, "u1")
        found = np.empty(sum(takes), "u1")
        self.comm.Alltoallv([joined, sends, self.MPI.BYTE], [found, takes, self.MPI.BYTE])
        at = 0
        for out, size in zip(outs, takes, strict=True):
            _bytes(out)[...] = found[at : at + size]
            at += size

    def gather(self, out: Array | None, x: Array, root: int) -> None:
        self.comm.Gather(_bytes(x), None if out is None else _bytes(out), root)

    def scatter(self, out: Array, x: Array | None, root: int) -> None:
        self.comm.Scatter(None if x is None else _bytes(x), _bytes(out), root)

    def send(self, x: Array, to: int, tag: int) -> _Message:
        return _Message(self, self.comm.Isend(_bytes(x), to, tag), x, None)

    def receive(self, x: Array, source: int | None, tag: int) -> _Message:
        place = self.MPI.ANY_SOURCE if source is None else source
        return _Message(self, self.comm.Irecv(_bytes(x), place, tag), x, place)

    def tell(self, to: int, message: bytes) -> None:
        self._said = [(request, kept) for request, kept in self._said if not request.Test()]
        kept = np.frombuffer(message, "u1")
        self._said.append((self.words.Isend(kept, to, 0), kept))

    def heard(self, source: int) -> bytes | None:
        if not self.words.Iprobe(source, 0, self._status):
            return None
        message = np.empty(self._status.Get_count(self.MPI.BYTE), "u1")
        self.words.Recv(message, source, 0)
        return message.tobytes()

    def failure(self) -> str | None:
        return None if self.watch is None else self.watch.failure()

    def split(self, ranks: Sequence[int], name: str) -> MPITransport:
        group = self.comm.Get_group().Incl(list(ranks))
        # Only members call this; a tag keeps groups that are made at the same time apart.
        tag = zlib.crc32(name.encode()) % 16383
        comm, words = (self.comm.Create_group(group, 2 * tag + i) for i in (0, 1))
        return MPITransport(comm, words, self.watch)

    def close(self) -> None:
        # A rank that has failed takes nothing any more.
        end = time.monotonic() + 1
        while self._said and time.monotonic() < end:
            self._said = [(request, kept) for request, kept in self._said if not request.Test()]

    def _op(self, op: ReduceOp, x: Array) -> Any:
        MPI = self.MPI
        if x.dtype == bool:
            # As numbers of one byte: a sum of truth values is whether any is true, as in torch.
            return {"SUM": MPI.MAX, "AVG": MPI.MAX, "PRODUCT": MPI.MIN}.get(op.name) or getattr(MPI, op.name)
        return {"SUM": MPI.SUM, "AVG": MPI.SUM, "PRODUCT": MPI.PROD}.get(op.name) or getattr(MPI, op.name)

    def _finish(self, x: Array, wide: Array, op: ReduceOp) -> None:
        if op is ReduceOp.AVG:
            averaged(wide, self.size)
        if wide is not x:
            x[...] = wide


def _bytes(x: Array) -> Array:
    return x.reshape(-1).view("u1")


def _numbers(x: Array) -> Array:
    return x.view("u1") if x.dtype == bool else x
