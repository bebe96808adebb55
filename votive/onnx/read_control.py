"""What ONNX's branches and loops mean. What graphs inside of a node read from around them comes behind its inputs."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from .read import Attributes, reads

A = Attributes


def _split(a: A, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return values[: a.given], dict(zip(a.outer, values[a.given :], strict=True))


@reads("If")
def branch(a: A, *values: Any) -> Any:
    (test,), outer = _split(a, values)
    return a("then_branch" if bool(test) else "else_branch")(outer=outer)


@reads("Loop")
def loop(a: A, *values: Any) -> Any:
    (count, test, *carried), outer = _split(a, values)
    body = a("body")
    limit = None if count is None else int(count)
    going = True if test is None else bool(test)
    kept: list[list[Any]] = [[] for _ in range(a.outputs - len(carried))]
    i = 0
    while going and (limit is None or i < limit):
        step = F.tensor(i, dtype=dt.int64)
        again, *found = body(step, F.tensor(going), *carried, outer=outer)
        going = bool(again)
        carried, rest = found[: len(carried)], found[len(carried) :]
        for listed, value in zip(kept, rest, strict=True):
            listed.append(value)
        i += 1
    stacked = [F.stack(v, 0) if v else F.zeros(0) for v in kept]
    return (*carried, *stacked)


@reads("Scan")
def scan(a: A, *values: Any) -> Any:
    given, outer = _split(a, values)
    if a.opset < 9:
        raise NotImplementedError("Scan before opset 9 is not supported.")
    count, body = a("num_scan_inputs"), a("body")
    states, lines = list(given[:-count]), list(given[-count:])
    backwards = a("scan_input_directions", [0] * count)
    axes = a("scan_input_axes", [0] * count)
    results = a.outputs - len(states)
    kept: list[list[Any]] = [[] for _ in range(results)]
    length = lines[0].shape[axes[0]]
    for i in range(length):
        parts = [
            F.select(x, axis, length - 1 - i if back else i)
            for x, axis, back in zip(lines, axes, backwards, strict=True)
        ]
        found = body(*states, *parts, outer=outer)
        states = list(found[: len(states)])
        for listed, value in zip(kept, found[len(states) :], strict=True):
            listed.append(value)
    flipped = a("scan_output_directions", [0] * results)
    places = a("scan_output_axes", [0] * results)
    stacked = [F.stack(v[::-1] if f else v, p) for v, f, p in zip(kept, flipped, places, strict=True)]
    return (*states, *stacked)
