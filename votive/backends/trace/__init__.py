"""A device whose tensors hold expressions: running a function there gives its formula."""

from __future__ import annotations

from typing import Any, NoReturn

from ...core.errors import UnsupportedError
from ...core.layout import Spec
from ...core.storage import Storage
from ...formula import Expr, Formula, annotate, const, substitute, var
from ..base import BACKENDS


def _refuse(what: str) -> NoReturn:
    raise UnsupportedError(
        f"fuse: {what}; only elementwise operators can be fused. Compute the rest outside."
    )


class TraceBackend:
    """See `backends.base.Backend`; `data` is an expression."""

    name = "trace"

    def pointwise(
        self, formula: Formula, names: list[str], roles: Any, inputs: Any, out: Spec, empty: Any
    ) -> tuple[Any, Any]:
        def compute(*values: Any) -> tuple[Storage, Expr]:
            args = tuple(v if isinstance(v, Expr) else const(v) for v in values)
            body = substitute(formula.body, {var(n): a for n, a in zip(names, args, strict=True)})
            if formula.grads:
                body = annotate(body, formula, args)
            return Storage(None), body

        def into(values: Any, out: Any) -> None:
            _refuse("writing in place is not possible inside a fused function")

        return compute, into

    def bind(self, *args: Any) -> NoReturn:
        _refuse("a structured operator was called")

    def empty(self, spec: Spec) -> NoReturn:
        _refuse("a tensor was made inside the function")

    def view(self, storage: Storage, spec: Spec, offset: int) -> NoReturn:
        _refuse("a view was taken")

    def copy(self, out: Any, data: Any) -> NoReturn:
        _refuse("writing in place is not possible inside a fused function")

    def to_numpy(self, data: Any) -> NoReturn:
        _refuse("a value was asked for, but inside a fused function there are none")

    clone_storage = to_numpy
    adopt = bind


BACKENDS["trace"] = TraceBackend()
