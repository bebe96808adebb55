"""Schemas of custom operators: written from annotations, and read as Python signatures. Knows no operator."""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.device import device
from ..core.dtype import dtype
from ..tensor import Tensor

_NAMES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    device: "Device",
    dtype: "ScalarType",
}


def _name(kind: Any) -> str:
    if kind in _NAMES:
        return _NAMES[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in inner if a is not type(None)]
        if len(rest) == 1 and len(inner) == 2:
            return f"{_name(rest[0])}?"
        if set(rest) <= {int, float, bool}:
            return "Scalar"
    if origin in (list, Sequence, typing.Sequence) and len(inner) == 1:
        return f"{_name(inner[0])}[]"
    raise ValueError(f"infer_schema: no type of a schema stands for {kind}; write the schema yourself.")


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """The schema that a function's annotations say, such as `(Tensor x, SymInt k=2) -> Tensor`."""
    found = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    every = mutates_args == "unknown"
    changed = set() if isinstance(mutates_args, str) else set(mutates_args)
    if missing := changed - set(found.parameters):
        raise ValueError(f"infer_schema: {sorted(missing)} in mutates_args are no parameters of the function.")
    parts: list[str] = []
    letters: Iterable[str] = iter("abcdefghijklmnopqrstuvwxyz")
    for name, p in found.parameters.items():
        if name not in hints:
            raise ValueError(f"infer_schema: Parameter {name} must have a type annotation.")
        if p.kind is p.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        text = _name(hints[name])
        if name in changed or (every and text.startswith("Tensor")):
            text = text.replace("Tensor", f"Tensor({next(iter(letters))}!)", 1)
        default = "" if p.default is p.empty else f"={_value(p.default)}"
        parts.append(f"{text} {name}{default}")
    back = hints.get("return", inspect.Signature.empty)
    if back is inspect.Signature.empty:
        raise ValueError("infer_schema: the function must say what it returns.")
    if back is type(None) or back is None:
        result = "()"
    elif typing.get_origin(back) is tuple:
        result = f"({', '.join(_name(k) for k in typing.get_args(back))})"
    else:
        result = _name(back)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def written(schema: str) -> str:
    """A schema without the operator's name in front."""
    at = schema.find("(")
    if at < 0 or "->" not in schema:
        raise ValueError(f"a schema reads like '(Tensor x, int k=2) -> Tensor', got {schema!r}.")
    return schema[at:]


def _split(text: str) -> list[str]:
    parts, depth, last = [], 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(last.strip())
            last = ""
        else:
            last += c
    return [*parts, last.strip()] if last.strip() else parts


def signature_of(schema: str) -> inspect.Signature:
    """The parameters of a schema as Python's."""
    depth, at = 1, 1
    while depth and at < len(schema):
        depth += (schema[at] == "(") - (schema[at] == ")")
        at += 1
    parameters = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in _split(schema[1 : at - 1]):
        if part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        declared, _, default = part.partition("=")
        found = re.search(r"(\w+)\s*$", declared)
        if found is None or not declared[: found.start()].strip():
            raise ValueError(f"a parameter of a schema reads like 'Tensor x', got {part!r}.")
        parameters.append(inspect.Parameter(found[1], kind, default=_default(default.strip())))
    return inspect.Signature(parameters)


def _default(text: str) -> Any:
    if not text:
        return inspect.Parameter.empty
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
