"""The adaptive softmax, under the path where torch keeps them."""

from ..layers.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
