"""`torch.utils`: exchanging tensors, and renaming what is shown elsewhere."""

from __future__ import annotations

from typing import Any

from ....tensor import Tensor

__all__ = ["set_module", "swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let two tensors change places: values, history, class and attributes."""
    if not isinstance(t1, Tensor) or not isinstance(t2, Tensor):
        raise TypeError("swap_tensors: takes two tensors.")
    for t in (t1, t2):
        if t.grad_fn is not None or t._base is not None:
            raise RuntimeError("swap_tensors: takes leaves that are no views.")
    kind = type(t1)
    t1.__class__, t2.__class__ = type(t2), kind
    ours, theirs = dict(vars(t1)), dict(vars(t2))
    slots = ("_storage", "_data", "_spec", "_offset", "_rg", "_grad", "_edge", "_inference")
    kept = [{name: getattr(t, name) for name in slots if hasattr(t, name)} for t in (t1, t2)]
    for target, attributes, fields in ((t1, theirs, kept[1]), (t2, ours, kept[0])):
        vars(target).clear()
        vars(target).update(attributes)
        for name, value in fields.items():
            setattr(target, name, value)


def set_module(obj: Any, mod: str) -> None:
    """Say that a function or class is of another module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
