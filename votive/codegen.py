"""Writes the public functions and their type stubs from the schemas; `scripts/generate.py` runs it.

The files are kept in the repository: they can be read, they give real signatures, and importing
them is faster than building several hundred functions at start. A test fails when one is out of
step.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
from typing import TYPE_CHECKING

from .operators import declared_operators
from .ops.registry import COMPOSITES, OPS, Composite, Op
from .ops.schema import REQUIRED
from .ops.shape import PROPERTIES

if TYPE_CHECKING:
    from pathlib import Path

HEADER = '''"""Public functions, written by `scripts/generate.py`: do not edit."""

# ruff: noqa
from __future__ import annotations

from typing import Any

from .dispatch import binary, call, call_inplace, call_out, unary
from .operators import declared_operators
from .ops.registry import COMPOSITES, OPS
from .surface import composite_inplace, composite_out, wrong_argument

'''


def safe(name: str) -> str:
    """A Python identifier for an operator's name."""
    name = name.replace(".", "__")
    return f"{name}_" if keyword.iskeyword(name) else name


def fast_arity(op: Op) -> int:
    """1 or 2 when the short path fits: elementwise, all other arguments static with defaults."""
    if op.kind != "pointwise":
        return 0
    args = op.schema.args
    n = sum(a.is_runtime for a in args)
    if n > 2 or any(a.is_runtime != (i < n) for i, a in enumerate(args)):
        return 0
    if any(a.type not in ("Tensor", "Operand") or a.optional for a in args[:n]):
        return 0
    return 0 if any(a.default is REQUIRED for a in args[n:]) else n


def _spellings(params: list[tuple[str, bool]]) -> dict[str, str]:
    """NumPy's names that torch accepts too, for parameters given as (name, required)."""
    found: dict[str, str] = {}
    for i, (name, _) in enumerate(params):
        other = {"dim": "axis", "keepdim": "keepdims"}.get(name)
        # A name that may be absent needs a default, which what follows it must then have too.
        if other and not any(required for _, required in params[i + 1 :]):
            found[other] = name
    return found


def _respell(spellings: dict[str, str]) -> list[str]:
    lines = []
    for other, name in spellings.items():
        lines += [f"    if {other} is not None:", f"        {name} = {other}"]
    return lines


def op_source(op: Op) -> list[str]:
    """The functions of one operator: plain, and in place."""
    name = safe(op.name)
    args = op.schema.args
    packed = ", ".join(a.name for a in args) + ("," if len(args) == 1 else "")
    lines = [f'_op_{name} = OPS["{op.name}"]']
    n = fast_arity(op)
    if n:
        lines.append(f"_fast_{name} = {'unary' if n == 1 else 'binary'}(_op_{name})")
    spellings = _spellings([(a.name, a.default is REQUIRED) for a in args])
    signature = op.schema.python_signature(out=op.out, spellings=spellings)
    lines += ["", "", f"def {name}({signature}) -> Any:", *_respell(spellings)]
    if n:
        # `is` on small ints and None: a default that was not overridden.
        at_default = [f"{a.name} == {a.default!r}" for a in args[n:]]
        tests = " and ".join((["out is None"] if op.out else []) + at_default)
        go = f"return _fast_{name}({', '.join(a.name for a in args[:n])})"
        lines += [f"    if {tests}:", f"        {go}"] if tests else [f"    {go}"]
        if at_default:
            if op.out:
                lines.append("    if out is None:")
            pad = "        " if op.out else "    "
            lines.append(f"{pad}return call(_op_{name}, ({packed}))")
    elif op.out:
        lines += ["    if out is None:", f"        return call(_op_{name}, ({packed}))"]
    else:
        lines.append(f"    return call(_op_{name}, ({packed}))")
    if op.out:
        lines.append(f"    return call_out(_op_{name}, ({packed}), out)")
    if op.inplace and op.kind != "view":
        lines += ["", "", f"def {name}_({op.schema.python_signature()}) -> Any:"]
        lines.append(f"    return call_inplace(_op_{name}, ({packed}))")
    return [*lines, "", ""]


