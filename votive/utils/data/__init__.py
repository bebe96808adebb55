"""`votive.data` under the name where torch users look for it."""

from ...data import *  # noqa: F403
from ...data import __all__ as __all__
from . import collate as collate
from . import dataloader as dataloader
from . import dataset as dataset
from . import distributed as distributed
from . import sampler as sampler
