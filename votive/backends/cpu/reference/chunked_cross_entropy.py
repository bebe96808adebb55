"""Cross entropy and its product on the CPU, some rows at a time, by the kernels of the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Spec
from ...base import Bound, Request, Row, add_row, bind

_CHUNKS = 8
_FEWEST = 64  # rows that a product is still fast with
Kernel = Callable[..., tuple[Any, ...]]


def _bound(request: Request, op: str, tensors: list[Any], static: tuple[Any, ...], outs: tuple[Spec, ...]) -> Kernel:
    """The kernel of another operator, whose tensors come first."""
    count = len(tensors)
    args = (*[None] * count, *static)
    specs = tuple([t for t in tensors if t is not None])
    asked = Request(op, args, tuple(range(count)), tuple(tensors), specs, outs, len(outs) == 1, request.backend)
    return bind("cpu", asked)[1].compute


def chunks_of(rows: int) -> list[tuple[int, int]]:
    """Where chunks of rows begin and end."""
    size = max(_FEWEST, -(-rows // _CHUNKS))
    return [(i, min(rows, i + size)) for i in range(0, rows, size)]


class _Parts:
    """Kernels for chunks of as many rows as there are."""

    def __init__(self, request: Request, x: Spec, w: Spec, b: Spec | None, t: Spec, static: tuple[Any, ...]) -> None:
        self.request, self.x, self.w, self.b, self.t, self.static = request, x, w, b, t, static
        self.wide = dt.compute_type(x.dtype)
        self.known: dict[tuple[str, int], Kernel] = {}

    def _rows(self, spec: Spec, n: int) -> Spec:
        return spec.like((n, *spec.shape[1:]), strides=spec.strides)

    def get(self, name: str, n: int) -> Kernel:
        if (name, n) not in self.known:
            self.known[name, n] = getattr(self, name)(n)
        return self.known[name, n]

    def product(self, n: int) -> Kernel:
        logits = self.x.like((n, self.w.shape[0]))
        return _bound(self.request, "linear", [self._rows(self.x, n), self.w, self.b], (), (logits,))

    def loss(self, n: int) -> Kernel:
        logits, scalar = self.x.like((n, self.w.shape[0])), self.x.like((), dtype=self.wide)
        outs = scalar, scalar, self.x.like((2, n), dtype=self.wide)
        given = [logits, self._rows(self.t, n), None]
        return _bound(self.request, "_cross_entropy_reduced", given, (*self.static, False), outs)

    def by_logits(self, n: int) -> Kernel:
        logits, scalar = self.x.like((n, self.w.shape[0])), self.x.like((), dtype=self.wide)
        given = [scalar, logits, self._rows(self.t, n), None, scalar, self.x.like((2, n), dtype=self.wide)]
        return _bound(self.request, "_cross_entropy_reduced_backward", given, (*self.static, False), (logits,))

    def by_input(self, n: int) -> Kernel:
        logits = self.x.like((n, self.w.shape[0]))
        return _bound(self.request, "matmul", [logits, self.w], (), (self.x.like((n, self.x.shape[1])),))

    def by_weight(self, n: int) -> Kernel:
        classes = self.w.shape[0]
        turned = self.x.like((classes, n), strides=(1, classes))
        return _bound(self.request, "matmul", [turned, self._rows(self.x, n)], (), (self.w.like(self.w.shape),))


@dataclass(frozen=True, kw_only=True)
class ChunkedRow(Row):
    """The loss, and the gradients of the sum as long as a chunk's logits are there."""

    def bind(self, request: Request) -> Bound:
        x, w, b, t = request.values
        ignore, smoothing, mean, graded = request.args[4:]
        parts, outs, empty = _Parts(request, x, w, b, t, (ignore, smoothing)), request.outs, request.backend.empty
        assert outs is not None
        one = np.ones((), np.float64 if x.dtype is dt.float64 else np.float32)

        def run(x: Any, w: Any, b: Any, t: Any) -> tuple[Any, ...]:
            made = [(*empty(o), o) for o in outs]
            loss = total = 0.0
            for i, end in chunks_of(x.shape[0]):
                n = end - i
                logits = parts.get("product", n)(x[i:end], w, b)[0][1]
                (_, part, _), (_, weight, _), (_, kept, _) = parts.get("loss", n)(logits, t[i:end], None)
                loss, total = loss + float(part), total + float(weight)
                if not graded:
                    continue
                by = parts.get("by_logits", n)(one, logits, t[i:end], None, one, kept)[0][1]
                del logits
                made[2][1][i:end] = parts.get("by_input", n)(by, w)[0][1]
                _add(made[3][1], parts.get("by_weight", n)(by.T, x[i:end])[0][1], i == 0)
                if b is not None:
                    _add(made[4][1], by.sum(0), i == 0)
            made[0][1][...] = (loss / total if total else np.nan) if mean else loss
            made[1][1][...] = total
            return tuple(made)

        return Bound(run)


def _add(to: Any, value: Any, first: bool) -> None:
    if first:
        to[...] = value
    else:
        to += value


add_row(ChunkedRow(op="_linear_cross_entropy", device="cpu", fn=chunks_of))
