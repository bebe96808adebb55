"""Calling a module with other parameters and buffers than its own. Knows a module's tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..module import Module

Place = tuple[dict[str, Any], str]


def _places(module: Module) -> dict[str, Place]:
    """The table and name where each path's tensor is kept, shared ones under all their paths."""
    places: dict[str, Place] = {}
    for path, m in module.named_modules(remove_duplicate=False):
        for table in (m._parameters, m._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    places[f"{path}.{name}" if path else name] = (table, name)
    return places


def _spread(tensors: dict[str, Any], places: dict[str, Place], tie: bool) -> dict[str, Any]:
    """The tensors for all paths; with `tie`, what is shared in the module gets one value."""
    ties: dict[int, list[str]] = {}
    for path, (table, name) in places.items():
        ties.setdefault(id(table[name]), []).append(path)
    wanted: dict[str, Any] = {}
    for key, tensor in tensors.items():
        if key not in places:
            continue
        table, name = places[key]
        for path in ties[id(table[name])] if tie else [key]:
            if wanted.setdefault(path, tensor) is not tensor:
                raise ValueError(
                    f"functional_call got multiple values for keys {ties[id(table[name])]}, which "
                    "are tied. Consider using tie_weights=False"
                )
    return wanted


@contextlib.contextmanager
def replaced(module: Module, tensors: dict[str, Any], tie_weights: bool = True, strict: bool = False) -> Iterator[None]:
    """Inside, the module has the given tensors at these paths; new ones it sets go to `tensors`.

    >>> from votive.nn.utils.stateless import replaced
    >>> m = votive.nn.ParameterList([votive.zeros(1)])
    >>> with replaced(m, {"0": votive.ones(1)}):
    ...     m[0]
    tensor([1.])
    """
    places = _places(module)
    wanted = _spread(tensors, places, tie_weights)
    if strict:
        wrong = [
            f"{kind} key(s): {', '.join(map(repr, keys))}."
            for kind, keys in (
                ("Unexpected", [k for k in tensors if k not in places]),
                ("Missing", [k for k in places if k not in wanted]),
            )
            if keys
        ]
        if wrong:
            text = "\n\t".join(wrong)
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{text}")
    own = [(path, *places[path], places[path][0][places[path][1]]) for path in wanted]
    for path, table, name, _ in own:
        table[name] = wanted[path]
    try:
        yield
    finally:
        for path, table, name, tensor in own:
            if path in tensors:
                tensors[path] = table[name]
            table[name] = tensor


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: object = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module as if it had the given parameters and buffers.

    >>> from votive.nn.utils.stateless import functional_call
    >>> m = votive.nn.Linear(1, 1)
    >>> w = {"weight": votive.ones(1, 1), "bias": votive.zeros(1)}
    >>> functional_call(m, w, votive.tensor([5.0]))
    tensor([5.])
    """
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*given, **(kwargs or {}))
