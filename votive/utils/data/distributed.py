"""`votive.data.distributed`, where torch users look for it."""

from ...data.distributed import DistributedSampler

__all__ = ["DistributedSampler"]
