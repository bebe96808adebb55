"""JSON schemas of Python functions, by which models are told about tools. Knows functions only."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

_SIMPLE = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    dict: "object",
    list: "array",
    tuple: "array",
    type(None): "null",
}


def schema(fn: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function with type hints and a docstring with `Args:` and `Returns:`.

    >>> def weather(city: str) -> str:
    ...     '''The weather of a city.
    ...
    ...     Args:
    ...         city: Where.
    ...     '''
    >>> schema(weather)["function"]["parameters"]["properties"]
    {'city': {'type': 'string', 'description': 'Where.'}}
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    doc = inspect.getdoc(fn)
    if not doc:
        raise ValueError(f"tool {name}: a function needs a docstring that says what it does.")
    about, described, returned = _sections(doc)
    hints = typing.get_type_hints(fn)
    properties, required = {}, []
    for arg, parameter in inspect.signature(fn).parameters.items():
        if arg not in hints:
            raise ValueError(f"tool {name}: the argument {arg!r} has no type hint.")
        if arg not in described:
            raise ValueError(f"tool {name}: 'Args:' in the docstring does not describe {arg!r}.")
        properties[arg] = _type(hints[arg]) | _choices(described[arg])
        if parameter.default is inspect.Parameter.empty:
            required.append(arg)
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    made: dict[str, Any] = {"name": name, "description": about, "parameters": parameters}
    if "return" in hints:
        made["return"] = _type(hints["return"])
        if returned is not None:
            made["return"]["description"] = returned
    return {"type": "function", "function": made}


def _type(hint: object) -> dict[str, Any]:
    """The schema of a type hint."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if hint is Any:
        return {}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {**_one_of([_type(type(a)) for a in args]), "enum": list(args)}
    if origin in (Union, types.UnionType):
        made = _one_of([_type(a) for a in args if a is not type(None)])
        return made | ({"nullable": True} if type(None) in args else {})
    if origin is list:
        return {"type": "array", "items": _type(args[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_type(a) for a in args]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(args[1])}
    raise TypeError(f"a tool's argument of type {hint!r} has no JSON schema.")


def _one_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    unique = [s for i, s in enumerate(schemas) if s not in schemas[:i]]
    if len(unique) == 1:
        return unique[0]
    if all(set(s) == {"type"} for s in unique):
        return {"type": sorted(s["type"] for s in unique)}
    return {"anyOf": unique}


def _choices(text: str) -> dict[str, Any]:
    """A description, with the values of `(choices: ["a", "b"])` at its end taken out."""
    import json

    found = re.search(r"\(choices:\s*(.*?)\)\s*$", text, re.I | re.S)
    if not found:
        return {"description": text}
    values = [c.strip() for c in json.loads(found[1])]
    return {"enum": values, "description": text[: found.start()].strip()}


def _sections(doc: str) -> tuple[str, dict[str, str], str | None]:
    """What a docstring says about a function, its arguments and its result."""
    parts = re.split(r"^\s*(Args|Returns|Raises):[ \t]*\n", doc, flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2]))
    described: dict[str, str] = {}
    block = inspect.cleandoc("x\n" + found.get("Args", "")).split("\n")[1:]
    current = ""
    for line in block:
        entry = re.match(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)", line)
        if entry:
            current = entry[1]
            described[current] = entry[2].strip()
        elif line.strip() and current:
            described[current] += " " + line.strip()
    returned = found.get("Returns")
    result = None if returned is None else " ".join(returned.split())
    return parts[0].strip(), described, result
