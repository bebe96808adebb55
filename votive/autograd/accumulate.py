"""How a gradient becomes `leaf.grad`: brought to its shape and dtype, and kept apart from the memory
of other tensors.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..core.layout import Spec
from ..dispatch.plan import make
from ..ops.registry import F
from .grad_hooks import checked, hook_name

if TYPE_CHECKING:
    from ..tensor import Tensor

# References to a gradient inside `accumulate` when the engine alone holds it: the two frames'
# locals and the argument of getrefcount.
_SOLE = 3


def fit(grad: Tensor, spec: Spec) -> Tensor:
    """Bring a gradient to the shape and dtype of what it belongs to."""
    if grad._spec.shape != spec.shape:
        grad = F._reduce_to(grad, spec.shape)
    if grad._spec.dtype is not spec.dtype and spec.dtype.is_inexact:
        if grad._spec.dtype.is_complex and not spec.dtype.is_complex:
            grad = F.real(grad)
        if grad._spec.dtype is not spec.dtype:
            grad = F._to_dtype(grad, spec.dtype)
    return grad


def _alone(grad: Tensor) -> bool:
    """Whether nobody else sees the memory of a gradient, except the base that it is a view of."""
    held = 2  # the name below, and the one that `getrefcount` has
    storage = grad._storage
    if storage.root is not storage:  # the memory is another's
        return False
    base = grad._base
    if base is not None and (sys.getrefcount(base) > 3 or storage.nbytes != grad._spec.nbytes):
        return False
    for t in (grad,) if base is None else (grad, base):
        held += 1
        # What kernels are given may hold the memory as well.
        if getattr(t._data, "storage", None) is storage:
            held += 1
            if sys.getrefcount(t._data) > 2:
                return False
    return sys.getrefcount(storage) <= held


def accumulate(leaf: Tensor, grad: Tensor, create_graph: bool) -> None:
    """Add a gradient to `leaf.grad`, keeping it apart from every other tensor's memory."""
    old = leaf._grad
    if old is None:
        if create_graph:
            leaf._grad = grad.clone()
        elif (
            sys.getrefcount(grad) <= _SOLE
            and grad._spec.__class__ is Spec
            and _alone(grad)
            and (grad._spec.contiguous or grad._spec is leaf._spec)
        ):
            if grad._base is not None:
                grad = make(grad._storage, grad._data, grad._spec, grad._offset)
            grad._rg = False
            leaf._grad = grad
        else:
            leaf._grad = grad.detach().clone()
    elif create_graph:
        leaf._grad = old + grad
    elif old._spec.__class__ is not Spec and grad._spec.__class__ is Spec:
        leaf._grad = grad + old  # what was sparse becomes dense
    else:
        old.add_(grad)
    for fn in tuple((leaf._post_hooks or {}).values()):
        made = fn(leaf)
        if made is not None and checked(fn, leaf, made) is not leaf:
            raise RuntimeError(
                f"hook '{hook_name(fn)}' returned a Tensor, which would have no effect; hooks after "
                "accumulation should return None, and may change the tensor's .grad."
            )
