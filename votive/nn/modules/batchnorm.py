"""Batch norms, under the path where torch keeps them."""

from ..layers.batchnorm import BatchNorm1d as BatchNorm1d
from ..layers.batchnorm import BatchNorm2d as BatchNorm2d
from ..layers.batchnorm import BatchNorm3d as BatchNorm3d
from ..layers.batchnorm import LazyBatchNorm1d as LazyBatchNorm1d
from ..layers.batchnorm import LazyBatchNorm2d as LazyBatchNorm2d
from ..layers.batchnorm import LazyBatchNorm3d as LazyBatchNorm3d
from ..layers.batchnorm import _BatchNorm as _BatchNorm
from ..layers.sync_batchnorm import SyncBatchNorm as SyncBatchNorm
