"""Python's operators on tensors: `+ @ // % ** & | ^ ~ << >>`, comparisons, reflected and in
place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .core.promotion import promote_types
from .dispatch import binary, call_inplace, with_foreign
from .ops.registry import COMPOSITES, OPS, F, Op

_OPERANDS = (int, float, bool, complex, np.number, np.bool_)


def declared_operators() -> dict[str, tuple[str, str]]:
    """Python's operators as declarations name them: {"truediv": ("div", "arithmetic"), ...}.

    Arithmetic has reflected and in-place forms, comparisons and unary operators have not.
    """
    found = {}
    for item in (*OPS.values(), *COMPOSITES.values()):
        if python := item.operator:
            compares = isinstance(item, Op) and item.dtype_rule == "bool"
            reflected = hasattr(int, f"__r{python}__")
            found[python] = (item.name, "arithmetic" if reflected else "comparison" if compares else "unary")
    return found


def _known(other: Any) -> bool:
    return hasattr(other, "_spec") or isinstance(other, _OPERANDS)


def _function(name: str) -> Any:
    """The short path of an elementwise operator, else the composite of that name."""
    if name in OPS:
        return binary(OPS[name], operator=True)

    def general(a: Any, b: Any) -> Any:
        if not (_known(a) and _known(b)):
            return with_foreign(name, general, a, b)
        return getattr(F, name)(a, b)

    return general


def _unary(name: str) -> Any:
    return lambda self: getattr(F, name)(self)


def _reflected(function: Any) -> Any:
    return lambda self, other: function(other, self)


def _inplace(name: str) -> Any:
    if name in OPS:
        op = OPS[name]

        def write(self: Any, other: Any) -> Any:
            if not _known(other):
                return with_foreign(op.name, write, self, other)
            return call_inplace(op, (self, other, *op.defaults(2)))

        return write

    def method(self: Any, other: Any) -> Any:
        if not _known(other):
            return with_foreign(name, method, self, other)
        return getattr(self, name + "_")(other)

    return method


def install(tensor: Any) -> None:
    """Bind the operators to Tensor."""
    for python, (name, kind) in declared_operators().items():
        function = _unary(name) if kind == "unary" else _function(name)
        setattr(tensor, f"__{python}__", function)
        if kind == "arithmetic":
            setattr(tensor, f"__r{python}__", _reflected(function))
            setattr(tensor, f"__i{python}__", _inplace(name))
    tensor.__div__, tensor.__rdiv__ = tensor.__truediv__, tensor.__rtruediv__
    tensor.__idiv__ = tensor.__itruediv__
    tensor.__matmul__ = _matmul
    tensor.__rmatmul__ = _rmatmul
    tensor.__invert__ = _invert
    tensor.__round__ = lambda self, n=0: F.round(self, decimals=n)


def _invert(self: Any) -> Any:
    if self.dtype.is_inexact:
        raise TypeError(f"~ is for bool and integer tensors, got {self.dtype}.")
    return F.bitwise_not(self)


def _matmul(self: Any, other: Any) -> Any:
    if hasattr(other, "_spec"):
        return F.matmul(self, other)
    return with_foreign("matmul", _promoted_matmul, self, other)


def _rmatmul(self: Any, other: Any) -> Any:
    if hasattr(other, "_spec"):
        return F.matmul(other, self)
    return with_foreign("matmul", _promoted_matmul, other, self)


def _promoted_matmul(a: Any, b: Any) -> Any:
    """The product with an array of NumPy, whose type need not be that of the tensor."""
    common = promote_types(a.dtype, b.dtype)
    return F.matmul(a.to(common), b.to(common))
