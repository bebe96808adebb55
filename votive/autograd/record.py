"""Recording: a node for each call that a gradient may flow back through."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from ..backends.cpu.native.loader import module as native
from ..core.mode import Ever, mode
from ..dispatch import Plan
from .graph import BaseNode, Edge, Node, Saved, save, sequence
from .recipes import recipe_for
from .views import edge_of, rebase

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["edge_of", "needs_self", "note_context", "rebase", "record", "record_inplace"]
_new = object.__new__


def _inputs(values: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for v in values:
        if v.__class__ in (tuple, list):
            flat.extend(v)
        else:
            flat.append(v)
    return flat


def note_context(node: BaseNode) -> None:
    """What is only known when something unusual is on: the module, and in anomaly mode the line."""
    node.module_path = mode.module_path
    if mode.anomaly:
        node.trace = traceback.format_stack()[:-4]


def _node(plan: Plan, values: tuple[Any, ...], kept: tuple[Any, ...]) -> Node:
    flat = _inputs(values)
    mask = tuple([getattr(v, "_rg", False) for v in flat])
    recipe = plan.recipes.get(mask) or recipe_for(plan, mask)
    node = _new(Node)
    node.recipe = recipe
    node.edges = tuple([edge_of(v) if m else None for v, m in zip(flat, mask, strict=True)])
    node.seq = next(sequence)
    if recipe.keep:
        node.kept = {}
        names = plan.op.schema.runtime_names
        for key in recipe.keep:
            if key.__class__ is tuple:
                if key[0] == "out":
                    continue
                node.kept[key] = save(kept[names.index(key[0])][key[1]])
            else:
                node.kept[key] = save(kept[names.index(key)])
    if not all(hasattr(v, "_spec") for v in values):
        node.numbers = tuple([None if hasattr(v, "_spec") or v.__class__ in (tuple, list) else v for v in values])
    if Ever.noted and mode.noted:
        note_context(node)
    return node


def record(plan: Plan, values: tuple[Any, ...], out: Any) -> None:
    """Attach a node to the result of a call."""
    node = _node(plan, values, values)
    outs = out if out.__class__ is tuple else (out,)
    if plan.outs is None:
        node.grad_specs = tuple([o._spec for o in outs])
    for i, o in enumerate(outs):
        if o._spec.dtype.category >= 2:
            o._rg = True
            o._edge = node if i == 0 else Edge(node, i)
            if o._base is not None:
                o._seen = o._base._rebased
    for key in node.recipe.keep:
        if key.__class__ is tuple and key[0] == "out":
            node.kept[key] = save(outs[key[1]], key[1])  # type: ignore[index]


def needs_self(plan: Plan, values: tuple[Any, ...]) -> bool:
    """Whether backward of an in-place call reads the old value of its first argument."""
    flat = _inputs(values)
    mask = tuple([getattr(v, "_rg", False) for v in flat])
    if not any(mask):
        return False
    return plan.op.schema.args[0].name in recipe_for(plan, mask).keep


def record_inplace(plan: Plan, values: tuple[Any, ...], kept: tuple[Any, ...], x: Tensor) -> None:
    """Make `x`, just overwritten, the result of a node; through a view, its base too."""
    node = _node(plan, values, kept)
    node.grad_specs = (x._spec,)
    rebase(x, node)
    for key in node.recipe.keep:
        if key.__class__ is tuple and key[0] == "out":
            node.kept[key] = save(x, 0)  # type: ignore[index]


if native is not None:
    # Usual calls are recorded there; what is unusual comes back to `record`.
    native.install_record(Node, Saved, Edge, sequence, Ever, edge_of, mode)
