"""DistributedSampler: the share of one process among many. Knows ranks, not how they talk."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sized
from itertools import cycle, islice

from ..ops.registry import F
from ..random import Generator
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, of an order all replicas agree on.

    The order depends on `seed` and on the epoch given to `set_epoch`. The tail is filled up with
    indices from the front, or cut with `drop_last`, so that every replica has equally many. Unless they are given,
    `num_replicas` and `rank` are those of the group of all ranks.

    >>> [list(votive.utils.data.DistributedSampler(range(5), 2, rank, shuffle=False))
    ...  for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            # Not imported for this: nobody can have set up a group without it.
            distributed = sys.modules.get("votive.distributed")
            if distributed is None or not distributed.is_initialized():
                raise RuntimeError(
                    "DistributedSampler: there is no process group; call votive.distributed.init_process_group first, "
                    "or pass num_replicas= and rank=."
                )
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = F.randperm(n, generator=generator).tolist()
        filled = islice(cycle(order), self.total_size)
        return islice(filled, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch; call it before each, or every epoch has the same.

        >>> sampler = votive.utils.data.DistributedSampler(range(8), 2, 0)
        >>> sampler.set_epoch(1)
        """
        self.epoch = epoch
