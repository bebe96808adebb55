"""DataLoader: dataset, sampler, collation and workers put together; iterate it for batches.

Knows all parts of `votive.data`; knows no model.
"""

from __future__ import annotations

import math
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.rng import Generator
from ..cuda import is_available
from .collate import default_collate, default_convert
from .dataset import Indexed, IterableDataset
from .iteration import InProcess, Iteration, Position, Share, WithWorkers
from .pool import Pool
from .randomness import bytes_of, get_random_state, kept_random_state, set_random_state
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .worker import Job

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Forever(Sampler[None]):
    """The sampler of a stream, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Batches of a dataset, in this process or from `num_workers` others.

    Arguments and behaviour are torch's. In addition, `state_dict` and `load_state_dict` stop and
    resume in the middle of an epoch: same order, same position, same random numbers in workers.
    Tensors come from workers in shared memory that lives as long as one of the batch's tensors.

    >>> loader = votive.utils.data.DataLoader(range(5), batch_size=2)
    >>> list(loader)
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    _initialized = False

    def __init__(
        self,
        dataset: Indexed | IterableDataset[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: BaseContext | str | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        self._iterable = isinstance(dataset, IterableDataset)
        self._check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._reported_length: int | None = None
        self._pool: Pool | None = None
        self._position: Position | None = None
        self._resume: Position | None = None
        self._warned_of_pinning = False
        self._initialized = True
        self.check_worker_number_rationality()

    # --- arguments ----------------------------------------------------------------------------

    @staticmethod
    def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and timeout:
            raise ValueError(f"timeout={timeout} needs num_workers > 0; without workers there is nothing to wait for.")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option can only be specified in multiprocessing; "
                "use num_workers > 0, or leave prefetch_factor out."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")

    def _check_sampling(
        self, batch_size: int | None, shuffle: bool | None, sampler: object, batch_sampler: object, drop_last: bool
    ) -> None:
        if self._iterable:
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")

    def _default_sampler(self, shuffle: bool) -> Sampler[Any]:
        if self._iterable:
            return _Forever()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started: a context, or None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: BaseContext | str | None) -> None:
        self._context = self._checked_context(context)

    def _checked_context(self, context: BaseContext | str | None) -> BaseContext | None:
        if context is None:
            return None
        import multiprocessing

        if self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading "
                f"(num_workers > 0), but got num_workers={self.num_workers}"
            )
        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{methods!r}, but got multiprocessing_context={context!r}"
                )
            return multiprocessing.get_context(context)
        if not isinstance(context, multiprocessing.context.BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string "
                f"specifying the start method, but got multiprocessing_context={context}"
            )
        return context

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more workers than processors to run them.

        >>> votive.utils.data.DataLoader([1]).check_worker_number_rationality()
        """
        if hasattr(os, "sched_getaffinity"):
            processors = len(os.sched_getaffinity(0))
        else:
            processors = os.cpu_count() or 1
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total, but "
                f"only {processors} processors are available; use fewer workers.",
                stacklevel=3,
            )

    def __setattr__(self, name: str, value: object) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    # --- iterating ----------------------------------------------------------------------------

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _pins(self) -> bool:
        return bool(self.pin_memory) and is_available()

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        n = self._reported_length = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)

    def __iter__(self) -> Iteration:
        if self.pin_memory and not self._pins and not self._warned_of_pinning:
            self._warned_of_pinning = True
            warnings.warn(
                "pin_memory=True has no effect: no accelerator was found, so batches stay in pageable memory.",
                stacklevel=2,
            )
        resumed, self._resume = self._resume, None
        if resumed is None:
            self._position = self._here()
            return self._begin(self._position)
        self._position = resumed
        # The draws that began the interrupted epoch are made again; nobody else may notice.
        with kept_random_state():
            set_random_state(resumed.random)
            self._set_generators(resumed)
            return self._begin(resumed)

    def _begin(self, position: Position) -> Iteration:
        job = Job(
            self.dataset,
            self._iterable,
            self.batch_sampler is not None,
            self.batch_size,
            self.collate_fn,
            self.drop_last,
            self.num_workers,
            self.worker_init_fn,
        )
        if self.num_workers == 0:
            return InProcess(self, job, position)
        pool = self._pool
        if pool is None or pool.broken is not None:
            pool = Pool(job, self._context, self.timeout)
        if self.persistent_workers and pool is not self._pool:
            self._pool = pool
            weakref.finalize(self, pool.shutdown)
        keep = self.persistent_workers
        return WithWorkers(self, job, position, pool, in_order=self.in_order, keep=keep)

    # --- stopping and resuming ----------------------------------------------------------------

    def _samplers(self) -> list[Any]:
        """The samplers in use, outermost first."""
        found = [self.batch_sampler, getattr(self.batch_sampler, "sampler", None), self.sampler]
        return list({id(s): s for s in found if s is not None}.values())

    def _generators(self) -> list[Any]:
        held = [self.generator, *(getattr(s, "generator", None) for s in self._samplers())]
        return list({id(g): g for g in held if g is not None}.values())

    def _set_generators(self, position: Position) -> None:
        for generator, raw in zip(self._generators(), position.generators, strict=True):
            generator.set_state(raw)
        for sampler, epoch in zip(self._samplers(), position.epochs, strict=True):
            if epoch is not None:
                sampler.epoch = epoch

    def _here(self) -> Position:
        """The position before the first batch of an epoch that begins now."""
        epochs = [getattr(s, "epoch", None) for s in self._samplers()]
        return Position(
            random=get_random_state(),
            generators=[bytes_of(g) for g in self._generators()],
            epochs=[e if isinstance(e, int) else None for e in epochs],
        )

    def _shape(self) -> dict[str, Any]:
        """What must be equal for a position to mean the same."""
        return {
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "samples": None if self._iterable else len(self.dataset),
            "num_workers": self.num_workers,
        }

    def state_dict(self) -> dict[str, Any]:
        """Where the latest iteration stands, in plain values that `votive.save` can write.

        A stream (IterableDataset) is resumed by reading it again from its beginning. With
        `in_order=False` batches have no order to resume.

        >>> loader = votive.utils.data.DataLoader(range(6), batch_size=2)
        >>> it = iter(loader)
        >>> _ = next(it)
        >>> state = loader.state_dict()
        >>> again = votive.utils.data.DataLoader(range(6), batch_size=2)
        >>> again.load_state_dict(state)
        >>> list(again)
        [tensor([2, 3]), tensor([4, 5])]
        """
        position = self._resume or self._position
        if position is None or position.finished:
            position = self._here()
        elif self.num_workers and not self.in_order:
            raise RuntimeError(
                "DataLoader.state_dict: with in_order=False the order of batches is not "
                "repeatable, so an epoch cannot be resumed; use in_order=True, or call this "
                "between epochs."
            )
        return {
            "loader": self._shape(),
            "random": position.random,
            "generators": list(position.generators),
            "epochs": list(position.epochs),
            "delivered": position.delivered,
            "cursor": position.cursor,
            "workers": [
                {"delivered": s.delivered, "ended": s.ended, "random": dict(s.random)} for s in position.shares
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next iteration begin where `state_dict` was taken.

        >>> loader = votive.utils.data.DataLoader(range(6))
        >>> loader.load_state_dict(loader.state_dict())
        """
        now, then = self._shape(), state_dict["loader"]
        different = [k for k in now if now[k] != then[k]]
        if different == ["num_workers"] and not self._iterable:
            workers: list[Any] = []
            if any(w["random"].keys() - {"votive"} for w in state_dict["workers"]):
                warnings.warn(
                    f"load_state_dict: num_workers was {then['num_workers']} and is "
                    f"{now['num_workers']}; random numbers drawn in workers will differ.",
                    stacklevel=2,
                )
        elif different:
            raise ValueError(
                "load_state_dict: this loader is not the one that was saved: "
                + ", ".join(f"{k} was {then[k]} and is {now[k]}" for k in different)
            )
        else:
            workers = state_dict["workers"]
        position = Position(
            random=state_dict["random"],
            generators=list(state_dict["generators"]),
            epochs=list(state_dict["epochs"]),
            delivered=state_dict["delivered"],
            cursor=state_dict["cursor"] if workers else 0,
            shares=[Share(w["delivered"], w["ended"], dict(w["random"])) for w in workers],
        )
        self._position = None
        self._resume = None
        if position.delivered:
            self._resume = position
        else:
            self._set_generators(position)
