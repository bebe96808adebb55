"""What programs say to TorchScript's compiler: marks and blocks that change nothing, because everything runs as
Python.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


def script_if_tracing(fn: Callable[..., Any]) -> Any:
    """Give back a function as it is: nothing traces.

    >>> votive.jit.script_if_tracing(abs) is abs
    True
    """
    return fn


def script_method(fn: Callable[..., Any]) -> Any:
    """Give back a method as it is.

    >>> votive.jit.script_method(abs) is abs
    True
    """
    return fn


def export(fn: Callable[..., Any]) -> Any:
    """Mark a method as part of a script; it runs as Python anyway.

    >>> votive.jit.export(abs) is abs
    True
    """
    return fn


def unused(fn: Callable[..., Any]) -> Any:
    """Mark a method as no part of a script; it runs as Python anyway.

    >>> votive.jit.unused(abs) is abs
    True
    """
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function as Python inside a script, with or without arguments; it runs as Python anyway.

    >>> votive.jit.ignore(abs) is abs and votive.jit.ignore(drop=True)(abs) is abs
    True
    """
    if callable(drop):
        return drop
    if type(drop) is not bool:
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda fn: fn


def interface(obj: object) -> Any:
    """Give back a class as it is.

    >>> votive.jit.interface(int) is int
    True
    """
    if type(obj) is not type and not callable(obj):
        raise RuntimeError("interface must be applied to a class")
    return obj


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; its type is for compilers.

    >>> votive.jit.annotate(list[int], [])
    []
    """
    return the_value


def is_scripting() -> bool:
    """Whether a script runs: no, Python does.

    >>> votive.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether a trace is made: no.

    >>> votive.jit.is_tracing()
    False
    """
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which torch optimizes scripts or not; nothing changes.

    >>> with votive.jit.optimized_execution(False):
    ...     pass
    """
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block in which torch fuses scripts in some way; nothing changes.

    >>> with votive.jit.fuser("fuser1"):
    ...     pass
    """
    yield


class strict_fusion:
    """A block in which torch fails if it cannot fuse a script; nothing changes.

    >>> with votive.jit.strict_fusion():
    ...     pass
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
