"""The names of torch's positional arguments, from its schemas and signatures. Calls nothing."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def keyword_forms(op: Any, count: int) -> Iterator[tuple[str, ...]]:
    """Name lists, one per overload, for the first `count` positional arguments of an OpInfo."""
    return (names[:count] for names in _signatures(op.name, op.op) if len(names) >= count)


@cache
def _signatures(name: str, fn: Any) -> tuple[tuple[str, ...], ...]:
    if inspect.isfunction(fn):
        # A test's lambda hides the order of the real arguments.
        if fn.__module__.startswith("torch.testing"):
            return ()
        parameters = inspect.signature(fn).parameters.values()
        if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
            return ()
        return (tuple(p.name for p in parameters if p.kind in _POSITIONAL),)
    schemas = torch._C._jit_get_schemas_for_operator("aten::" + _aten(name))
    overloads = (tuple(a.name for a in s.arguments if not a.is_out) for s in schemas)
    # torch's argument parser calls `self` of the schemas `input`.
    return tuple(dict.fromkeys(tuple("input" if n == "self" else n for n in names) for names in overloads))


def _aten(name: str) -> str:
    space, _, last = name.rpartition(".")
    return f"{space}_{last}" if space in ("special", "linalg", "fft") else last
