"""How arguments may be spelled: `f(2, 3)`, `f((2, 3))` and `f(size=(2, 3))` mean the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .types import Tensor

_INT = {int}


def int_of(op: str, name: str, value: Any) -> int:
    """An integer argument; a tensor or NumPy integer of one element counts, a bool does not."""
    if value.__class__ is int:
        return value
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}: {name} must be integers, got {type(value).__name__}.")
    return value.__index__()


def ints(op: str, name: str, given: Any) -> tuple[int, ...]:
    """A tuple of integers from a list, a tuple or one integer."""
    if given.__class__ is tuple and {*map(type, given)} == _INT:
        return given
    if isinstance(given, (str, bytes)) or given is None:
        raise TypeError(f"{op}: {name} must be integers, got {type(given).__name__}.")
    if (hasattr(given, "_spec") and given.ndim == 0) or not hasattr(given, "__iter__"):
        return (int_of(op, name, given),)
    return tuple([int_of(op, name, v) for v in given])


def gathered(op: str, name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """The integers of a `*size` argument, written out or as one sequence."""
    if {*map(type, given)} == _INT:
        return given
    if len(given) == 1:
        return ints(op, name, given[0])
    if not given:
        raise TypeError(f"{op}: missing argument {name!r}.")
    return ints(op, name, given)


def new_shape(op: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of a tensor to be made."""
    shape = gathered(op, "size", given)
    if any(n < 0 for n in shape):
        raise RuntimeError(f"{op}: sizes must not be negative, got {shape}.")
    return shape


def also_named(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let the star argument of a function be given by its name as well.

    Python has no parameter that is both `*size` and `size=`; torch's functions accept the two.
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            if kwargs and ("input" in kwargs or name in kwargs):
                if "input" in kwargs:
                    args = (kwargs.pop("input"), *args)
                if name in kwargs:
                    args = (*args, kwargs.pop(name))
            return fn(*args, **kwargs)

        return call

    return decorate
