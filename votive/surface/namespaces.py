"""Hangs the operators onto the package, its namespaces and Tensor. Knows names only."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..ops.operator import Op, Operator
from ..ops.plain_operator import PlainOperator
from ..ops.registry import COMPOSITES, OPS, F
from ..ops.shape import PROPERTIES
from . import window  # noqa: F401 - declares resize_ and kin

if TYPE_CHECKING:
    from ..tensor import Tensor


def namespace(root: types.ModuleType, path: str) -> types.ModuleType:
    """The module `root.path`, made if it is not there."""
    here = root
    name = root.__name__
    for part in path.split("."):
        if not part:
            continue
        name = f"{name}.{part}"
        found = getattr(here, part, None)
        if not isinstance(found, types.ModuleType):
            found = sys.modules.get(name) or types.ModuleType(name)
            sys.modules[name] = found
            setattr(here, part, found)
        here = found
    return here


def bindings() -> Iterator[tuple[str, str, Operator]]:
    """Every public function as (namespace, name, operator); methods have "Tensor"."""
    for item in (*OPS.values(), *COMPOSITES.values()):
        if item.name.startswith("_"):
            continue
        names = (item.name, *item.aliases)
        spaces = [*item.namespaces, *(["Tensor"] if item.method else [])]
        yield from ((space, n, item) for space in spaces for n in names)
        for path in item.also:
            space, _, n = path.rpartition(".")
            yield space, n, item
        if item.inplace and not (isinstance(item, Op) and item.kind == "view"):
            spaces = ["Tensor", *(item.namespaces if item.inplace_function else ())]
            yield from ((space, n + "_", item.inplace_form) for space in spaces for n in names)


def fill(space: str, scope: dict[str, Any]) -> None:
    """Put the functions of one namespace into a module's globals."""
    scope.update({n: operator for where, n, operator in bindings() if where == space})


def bind_method(tensor: type[Tensor], name: str, operator: Operator) -> None:
    """Make an operator a method."""
    setattr(tensor, name, operator.as_method(tensor, name) if isinstance(operator, PlainOperator) else operator)


def install(root: types.ModuleType, tensor: type[Tensor]) -> None:
    """Bind every public function and method."""
    for space, name, operator in bindings():
        if space == "Tensor":
            bind_method(tensor, name, operator)
        elif space != "nn.functional":  # fills itself when it is imported
            setattr(namespace(root, space), name, operator)
    for name, read in PROPERTIES.items():
        write = _writer(read) if name in ("real", "imag") else None
        setattr(tensor, name, property(read, write))
    getitem = COMPOSITES["_getitem"]
    getitem.__name__ = "__getitem__"  # as handlers of `__torch_function__` know it
    bind_method(tensor, "__getitem__", getitem)


def _writer(read: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Any], None]:
    """`x.real = v` writes through the view that `x.real` is."""
    return lambda x, value: F.copy_(read(x), value)
