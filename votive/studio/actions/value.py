"""Actions about values at addresses: windows of numbers, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .. import replay, windows
from ..arguments import Address, Index, Window
from ..jobs import Job
from . import action

if TYPE_CHECKING:
    from ...glass.session_tree import SessionNode
    from ...tensor import Tensor


def _value(job: Job, address: str, node: SessionNode) -> Tensor:
    workspace = job.workspace

    def make() -> tuple[Any, int]:
        found = replay.captured(workspace.loaded, node, address)
        if not found:
            raise LookupError(f"value: {address!r} gives no tensor.")
        if len(found) > 1 and address not in found:
            some = ", ".join(list(found)[:4])
            raise KeyError(f"value: {address!r} means {len(found)} values: {some}, …; name one.")
        value = found[address] if address in found else next(iter(found.values()))
        return value.clone(), value.numel() * value.element_size()

    return workspace.cached(("value", node.id, address), make)


@action("value.window")
def window(
    job: Job,
    address: Address,
    node: Index | None = None,
    rows: Window | None = None,
    cols: Window | None = None,
    reduce: Literal["mean", "max", "absmax"] | bool | None = None,
) -> Any:
    """A part of the value at an address while the node's text was read."""
    at = job.workspace.session._node(node)
    kind = reduce if isinstance(reduce, str) else "absmax" if reduce else None
    data, blobs = windows.window(_value(job, address, at), rows, cols, kind)
    job.workspace.log(job, f"session.hidden({address!r}, {at.id}, whole=True)")
    return {"address": address, "node": at.id, **data}, blobs


@action("value.statistics")
def statistics(job: Job, address: Address, node: Index | None = None) -> dict[str, Any]:
    """Range, moments and histogram of the value at an address."""
    at = job.workspace.session._node(node)
    found = windows.statistics_of(_value(job, address, at))
    job.workspace.log(job, f"session.hidden({address!r}, {at.id}, policy='stats', whole=True)")
    return {"address": address, "node": at.id, **found}
