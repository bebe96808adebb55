"""Folding, under the path where torch keeps them."""

from ..layers.reshaping import Fold as Fold
from ..layers.reshaping import Unfold as Unfold
