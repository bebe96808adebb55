"""Distances, under the path where torch keeps them."""

from ..layers.reshaping import CosineSimilarity as CosineSimilarity
from ..layers.reshaping import PairwiseDistance as PairwiseDistance
