"""What a kernel could not do, said in the words of who called: out of memory, numbers too large."""

from __future__ import annotations

import math
import os
import re
import sys
from typing import Any, NoReturn

from ..core.errors import OutOfMemoryError, SizeError, caller, fail, received
from ..core.layout import Spec
from ..core.storage import cpu_allocator
from ..ops.operator import Operator
from ..ops.registry import COMPOSITES, OPS
from .state import state

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + "/"
# Where functions are written with other operators, and what lies between them and kernels.
_COMPOSED = tuple(_PACKAGE + name for name in ("ops/", "surface/window.py", "surface/interchange.py"))
_CALLING = ("ops/operator.py", "ops/plain_operator.py")
_BETWEEN = tuple(_PACKAGE + name for name in ("dispatch/", "backends/", "core/", *_CALLING))

_NUMPY_TOO_LARGE = ("array is too big", "Maximum allowed")


def called(op: str = "tensor") -> str:
    """The public function whose call led to the operator: `zeros`, not `_full`.

    Looked up on the stack, which costs nothing until something has failed.
    """
    public = {c.name for c in COMPOSITES.values()} | OPS.keys()
    frame: Any = sys._getframe(1)
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file.startswith(_COMPOSED) and not file.startswith(_BETWEEN):
            if name in public and not name.startswith("_"):
                op = name
        elif not file.startswith(_BETWEEN):
            break
        elif name == "prepare" and op == "tensor":
            op = frame.f_locals["op"].name
        frame = frame.f_back
    return op.lstrip("_")


caller.name = called


# What NumPy and our own kernels raise when memory or 64 bits do not suffice.
FAILURES = (MemoryError, OverflowError, ValueError)


def failed(plan: Any, cause: Exception) -> NoReturn:
    """Raise votive's own error for one of FAILURES that came out of a kernel."""
    raise_for(plan.op.name, plan.outs, cause)


def raise_for(op: str, outs: tuple[Spec, ...] | None, cause: Exception) -> NoReturn:
    """Raise votive's own error for what went wrong while an operator was planned or run."""
    name = called(op)
    if isinstance(cause, OverflowError):
        ours = str(cause).startswith("the integer")
        text = str(cause) if ours else "a number among its arguments does not fit into 64 bits."
        raise OverflowError(f"{name}: {text}") from None
    if isinstance(cause, ValueError):
        if not str(cause).startswith(_NUMPY_TOO_LARGE):
            raise cause
        fail(SizeError, name, "an array on the way to the result is larger than 64 bits can address.")
    if isinstance(cause, OutOfMemoryError) and not (outs and outs[0].device.type == "cpu"):
        text = str(cause)
        raise OutOfMemoryError(text if text.startswith(f"{name}:") else f"{name}: {text}") from None
    # NumPy's error knows the array that it was to make.
    shape, dtype = getattr(cause, "shape", None), getattr(cause, "dtype", None)
    if shape is not None and dtype is not None:
        cpu_allocator.fail(math.prod(shape) * dtype.itemsize, f"an array of shape {shape}", name)
    if outs:
        shapes = " and ".join(f"{s.shape} and {s.dtype}" for s in outs)
        cpu_allocator.fail(sum(s.nbytes for s in outs), f"a result of shape {shapes}", name)
    raise OutOfMemoryError(f"{name}: {cause}") from None


state.failed = failed


# How Python begins to say that an operator or function of its own does not take a value.
_PYTHONS = re.compile(
    r"unsupported operand|bad operand|'.{1,3}' not supported between|'[\w.]+' object is not|"
    r"object of type|argument of type|cannot unpack|ufunc "
)


def _blame(operator: Operator, error: Exception) -> None:
    """Raise a TypeError that names the function when one of its arguments is of a wrong type: a
    tensor's attribute was asked of something else, or Python cannot compute with it.

    Asking only after the failure keeps calls with right arguments as short as they were.
    """
    public = operator.name
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    if public.startswith("_") or (frame is not None and frame.f_code.co_filename.startswith(_COMPOSED)):
        return  # the public function that led here is the one to name
    if isinstance(error, TypeError):
        if _PYTHONS.match(str(error)):
            text = str(error).rstrip(".")
            raise TypeError(f"{public}: an argument has the wrong type ({text}).") from error
        return
    assert isinstance(error, AttributeError)
    name = error.name or ""
    known = hasattr(state.tensor, name) or any(name in getattr(c, "__annotations__", ()) for c in state.tensor.__mro__)
    if known and not isinstance(error.obj, state.tensor):
        raise TypeError(f"{public}: expected a Tensor, got {received(error.obj)}.") from None


Operator.blame_for = staticmethod(_blame)
