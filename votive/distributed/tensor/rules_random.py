"""Random numbers: each rank draws what one process would have drawn in its place.

Element `i` of a draw is a function of the key, the first counter and `i`, see `backends/common/sampling.py`. All ranks
take key and counter of the first rank of the mesh, so that they agree wherever their generators are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...backends.common.sampling import counters
from ...core.errors import UnsupportedError
from ...core.mode import mode
from ...ops.registry import OPS, F
from ...tensor import Tensor
from ..collectives import broadcast
from ..device_mesh import DeviceMesh
from .rules import aligned, part_of
from .shards import local_box
from .ways import Call, Way, rule

BLOCK = 1 << 20  # numbers that are drawn at once
_MASK = 0xFFFFFFFF
# Their elements are made of words by their place alone.
_BY_PLACE = {
    "uniform": "uniform", "normal": "normal", "log_normal": "normal", "exponential": "exponential", "cauchy": "cauchy",
    "geometric": "geometric", "bernoulli": "bernoulli", "random": "randint",
}  # fmt: skip


def agreed(mesh: DeviceMesh, key: int, counter: int) -> tuple[int, int]:
    """Key and counter as the first rank of the mesh has them; all its ranks call it."""
    if mesh.size() == 1:
        return key, counter
    before, mode.grad = mode.grad, False
    try:
        words = F.tensor([key >> 32, key & _MASK, counter >> 32, counter & _MASK], device=mesh.device_type)
        for i in range(mesh.ndim):
            group = mesh.get_group(i)
            broadcast(words, group.ranks[0], group)
        a, b, c, d = words.tolist()
    finally:
        mode.grad = before
    return a << 32 | b, c << 32 | d


Draw = Callable[[int, int], Tensor]  # (how many, counters behind the first) -> so many numbers


def box_of_draw(
    shape: Sequence[int], sizes: Sequence[int], begins: Sequence[int], skip: Callable[[int], int], draw: Draw
) -> Tensor:
    """A box of what would be drawn for a shape: row-major blocks are drawn, and the box is cut out of them."""
    if not sizes or math.prod(sizes) == 0:
        return draw(math.prod(sizes), 0).reshape(tuple(sizes))

    def span(first: int, last: int) -> Tensor:
        lead = first % 4  # counters are of four words
        return draw(last - first + lead, skip(first - lead))[lead:]

    row = math.prod(shape[1:])
    if tuple(sizes[1:]) == tuple(shape[1:]):
        return span(begins[0] * row, (begins[0] + sizes[0]) * row).reshape(tuple(sizes))
    parts, each = [], max(1, BLOCK // max(row, 1))
    for first in range(begins[0], begins[0] + sizes[0], each):
        last = min(first + each, begins[0] + sizes[0])
        block = span(first * row, last * row).reshape((last - first, *shape[1:]))
        for d in range(1, len(sizes)):
            block = F.narrow(block, d, begins[d], sizes[d])
        parts.append(block)
    return F.cat(parts, 0)


def drawn(
    name: str,
    shape: Sequence[int],
    sizes: Sequence[int],
    begins: Sequence[int],
    key: int,
    counter: int,
    dtype: Any,
    device: Any,
    rest: Sequence[Any],
) -> Tensor:
    """A box of a draw of the distribution `name` with these parameters."""
    sampler = _BY_PLACE[name]

    def draw(n: int, behind: int) -> Tensor:
        made: Tensor = OPS[f"_{name}"](F.empty((n,), dtype=dtype, device=device), key, counter + behind, *rest)
        return made

    return box_of_draw(shape, sizes, begins, lambda n: counters(sampler, n, dtype.np), draw)


def _random(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    name = c.op.name.lstrip("_")
    x, key, counter, *rest = local
    if name not in _BY_PLACE or any(isinstance(v, Tensor) and v._spec.numel != 1 for v in rest):
        raise UnsupportedError(
            f"{name}: drawing into a DTensor in shards with parameters that are tensors is not supported; "
            "redistribute to Replicate() first."
        )
    rest = [v.item() if isinstance(v, Tensor) else v for v in rest]
    before, mode.grad = mode.grad, False
    try:
        return drawn(name, c.outs[0].shape, *part_of(c, ways, mesh), key, counter, x.dtype, x.device, rest)
    finally:
        mode.grad = before


@rule("random", _random)
def random(c: Call) -> list[Way]:
    return aligned(c)


def _dropout(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    x, key, counter, p = local
    before, mode.grad = mode.grad, False
    try:
        kept = box_of_draw(
            c.outs[0].shape,
            *part_of(c, ways, mesh),
            lambda n: counters("bernoulli", n),
            lambda n, behind: F._dropout(F.ones((n,), dtype=x.dtype, device=x.device), key, counter + behind, p),
        )
    finally:
        mode.grad = before
    return x * kept


rule("dropout", _dropout)(random)


def shifted(c: Call, ways: Sequence[Way], mesh: DeviceMesh) -> tuple[int, ...]:
    """Where this rank's part of the first argument begins."""
    return local_box(c.shapes()[0], mesh, tuple(w.ins[0] for w in ways))[1]
