"""Shuffles of pixels, under the path where torch keeps them."""

from ..layers.reshaping import PixelShuffle as PixelShuffle
from ..layers.reshaping import PixelUnshuffle as PixelUnshuffle
