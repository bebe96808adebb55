"""Writes the type stubs of the operators and of the package from the declarations."""

from __future__ import annotations

import ast
import keyword
import re
from pathlib import Path

import votive
from votive.ops.operator import Composite, Op, Operator
from votive.ops.registry import COMPOSITES, OPS
from votive.ops.schema import REQUIRED
from votive.ops.shape import PROPERTIES
from votive.surface.operators import declared_operators

PACKAGE = Path(votive.__file__).parent


def _safe(name: str) -> str:
    """A Python identifier for an operator's name."""
    return f"{name}_" if keyword.iskeyword(name) else name


_PY_TYPES = {
    "Tensor": "Tensor",
    "Mask": "Tensor",
    "Operand": "Tensor | Number",
    "Scalar": "Number",
    "number": "Number",
    "int": "builtins.int",
    "float": "builtins.float",
    "bool": "builtins.bool",
    "str": "str",
    "dtype": "dtype",
    "device": "DeviceLike",
    "Generator": "Generator",
    "any": "Any",
}


def _stub_type(kind: str, is_list: bool, optional: bool) -> str:
    text = _PY_TYPES[kind]
    if is_list:
        text = f"Sequence[{text}] | {text}" if kind == "int" else f"Sequence[{text}]"
    return f"{text} | None" if optional else text


def _op_stub(op: Op, name: str, method: bool) -> str:
    parts, star = [], False
    spellings = op.spellings
    for i, a in enumerate(op.schema.args):
        if a.keyword_only and not star:
            parts.append("*")
            star = True
        if method and i == 0:
            parts.append("self")
            continue
        text = f"{a.name}: {_stub_type(a.type, a.is_list, a.optional)}"
        default = "..." if a.name in spellings.values() else repr(a.default)
        required = a.default is REQUIRED and a.name not in spellings.values()
        parts.append(text if required else f"{text} = {default}")
    result = "Tensor" if op.n_out == 1 else "tuple[Tensor, ...]"
    return _finish_stub(name, parts, star, op.out, spellings, result)


def _composite_stub(c: Composite, name: str, method: bool) -> str:
    parts, star = [], False
    sig, spellings = c.signature, c.spellings
    for i, p in enumerate(sig.parameters.values()):
        if method and i == 0 and p.kind is not p.VAR_POSITIONAL:
            parts.append("self")
            continue
        kind = _stub_annotation(p.annotation)
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}: {kind}")
            star = True
            continue
        if p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}: {kind}")
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        literal = isinstance(p.default, (int, float, str, bool, type(None)))
        default = "..." if p.name in spellings.values() or not literal else repr(p.default)
        required = p.default is p.empty and p.name not in spellings.values()
        optional = p.name in spellings.values() and kind != "Any" and "None" not in kind
        text = f"{p.name}: {kind} | None" if optional else f"{p.name}: {kind}"
        parts.append(text if required else f"{text} = {default}")
    return _finish_stub(name, parts, star, c.out, spellings, _stub_annotation(sig.return_annotation))


# The names that stubs may use, as they are written there.
_STUB_NAMES = {n: f"builtins.{n}" for n in ("int", "float", "bool", "complex", "str", "tuple", "list")}
_WORDS = "Any Callable DeviceLike Generator Ints None Number Operand Sequence Tensor device dtype layout memory_format"
_STUB_NAMES |= {n: n for n in _WORDS.split()}


def _stub_annotation(annotation: object) -> str:
    """An annotation of a composite as the stubs write it; Any where it needs names they do not import."""
    if not isinstance(annotation, str):
        return "Any"
    names = set(re.findall(r"[A-Za-z_]\w*", annotation))
    if "'" in annotation or '"' in annotation or not names <= _STUB_NAMES.keys():
        return "Any"
    return re.sub(r"[A-Za-z_]\w*", lambda m: _STUB_NAMES[m[0]], annotation)


def _finish_stub(name: str, parts: list[str], star: bool, out: bool, spellings: dict[str, str], result: str) -> str:
    """Add `out=` and NumPy's spellings; a `**kwargs` must stay last."""
    extra = (["out: Any = None"] if out else []) + [f"{other}: Any = None" for other in spellings]
    tail = [parts.pop()] if parts and parts[-1].startswith("**") else []
    if extra and not star:
        parts.append("*")
    return f"def {name}({', '.join(parts + extra + tail)}) -> {result}: ..."


