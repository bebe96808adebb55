"""Work that makes each family of kernels compile: a few layouts and dtypes, at real sizes."""

from . import elements as elements
from . import layers as layers
from . import products as products
from .registry import FAMILIES as FAMILIES
