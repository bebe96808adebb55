"""Directions that change what a model does: found, learned, added, taken out. Knows addresses, no model by name."""

from .conditional import ConditionalSteering, steer_when
from .directions import Direction, contrast, find_direction, random_direction
from .learned import learn_vector
from .weights import orthogonalised

__all__ = [
    "ConditionalSteering",
    "Direction",
    "contrast",
    "find_direction",
    "learn_vector",
    "orthogonalised",
    "random_direction",
    "steer_when",
]
