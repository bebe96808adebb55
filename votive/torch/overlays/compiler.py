"""`torch.compiler`: the marks that programs set for torch's compiler, beside what votive's own compiler takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cudagraph_mark_step_begin",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "substitute_in_graph",
]


def allow_in_graph(fn: Any) -> Any:
    """Take a function into the graph without looking inside: votive traces what it computes, which gives the same."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Say that a function always returns the same."""
    return fn


def nested_compile_region(fn: Any = None) -> Any:
    """Say that a function may be compiled once and used many times."""
    return (lambda f: f) if fn is None else fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Any], Any]:
    """Say what a tracer that reads bytecode may follow instead of a C function; votive's does not read bytecode."""
    return lambda traceable_fn: traceable_fn


def cudagraph_mark_step_begin() -> None:
    """Say that what the step before returned may be written over; votive keeps what is still referred to."""


def is_dynamo_compiling() -> bool:
    """Whether Dynamo traces right now: never."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported right now: never."""
    return False


def list_backends(exclude_tags: tuple[str, ...] = ()) -> list[str]:
    """The compilers to choose from."""
    return ["inductor"]
