"""Training in several processes, which votive does not do."""

from __future__ import annotations

from typing import Any


class DistributedDataParallel:
    """torch's training in several processes. votive trains in one, so it cannot be made.

    >>> votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(2, 2))
    Traceback (most recent call last):
    ...
    NotImplementedError: DistributedDataParallel needs several processes...
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> DistributedDataParallel:
        raise NotImplementedError(
            "DistributedDataParallel needs several processes that exchange gradients, and votive trains in one. "
            "Use the module itself, or nn.DataParallel for several GPUs of this process."
        )
