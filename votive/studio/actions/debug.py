"""Actions of the debugger: start, step, look, change, go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import votive

from ...glass import values
from ...glass.address import Pattern
from ...glass.debugger import Debugger
from ...glass.module_swap import IDENTITY
from ...glass.residual_stream import logits_of
from ...glass.targets import modules_for
from .. import replay, windows
from ..arguments import Address, Bounds, Index, Window
from ..edited_model import EditedModel
from ..jobs import Job
from ..session_json import top_of
from ..workspace import Missing, error_json
from . import action

if TYPE_CHECKING:
    from ...glass.probe import Frame


Side = Literal["in", "out"]


def _debugger(job: Job) -> Debugger:
    found = job.workspace.debugger
    if found is None:
        raise Missing("Nothing is being debugged; start the debugger first.")
    return found


def _where(job: Job) -> dict[str, Any]:
    """Where the debugger stands."""
    workspace, d = job.workspace, job.workspace.debugger
    if d is None:
        points = [{"at": at, "hits": 0} for at in workspace.breakpoints]
        return {"active": False, "ended": True, "breakpoints": points}
    frame = d.frame
    data: dict[str, Any] = {
        "active": True,
        "node": workspace.debugged,
        "ended": d.ended,
        "index": d.index,
        "phase": d.phase,
        "address": None if d.address is None else str(d.address),
        "name": "" if frame is None else _name(frame),
        "kind": "" if frame is None else frame.kind,
        "stack": [str(a) for a in d.stack],
        "depth": d.depth,
        "breakpoints": [{"at": b.pattern.text, "hits": b.hits} for b in d.breakpoints],
        "values": [
            {
                "path": ".".join(map(str, path)),
                "side": side,
                "shape": list(t.shape),
                "dtype": str(t.dtype).removeprefix("votive."),
            }
            for side in ("in", "out")
            for path, t in _tensors(d, side)
        ],
        "changes": len(d._changes),
        "error": None if d.error is None else error_json(d.error)["message"],
    }
    logits = logits_of(d.result) if d.ended and d.result is not None else None
    # Where the whole model was skipped, there are none.
    if logits is not None and logits.dim() == 3 and logits.is_floating_point():
        data["top"] = top_of(workspace, logits[0, -1].detach().float(), 10)
        data["before"] = top_of(workspace, workspace.session.logits(workspace.debugged), 10)
    return data


def _name(frame: Frame) -> str:
    inner = frame.subject.inner if isinstance(frame.subject, EditedModel) else None
    return frame.name if inner is None else type(inner).__name__


def _tensors(d: Debugger, side: str) -> list[tuple[Any, Any]]:
    frame = d.frame
    if frame is None or (side == "out" and d.phase != "leave"):
        return []
    if side == "out":
        return list(values.tensors(frame.output))
    return [*values.tensors(frame.args), *values.tensors(frame.kwargs)]


@action("debug.start", changes=True)
def start(job: Job, node: Index | None = None, ops: bool = True) -> dict[str, Any]:
    """Run a node's text again under its edits, and stop before the first call.

    Under edits that change in the middle of the text, it is their last stretch that is run.
    """
    workspace = job.workspace
    at = workspace.session._node(node)
    workspace.stop_debugging()
    part = None
    for part in replay.parts_of(workspace.loaded, at):
        if part.stop < at.stop:
            part.model(part.ids, **part.given)
    assert part is not None
    d = Debugger(part.model, part.ids, ops=ops, **part.given)
    for pattern in workspace.breakpoints:
        d.break_at(pattern)
    workspace.debugger, workspace.debugged = d, at.id
    workspace.log(job, f"d = votive.debug(model, votive.tensor([session.tokens_of({at.id})]))")
    return _where(job)


def _moved(job: Job, line: str) -> dict[str, Any]:
    job.workspace.log(job, line)
    return _where(job)


@action("debug.step", changes=True)
def step(job: Job) -> dict[str, Any]:
    """To the next event, into calls."""
    _debugger(job).step()
    return _moved(job, "d.step()")


@action("debug.over", changes=True)
def over(job: Job) -> dict[str, Any]:
    """To the end of the call where it stands."""
    _debugger(job).over()
    return _moved(job, "d.over()")


@action("debug.out", changes=True)
def out(job: Job) -> dict[str, Any]:
    """To the end of the call around."""
    _debugger(job).out()
    return _moved(job, "d.out()")


@action("debug.run", changes=True)
def run(job: Job, until: Address | None = None) -> dict[str, Any]:
    """To the next event that matches, or to a breakpoint, or to the end; stops if cancelled."""
    d = _debugger(job)
    wanted = None if until is None else Pattern(until)

    def here(frame: Frame) -> bool:
        return job.cancelled or (wanted is not None and wanted.matches(frame.address, frame))

    if wanted is not None:
        modules_for(job.workspace.loaded.model, [wanted])
    d.run(until=here)
    return _moved(job, f"d.run({'' if until is None else repr(until)})")


@action("debug.back", changes=True)
def back(job: Job, n: Annotated[int, Bounds(1, 1_000_000)] = 1) -> dict[str, Any]:
    """To an earlier event."""
    _debugger(job).back(n)
    return _moved(job, f"d.back({'' if n == 1 else n})")


@action("debug.jump", changes=True)
def jump(job: Job, index: Index) -> dict[str, Any]:
    """To the event with a number."""
    _debugger(job).jump(index)
    return _moved(job, f"d.jump({index})")


@action("debug.break", changes=True)
def breakpoint_(job: Job, at: Address, on: bool = True) -> dict[str, Any]:
    """Set or clear a breakpoint; it stays when the debugger is closed."""
    workspace = job.workspace
    if on:
        modules_for(workspace.loaded.model, [Pattern(at)])
        if len(workspace.breakpoints) >= 200 and at not in workspace.breakpoints:
            raise ValueError("debug.break: there are 200 breakpoints; clear some.")
    workspace.breakpoints = [b for b in workspace.breakpoints if b != at] + ([at] if on else [])
    d = workspace.debugger
    if d is not None:
        for b in [b for b in d.breakpoints if b.pattern.text == at]:
            d.clear(b)
        if on:
            d.break_at(at)
            workspace.log(job, f"d.break_at({at!r})")
    return _where(job)


def _chosen(job: Job, path: str | None, side: str | None) -> tuple[Any, Any]:
    d = _debugger(job)
    side = side or ("out" if d.phase == "leave" else "in")
    found = _tensors(d, side)
    for way, t in found:
        if not path or ".".join(map(str, way)) == path:
            return way, t
    raise LookupError(
        f"debug: there is no {'result' if side == 'out' else 'input'} {path or ''!r} here; there "
        f"are {[('.'.join(map(str, w))) for w, _ in found]}."
    )


@action("debug.value")
def value(
    job: Job,
    path: Annotated[str, Bounds(0, 200)] | None = None,
    side: Side | None = None,
    rows: Window | None = None,
    cols: Window | None = None,
    reduce: Literal["mean", "max", "absmax"] | bool | None = None,
) -> Any:
    """A tensor of the call where it stands: statistics, and a window of its numbers."""
    way, t = _chosen(job, path, side)
    kind = reduce if isinstance(reduce, str) else "absmax" if reduce else None
    data, blobs = windows.window(t, rows, cols, kind)
    address, place = str(_debugger(job).address), ".".join(map(str, way))
    return {"address": address, "path": place, "statistics": windows.statistics_of(t), **data}, blobs


@action("debug.replace", changes=True)
def replace(
    job: Job,
    value: float | None = None,
    scale: float | None = None,
    zero: bool = False,
    index: Annotated[list[Index], Bounds(1, 8)] | None = None,
    path: Annotated[str, Bounds(0, 200)] | None = None,
    side: Side | None = None,
) -> dict[str, Any]:
    """Give on another value: a number in all places or one, a multiple, or zeros.

    `index` is a row and a column of the value as a matrix, or has a number for each dimension.
    """
    if (value is not None) + (scale is not None) + zero != 1:
        raise TypeError("debug.replace: give one of value, scale and zero.")
    d = _debugger(job)
    way, old = _chosen(job, path, side)
    here = "out" if d.phase == "leave" else "in"
    if side is not None and side != here:
        raise ValueError(f"debug.replace: at {d.phase} only what goes on can be replaced ({here}).")
    new = old.detach().clone()
    where: Any = ... if index is None else _place(index, tuple(old.shape))
    number = 0.0 if zero else value
    new[where] = new[where] * scale if scale is not None else votive.tensor(number).to(new.dtype)
    d.replace(new, way)
    at = "" if index is None else f"[{', '.join(map(str, where))}]"
    change = f"*= {scale!r}" if scale is not None else f"= {number!r}"
    job.workspace.log(job, f"v = d.value.clone(); v{at or '[...]'} {change}; d.replace(v, {way!r})")
    return _where(job)


def _place(index: list[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(index) == 2 and len(shape) != 2:
        row, col = index
        found: list[int] = []
        for size in reversed(shape[:-1]):
            found.insert(0, row % size if size else 0)
            row //= max(size, 1)
        index = [*found, col] if not row else [*shape]
    if len(index) != len(shape) or any(i >= n for i, n in zip(index, shape, strict=True)):
        raise IndexError(f"debug.replace: the index {index} is none of a value of shape {shape}.")
    return tuple(index)


@action("debug.skip", changes=True)
def skip(job: Job) -> dict[str, Any]:
    """Let the call before which it stands not run; its input is given on."""
    d = _debugger(job)
    module = "" if d.frame is None or d.frame.kind != "module" else d.frame.address.module
    if module and d.phase == "enter":
        d.swap(IDENTITY)  # which fills a cache, where there is one
        return _moved(job, f"d.swap({IDENTITY!r})")
    d.skip()
    return _moved(job, "d.skip()")


@action("debug.stop", changes=True)
def stop(job: Job) -> dict[str, Any]:
    """End debugging."""
    if job.workspace.debugger is not None:
        job.workspace.stop_debugging()
        job.workspace.log(job, "d.close()")
    return _where(job)


@action("debug.state")
def where(job: Job) -> dict[str, Any]:
    """Where it stands, for a page that came back."""
    return _where(job)
