"""`torch._dynamo`: the marks that libraries set for torch's compiler. Dynamo compiles nothing here, so they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....nn.compiled import CompiledModule as OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "reset",
    "run",
    "skip",
]


def is_compiling() -> bool:
    """Whether Dynamo traces right now: never."""
    return False


def is_dynamo_supported() -> bool:
    """Whether Dynamo is there: it is not."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Keep a function out of the compiler; as a decorator with or without arguments.

    `wrapping=False` asks torch not to make another function of it, but only a wrapper tells votive's compiler.
    """
    from ....compiler import disable as disabled

    if not wrapping:
        raise NotImplementedError("disable: wrapping=False is not supported; leave it out.")
    return disabled(fn, recursive, reason=reason)


def run(fn: Any = None) -> Any:
    """Run a function with what is compiled already; as a decorator, too."""
    return (lambda f: f) if fn is None else fn


def skip(fn: Any = None) -> Any:
    """Do not compile a function's own frame."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Take a function into the graph without looking inside."""
    return fn


def disallow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Break the graph at a function."""
    return fn


def forbid_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Say that a function must never be traced."""
    return fn


def nonstrict_trace(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Trace a function without Dynamo's rules."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Say that a function always returns the same."""
    return fn


def graph_break(msg: str = "") -> None:
    """End the graph here."""


def reset() -> None:
    """Forget what was compiled."""


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Say that a dimension varies."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Say that a dimension may vary."""


def mark_static(t: Any, index: Any = None) -> None:
    """Say that a dimension never varies."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Say that a tensor stays at its place."""
