"""Upsampling, under the path where torch keeps them."""

from ..layers.reshaping import Upsample as Upsample
from ..layers.reshaping import UpsamplingBilinear2d as UpsamplingBilinear2d
from ..layers.reshaping import UpsamplingNearest2d as UpsamplingNearest2d
