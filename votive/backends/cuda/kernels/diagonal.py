"""Triangles of matrices."""

from __future__ import annotations

from typing import Any

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.index_space import IndexSpace, cached_by_spec, word
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View


def _triangle(x: Slot, diagonal: int, lower: bool) -> Any:
    if word(x.dtype) is None:
        return None
    rows, columns = x.ndim - 2, x.ndim - 1

    def build(out: Spec) -> Any:
        p = IndexSpace(out.shape, [out.strides, x.strides], apart=(rows, columns))
        sign = "<=" if lower else ">="
        body = [
            f"keep = inside & ({p.at(columns)} - {p.at(rows)} {sign} diagonal)",
            f"v = tl.load(x + ({p.offsets[1] or '0'} + r * 0 + n * 0), mask=keep, other=0)",
            p.store("v"),
        ]
        types = {"o": word(x.dtype), "x": word(x.dtype), "diagonal": "i32"}
        return p.kernel("tril" if lower else "triu", types, body)

    find = cached_by_spec(build)
    far = max(min(diagonal, 2**31 - 1), 1 - 2**31)

    def run(outs: list[View], x: View) -> None:
        find(outs[0].spec)(outs[0].ptr, x.ptr, far)

    return run


@cuda("tril", into=True)
def tril(x: Slot, diagonal: int) -> Run:
    return _triangle(x, diagonal, True)


@cuda("triu", into=True)
def triu(x: Slot, diagonal: int) -> Run:
    return _triangle(x, diagonal, False)
