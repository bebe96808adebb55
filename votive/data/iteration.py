"""One pass over a loader, in this process or with workers, and the position it has reached.

Knows samplers and workers; what belongs together is the loader's business.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .collate import pinned
from .pinning import PinningPool
from .pool import Pool
from .randomness import draw_seed
from .worker import Fetcher, Job

if TYPE_CHECKING:
    from .dataloader import DataLoader


@dataclass
class Share:
    """What one worker has delivered so far, and its random state after that."""

    delivered: int = 0
    ended: bool = False
    random: dict[str, Any] = field(default_factory=dict)


@dataclass
class Position:
    """How far a pass has come: enough to begin again behind the last batch handed out."""

    random: dict[str, Any]
    generators: list[bytes]
    epochs: list[int | None]
    delivered: int = 0
    finished: bool = False
    cursor: int = 0
    shares: list[Share] = field(default_factory=list)


class Iteration(Iterator[Any]):
    """The iterator that a loader returns."""

    def __init__(self, loader: DataLoader, job: Job, position: Position) -> None:
        self.job = job
        self.position = position
        self._sampler = loader._index_sampler
        self._indices = iter(self._sampler)
        self._base_seed = draw_seed(loader.generator)
        self._pin = loader._pins
        self._expected = loader._reported_length

    def __iter__(self) -> Iteration:
        return self

    def __len__(self) -> int:
        return len(self._sampler)

    def __next__(self) -> Any:
        if self.position.finished:
            raise StopIteration
        try:
            data = self._next()
        except StopIteration:
            self.position.finished = True
            self._close()
            raise
        self._check_length()
        return data

    def _next(self) -> Any:
        raise NotImplementedError

    def _close(self) -> None:
        """Let go of what only this pass needed."""

    def _check_length(self) -> None:
        if self._expected is None or self.position.delivered <= self._expected:
            return
        text = (
            f"Length of IterableDataset {self.job.dataset} was reported to be {self._expected} "
            f"(when accessing len(dataloader)), but {self.position.delivered} samples have been "
            "fetched."
        )
        if self.job.num_workers:
            text += " Does each worker read its own part? See get_worker_info()."
        warnings.warn(text, stacklevel=3)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled; keep the loader's state_dict().")


class InProcess(Iteration):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader: DataLoader, job: Job, position: Position) -> None:
        super().__init__(loader, job, position)
        self._fetch = Fetcher(job)
        for _ in range(position.delivered):
            index = next(self._indices)
            if job.iterable:
                self._fetch(index)

    def _next(self) -> Any:
        index = next(self._indices)
        try:
            data = self._fetch(index)
        except StopIteration:
            if not self.job.iterable:
                raise RuntimeError("a dataset's __getitem__ raised StopIteration") from None
            raise
        self.position.delivered += 1
        return pinned(data) if self._pin else data


class WithWorkers(Iteration):
    """Keeps `prefetch` batches per worker under way and hands them out in order.

    Batch k is the job of worker k % n, so the order of batches does not depend on who is faster.
    Streams go round among the workers whose stream has not ended.
    """

    def __init__(
        self, loader: DataLoader, job: Job, position: Position, pool: Pool, *, in_order: bool, keep: bool
    ) -> None:
        super().__init__(loader, job, position)
        self.pool = pool
        self._in_order = in_order
        self._keep = keep
        self._outstanding = [0] * job.num_workers
        if not keep:
            self._finalizer = weakref.finalize(self, pool.shutdown)
        # Persistent workers end with their loader, which a loop may be the last to need.
        self._loader = loader if keep else None
        if not job.iterable:
            for _ in range(position.delivered):
                next(self._indices)
        self._epoch = pool.begin()
        if not position.shares:
            position.shares = [Share() for _ in range(job.num_workers)]
        for i, share in enumerate(position.shares):
            state = share.random or None
            # A stream is read again from its beginning, which draws the same numbers again.
            skip, state = (share.delivered, None) if job.iterable else (0, state)
            if not share.ended:
                pool.send(i, ("start", self._epoch, self._base_seed, state, skip))
        self._source: Any = pool
        if self._pin:
            self._source = PinningPool(pool)
            weakref.finalize(self, self._source.close)
        for _ in range(loader.prefetch_factor or 0):
            for k in range(job.num_workers):
                self._ask((position.cursor + k) % job.num_workers)

    def _ask(self, i: int) -> None:
        """Give worker `i` the next batch to make, if there is one."""
        if self.position.shares[i].ended:
            return
        index = next(self._indices, _NOTHING)
        if index is not _NOTHING:
            self.pool.send(i, ("fetch", self._epoch, index))
            self._outstanding[i] += 1

    def _whose_turn(self) -> list[int]:
        """The workers whose answer may come next; none at the end."""
        position, n = self.position, self.job.num_workers
        waiting = [i for i in range(n) if not position.shares[i].ended]
        if not self._in_order:
            busy = [i for i in waiting if self._outstanding[i]]
            if not busy and waiting:
                self._ask(waiting[0])
            return [i for i in waiting if self._outstanding[i]]
        for k in range(n):
            i = (position.cursor + k) % n
            if i in waiting:
                position.cursor = i
                if not self._outstanding[i]:
                    self._ask(i)
                return [i] if self._outstanding[i] else []
        return []

    def _next(self) -> Any:
        if self._epoch != self.pool.epoch:
            raise RuntimeError(
                "DataLoader: a newer iteration has taken over the persistent workers, so this one has ended."
            )
        position = self.position
        while candidates := self._whose_turn():
            i, (kind, _, *rest) = self._source.receive(candidates)
            self._outstanding[i] -= 1
            share = position.shares[i]
            if kind == "end":
                share.ended = True
                continue
            self._ask(i)
            position.cursor = (i + 1) % self.job.num_workers
            position.delivered += 1
            share.delivered += 1
            if kind == "error":
                rest[0].reraise()
            data, changes = rest
            share.random.update(changes)
            return data
        raise StopIteration

    def _close(self) -> None:
        if self._pin:
            self._source.close()
        if not self._keep:
            self._finalizer()


_NOTHING = object()
