"""`votive.distributed.tensor.experimental`: what torch calls so: context parallel, local maps, implicit replication."""

from ..calls import implicit_replication
from .context_parallel import context_parallel, context_parallel_unshard
from .local_map import local_map

__all__ = ["context_parallel", "context_parallel_unshard", "implicit_replication", "local_map"]
