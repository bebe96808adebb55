"""The names of the programs' cases, which tests are made of without importing the libraries."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def keys(program: str, table: str) -> tuple[str, ...]:
    """The keys of a dict that a program states at its top."""
    tree = ast.parse((Path(__file__).parent / "programs" / f"{program}.py").read_text())
    for node in tree.body:
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if isinstance(target, ast.Name) and target.id == table and isinstance(node.value, ast.Dict):  # type: ignore[union-attr]
            return tuple(ast.literal_eval(key) for key in node.value.keys if key is not None)  # type: ignore[union-attr]
    raise LookupError(f"{program}.py states no dict {table}.")
