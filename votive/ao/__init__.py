"""Quantization by rewriting modules, with the names of torch's `torch.ao`: observers, fake quantization, modules of
8 bits, and what turns one into the other.

>>> net = votive.nn.Sequential(votive.nn.Linear(8, 4))
>>> votive.ao.quantization.quantize_dynamic(net)[0]
DynamicQuantizedLinear(in_features=8, out_features=4, dtype=votive.qint8, qscheme=votive.per_tensor_affine)
"""

from __future__ import annotations

from . import nn, quantization

__all__ = ["nn", "quantization"]
