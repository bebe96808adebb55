"""The shuffle of channels, under the path where torch keeps them."""

from ..layers.reshaping import ChannelShuffle as ChannelShuffle
