"""A graph as the text of a Python function that calls its operators in order. What `explain` shows is what runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dispatch import write_over
from ..ops.operator import Op
from ..ops.region import Region, RowRegion
from .graph import Draw, Graph, Node, Value
from .places import Live
from .sizes import SizedRegion, sized
from .symbols import text_of
from .trace import draw_arguments


class Emitted:
    """A function and its text."""

    def __init__(self, text: str, scope: dict[str, Any]) -> None:
        self.text, self.scope = text, scope
        exec(compile(text, "<votive.compile>", "exec"), scope)
        self.run: Callable[..., Any] = scope["run"]


def emit(
    nodes: Sequence[Node],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    graph: Graph,
    given: Sequence[Draw] = (),
    give: Sequence[Draw] = (),
    taken: Sequence[Value] | None = None,
) -> Emitted:
    """`run(*inputs, *given)` gives a tuple of the outputs and of the draws to `give`.

    A value is dropped after its last use, so its memory can serve again. `taken`: further inputs, which come first as
    one list that is emptied.
    """
    scope: dict[str, Any] = {"math": math}
    known: dict[Any, str] = {}
    sizes = [] if graph.sizes is None else graph.sizes.names

    def name(obj: object, hint: str) -> str:
        key = id(obj)
        if key not in known:
            known[key] = f"{hint}_{len(known)}"
            scope[known[key]] = obj
            scope.setdefault("_alive", []).append(obj)
        return known[key]

    last: dict[Value, int] = {}
    for i, node in enumerate(nodes):
        for v in (*node.reads(), *node.writes, *node.outs):
            last[v] = i
    kept = {*outputs}
    used = {v for n in nodes for v in (*n.reads(), *n.writes)} | kept
    written = graph.written()
    draws = {id(d): f"draw{i}" for i, d in enumerate(given)}
    first = [] if taken is None else ["kept"]
    lines = [f"def run({', '.join([*first, *map(repr, inputs), *draws.values(), *sizes])}):"]
    if taken is not None:
        if taken:
            lines.append(f"    {', '.join(map(repr, taken))}, = kept")
        lines.append("    kept.clear()")
        inputs = [*inputs, *taken]
    for v, tensor in graph.constants.items():
        if v in used:
            fresh = v in kept or v in written or any(o.root is v for o in outputs)
            lines.append(f"    {v!r} = {name(tensor, 'constant')}{'.clone()' if fresh else ''}")
    lines += [f"    {n} = {v.place.code(lambda o: _bound(o, name))}" for v, n in _numbers(nodes, known).items()]
    for i, node in enumerate(nodes):
        if node.draw is not None and id(node.draw) not in draws:
            draws[id(node.draw)] = k = f"draw{len(draws)}"
            lines.append(f"    {k} = {name(node.draw.generator, 'generator')}.reserve({text_of(node.draw.count)})")
        if graph.sizes is not None and any(sized(a) for a in node.args):
            node = dataclasses.replace(node, args=tuple([_sized(a, graph.sizes, name) for a in node.args]))
        lines.append(f"    {_call(node, name, draws)}" + (f"  # {node.path}" if node.path else ""))
        gone = [v for v in dict.fromkeys((*node.reads(), *node.outs)) if last[v] == i and v not in kept]
        gone = [v for v in gone if v.node is not None or v in inputs]
        if gone:
            lines.append(f"    del {', '.join(map(repr, gone))}")
    results = [*map(repr, outputs), *[draws[id(d)] for d in give]]
    lines.append(f"    return ({''.join(f'{r}, ' for r in results)})")
    return Emitted("\n".join(lines) + "\n", scope)


def _call(node: Node, name: Callable[[Any, str], str], draws: dict[int, str]) -> str:
    op = node.op
    values = list(node.args)
    if node.draw is not None:
        draw = draws[id(node.draw)]
        for part, i in enumerate(draw_arguments(op)):
            values[i] = _Text(f"{draw}[{part}]")
    args = "".join(f"{_text(v, name)}, " for v in values)
    if node.form == "out":
        scope = name(Op.write_out, "write_out")
        return f"{scope}({name(op, op.name)}, ({args}), {node.into!r})"
    if node.form == "over":
        return f"{name(write_over, 'write_over')}({name(op, op.name)}, ({args}), {node.into!r})"
    if node.form == "write":
        return f"{name(op, op.name)}.write(({args}))"
    results = ", ".join(map(repr, node.outs)) + ("" if node.single else ",")
    head = f"{results} = " if node.outs else ""
    return f"{head}{name(op, op.name)}.apply(({args}))"


def _numbers(nodes: Sequence[Node], known: dict[Any, str]) -> dict[Live, str]:
    """The numbers that are read where they stand, and how they are called."""
    found = {
        a: f"number{i}" for i, a in enumerate(dict.fromkeys(a for n in nodes for a in n.args if a.__class__ is Live))
    }
    known.update({id(a): text for a, text in found.items()})
    return found


def _bound(obj: object, name: Callable[[Any, str], str]) -> str:
    return repr(obj) if obj.__class__ in (int, str) else name(obj, "held")


def _sized(a: object, sizes: Any, name: Callable[[Any, str], str]) -> Any:
    """An argument as text, where it depends on sizes."""
    if a.__class__ is tuple or a.__class__ is list:
        return tuple([_sized(x, sizes, name) for x in a])
    if not sized(a):
        return a
    if isinstance(a, (Region, RowRegion)):
        return _Text(f"{name(SizedRegion(a, sizes), 'region')}({', '.join(sizes.names)})")
    return _Text(text_of(a))


class _Text(str):
    """Python text, not a string."""


def _text(v: object, name: Callable[[Any, str], str]) -> str:
    if v.__class__ is Value or v.__class__ is _Text:
        return str(v) if v.__class__ is _Text else repr(v)
    if v is None or v is True or v is False or v.__class__ in (int, str):
        return repr(v)
    if v.__class__ is tuple or v.__class__ is list:
        return "(" + "".join(f"{_text(x, name)}, " for x in v) + ")"
    if v.__class__ is float and v == v and v not in (float("inf"), float("-inf")):
        return repr(v)
    return name(v, "constant")


def draws_of(nodes: Sequence[Node]) -> list[Draw]:
    """The draws of a sequence of nodes, each once."""
    return list({id(n.draw): n.draw for n in nodes if n.draw is not None}.values())
