"""Python's operators on tensors: `+ @ // % ** & | ^ ~ << >>`, comparisons, reflected and in
place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .core.promotion import promote_types
from .dispatch import binary, call_inplace, with_foreign
from .ops.registry import OPS, F

_OPERANDS = (int, float, bool, complex, np.number, np.bool_)

ELEMENTWISE = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


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
    for python, name in {**ELEMENTWISE, "pow": "pow"}.items():
        function = _function(name)
        setattr(tensor, f"__{python}__", function)
        setattr(tensor, f"__r{python}__", _reflected(function))
        setattr(tensor, f"__i{python}__", _inplace(name))
    for name in COMPARE:
        setattr(tensor, f"__{name}__", _function(name))
    tensor.__div__, tensor.__rdiv__ = tensor.__truediv__, tensor.__rtruediv__
    tensor.__idiv__ = tensor.__itruediv__
    tensor.__matmul__ = _matmul
    tensor.__rmatmul__ = _rmatmul
    tensor.__neg__ = lambda self: F.neg(self)
    tensor.__pos__ = lambda self: F.positive(self)
    tensor.__abs__ = lambda self: F.abs(self)
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
