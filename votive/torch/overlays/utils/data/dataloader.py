"""`torch.utils.data.dataloader`: the classes of iterations, which libraries test for and name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .....data.iteration import InProcess as _SingleProcessDataLoaderIter
from .....data.iteration import Iteration as _BaseDataLoaderIter
from .....data.iteration import WithWorkers as _MultiProcessingDataLoaderIter

__all__ = [
    "_BaseDataLoaderIter",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "_collate_fn_t",
    "_worker_init_fn_t",
]

_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]
