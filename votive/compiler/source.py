"""A function's source, rewritten so that whatever it reads from outside and writes there passes through a `Watch`.

The rewritten function does what the original does, line by line. Only what it means is changed here; what is allowed
and what is remembered is decided by the watch (`watch.py`).
"""

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

WATCH = "__votive_watch__"
_MADE = "__votive_function__"


class NoSource(Exception):
    """A function whose source cannot be had or cannot be rewritten."""


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
        and names_of(n.args) == list(code.co_varnames[: len(names_of(n.args))])
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


def names_of(args: ast.arguments) -> list[str]:
    """The names of a function's parameters."""
    found = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return found + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


def looks_at_frame(node: ast.AST) -> bool:
    """Whether an expression sees all variables of the function it stands in."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in ("locals", "eval", "exec") or (node.func.id in ("vars", "dir") and not node.args)


class _Rewriter(ast.NodeTransformer):
    """Puts calls of the watch around what reaches outside."""

    def __init__(self, outside: set[str], cells: set[str]) -> None:
        self.outside = outside  # names that are looked up in globals
        self.cells = cells  # names of variables of enclosing functions

    def _call(self, method: str, *args: ast.expr, at: ast.AST) -> ast.expr:
        made = ast.Call(ast.Attribute(ast.Name(WATCH, ast.Load()), method, ast.Load()), list(args), [])
        return ast.fix_missing_locations(ast.copy_location(made, at))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            if node.id in self.cells:
                return self._call("cell", ast.Constant(node.id), node, at=node)
            if node.id in self.outside:
                return self._call("outside", ast.Constant(node.id), node, at=node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return self._call("attr", node.value, ast.Constant(node.attr), at=node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return self._call("item", node.value, self._key(node.slice), at=node)
        node.value = self._call("changed", node.value, at=node.value)
        return node

    def _key(self, node: ast.expr) -> ast.expr:
        """What stands in brackets, as an expression."""
        if isinstance(node, ast.Slice):
            parts = [p or ast.Constant(None) for p in (node.lower, node.upper, node.step)]
            return self._call("slice", *parts, at=node)
        if isinstance(node, ast.Tuple):
            node.elts = [self._key(e) for e in node.elts]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return node  # needs its own frame
        if looks_at_frame(node):
            raise NoSource(f"it calls {ast.unparse(node.func)}()")
        if isinstance(node.func, ast.Name) and node.func.id in ("vars", "globals"):
            return self._call("refuse", ast.Constant(f"it calls {node.func.id}()"), node, at=node)
        self.generic_visit(node)
        node.args = [
            ast.copy_location(ast.Starred(self._call("each", a.value, at=a), a.ctx), a)
            if isinstance(a, ast.Starred)
            else a
            for a in node.args
        ]
        for k in node.keywords:
            if k.arg is None:
                k.value = self._call("whole", k.value, at=k.value)
        node.args.insert(0, node.func)
        line = ast.copy_location(ast.Constant(node.lineno), node)
        node.args.insert(0, line)
        node.func = ast.copy_location(
            ast.Attribute(ast.copy_location(ast.Name(WATCH, ast.Load()), node), "call", ast.Load()), node
        )
        return node

    def _targets(self, node: ast.AST) -> ast.AST:
        """Attributes that are stored, anywhere among targets."""
        rewriter = self

        class Stores(ast.NodeTransformer):
            def visit_Attribute(self, n: ast.Attribute) -> ast.AST:
                if isinstance(n.ctx, (ast.Store, ast.Del)):
                    n.value = rewriter._call("changed", n.value, ast.Constant(n.attr), at=n.value)
                return n

        return Stores().visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        node.targets = [self._targets(t) for t in node.targets]  # type: ignore[misc]
        if any(isinstance(t, (ast.Tuple, ast.List)) for t in node.targets):
            node.value = self._call("each", node.value, at=node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(plain)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            name = ast.Name(node.target.id, ast.Load())
            look = ast.Expr(self._call("augmented", ast.copy_location(name, node), at=node))
            return [ast.fix_missing_locations(ast.copy_location(look, node)), node]
        if isinstance(node.target, ast.Attribute):
            node.target.value = self._call("augmented_in", node.target.value, ast.Constant(node.target.attr), at=node)
        return node

    def visit_Delete(self, node: ast.Delete) -> Any:
        self.generic_visit(node)
        node.targets = [self._targets(t) for t in node.targets]  # type: ignore[misc]
        return node

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.iter = self._call("each", node.iter, at=node.iter)
        node.target = self._targets(node.target)  # type: ignore[assignment]
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.iter = self._call("each", node.iter, at=node.iter)
        node.ifs = [self._test(t) for t in node.ifs]
        return node

    def _test(self, node: ast.expr) -> ast.expr:
        plain = isinstance(node, (ast.Constant, ast.Compare))
        return node if plain else self._call("used", node, at=node)

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        node.test = self._test(node.test)
        return node

    visit_While = visit_IfExp = visit_Assert = visit_If  # type: ignore[assignment]

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        node.values = [self._test(v) for v in node.values]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        node.operand = self._test(node.operand)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        node.left, node.right = self._test(node.left), self._test(node.right)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if all(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops):
            other = node.comparators[0]
            if len(node.ops) == 1 and not isinstance(node.left, ast.Constant) and not isinstance(other, ast.Constant):
                same = self._call("identical", node.left, other, at=node)
                made = same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same)
                return ast.fix_missing_locations(ast.copy_location(made, node))
            return node
        node.left = self._test(node.left)
        node.comparators = [self._test(c) for c in node.comparators]
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = self._call("entered", item.context_expr, at=item.context_expr)
        return node

    def visit_Global(self, node: ast.Global) -> Any:
        raise NoSource("it assigns to global variables")

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        raise NoSource("it assigns to variables of an enclosing function")

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        raise NoSource("it defines a class")

    def visit_Import(self, node: ast.stmt) -> Any:
        raise NoSource("it imports a module")

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        # Defaults are evaluated here; the inner function is rewritten with its outer one.
        self.generic_visit(node)
        node.returns = None
        for a in ast.walk(node.args):
            if isinstance(a, ast.arg):
                a.annotation = None
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        raise NoSource("it defines a coroutine")

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        node.value = self._test(node.value)
        return node


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
    code = code.replace(co_name=tree.name, co_qualname=name)
    return FunctionType(code, namespace, name, None, tuple(closure[n] for n in code.co_freevars))


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
        rewriter = _Rewriter(outside, set(closure) - {"__class__"})
        found.body = [s for stmt in found.body for s in _listed(rewriter.visit(stmt))]
        _rewritten[key] = found
    cells = {**closure, WATCH: CellType(watch)}
    return build(found, filename, namespace, cells, tree.name)


def _listed(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]
