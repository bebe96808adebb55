"""A graph as Python text."""

from __future__ import annotations

import builtins
import importlib
import keyword
import operator
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core import spelled
from .node import Node, map_arg, qualified_name, type_text

if TYPE_CHECKING:
    from .graph import Graph

INFIX: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.truediv: "/",
    operator.mod: "%",
    operator.pow: "**",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.matmul: "@",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.gt: ">",
    operator.le: "<=",
    operator.ge: ">=",
}
PREFIX: dict[Any, str] = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
_IN_PLACE = {
    operator.iadd: "+=",
    operator.isub: "-=",
    operator.imul: "*=",
    operator.itruediv: "/=",
    operator.ifloordiv: "//=",
    operator.imod: "%=",
    operator.ipow: "**=",
    operator.imatmul: "@=",
    operator.iand: "&=",
    operator.ior: "|=",
    operator.ixor: "^=",
    operator.ilshift: "<<=",
    operator.irshift: ">>=",
}


@dataclass
class PythonCode:
    """The text of a function, and the objects that names in it mean."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = field(default=None)


class Namespace:
    """Names that are valid in Python and used once."""

    def __init__(self) -> None:
        self._of: dict[Any, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object = None) -> str:
        if obj is not None and id(obj) in self._of:
            return self._of[id(obj)]
        name = re.sub(r"\W", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        match = re.match(r"(.*)_(\d+)$", name)
        base, number = (match[1], int(match[2])) if match else (name, None)
        if name not in self._used and (number is not None or not _taken(name)):
            found = name
        else:
            count = self._counts.get(base, 0) if number is None else max(self._counts.get(base, 0), number)
            while (found := f"{base}_{count + 1}") in self._used:
                count += 1
            self._counts[base] = count + 1
        self._used.add(found)
        if obj is not None:
            self._of[id(obj)] = found
        return found

    def rename(self, obj: object, name: str) -> None:
        self._of[id(obj)] = name
        self._used.add(name)


def _taken(name: str) -> bool:
    """Words that mean something else in Python, or in the text around."""
    return (
        keyword.iskeyword(name)
        or hasattr(builtins, name)
        or name in ("votive", "torch", "device", "inf", "nan", "self")
    )


class CodeGen:
    """How a graph becomes text; derive from it to give the function another head, or other results."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The head of the function."""
        names = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The last statement."""
        return f"return {self._text(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders get for the function's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function gives for the graph's results."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the text uses beside those of the graph."""
        return []

    _globals: dict[str, Any]

    def _text(self, v: object) -> str:
        if isinstance(v, Node):
            return repr(v)
        if isinstance(v, tuple):
            inner = ", ".join(self._text(x) for x in v)
            if hasattr(v, "_fields"):
                return f"{self._known(type(v).__name__, type(v))}({inner})"
            return f"({inner}{',' if len(v) == 1 else ''})"
        if isinstance(v, list):
            return f"[{', '.join(self._text(x) for x in v)}]"
        if isinstance(v, dict):
            return "{" + ", ".join(f"{k!r}: {self._text(x)}" for k, x in v.items()) + "}"
        if isinstance(v, slice):
            return f"slice({self._text(v.start)}, {self._text(v.stop)}, {self._text(v.step)})"
        if v is Ellipsis:
            return "..."
        if isinstance(v, float) and repr(v) in ("inf", "nan", "-inf"):
            return f"float('{v!r}')"
        if v is None or isinstance(v, (bool, int, float, complex, str, bytes)):
            return repr(v)
        if isinstance(v, (type, type(len))) or callable(v):
            return self._known(qualified_name(v), v)
        text = repr(v)
        if text.startswith(f"{spelled.package}."):
            return text
        return self._known(type(v).__name__.lower(), v)

    def _known(self, name: str, obj: object) -> str:
        """How an object is called in the text: by its path from the package, or by a name of its own."""
        at: Any = self._globals[spelled.package]
        parts = name.split(".")
        if parts[0] in ("votive", spelled.package):
            for part in parts[1:]:
                at = getattr(at, part, None)
            if at is obj:
                return ".".join([spelled.package, *parts[1:]])
        if getattr(builtins, name, None) is obj:
            return name
        plain = re.sub(r"\W", "_", name)
        if not plain.isidentifier() or keyword.iskeyword(plain):
            plain = f"_{plain}"
        found, k = plain, 0
        while found in self._globals and self._globals[found] is not obj:
            k += 1
            found = f"{plain}_{k}"
        self._globals[found] = obj
        return found

    def _call(self, args: Any, kwargs: Any) -> str:
        parts = [self._text(a) for a in args] + [f"{k} = {self._text(v)}" for k, v in kwargs.items()]
        return ", ".join(parts)

    def _path(self, root: str, target: str) -> str:
        text = root
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    def _value(self, node: Node, root: str) -> str:
        if node.op == "get_attr":
            return self._path(root, node.target)
        if node.op == "call_module":
            return f"{self._path(root, node.target)}({self._call(node.args, node.kwargs)})"
        if node.op == "call_method":
            first, *rest = node.args
            owner = self._text(first) if isinstance(first, Node) else f"({self._text(first)})"
            return f"{owner}.{node.target}({self._call(rest, node.kwargs)})"
        a = node.args
        if not node.kwargs:
            if node.target in INFIX and len(a) == 2:
                return f"{self._text(a[0])} {INFIX[node.target]} {self._text(a[1])}"
            if node.target in PREFIX and len(a) == 1:
                return f"{PREFIX[node.target]}{self._text(a[0])}"
            if node.target is operator.getitem and len(a) == 2:
                return f"{self._text(a[0])}[{self._text(a[1])}]"
            if node.target is getattr and len(a) == 2 and isinstance(a[1], str) and a[1].isidentifier():
                return f"{self._text(a[0])}.{a[1]}"
        name = self._known(qualified_name(node.target), node.target)
        return f"{name}({self._call(a, node.kwargs)})"

    def generate(self, graph: Graph, root: str) -> PythonCode:
        """The whole text."""
        self._globals = {spelled.package: importlib.import_module(spelled.package)}
        for name, obj in self.additional_globals():
            self._globals[name] = obj
        last_use: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(list(graph.nodes)):

            def mark(n: Node, user: Node = node) -> Node:
                if n not in seen:
                    seen.add(n)
                    last_use.setdefault(user, []).append(n)
                return n

            map_arg(node.args, mark)
            map_arg(node.kwargs, mark)
        free: list[str] = []
        lines: list[str] = []
        returns = ""
        for node in graph.nodes:
            if node.op == "placeholder":
                self._parameter(node, free, lines)
                continue
            if node.op == "output":
                returns = f" -> {type_text(node.type)}" if node.type else ""
                lines.append(self.generate_output(node.args[0]))
                continue
            typed = f" : {type_text(node.type)}" if node.type else ""
            line = f"{node!r}{typed} = {self._value(node, root)}"
            if node.op == "call_function" and node.target in _IN_PLACE and len(node.args) == 2:
                target = self._text(node.args[0])
                line = f"{target} {_IN_PLACE[node.target]} {self._text(node.args[1])};  {node!r} = {target}"
            dropped = [repr(n) for n in last_use.get(node, ())] + ([] if node.users else [repr(node)])
            lines.append(line + (f";  {' = '.join(dropped)} = None" if dropped else ""))
        body = "".join(f"    {line}\n" for line in (lines or ["pass"]))
        head = self.gen_fn_def(_by_kind(free), returns)
        return PythonCode(f"\n\n\n{head}\n{body}    ", dict(self._globals))

    def _parameter(self, node: Node, free: list[str], lines: list[str]) -> None:
        typed = f" : {type_text(node.type)}" if node.type else ""
        default = f" = {self._text(node.args[0])}" if node.args else ""
        free.append(f"{node.target}{typed}{default}")
        raw = str(node.target).lstrip("*")
        if raw != repr(node):
            lines.append(f"{node!r} = {raw}")


def _by_kind(free: list[str]) -> list[str]:
    """Parameters in the order that Python wants: `*args` and `**kwargs` last."""
    return sorted(free, key=lambda text: (text.startswith("*"), text.startswith("**")))
