"""A device whose tensors hold expressions: running a function there gives its formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ...core.dtype import dtype
from ...core.errors import UnsupportedError
from ...core.layout import Spec
from ...core.storage import Storage
from ...formula import Expr, Formula, annotate, const, substitute, var
from ..base import BACKENDS, Bound, Request, Row, add_row


def _refuse(what: str) -> NoReturn:
    raise UnsupportedError(f"fuse: {what}; only elementwise operators can be fused. Compute the rest outside.")


@dataclass(frozen=True)
class Reduced:
    """An expression under a reduction, which must be the last thing that a function does."""

    op: str
    body: Expr
    of: dtype  # of the elements that are reduced
    static: tuple[Any, ...]  # the operator's arguments after the tensor


class TraceBackend:
    """See `backends.base.Backend`; `data` is an expression, or a reduction of one."""

    name = "trace"

    def pointwise(
        self, formula: Formula, names: list[str], roles: Any, inputs: Any, out: Spec, empty: Any
    ) -> tuple[Any, Any]:
        def compute(*values: Any) -> tuple[Storage, Expr]:
            if any(isinstance(v, Reduced) for v in values):
                _refuse("a reduction must be the last step")
            args = tuple(v if isinstance(v, Expr) else const(v) for v in values)
            body = substitute(formula.body, {var(n): a for n, a in zip(names, args, strict=True)})
            if formula.grads:
                body = annotate(body, formula, args)
            return Storage(None), body

        def into(values: Any, out: Any) -> None:
            _refuse("writing in place is not possible inside a fused function")

        return compute, into

    def empty(self, spec: Spec) -> NoReturn:
        _refuse("a tensor was made inside the function")

    def view(self, storage: Storage, spec: Spec, offset: int) -> NoReturn:
        _refuse("a view was taken")

    def copy(self, out: Any, data: Any) -> NoReturn:
        _refuse("writing in place is not possible inside a fused function")

    def to_numpy(self, data: Any) -> NoReturn:
        _refuse("a value was asked for, but inside a fused function there are none")

    def window(self, spec: Spec) -> None:
        return None

    item = to_numpy
    clone_storage = to_numpy
    adopt = to_numpy


@dataclass(frozen=True, kw_only=True)
class ReducedRow(Row):
    """A reduction that may end a fused function."""

    def bind(self, request: Request) -> Bound:
        static, dtype, outs = tuple(request.args[1:]), request.specs[0].dtype, request.outs
        assert outs is not None

        def compute(x: Any) -> tuple[Any, ...]:
            if isinstance(x, Reduced):
                _refuse("a reduction must be the last step")
            return ((Storage(None), Reduced(self.op, x, dtype, static), outs[0]),)

        return Bound(compute)


BACKENDS["trace"] = TraceBackend()
for _op in ("sum", "mean", "prod", "amax", "amin"):
    add_row(ReducedRow(op=_op, device="trace", fn=Reduced))
