"""Which names statements read before they set them, and which they surely set. Reads definitions of functions only."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_DEFERRED = (*_SCOPES, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Transparent = Callable[[ast.expr], bool]  # whether a context manager lets every error through


class Flow:
    """Statements in order: `exposed` is read before it is surely set there, `given` is surely set at the end."""

    def __init__(self, transparent: Transparent) -> None:
        self.transparent = transparent
        self.exposed: set[str] = set()
        self.given: set[str] = set()
        self.ends = False  # nothing comes after: it returns, raises, or leaves a loop

    def block(self, stmts: Iterable[ast.stmt]) -> Flow:
        for s in stmts:
            self._stmt(s)
        return self

    def _branch(self, stmts: Iterable[ast.stmt], extra: Iterable[str] = ()) -> Flow:
        inner = Flow(self.transparent)
        inner.given = {*self.given, *extra}
        inner.block(stmts)
        self.exposed |= inner.exposed
        return inner

    def _read(self, node: ast.AST | None) -> None:
        if node is None:
            return
        for name in loads(node):
            if name not in self.given:
                self.exposed.add(name)
        for n in ast.walk(node):
            if isinstance(n, ast.NamedExpr) and isinstance(n.target, ast.Name):
                # It may stand behind `and`: neither surely set nor left alone.
                self.exposed.add(n.target.id) if n.target.id not in self.given else None

    def _join(self, *branches: Flow) -> None:
        open_ = [b for b in branches if not b.ends]
        if not open_:
            self.ends = True
            return
        self.given = set.intersection(*[b.given for b in open_])

    def _stmt(self, s: ast.stmt) -> None:
        if isinstance(s, ast.If):
            self._read(s.test)
            self._join(self._branch(s.body), self._branch(s.orelse))
        elif isinstance(s, (ast.For, ast.While)):
            self._read(s.iter if isinstance(s, ast.For) else s.test)
            self._branch(s.body, stores(s.target) if isinstance(s, ast.For) else ())
            self._branch(s.orelse)
            if isinstance(s, ast.For):
                self._read(_without_names(s.target))
        elif isinstance(s, ast.With):
            names: list[str] = []
            for item in s.items:
                self._read(item.context_expr)
                names += stores(item.optional_vars) if item.optional_vars is not None else []
            inner = self._branch(s.body, names)
            if all(self.transparent(i.context_expr) for i in s.items):
                self.given, self.ends = inner.given, inner.ends
        elif isinstance(s, ast.Try):
            body = self._branch([*s.body, *s.orelse])
            rest = [self._branch(h.body, [h.name] if h.name else []) for h in s.handlers]
            for h, inner in zip(s.handlers, rest, strict=True):
                self._read(h.type)
                inner.given.discard(h.name or "")
            self._branch(s.finalbody)  # it may run after any part of the body
            gone = {h.name for h in s.handlers if h.name}
            self._join(body, *rest)
            self.given -= gone
            self._after(s.finalbody)
        else:
            self._simple(s)

    def _after(self, stmts: list[ast.stmt]) -> None:
        inner = self._branch(stmts)
        if not inner.ends:
            self.given = inner.given

    def _simple(self, s: ast.stmt) -> None:
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id not in self.given:
            self.exposed.add(s.target.id)
        self._read(s)
        perhaps = {n.target.id for n in ast.walk(s) if isinstance(n, ast.NamedExpr)}
        self.given |= set(stores(s)) - perhaps
        if isinstance(s, ast.Delete):
            self.given -= {t.id for t in s.targets if isinstance(t, ast.Name)}
        self.ends = isinstance(s, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _without_names(target: ast.expr) -> ast.AST | None:
    return None if isinstance(target, ast.Name) else target


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run in the frame of a statement itself."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            yield child
        else:
            yield from _own(child)


def loads(node: ast.AST) -> list[str]:
    """Names that are read, by functions inside of it, too."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Load, ast.Del))]


def stores(node: ast.AST) -> list[str]:
    """Names that a statement may set in its own frame."""
    inner: set[str] = set()
    found: list[str] = []
    for n in _own(node):
        if isinstance(n, _COMPREHENSIONS):
            inner |= {id_ for g in n.generators for id_ in _targets(g.target)}
    for n in _own(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
            found.append(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
            found += [n.name] if n.name else []
        elif isinstance(n, ast.alias):
            found.append((n.asname or n.name).split(".")[0])
        elif isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name:
            found.append(n.name)
    return [n for n in found if n not in inner]


def _targets(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def parameters(args: ast.arguments) -> list[str]:
    """The names of a function's parameters."""
    found = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return found + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


def separable(tree: ast.FunctionDef) -> bool:
    """Whether statements of a function may run in a frame of their own: nobody looks at its frame, declares outer
    names, or keeps a variable that is set again later."""
    params = set(parameters(tree.args))
    sets: dict[str, int] = {}
    for s in tree.body:
        for name in stores(s):
            sets[name] = sets.get(name, 0) + 1
    looped = {n for s in _own(tree) if isinstance(s, (ast.For, ast.While)) for n in stores(s)}
    for n in ast.walk(tree):
        if isinstance(n, (ast.Global, ast.Nonlocal, ast.Match, ast.Await, ast.ImportFrom, ast.Import, ast.ClassDef)):
            return False
        if isinstance(n, _DEFERRED) and n is not tree:
            for name in set(loads(n)):
                if sets.get(name, 0) + (name in params) > 1 or name in looped:
                    return False
    # A name of a comprehension that is a variable as well would be mixed up.
    inner = {
        t for n in ast.walk(tree) if isinstance(n, _COMPREHENSIONS) for g in n.generators for t in _targets(g.target)
    }
    return not inner & (params | set(sets))


def leaves(stmt: ast.stmt) -> tuple[bool, bool]:
    """(whether it may return from the function, whether it may leave or repeat a loop around it)."""
    returns = any(isinstance(n, ast.Return) for n in _own(stmt))
    return returns, _jumps(stmt)


def _jumps(node: ast.AST) -> bool:
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    if isinstance(node, (ast.For, ast.While)):
        return any(_jumps(s) for s in node.orelse)
    return any(_jumps(c) for c in ast.iter_child_nodes(node) if not isinstance(c, _SCOPES))
