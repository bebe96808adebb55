"""What the templates are filled with: the arguments of a schema as parameters, samples and examples."""

from __future__ import annotations

import re

from votive.ops.schema import REQUIRED, Arg, Schema

# What stands for an argument without a default in samples and examples.
STAND_INS = {"int": "0", "float": "1.0", "number": "1.0", "Scalar": "1.0", "bool": "True"}


def words_of(schema: Schema, kind: str, namespace: str) -> dict[str, str]:
    """The words that templates name, by name."""
    tensors = [a.name for a in schema.args if a.is_tensor and a.default is REQUIRED]
    first, title = tensors[0], schema.name.strip("_").replace("_", " ")
    total = " + ".join(tensors)
    twice = f"2 * ({total})" if len(tensors) > 1 else f"2 * {total}"
    signature = schema.python_signature()
    wraps = kind in ("structured", "view") and any(
        a.name == "dim" and a.type == "int" and not a.is_list and not a.optional for a in schema.args
    )
    place = [f'namespaces=("{namespace}",)', "method=False"] if namespace else []
    wrapped = ", ".join(
        f'wrap_dim("{schema.name}", dim, {first}.ndim, {first}.shape)' if a.name == "dim" else a.name
        for a in schema.args
    )
    return {
        "name": schema.name,
        "title": title.capitalize(),
        "title_lower": title,
        "schema": str(schema),
        "params": ", ".join(schema.names),
        "typed_params": ", ".join(f"{a.name}: {_python_type(a)}" for a in schema.args),
        "passed": "".join(f", {a.name}" for a in _numbers(schema)),
        "read": "".join(f"\n  [[maybe_unused]] const {line};" for line in _read(schema)),
        "line_dim": "dim" if wraps else "x.ndim - 1",
        "signature": _annotated(schema),
        "signature_plain": signature,
        "first": first,
        "twice": twice,
        "doubled": ", ".join(f"{2 * len(tensors) * v}." for v in (1, 2)),
        "value": {"structured": f"2 * {first}", "view": first}.get(kind, twice),
        "path": ".".join(part for part in ("votive", namespace, schema.name) if part),
        "record": ".".join(part for part in (namespace, schema.name) if part),
        "example": _call(schema, "votive.tensor([1.0, 2.0])"),
        "samples": ", ".join(_sample(schema, f"S({shape})") for shape in ("3, 4", "", "0, 3")),
        "errors": f"\n        errors=[({_sample(schema, 'S(3, 4)', 'dim')}, IndexError)]," if wraps else "",
        "canon": f"\n    canon=lambda {', '.join(schema.names)}: ({wrapped})," if wraps else "",
        "canon_imports": "from ..core.layout import wrap_dim" if wraps else "",
        "options": "".join(f"\n    {option}," for option in place),
        "composite_options": f"({', '.join(place)})" if place else "",
    }


def without_stand_in(schema: Schema) -> list[str]:
    """Arguments that need a default, since nothing can stand for them."""
    return [a.name for a in schema.args if a.default is REQUIRED and not a.is_tensor and a.type not in STAND_INS]


# How a kernel in C++ reads a number: integers and floats are counted apart.
_READ = {"int": "int64_t {0} = c.i({1})", "bool": "bool {0} = c.i({1})", "float": "double {0} = c.f({1})"}


def _numbers(schema: Schema) -> list[Arg]:
    """The arguments that are one number each, fixed when a plan is made."""
    return [a for a in schema.args if a.type in _READ and not a.is_list and not a.optional]


def _read(schema: Schema) -> list[str]:
    counts = {"i": 0, "f": 0}
    lines = []
    for a in _numbers(schema):
        kind = "f" if a.type == "float" else "i"
        lines.append(_READ[a.type].format(a.name, counts[kind]))
        counts[kind] += 1
    return lines


def _python_type(a: Arg) -> str:
    return a.type if a.type in ("int", "bool", "float", "str") and not a.is_list and not a.optional else "Any"


def _annotated(schema: Schema) -> str:
    """The parameters with types; a default stands apart from its type, as formatters have it."""
    parts = [re.sub(r"^(\w+)(?:=(.*))?$", _typed, part) for part in schema.python_signature().split(", ")]
    return ", ".join(parts)


def _typed(m: re.Match[str]) -> str:
    return f"{m[1]}: Any" if m[2] is None else f"{m[1]}: Any = {m[2]}"


def _given(a: Arg, tensor: str) -> str:
    if a.is_tensor:
        return tensor
    return f"({STAND_INS[a.type]},)" if a.is_list else STAND_INS[a.type]


def _call(schema: Schema, tensor: str) -> str:
    needed = [a for a in schema.args if a.default is REQUIRED]
    return ", ".join(f"{a.name}={_given(a, tensor)}" if a.keyword_only else _given(a, tensor) for a in needed)


def _sample(schema: Schema, tensor: str, wrong: str = "") -> str:
    """Arguments as the catalog writes them: a tuple, keywords in a dictionary at its end."""
    needed = [a for a in schema.args if a.default is REQUIRED and a.name != wrong]
    parts = [_given(a, tensor) for a in needed if not a.keyword_only]
    keywords = [f'"{a.name}": {_given(a, tensor)}' for a in needed if a.keyword_only]
    keywords += [f'"{wrong}": 2'] if wrong else []
    parts += ["{" + ", ".join(keywords) + "}"] if keywords else []
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
