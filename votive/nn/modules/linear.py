"""Linear layers, under the path where torch keeps them."""

from ..layers.linear import Bilinear as Bilinear
from ..layers.linear import Identity as Identity
from ..layers.linear import LazyLinear as LazyLinear
from ..layers.linear import Linear as Linear
from ..layers.linear import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
