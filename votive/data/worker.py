"""What runs in a worker process: fetch what is asked for, send it back. Knows no loader.

Requests and answers are tuples whose first member says what they are. To the worker:
("start", epoch, base seed, random state or None, batches to skip), ("fetch", epoch, index),
("stop", epoch). From the worker: ("batch", epoch, data, changes of the random state),
("end", epoch), ("error", epoch, Failure).
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from . import transport
from .collate import default_collate
from .dataset import gathered, samples
from .randomness import Watch, seed_everything, set_random_state

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# How often a worker that has nothing to do looks whether the process that started it is there.
_PARENT_CHECK_S = 5.0
_ORPHAN_CHECK_S = 0.2


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows of itself; `get_worker_info` returns it.

    >>> votive.data.WorkerInfo(id=0, num_workers=2, seed=7, dataset="abc").seed
    7
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Inside a worker: its `id`, `num_workers`, `seed` and `dataset`; None elsewhere.

    >>> print(votive.utils.data.get_worker_info())
    None
    """
    return _info


@dataclass(frozen=True)
class Job:
    """What a worker needs to know before the first request."""

    dataset: Any
    iterable: bool
    batched: bool
    batch_size: int | None
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    num_workers: int
    init_fn: Callable[[int], Any] | None


class Fetcher:
    """Turns an index, or a list of them, into a batch; raises StopIteration when a stream ends."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stream = iter(job.dataset) if job.iterable else None
        self.ended = False

    def __call__(self, index: Any) -> Any:
        job = self.job
        if self.stream is not None:
            return job.collate_fn(self._read())
        if not job.batched:
            return job.collate_fn(job.dataset[index])
        if job.collate_fn is default_collate:
            batch = gathered(job.dataset, index)
            if batch is not None:
                return batch
        return job.collate_fn(samples(job.dataset, index))

    def _read(self) -> Any:
        """The next samples of the stream; how many they are is up to the job, not to an index."""
        size = self.job.batch_size
        if self.ended:
            raise StopIteration
        if size is None:
            return next(self.stream)  # type: ignore[arg-type]
        data = list(islice(self.stream, size))  # type: ignore[arg-type]
        self.ended = len(data) < size
        if not data or (self.ended and self.job.drop_last):
            raise StopIteration
        return data


class _Message(str):
    """Text whose repr is itself: KeyError shows the repr of its argument."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Failure:
    """An exception on its way between processes: its type and its traceback as text."""

    kind: type[BaseException]
    text: str
    where: str

    @classmethod
    def current(cls, where: str) -> Failure:
        """The exception being handled."""
        kind, error, trace = sys.exc_info()
        assert kind is not None
        return cls(kind, "".join(traceback.format_exception(kind, error, trace)), where)

    def portable(self) -> Failure:
        """Itself, or one with a plain type when its own cannot be found by name elsewhere."""
        found: Any = sys.modules.get(self.kind.__module__)
        for part in self.kind.__qualname__.split("."):
            found = getattr(found, part, None)
        return self if found is self.kind else Failure(RuntimeError, self.text, self.where)

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type that shows where it came from."""
        text = _Message(f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}")
        try:
            error = self.kind(text)
        except Exception:  # its constructor wants something else than a message
            error = RuntimeError(text)
        raise error


class _Inbox(threading.Thread):
    """Reads requests all the time, so that whoever sends them never waits for a busy worker."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(name="votive-worker-inbox", daemon=True)
        self.connection = connection
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.epoch = -1
        self.closed = False
        self.parent = os.getppid()

    def run(self) -> None:
        try:
            while True:
                while not self.connection.poll(_PARENT_CHECK_S):
                    if os.getppid() != self.parent:
                        raise transport.Dropped("orphaned")
                request = transport.receive(self.connection)
                if request[0] == "stop":
                    break
                self.epoch = request[1]
                self.requests.put(request)
        except (transport.Dropped, OSError):
            pass
        self.closed = True
        self.requests.put(None)
        # An orphan in the middle of a long batch has nobody left to stop it.
        while os.getppid() == self.parent:
            time.sleep(_ORPHAN_CHECK_S)
        os._exit(1)


def main(connection: Connection, inherited: list[Any], worker_id: int, job: Job) -> None:
    """Serve requests until the other end closes the connection."""
    # A forked worker also holds its siblings' ends; while it does, they would not see them close.
    for other in inherited:
        other.close()
    # Ctrl-C reaches every process of the terminal; the main one decides and then closes this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    inbox = _Inbox(connection)
    inbox.start()
    try:
        _serve(connection, inbox, worker_id, job)
    except transport.Dropped:
        pass
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _serve(connection: Connection, inbox: _Inbox, worker_id: int, job: Job) -> None:
    where = f"in DataLoader worker process {worker_id}"
    fetcher: Fetcher | None = None
    failure: Failure | None = None
    watch = Watch()
    first = True
    while (request := inbox.requests.get()) is not None and not inbox.closed:
        kind, epoch = request[:2]
        if epoch != inbox.epoch:
            continue  # the loader has begun another epoch and no longer wants this
        try:
            if kind == "start":
                fetcher, failure = None, None
                _, _, base_seed, random_state, skip = request
                _enter(worker_id, base_seed, job, first)
                first = False
                watch = Watch()
                fetcher = Fetcher(job)
                for _ in range(skip):  # what an earlier run has already delivered of a stream
                    fetcher(None)
                if random_state is not None:
                    set_random_state(random_state)
                continue
            if failure is not None:
                answer: Any = ("error", epoch, failure)
            else:
                assert fetcher is not None
                answer = ("batch", epoch, fetcher(request[2]), watch.changes())
        except StopIteration:
            answer = ("end", epoch)
        except Exception:
            failed = Failure.current(where).portable()
            if kind == "start":
                failure = failed
                continue
            answer = ("error", epoch, failed)
        try:
            transport.send(connection, answer)
        except transport.Dropped:
            raise
        except Exception:  # the batch cannot be pickled
            transport.send(connection, ("error", epoch, Failure.current(where).portable()))


def _enter(worker_id: int, base_seed: int, job: Job, first: bool) -> None:
    global _info
    seed = base_seed + worker_id
    seed_everything(seed)
    _info = WorkerInfo(worker_id, job.num_workers, seed, job.dataset)
    if first and job.init_fn is not None:
        job.init_fn(worker_id)
