"""Adds a piece of source to a file that may be there already. Pure functions of text."""

from __future__ import annotations

import ast
import re

CUT = "---\n"


def merged(existing: str | None, template: str, *, python: bool) -> str:
    """The file with what a filled template adds: head and body where there was none, else the body at the end."""
    head, body = template.split(CUT, 1)
    head = re.sub(r"\n{3,}", "\n\n", head)
    if existing is None:
        gap = "\n\n" if python and re.match(r"(@|def |class )", body) else "\n"
        return head.rstrip("\n") + "\n" + gap + body
    if python:
        return with_imports(existing, head).rstrip("\n") + "\n\n\n" + body
    missing = [line for line in head.splitlines() if line.startswith("#include") and line not in existing]
    first = existing.index("#include")
    return existing[:first] + "".join(f"{line}\n" for line in missing) + existing[first:].rstrip("\n") + "\n\n" + body


def with_imports(source: str, head: str) -> str:
    """A module with the imports of another at its top, each name once."""
    bound = {a.asname or a.name for node in _imports(source) for a in node.names} | defined(source)
    for wanted in _imports(head):
        new = [a for a in wanted.names if (a.asname or a.name) not in bound]
        if not new:
            continue
        same = [n for n in _imports(source) if _origin(n) == _origin(wanted) and _origin(n) is not None]
        lines = source.splitlines(keepends=True)
        if same:
            node = same[0]
            node.names = sorted([*node.names, *new], key=lambda a: (not a.name.isupper(), a.name.islower(), a.name))
            lines[node.lineno - 1 : node.end_lineno] = [ast.unparse(node) + "\n"]
        else:
            wanted.names = new
            lines.insert(_imports(source)[-1].end_lineno or 0, ast.unparse(wanted) + "\n")
        source = "".join(lines)
    return source


def defined(source: str) -> set[str]:
    """The functions and classes of a module."""
    return {n.name for n in ast.parse(source).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def _imports(source: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]


def _origin(node: ast.Import | ast.ImportFrom) -> tuple[int, str] | None:
    return (node.level, node.module or "") if isinstance(node, ast.ImportFrom) else None
