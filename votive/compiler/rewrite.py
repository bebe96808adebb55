"""A function's definition, rewritten so that whatever it reads from outside and writes there passes through a `Watch`.

The rewritten function does what the original does, line by line. Only what it means is changed here; what is allowed
and what is remembered is decided by the watch (`reads.py`, `watch.py`).
"""

from __future__ import annotations

import ast
from typing import Any

WATCH = "__votive_watch__"


class NoSource(Exception):
    """A function whose source cannot be had or cannot be rewritten."""


def looks_at_frame(node: ast.AST) -> bool:
    """Whether an expression sees all variables of the function it stands in."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in ("locals", "eval", "exec") or (node.func.id in ("vars", "dir") and not node.args)


class Rewriter(ast.NodeTransformer):
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
