"""`torch.func.rearrange`: dimensions reordered, split and joined as a pattern says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive

from ...tensor import Tensor

__all__ = ["rearrange"]

Group = list[str]


def _side(text: str, pattern: str) -> list[Group]:
    """`b (h w) ...` as groups of names; a lone name is a group of one, 1 is an empty group."""
    groups: list[Group] = []
    inside: Group | None = None
    words = text.replace("(", " ( ").replace(")", " ) ").replace("...", " … ").split()
    for word in words:
        if word == "(" and inside is None:
            inside = []
        elif word == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif word in ("(", ")"):
            raise ValueError(f"rearrange: parentheses of {pattern!r} are nested or not closed.")
        elif word == "1":
            if inside is None:
                groups.append([])
        elif word == "…" or word.isidentifier():
            if inside is None:
                groups.append([word])
            else:
                inside.append(word)
        else:
            raise ValueError(f"rearrange: {word!r} in {pattern!r} is no name of a dimension.")
    if inside is not None:
        raise ValueError(f"rearrange: parentheses of {pattern!r} are nested or not closed.")
    names = [n for g in groups for n in g]
    if len(set(names)) != len(names):
        raise ValueError(f"rearrange: a name appears twice on one side of {pattern!r}.")
    return groups


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """Reorder, split and join dimensions: `rearrange(x, "b (h p) -> b p h", p=2)`. Sequences are stacked first."""
    x = tensor if isinstance(tensor, votive.Tensor) else votive.stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"rearrange: {pattern!r} needs one '->'.")
    source, target = _side(left, pattern), _side(right, pattern)
    if ["…"] not in source and any("…" in g for g in source):
        raise ValueError(f"rearrange: an ellipsis on the left of {pattern!r} stands alone.")
    if {n for g in source for n in g} != {n for g in target for n in g}:
        raise ValueError(f"rearrange: both sides of {pattern!r} must have the same names.")
    extra = x.ndim - (len(source) - (["…"] in source))
    if extra < 0 or (extra and ["…"] not in source):
        raise ValueError(f"rearrange: {pattern!r} has {len(source)} dimensions on the left, the tensor {x.ndim}.")
    rest = [f"…{i}" for i in range(extra)]
    source = [g for group in source for g in ([[n] for n in rest] if group == ["…"] else [group])]
    sizes: dict[str, int] = {}
    for group, size in zip(source, x.shape, strict=True):
        sizes.update(_split(group, int(size), axes_lengths, pattern))
    if unknown := sorted(set(axes_lengths) - set(sizes)):
        raise ValueError(f"rearrange: {unknown} are no dimensions of {pattern!r}.")
    order = [n for g in source for n in g]
    wanted = [[m for n in g for m in (rest if n == "…" else [n])] for g in target]
    if target.count(["…"]):
        at = target.index(["…"])
        wanted[at : at + 1] = [[n] for n in rest]
    flat = [n for g in wanted for n in g]
    y = x.reshape([sizes[n] for n in order]).permute([order.index(n) for n in flat])
    final: Any = [_product(sizes[n] for n in g) for g in wanted]
    return y.reshape(final)


def _product(sizes: Any) -> int:
    total = 1
    for n in sizes:
        total *= n
    return total


def _split(group: Group, size: int, given: dict[str, int], pattern: str) -> dict[str, int]:
    known = {n: int(given[n]) for n in group if n in given}
    open_ = [n for n in group if n not in known]
    covered = _product(known.values())
    if len(open_) > 1:
        raise ValueError(f"rearrange: give the sizes of all but one of {group} in {pattern!r}.")
    if open_ and (covered == 0 or size % covered):
        raise ValueError(f"rearrange: a dimension of size {size} cannot be split by {known} in {pattern!r}.")
    if open_:
        known[open_[0]] = size // covered
    elif covered != size:
        raise ValueError(f"rearrange: {group or 1} of {pattern!r} has {covered} elements, the tensor {size}.")
    return known
