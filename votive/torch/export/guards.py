"""What an exported graph relies on, checked before it runs: kinds, numbers of dimensions, sizes, plain values. Data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...tensor import Tensor
from ..overlays._dynamo.exc import UserError
from .capture import Captured
from .expressions import evaluate
from .shapes import Dim


@dataclass(frozen=True)
class Guard:
    """One condition. `kind` is "rank", "dtype" or "value" of a leaf, or "sizes": `text` holds for sizes by name."""

    kind: str
    text: str
    told: str
    leaf: int = -1
    value: Any = None

    def holds(self, flat: Sequence[Any], sizes: dict[str, int]) -> bool:
        """Whether it is so for these leaves."""
        if self.kind == "sizes":
            return bool(evaluate(self.text, sizes))
        found = flat[self.leaf]
        if self.kind == "value":
            return type(found) is type(self.value) and found == self.value
        if not isinstance(found, Tensor):
            return False
        return bool(found.ndim == self.value if self.kind == "rank" else found.dtype.name == self.value)


def check(guards: Sequence[Guard], flat: Sequence[Any]) -> None:
    """Raise for the first condition that does not hold."""
    sizes: dict[str, int] = {}
    for i, leaf in enumerate(flat):
        if isinstance(leaf, Tensor):
            sizes.update({f"a{i}_{d}": int(n) for d, n in enumerate(leaf.shape)})
    for guard in guards:
        if not guard.holds(flat, sizes):
            raise AssertionError(f"Guard failed: {guard.told}")


def guards_of(captured: Captured, flat: list[Any], names: list[str], shapes: list[dict[int, Any]]) -> list[Guard]:
    """The conditions of a captured graph and of the declared sizes."""
    found: list[Guard] = []
    for i, leaf in enumerate(flat):
        name = names[i]
        if not isinstance(leaf, Tensor):
            found.append(Guard("value", "", f"{name} == {leaf!r}", i, leaf))
            continue
        found.append(Guard("rank", "", f"{name}.dim() == {leaf.ndim}", i, leaf.ndim))
        found.append(Guard("dtype", "", f"{name}.dtype == {leaf.dtype}", i, leaf.dtype.name))
        for d, n in enumerate(leaf.shape):
            if d not in shapes[i]:
                found.append(Guard("sizes", f"a{i}_{d} == {int(n)}", f"{name}.size()[{d}] == {int(n)}"))
    found += _declared(captured, names, shapes)
    renamed = {f"s{k}": f"a{i}_{d}" for k, (i, d) in enumerate(captured.symbols)}
    hints = {f"s{k}": int(flat[i].shape[d]) for k, (i, d) in enumerate(captured.symbols)}
    _check_equalities(captured, shapes, hints)
    for condition in captured.conditions:
        text, told = _renamed(condition, renamed), condition
        for k, (i, d) in enumerate(captured.symbols):
            told = _renamed(told, {f"s{k}": f"{names[i]}.size()[{d}]"})
        found.append(Guard("sizes", text, told))
    return found


def _declared(captured: Captured, names: list[str], shapes: list[dict[int, Any]]) -> list[Guard]:
    found: list[Guard] = []
    roots: dict[str, str] = {}
    for i, d in captured.symbols:
        size, name, told = shapes[i][d], f"a{i}_{d}", f"{names[i]}.size()[{d}]"
        low = max(captured.smallest, size.min if size.min is not None and size.min > 2 else 0)
        found.append(Guard("sizes", f"{name} >= {low}", f"{told} >= {low}"))
        if size.max is not None:
            found.append(Guard("sizes", f"{name} <= {size.max}", f"{told} <= {size.max}"))
        if not isinstance(size, Dim):
            continue
        root = f"({name} - {size.plus}) // {size.times}"
        if size.times > 1:
            found.append(Guard("sizes", f"({name} - {size.plus}) % {size.times} == 0", f"{told} == {size.__name__}"))
        key = size.root.__name__
        if key in roots:
            found.append(Guard("sizes", f"{root} == {roots[key]}", f"{told} == {size.__name__}"))
        roots.setdefault(key, root)
    return found


def _renamed(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\bs\d+\b", lambda m: names.get(m[0], m[0]), text)


def _check_equalities(captured: Captured, shapes: list[dict[int, Any]], hints: dict[str, int]) -> None:
    """Refuse equations between sizes that the caller declared to be independent."""
    declared = [shapes[i][d] for i, d in captured.symbols]
    if not all(isinstance(s, Dim) for s in declared):
        return
    roots = {s.root.__name__: k for k, s in reversed(list(enumerate(declared)))}
    values: dict[str, int] = {}
    for k, s in enumerate(declared):
        first = declared[roots[s.root.__name__]]
        base = (hints[f"s{roots[s.root.__name__]}"] - first.plus) // first.times
        if base * s.times + s.plus != hints[f"s{k}"]:
            raise UserError(f"Constraints violated ({s.__name__})! The example's sizes do not follow {s.__name__}.")
        values[f"s{k}"] = (base + 3 + 2 * list(roots).index(s.root.__name__)) * s.times + s.plus
    for condition in captured.conditions:
        if " == " in condition and not evaluate(condition, values):
            labels = ", ".join(dict.fromkeys(s.root.__name__ for s in declared))
            raise UserError(f"Constraints violated ({labels})! The program needs {condition}, which is not declared.")
