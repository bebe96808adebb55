"""Convolutions, under the path where torch keeps them."""

from ..layers.convolution import Conv1d as Conv1d
from ..layers.convolution import Conv2d as Conv2d
from ..layers.convolution import Conv3d as Conv3d
from ..layers.convolution import ConvTranspose1d as ConvTranspose1d
from ..layers.convolution import ConvTranspose2d as ConvTranspose2d
from ..layers.convolution import ConvTranspose3d as ConvTranspose3d
from ..layers.convolution import LazyConv1d as LazyConv1d
from ..layers.convolution import LazyConv2d as LazyConv2d
from ..layers.convolution import LazyConv3d as LazyConv3d
from ..layers.convolution import LazyConvTranspose1d as LazyConvTranspose1d
from ..layers.convolution import LazyConvTranspose2d as LazyConvTranspose2d
from ..layers.convolution import LazyConvTranspose3d as LazyConvTranspose3d
from ..layers.convolution import _ConvNd as _ConvNd
from ..layers.convolution import _ConvTransposeNd as _ConvTransposeNd
