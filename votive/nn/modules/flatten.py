"""Flattening, under the path where torch keeps them."""

from ..layers.reshaping import Flatten as Flatten
from ..layers.reshaping import Unflatten as Unflatten