_LITERAL = (int, float, str, bool, tuple, type(None))


def _composite_spellings(sig: inspect.Signature) -> dict[str, str]:
    ps = list(sig.parameters.values())
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in ps) or "axis" in sig.parameters:
        return {}
    if any(p.default is not p.empty and not isinstance(p.default, _LITERAL) for p in ps):
        return {}
    return _spellings([(p.name, p.default is p.empty and p.kind is not p.KEYWORD_ONLY) for p in ps])


def _arguments(sig: inspect.Signature, respelt: object = ()) -> tuple[str, str]:
    """Parameter list without annotations, and the call that passes it on."""
    params, passed, star = [], [], False
    for p in sig.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            params.append(f"*{p.name}")
            passed.append(f"*{p.name}")
            star = True
            continue
        if p.kind is p.VAR_KEYWORD:
            params.append(f"**{p.name}")
            passed.append(f"**{p.name}")
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            params.append("*")
            star = True
        default = None if p.default is p.empty and p.name in respelt else p.default  # type: ignore[operator]
        params.append(p.name if default is p.empty else f"{p.name}={default!r}")
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name)
    return ", ".join(params) + ("" if star else ", *"), ", ".join(passed)


# First arguments of what makes tensors out of sizes, numbers and other libraries' data.
_NO_TENSOR = {"size", "window_length", "n", "start", "obj", "data", "count", "row", "shapes", "buffer"}


def _takes_tensor(sig: inspect.Signature) -> bool:
    """Whether a composite begins with a tensor, going by the name of its first argument."""
    ps = list(sig.parameters.values())
    if any(p.default is not p.empty and not isinstance(p.default, _LITERAL) for p in ps):
        return False
    if any(p.kind is p.VAR_POSITIONAL for p in ps):  # reads its keywords by itself
        return False
    return bool(ps) and ps[0].name not in _NO_TENSOR


def _blaming(name: str, call: str, indent: str) -> list[str]:
    """A call that names the function when it was given something other than a tensor."""
    return [
        f"{indent}try:",
        f"{indent}    {call}",
        f"{indent}except (AttributeError, TypeError) as error:",
        f'{indent}    wrong_argument("{name}", error)',
        f"{indent}    raise",
    ]


def composite_source(key: str, c: Composite) -> list[str]:
    """The plain, `out=` and in-place forms of a composite.

    The plain form is the function itself where it takes no tensor, or where its defaults cannot
    be written down.
    """
    name = safe(key)
    sig = inspect.signature(c.fn)
    lines: list[str] = []
    spellings = _composite_spellings(sig)
    guarded = _takes_tensor(sig) and not c.name.startswith("_")
    if c.out or c.inplace or spellings or guarded:
        lines.append(f'_c_{name} = COMPOSITES["{key}"].fn')
    params, passed = _arguments(sig, spellings.values())
    names_too = "".join(f", {other}=None" for other in spellings)
    plain = f"return _c_{name}({passed})"
    if (spellings or guarded) and not c.out:
        head = params + names_too if spellings else params.removesuffix(", *")
        lines += ["", "", f"def {name}({head}) -> Any:", *_respell(spellings)]
        lines += _blaming(c.name, plain, "    ") if guarded else [f"    {plain}"]
    if c.out:
        lines += ["", "", f"def {name}({params}, out=None{names_too}) -> Any:"]
        lines += [*_respell(spellings), "    if out is None:"]
        lines += _blaming(c.name, plain, "        ") if guarded else [f"        {plain}"]
        names = ", ".join(p.name for p in sig.parameters.values() if p.kind is not p.VAR_KEYWORD)
        lines.append(f'    return composite_out("{key}", lambda: _c_{name}({passed}), ({names},), out)')
    if c.inplace:
        first, _, rest = passed.partition(",")
        kept = _arguments(sig)[0].removesuffix(", *")
        lines += ["", "", f"def {name}_({kept}) -> Any:"]
        lines.append(
            f'    return composite_inplace("{c.name}", {first}, lambda x: _c_{name}(x{"," if rest else ""}{rest}))'
        )
    return [*lines, "", ""] if lines else []


