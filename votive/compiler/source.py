"""A function's source as a tree, and functions from trees. How they are rewritten for a `Watch` says `rewrite.py`."""

from __future__ import annotations

import ast
import copy
import dis
import functools
import inspect
import linecache
import textwrap
from types import CellType, CodeType, FunctionType
from typing import Any

from .rewrite import WATCH, NoSource, Rewriter
from .scope import parameters

_MADE = "__votive_function__"


_trees: dict[CodeType, ast.FunctionDef] = {}


def tree_of(fn: FunctionType) -> ast.FunctionDef:
    """The definition of a function, a lambda as one that returns; with the line numbers of its file."""
    code = fn.__code__
    found = _trees.get(code)
    if found is None:
        found = _trees[code] = _parse(code)
    return found


def remember(fn: FunctionType, tree: ast.FunctionDef) -> None:
    """Keep the definition of a function that has no file of its own."""
    _trees[fn.__code__] = tree


def _parse(code: CodeType) -> ast.FunctionDef:
    linecache.checkcache(code.co_filename)
    node = _lambda(code) if code.co_name == "<lambda>" else _function(code)
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            raise NoSource(f"{code.co_name} is a generator or a coroutine")
    node.decorator_list = []
    node.qualname = code.co_qualname  # type: ignore[attr-defined]
    _mangle(node, code)
    return node


def _function(code: CodeType) -> ast.FunctionDef:
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError) as e:
        raise NoSource(f"{code.co_name} has no source that can be read") from e
    text = textwrap.dedent("".join(lines))
    try:
        module = ast.parse(text)
    except SyntaxError as e:
        raise NoSource(f"the source of {code.co_name} cannot be read alone") from e
    ast.increment_lineno(module, first - 1)
    wanted = [
        n
        for n in ast.walk(module)
        if isinstance(n, ast.FunctionDef) and n.name == code.co_name and _line(n) == code.co_firstlineno
    ]
    if len(wanted) != 1:
        raise NoSource(f"the source of {code.co_name} is not found for certain")
    return wanted[0]


@functools.lru_cache(maxsize=16)
def _lambdas(text: str) -> list[ast.Lambda]:
    return [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Lambda)]


def _lambda(code: CodeType) -> ast.FunctionDef:
    """A lambda as a function that returns; found in its file by the columns of its code, as a line may hold several."""
    places = [(row, at, end) for row, _, at, end in code.co_positions() if row is not None and at is not None and end]
    try:
        known = _lambdas("".join(linecache.getlines(code.co_filename)))
    except SyntaxError as e:
        raise NoSource("the file of a lambda cannot be read") from e
    wanted = [
        n
        for n in known
        if n.lineno == code.co_firstlineno
        and places
        and all((n.body.lineno, n.body.col_offset) <= (row, at) for row, at, _ in places)
        and all((row, end) <= (n.body.end_lineno, n.body.end_col_offset) for row, _, end in places)
        and parameters(n.args) == list(code.co_varnames[: len(parameters(n.args))])
    ]
    if not wanted:
        raise NoSource("the source of a lambda is not found for certain")
    node = copy.deepcopy(min(wanted, key=lambda n: (n.body.end_lineno or 0, n.body.end_col_offset or 0)))
    body = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(ast.FunctionDef("_lambda", node.args, [body], [], None), node)


def _mangle(tree: ast.AST, code: CodeType) -> None:
    """Write private names (`self.__x`) as the class that the function stands in spells them."""
    spelled = _names(code)
    for n in ast.walk(tree):
        for field in ("attr", "id", "arg", "name"):
            name = getattr(n, field, None)
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__") and name not in spelled:
                found = [s for s in spelled if s.startswith("_") and s.endswith(name)]
                if len(found) == 1:
                    setattr(n, field, found[0])


def inner_codes(code: CodeType) -> list[CodeType]:
    """The functions that a function defines, and those that these define."""
    found = [c for c in code.co_consts if isinstance(c, CodeType)]
    return found + [c for f in found for c in inner_codes(f)]


