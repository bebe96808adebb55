"""Triton functions from text. Knows no operators."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from typing import Any

import triton
import triton.language as tl


@cache
def function(source: str, name: str, **known: Any) -> Any:
    """A Triton function from text that may call the `known` ones."""
    return _define(source, name, {"triton": triton, "tl": tl, "__name__": __name__, **known})


def _define(source: str, name: str, scope: dict[str, Any]) -> Any:
    """The text is where debuggers and `inspect` can find it."""
    file = f"<votive kernel {name} {sha1(source.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), scope)
    return scope[name]


def one_liners(scope: dict[str, Any], table: dict[str, str]) -> None:
    """Put Triton functions among the names of a module: `name(arguments)`, and what each returns."""
    for head, value in table.items():
        _define(f"@triton.jit\ndef {head}:\n    return {value}\n", head.partition("(")[0], scope)


def polynomial(name: str, coefficients: Sequence[float]) -> Any:
    """c[0] + c[1] x + c[2] x² + ..., by Horner's rule."""
    lines = [f"y = tl.zeros_like(x) + {coefficients[-1]!r}"]
    lines += [f"y = y * x + {c!r}" for c in coefficients[-2::-1]]
    return _function(name, "x", [*lines, "return y"])


def chebyshev(name: str, coefficients: Sequence[float]) -> Any:
    """A Chebyshev series at t in [-1, 1], by Clenshaw's rule (DLMF 3.11.15)."""
    lines = [f"b = tl.zeros_like(t) + {coefficients[-1]!r}", "after = tl.zeros_like(t)"]
    for c in coefficients[-2:0:-1]:
        lines += [f"new = 2 * t * b - after + {c!r}", "after = b", "b = new"]
    return _function(name, "t", [*lines, f"return t * b - after + {coefficients[0]!r}"])


def _function(name: str, argument: str, lines: list[str]) -> Any:
    body = "".join(f"    {line}\n" for line in lines)
    return function(f"@triton.jit\ndef {name}({argument}):\n{body}", name)
