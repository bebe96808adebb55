"""One model on several ranks (`DistributedDataParallel`), or on several GPUs of one process. The names are torch's.

Each rank of `DistributedDataParallel` holds a copy of the module, and gradients are averaged while backward runs.
Without a GPU, `DataParallel` calls its module as it is, as in torch. With one, batches are cut into pieces, each
piece runs on its GPU with copies of the parameters that belong to the graph, and the pieces are put together; so
gradients arrive at the parameters of the one module.
"""

from __future__ import annotations

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