def _names(code: CodeType) -> set[str]:
    """Every name that a function and those inside of it use."""
    found = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    for c in code.co_consts:
        if isinstance(c, CodeType):
            found |= _names(c)
    return found


def _line(node: Any) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _looked_up(code: CodeType) -> set[str]:
    """Names that a function, and those inside of it, look up in globals."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for c in code.co_consts:
        if isinstance(c, CodeType):
            found |= _looked_up(c)
    return found


def _bound(tree: ast.AST) -> set[str]:
    """Every name that is assigned or is a parameter anywhere inside."""
    found: set[str] = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            found.add(n.id)
        elif isinstance(n, ast.arg):
            found.add(n.arg)
        elif isinstance(n, (ast.FunctionDef, ast.ExceptHandler)) and n is not tree and n.name:
            found.add(n.name)
    return found


def build(
    tree: ast.FunctionDef, filename: str, namespace: dict[str, Any], closure: dict[str, CellType], name: str
) -> FunctionType:
    """A function from its definition, with variables of enclosing functions as they are."""
    args = ast.arguments([], [ast.arg(n) for n in sorted(closure)], None, [], [], None, [])
    # Under a name that nobody uses: a function may call a global one of its own name, often itself.
    inner = ast.copy_location(ast.FunctionDef(_MADE, tree.args, tree.body, [], None), tree)
    outer = ast.FunctionDef("_outer", args, [inner, ast.Return(ast.Name(_MADE, ast.Load()))], [], None)
    module = ast.Module([ast.copy_location(outer, tree)], [])
    for n in ast.walk(module):
        if isinstance(n, ast.FunctionDef) and "type_params" in n._fields:
            n.type_params = []  # type: ignore[attr-defined, unused-ignore]
    ast.fix_missing_locations(module)
    code = next(c for c in compile(module, filename, "exec").co_consts if isinstance(c, CodeType))
    code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == _MADE)
    code = _renamed(code.replace(co_name=tree.name), code.co_qualname, getattr(tree, "qualname", name))
    return FunctionType(code, namespace, name, None, tuple(closure[n] for n in code.co_freevars))


def _renamed(code: CodeType, old: str, new: str) -> CodeType:
    """Code whose functions and classes bear the names that they have in the program."""

    def again(c: Any) -> Any:
        if isinstance(c, CodeType):
            return _renamed(c, old, new)
        return new + c[len(old) :] if isinstance(c, str) and c.startswith(old) else c

    name = new + code.co_qualname[len(old) :] if code.co_qualname.startswith(old) else code.co_qualname
    return code.replace(co_qualname=name, co_consts=tuple([again(c) for c in code.co_consts]))


def closure_of(fn: FunctionType) -> dict[str, CellType]:
    """The variables of enclosing functions that a function sees."""
    return dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))


_rewritten: dict[tuple[ast.FunctionDef, tuple[str, ...]], ast.FunctionDef] = {}


def watched(
    tree: ast.FunctionDef, filename: str, namespace: dict[str, Any], closure: dict[str, CellType], watch: Any
) -> FunctionType:
    """The function of a definition with a watch in place; its parameters have no defaults."""
    key = tree, tuple(sorted(closure))
    found = _rewritten.get(key)
    if found is None:
        plain = copy.deepcopy(tree)
        plain.args.defaults, plain.args.kw_defaults = [], [None] * len(plain.args.kwonlyargs)
        plain.returns = None
        for a in ast.walk(plain.args):
            if isinstance(a, ast.arg):
                a.annotation = None
        found = copy.deepcopy(plain)
        outside, bound = _looked_up(build(plain, filename, namespace, closure, tree.name).__code__), _bound(found)
        for n in outside & bound:
            raise NoSource(f"{n!r} is a global variable here and a local one there")
        rewriter = Rewriter(outside, set(closure) - {"__class__"})
        found.body = [s for stmt in found.body for s in _listed(rewriter.visit(stmt))]
        _rewritten[key] = found
    cells = {**closure, WATCH: CellType(watch)}
    return build(found, filename, namespace, cells, tree.name)


def _listed(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]
