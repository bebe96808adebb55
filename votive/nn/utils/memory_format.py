"""Changing the memory format of convolution weights only."""

from __future__ import annotations

from typing import TypeVar

from ... import nn
from ...core.memory_format import memory_format
from ..module import Module

M = TypeVar("M", bound=Module)


def _convert(module: M, memory_format: memory_format, kinds: tuple[type[Module], ...]) -> M:
    for m in module.modules():
        if isinstance(m, kinds):
            m.weight.data = m.weight.data.clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: memory_format) -> M:
    """Lay out the weights of all 2-d convolutions below in a memory format.

    >>> conv = votive.nn.Conv2d(4, 2, 3)
    >>> _ = votive.nn.utils.convert_conv2d_weight_memory_format(conv, votive.channels_last)
    >>> conv.weight.is_contiguous(memory_format=votive.channels_last)
    True
    """
    return _convert(module, memory_format, (nn.Conv2d, nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: memory_format) -> M:
    """Lay out the weights of all 3-d convolutions below in a memory format.

    >>> conv = votive.nn.Conv3d(4, 2, 3)
    >>> _ = votive.nn.utils.convert_conv3d_weight_memory_format(conv, votive.channels_last_3d)
    >>> conv.weight.is_contiguous(memory_format=votive.channels_last_3d)
    True
    """
    return _convert(module, memory_format, (nn.Conv3d, nn.ConvTranspose3d))
