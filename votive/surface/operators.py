"""Python's operators on tensors: `+ @ // % ** & | ^ ~ << >>`, comparisons, reflected and in
place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.promotion import promote_types
from ..dispatch import with_foreign
from ..dispatch.overrides import COMMUTATIVE
from ..ops.operator import Form
from ..ops.registry import COMPOSITES, OPS, F, Op
from .namespaces import bind_method

if TYPE_CHECKING:
    from ..tensor import Tensor


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


# Handlers of `__torch_function__` see these under Python's name, and the others as the method: `x + y` is Tensor.add.
_BY_PYTHON_NAME = frozenset(("eq", "floordiv", "and", "or", "xor", "lshift", "rshift"))


def install(tensor: Any) -> None:
    """Bind the operators to Tensor."""
    for python, (name, kind) in declared_operators().items():
        item = F.__getattr__(name)
        if kind == "unary":
            bind_method(tensor, f"__{python}__", item)
            continue
        form = Form(item, "operator")
        if python in _BY_PYTHON_NAME:
            form.__name__ = f"__{python}__"
        bind_method(tensor, f"__{python}__", form)
        if kind == "arithmetic":
            reflected = Form(item, "reflected")
            if python not in COMMUTATIVE:  # by its name, a handler tells `2 - x` from `x - 2`
                reflected.__name__ = f"__r{'div' if python == 'truediv' else python}__"
            bind_method(tensor, f"__r{python}__", reflected)
            bind_method(tensor, f"__i{python}__", Form(item, "operator in place"))
    tensor.__div__, tensor.__rdiv__ = tensor.__truediv__, tensor.__rtruediv__
    tensor.__idiv__ = tensor.__itruediv__
    tensor.__matmul__ = _matmul
    tensor.__rmatmul__ = _rmatmul
    tensor.__invert__ = _invert
    tensor.__round__ = lambda self, n=0: F.round(self, decimals=n)


def _invert(self: Tensor) -> Any:
    if self.dtype.is_inexact:
        raise TypeError(f"~ is for bool and integer tensors, got {self.dtype}.")
    return F.bitwise_not(self)


def _matmul(self: Tensor, other: object) -> Any:
    if hasattr(other, "_spec"):
        return F.matmul(self, other)
    return with_foreign("matmul", _promoted_matmul, self, other)


def _rmatmul(self: Tensor, other: object) -> Any:
    if hasattr(other, "_spec"):
        return F.matmul(other, self)
    return with_foreign("matmul", _promoted_matmul, other, self)


def _promoted_matmul(a: Tensor, b: Tensor) -> Any:
    """The product with an array of NumPy, whose type need not be that of the tensor."""
    common = promote_types(a.dtype, b.dtype)
    return F.matmul(a.to(common), b.to(common))
