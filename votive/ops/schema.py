"""Schemas: an operator's name, arguments, types and defaults, parsed from one line of text.

    "sum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)"

Types: Tensor, Operand (tensor or number), Mask (bool tensor), Scalar (number known at run time),
and the static ones: int, float, bool, str, dtype, device, Generator, number, any; `[]` lists, `?`
may be None.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from ..tensor import Tensor


def is_tensor(value: object) -> TypeIs[Tensor]:
    """Whether a value is a tensor, without knowing the class."""
    return hasattr(value, "_spec")


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "<required>"})()

_ARG = re.compile(r"^(\w+)(\[\])?(\?)?\s+(\w+)(?:=(.+))?$")
TENSOR_TYPES = frozenset(["Tensor", "Operand", "Mask"])


@dataclass(frozen=True)
class Arg:
    """One argument of an operator."""

    name: str
    type: str
    is_list: bool
    optional: bool
    default: Any
    keyword_only: bool

    @property
    def is_tensor(self) -> bool:
        return self.type in TENSOR_TYPES

    @property
    def is_runtime(self) -> bool:
        """Passed to the kernel at each call, rather than baked into the plan."""
        return self.is_tensor or self.type == "Scalar"

    def __str__(self) -> str:
        text = f"{self.type}{'[]' if self.is_list else ''}{'?' if self.optional else ''} {self.name}"
        return text if self.default is REQUIRED else f"{text}={self.default!r}"


@dataclass(frozen=True)
class Schema:
    """Name and arguments; `str()` gives the text back."""

    name: str
    args: tuple[Arg, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.args)

    @cached_property
    def runtime_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.args if a.is_runtime)

    @cached_property
    def tensor_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.args if a.is_tensor)

    def __str__(self) -> str:
        parts, star = [], False
        for a in self.args:
            if a.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(str(a))
        return f"{self.name}({', '.join(parts)})"

    def python_signature(self, *, out: bool = False, spellings: dict[str, str] | None = None) -> str:
        """The parameter list of the Python function; `spellings` adds other names for arguments."""
        parts, star = [], False
        respelt = (spellings or {}).values()
        for a in self.args:
            if a.keyword_only and not star:
                parts.append("*")
                star = True
            default = None if a.default is REQUIRED and a.name in respelt else a.default
            parts.append(a.name if default is REQUIRED else f"{a.name}={default!r}")
        extra = (["out=None"] if out else []) + [f"{name}=None" for name in spellings or ()]
        if extra and not star:
            parts.append("*")
        return ", ".join(parts + extra)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        if ch in "([":
            depth += 1
        elif ch in ")]":
            depth -= 1
        elif ch == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail else parts


def parse(text: str) -> Schema:
    """Read a schema line."""
    name, rest = text.split("(", 1)
    body = rest.rsplit(")", 1)[0]
    args: list[Arg] = []
    keyword = False
    for part in _split(body):
        if part == "*":
            keyword = True
            continue
        m = _ARG.match(part)
        if m is None:
            raise ValueError(f"schema: cannot read argument {part!r} in {text!r}.")
        kind, is_list, optional, arg_name, default = m.groups()
        value = REQUIRED if default is None else ast.literal_eval(default)
        args.append(Arg(arg_name, kind, bool(is_list), bool(optional), value, keyword))
    return Schema(name.strip(), tuple(args))