STUB_HEADER = '''"""Type stubs of the operators, written by `scripts/generate.py`: do not edit."""

# ruff: noqa
import builtins  # methods called int, float and bool hide the types of these names
from collections.abc import Callable, Sequence
from typing import Any

from .core.device import DeviceLike, device
from .core.dtype import dtype
from .core.memory_format import layout, memory_format
from .core.rng import Generator
from .tensor import Tensor

Number = builtins.bool | builtins.int | builtins.float | builtins.complex
Operand = Tensor | Number
Ints = builtins.int | Sequence[builtins.int]

'''


def _python_operators() -> list[str]:
    """Stubs of `a + b`, `a < b`, `-a` and kin."""
    declared = {python: kind for python, (_, kind) in declared_operators().items()}
    lines = []
    for name, kind in {**declared, "invert": "unary"}.items():
        if kind == "unary":
            lines.append(f"    def __{name}__(self) -> Tensor: ...")
            continue
        overrides = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        for form in ("", "r", "i") if kind == "arithmetic" else ("",):
            lines.append(f"    def __{form}{name}__(self, other: Any) -> Tensor: ...{overrides}")
    lines += [f"    def __{form}matmul__(self, other: Any) -> Tensor: ..." for form in ("", "r")]
    for name in PROPERTIES:
        lines += ["    @property", f"    def {name}(self) -> Tensor: ..."]
    return lines


def _stub(item: Operator, name: str, method: bool) -> str:
    if isinstance(item, Op):
        return _op_stub(item, name, method)
    assert isinstance(item, Composite)
    return _composite_stub(item, name, method)


def _inplace_stub(item: Operator, name: str) -> str:
    text = _stub(item, name, True).replace(", out: Any = None", "")
    return text.replace(", *)", ")").replace("(self, *)", "(self)")


def operators_stub() -> str:
    """The whole of `_operators.pyi`: the class of operator methods, then the functions."""
    methods: dict[str, str] = {}
    functions: dict[str, str] = {}
    for item in (*OPS.values(), *COMPOSITES.values()):
        if item.name.startswith("_"):
            continue
        for name in (item.name, *item.aliases):
            if item.method:
                methods[name] = _stub(item, name, True)
                if item.inplace:
                    methods[name + "_"] = _inplace_stub(item, name + "_")
            if "" in item.namespaces:
                functions[_safe(name)] = _stub(item, _safe(name), False)
    body = ["class TensorMethods:", *_python_operators(), *(f"    {methods[n]}" for n in sorted(methods))]
    return STUB_HEADER + "\n".join([*body, "", *(functions[n] for n in sorted(functions))]) + "\n"


INIT_HEADER = '''"""Types of the public names, written by `scripts/generate.py`: do not edit."""

# ruff: noqa
from typing import Any

'''


def package_stub() -> str:
    """The whole of `__init__.pyi`: what `__init__.py` imports, with the operators typed."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    lines: list[str] = []
    taken: set[str] = {"Tensor"}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            for a in node.names:
                name = a.asname or a.name
                if (name.startswith("_") and name != "__version__") or name == "Tensor":
                    continue
                taken.add(name)
                lines.append(f"from .{node.module or ''} import {a.name} as {name}")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if not name.startswith("_"):
                taken.add(name)
                known = isinstance(node.value, (ast.Name, ast.Constant))
                lines.append(f"{name} = {ast.unparse(node.value)}" if known else f"{name}: Any")
    from votive import _FORMATS, _LAZY_MODULES, _LAZY_NAMES, _QUANTIZED, _SCHEMES

    lines += [f"from . import {name} as {name}" for name in _LAZY_MODULES]
    lines += [f"from .{module} import {name} as {name}" for name, module in _LAZY_NAMES.items()]
    lines += ["from .core.blocks import block_dtype as _block_dtype"]
    lines += [f"{name}: _block_dtype" for name in sorted(_FORMATS)]
    lines += ["from .core.affine import quantized_dtype as _quantized_dtype"]
    lines += [f"{name}: _quantized_dtype" for name in _QUANTIZED]
    lines += [f"{name}: qscheme" for name in _SCHEMES]
    taken |= {*_LAZY_MODULES, *_LAZY_NAMES, *_FORMATS, *_QUANTIZED, *_SCHEMES}
    lines.append("from .tensor import Tensor as Tensor")
    for item in [*OPS.values(), *COMPOSITES.values()]:
        if item.name.startswith("_") or "" not in item.namespaces:
            continue
        for name in (item.name, *item.aliases):
            if name not in taken:
                taken.add(name)
                lines.append(f"from ._operators import {_safe(name)} as {name}")
    lines += ["", "def __getattr__(name: str) -> Any: ..."]
    return INIT_HEADER + "\n".join(lines) + "\n"
