"""Instance norms, under the path where torch keeps them."""

from ..layers.instancenorm import InstanceNorm1d as InstanceNorm1d
from ..layers.instancenorm import InstanceNorm2d as InstanceNorm2d
from ..layers.instancenorm import InstanceNorm3d as InstanceNorm3d
from ..layers.instancenorm import LazyInstanceNorm1d as LazyInstanceNorm1d
from ..layers.instancenorm import LazyInstanceNorm2d as LazyInstanceNorm2d
from ..layers.instancenorm import LazyInstanceNorm3d as LazyInstanceNorm3d
from ..layers.instancenorm import _InstanceNorm as _InstanceNorm
