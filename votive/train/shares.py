"""What each rank sees of the data: its share of every epoch, from wherever other ranks have stopped.

Knows loaders and samplers, not models.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from ..data.dataloader import DataLoader
from ..data.distributed import DistributedSampler
from ..data.sampler import RandomSampler, SequentialSampler
from ..ops.registry import F


class Shares(DistributedSampler):
    """A DistributedSampler that may begin in the midst of an epoch, however many ranks have seen what is before.

    >>> from votive.train.shares import Shares
    >>> rest = Shares(range(8), 2, 1, shuffle=False)
    >>> rest.start = 4
    >>> list(rest), len(rest)
    ([5, 7], 2)
    """

    start = 0  # how many samples of the epoch all ranks together have seen before

    def __iter__(self) -> Iterator[int]:
        left = islice(cycle(self._left()), len(self) * self.num_replicas)
        return islice(left, self.rank, None, self.num_replicas)

    def _left(self) -> list[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            from ..core.rng import Generator

            order = F.randperm(len(order), generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        return order[self.start :]

    def __len__(self) -> int:
        return -(-(len(self.dataset) - self.start) // self.num_replicas)


class Part:
    """Every `count`-th sample from `rank` on, none of them twice: for measuring. Ranks may have unequal numbers.

    >>> from votive.train.shares import Part
    >>> [list(Part(5, 2, rank)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3]]
    """

    def __init__(self, length: int, count: int, rank: int) -> None:
        self.own = range(rank, length, count)

    def __iter__(self) -> Iterator[int]:
        return iter(self.own)

    def __len__(self) -> int:
        return len(self.own)


def _again(loader: Any, sampler: Any) -> Any:
    """A loader like another, with another order."""
    more = {"prefetch_factor": loader.prefetch_factor} if loader.num_workers else {}
    return DataLoader(
        loader.dataset,
        loader.batch_size,
        sampler=sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        drop_last=loader.drop_last,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        persistent_workers=loader.persistent_workers,
        pin_memory_device=loader.pin_memory_device,
        in_order=loader.in_order,
        **more,
    )


def _is_plain(data: Any) -> bool:
    """Whether data is a loader whose order can be spread; anything else belongs to its rank as it is."""
    if not isinstance(data, DataLoader) or data._iterable or isinstance(data.sampler, DistributedSampler):
        return False
    drawn = type(data.sampler) is RandomSampler and not data.sampler.replacement
    if data.batch_size is None or not (drawn or type(data.sampler) is SequentialSampler):
        raise ValueError(
            "Trainer: on several ranks a DataLoader with a sampler of its own must be given the share of each rank: "
            "use sampler=DistributedSampler(...), or batches of which each rank has its own."
        )
    return True


def training_share(data: Any, rank: int, count: int, seed: int) -> Any:
    """This rank's share of training data; `batch_size` is that of each rank."""
    if not _is_plain(data):
        return data
    shuffle = type(data.sampler) is RandomSampler
    return _again(data, Shares(data.dataset, count, rank, shuffle=shuffle, seed=seed))


def measured_share(data: Any, rank: int, count: int) -> Any:
    """This rank's share of the data on which is measured: each sample once."""
    return _again(data, Part(len(data.dataset), count, rank)) if _is_plain(data) else data
