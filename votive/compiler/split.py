"""A function that is not one graph, as compiled pieces with plain Python between them.

The statement where a trace ended stays as it is; statements before and after it become functions of the variables that
they read and set, which are compiled on their own and are split again where they end. Calls in statements that stay go
to compiled functions and modules. Every statement still runs once per call, in its order, so what Python does beside
computing is neither lost nor done twice. A statement moves into a piece only if the variables it needs are surely set,
and nobody could see that it has a frame of its own.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from .rewrite import looks_at_frame
from .scope import Flow, leaves, parameters, separable, stores
from .source import build, closure_of, remember, tree_of

SPLIT = "__votive_split__"
_WORK = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign, ast.Subscript)
_PACKAGE = __name__.split(".")[0]


class _Calls(ast.NodeTransformer):
    """Lets calls go through the split, which knows compiled versions of what is called."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node  # needs its own frame
        self.generic_visit(node)
        node.args.insert(0, node.func)
        target = ast.Attribute(ast.Name(SPLIT, ast.Load()), "call", ast.Load())
        node.func = ast.fix_missing_locations(ast.copy_location(target, node))
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        return node  # runs whenever somebody calls it

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_GeneratorExp = visit_FunctionDef


class Splitter:
    """Writes the split form of one function. `piece(fn)` compiles a piece, `split.call` serves calls between."""

    def __init__(self, fn: FunctionType, line: int, piece: Callable[[FunctionType], Any], split: Any) -> None:
        self.fn, self.piece = fn, piece
        self.tree = copy.deepcopy(tree_of(fn))
        self.closure = closure_of(fn)
        self.cells: dict[str, CellType] = {**self.closure, SPLIT: CellType(split)}
        self.params = parameters(self.tree.args)
        self.movable = separable(self.tree)
        self.locals = {*self.params, *(n for s in self.tree.body for n in stores(s))}
        self.reads_super = any(isinstance(n, ast.Name) and n.id == "super" for n in ast.walk(self.tree))
        self.lines = range(line, line + 1)
        if not any(self._breaks(s) for s in self.tree.body):  # it ended nowhere: halve it
            middle = _middle(self.tree.body)
            self.lines = range(middle.lineno, (middle.end_lineno or middle.lineno) + 1)
        self.pieces = 0

    def function(self) -> FunctionType:
        """The function, with pieces in place of its statements."""
        if any(looks_at_frame(n) for n in ast.walk(self.tree)):
            return self.fn
        if self.movable:
            body = self._block(self.tree.body, set(self.params), tail=True, loop=False)
        else:
            body = [_Calls().visit(s) for s in self.tree.body]
        made = _definition(self.tree, self.tree.args, body)
        made = _undefaulted(made)
        found = build(made, self.fn.__code__.co_filename, self.fn.__globals__, self.cells, self.fn.__name__)
        found.__defaults__, found.__kwdefaults__ = self.fn.__defaults__, self.fn.__kwdefaults__
        found.__qualname__ = self.fn.__qualname__
        return found

    # --- statements ------------------------------------------------------------------------------

    def _transparent(self, manager: ast.expr) -> bool:
        """Whether a context manager is the package's own: errors pass through those."""
        target: Any = manager.func if isinstance(manager, ast.Call) else manager
        names: list[str] = []
        while isinstance(target, ast.Attribute):
            names.insert(0, target.attr)
            target = target.value
        if not isinstance(target, ast.Name) or target.id in self.locals:
            return False
        try:
            cell = self.closure.get(target.id)
            found = cell.cell_contents if cell is not None else self.fn.__globals__[target.id]
            for n in names:
                found = getattr(found, n)
        except (KeyError, ValueError, AttributeError):
            return False
        return (getattr(found, "__module__", None) or "").split(".")[0] == _PACKAGE

    def _flow(self, stmts: list[ast.stmt]) -> Flow:
        return Flow(self._transparent).block(stmts)

    def _breaks(self, stmt: ast.stmt) -> bool:
        return any(stmt.lineno <= line <= (stmt.end_lineno or stmt.lineno) for line in self.lines)

    def _block(self, stmts: list[ast.stmt], before: set[str], *, tail: bool, loop: bool) -> list[ast.stmt]:
        """Statements of a block in their new form; `before` are the variables that are surely set."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        known = set(before)
        start = set(before)

        def flush() -> None:
            made.extend(self._moved(run, start, loop))
            run.clear()

        for i, stmt in enumerate(stmts):
            rest = stmts[i:]
            if tail and made and not run and not any(self._breaks(s) for s in rest):
                whole = self._tail(rest, known)
                if whole is not None:
                    return [*made, *whole]
            returns, jumps = leaves(stmt)
            stays = self._breaks(stmt) or jumps or (returns and not isinstance(stmt, ast.Return))
            if not run:
                start = set(known)
            if stays or not self._fits([*run, stmt], start, loop):
                flush()
                start = set(known)
                if stays or not self._fits([stmt], start, loop):
                    made.append(self._kept(stmt, known, loop))
                else:
                    run.append(stmt)
            else:
                run.append(stmt)
            known |= self._flow([stmt]).given & self.locals
            known -= set(_deleted(stmt))
        flush()
        return made

    def _kept(self, stmt: ast.stmt, before: set[str], loop: bool) -> ast.stmt:
        """A statement that stays, with pieces in its blocks."""
        new = copy.copy(stmt)
        if isinstance(new, ast.If):
            new.test = _Calls().visit(new.test)
            new.body = self._block(new.body, before, tail=False, loop=loop)
            new.orelse = self._block(new.orelse, before, tail=False, loop=loop)
        elif isinstance(new, (ast.For, ast.While)):
            inner = set(before)
            if isinstance(new, ast.For):
                new.iter = _Calls().visit(new.iter)
                inner |= set(stores(new.target))
            else:
                new.test = _Calls().visit(new.test)
            new.body = self._block(new.body, inner, tail=False, loop=True)
            new.orelse = self._block(new.orelse, before, tail=False, loop=loop)
        elif isinstance(new, ast.With) and all(self._transparent(i.context_expr) for i in new.items):
            names = {n for i in new.items if i.optional_vars is not None for n in stores(i.optional_vars)}
            for item in new.items:
                item.context_expr = _Calls().visit(item.context_expr)
            new.body = self._block(new.body, before | names, tail=False, loop=loop)
        else:
            new = _Calls().visit(new)
        return new

    # --- pieces ----------------------------------------------------------------------------------

    def _fits(self, run: list[ast.stmt], before: set[str], loop: bool) -> bool:
        """Whether statements can be a piece where just `before` is surely set."""
        if any(isinstance(n, ast.Delete) for s in run for n in ast.walk(s)):
            return False
        if any(isinstance(s, ast.Return) for s in run[:-1]):
            return False
        flow = self._flow(run)
        if not flow.exposed & self.locals <= before:
            return False
        return self._results(run, loop) <= flow.given | before

    def _results(self, run: list[ast.stmt], loop: bool) -> set[str]:
        """The variables that statements set and others read."""
        mine = {id(n) for s in run for n in ast.walk(s)}
        others = {
            n.id
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Name) and id(n) not in mine and not isinstance(n.ctx, ast.Store)
        }
        others |= {
            n.target.id
            for n in ast.walk(self.tree)
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and id(n) not in mine
        }
        if loop:  # what the next round reads
            others |= self._flow(run).exposed
        return {n for s in run for n in stores(s)} & others

    def _moved(self, run: list[ast.stmt], before: set[str], loop: bool) -> list[ast.stmt]:
        """The call of a piece in place of its statements; these themselves where it would not pay."""
        if not any(isinstance(n, _WORK) for s in run for n in ast.walk(s)):
            return list(run)
        results = sorted(self._results(run, loop)) if not isinstance(run[-1], ast.Return) else []
        if isinstance(run[-1], ast.Return):
            return [self._call(run, [], before, returns=True)]
        return [self._call(run, results, before, returns=False)]

    def _tail(self, rest: list[ast.stmt], before: set[str]) -> list[ast.stmt] | None:
        """Everything up to the function's end as one piece."""
        if not any(isinstance(n, _WORK) for s in rest for n in ast.walk(s)):
            return None
        if not self._flow(rest).exposed & self.locals <= before or any(_deleted(s) for s in rest):
            return None
        return [self._call(rest, [], before, returns=True)]

    def _call(self, run: list[ast.stmt], results: list[str], before: set[str], *, returns: bool) -> ast.stmt:
        needed = self._flow(run).exposed & self.locals | (set(results) - self._flow(run).given)
        inputs = sorted(needed & before)
        if self.reads_super and self.params:
            inputs = [self.params[0], *(n for n in inputs if n != self.params[0])]
        args = ast.arguments([], [ast.arg(n) for n in inputs], None, [], [], None, [])
        body = list(run)
        names = ast.Tuple([ast.Name(n, ast.Load()) for n in results], ast.Load())
        if not returns:
            body.append(ast.copy_location(ast.Return(names), run[-1]))
        tree = _definition(self.tree, args, body)
        fn = build(
            copy.deepcopy(tree), self.fn.__code__.co_filename, self.fn.__globals__, self.closure, self.fn.__name__
        )
        fn.__qualname__ = f"{self.fn.__qualname__} (lines {run[0].lineno}-{run[-1].end_lineno})"
        fn.__module__ = self.fn.__module__
        remember(fn, tree)
        name = f"__votive_piece_{self.pieces}__"
        self.pieces += 1
        self.cells[name] = CellType(self.piece(fn))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(n, ast.Load()) for n in inputs], [])
        stmt: ast.stmt
        if returns:
            stmt = ast.Return(call)
        elif results:
            stmt = ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in results], ast.Store())], call)
        else:
            stmt = ast.Expr(call)
        return ast.fix_missing_locations(ast.copy_location(stmt, run[0]))


def _middle(body: list[ast.stmt]) -> ast.stmt:
    """The statement in the midst of a block, inside of it where the block is but one."""
    found = body[(len(body) - 1) // 2]
    inner = getattr(found, "body", None)
    return _middle(inner) if len(body) == 1 and isinstance(inner, list) and inner else found


def _deleted(stmt: ast.stmt) -> list[str]:
    return [t.id for n in ast.walk(stmt) if isinstance(n, ast.Delete) for t in n.targets if isinstance(t, ast.Name)]


def _definition(like: ast.FunctionDef, args: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(like.name, args, body or [ast.Pass()], [], None)
    made.qualname = getattr(like, "qualname", like.name)  # type: ignore[attr-defined]
    return ast.fix_missing_locations(ast.copy_location(made, like))


def _undefaulted(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A definition whose defaults and annotations are left out: those of the original function are taken."""
    tree.args = copy.deepcopy(tree.args)
    tree.args.defaults, tree.args.kw_defaults = [], [None] * len(tree.args.kwonlyargs)
    for a in ast.walk(tree.args):
        if isinstance(a, ast.arg):
            a.annotation = None
    return tree