def functions_source() -> str:
    """The whole of `_functions.py`."""
    lines: list[str] = []
    for op in OPS.values():
        if not op.name.startswith("_"):
            lines += op_source(op)
    for key, c in COMPOSITES.items():
        lines += composite_source(key, c)
    return HEADER + "\n".join(lines).rstrip() + "\n"


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
    spellings = _spellings([(a.name, a.default is REQUIRED) for a in op.schema.args])
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
    sig = inspect.signature(c.fn)
    spellings = _composite_spellings(sig)
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
_STUB_NAMES |= {
    n: n
    for n in [
        "Any",
        "Callable",
        "DeviceLike",
        "Generator",
        "Ints",
        "None",
        "Number",
        "Operand",
        "Sequence",
        "Tensor",
        "device",
        "dtype",
        "layout",
        "memory_format",
    ]
}


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


def stubs_source() -> str:
    """The whole of `_operators.pyi`: the class of operator methods, then the functions."""
    methods: dict[str, str] = {}
    functions: dict[str, str] = {}
    for key, item in [*OPS.items(), *COMPOSITES.items()]:
        if item.name.startswith("_"):
            continue
        stub = _op_stub if isinstance(item, Op) else _composite_stub
        for name in (item.name, *item.aliases):
            if item.method:
                methods[name] = stub(item, name, True)  # type: ignore[arg-type]
                if item.inplace:
                    methods[name + "_"] = (
                        stub(item, name + "_", True)
                        .replace(  # type: ignore[arg-type]
                            ", out: Any = None", ""
                        )
                        .replace(", *)", ")")
                        .replace("(self, *)", "(self)")
                    )
            if "" in item.namespaces:
                functions[safe(name)] = stub(item, safe(name), False)  # type: ignore[arg-type]
        del key
    body = ["class TensorMethods:", *_python_operators(), *(f"    {methods[n]}" for n in sorted(methods))]
    return STUB_HEADER + "\n".join([*body, "", *(functions[n] for n in sorted(functions))]) + "\n"


INIT_HEADER = '''"""Types of the public names, written by `scripts/generate.py`: do not edit."""

# ruff: noqa
from typing import Any

'''


def init_stub_source() -> str:
    """The whole of `__init__.pyi`: what `__init__.py` imports, with the operators typed."""
    tree = ast.parse((_folder() / "__init__.py").read_text())
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
    from . import _LAZY_MODULES, _LAZY_NAMES

    lines += [f"from . import {name} as {name}" for name in _LAZY_MODULES]
    lines += [f"from .{module} import {name} as {name}" for name, module in _LAZY_NAMES.items()]
    taken |= {*_LAZY_MODULES, *_LAZY_NAMES}
    lines.append("from .tensor import Tensor as Tensor")
    for item in [*OPS.values(), *COMPOSITES.values()]:
        if item.name.startswith("_") or "" not in item.namespaces:
            continue
        for name in (item.name, *item.aliases):
            if name not in taken:
                taken.add(name)
                lines.append(f"from ._operators import {safe(name)} as {name}")
    lines += ["", "def __getattr__(name: str) -> Any: ..."]
    return INIT_HEADER + "\n".join(lines) + "\n"


def _folder() -> Path:
    """Where the package lies. Only generating needs paths, importing does not."""
    from pathlib import Path

    return Path(__file__).parent


def write_functions() -> None:
    """Renew `_functions.py`."""
    (_folder() / "_functions.py").write_text(functions_source())


def write_rest() -> None:
    """Renew the files that describe the finished package."""
    (_folder() / "_operators.pyi").write_text(stubs_source())
    (_folder() / "__init__.pyi").write_text(init_stub_source())
