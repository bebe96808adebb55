"""How operators compute on sparse tensors: a table from the name of an operator to a function of its arguments."""

from __future__ import annotations

from . import copying, elementwise, indexing, products, reductions, shapes
from .table import RULES

__all__ = ["RULES", "copying", "elementwise", "indexing", "products", "reductions", "shapes"]
