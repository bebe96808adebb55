"""Nested tensors: batches of tensors that differ in one dimension, without padding.

>>> x = votive.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=votive.jagged)
>>> (x * 2).unbind()
(tensor([2., 4.]), tensor([6.]))
"""

from __future__ import annotations

from . import rules, rules_reduction, rules_shape
from .convert import as_nested_tensor, masked_select, narrow, nested_tensor, nested_tensor_from_jagged, to_padded_tensor
from .tensor import NestedTensor

__all__ = [
    "NestedTensor",
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "rules",
    "rules_reduction",
    "rules_shape",
    "to_padded_tensor",
]
