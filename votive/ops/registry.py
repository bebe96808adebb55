"""What an operator is, and the table of all of them. Knows how operators are declared, not how
they run.

Three ways to declare one:
  pointwise("gelu(Tensor input)", lambda x: ..., doc=...)     a formula; the rest is derived
  structured("cumsum(Tensor input, int dim)", infer=..., grad=..., doc=...)     has its own kernel
  @composite                                                  Python over other operators
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..formula import Expr, Formula, apply
from .declaration import Context, Resolved
from .operator import Composite, Op, Operator, Rule

__all__ = ["COMPOSITES", "OPS", "Composite", "Context", "F", "Op", "Operator", "Resolved"]
__all__ += ["composite", "formula_op", "pointwise", "structured", "view"]

Fn = TypeVar("Fn", bound=Callable[..., Any])

OPS: dict[str, Op] = {}
COMPOSITES: dict[str, Composite] = {}


def formula_op(formula: Formula) -> Op:
    """An unregistered operator that evaluates a formula; derived gradients and `fuse` use it."""
    args = ", ".join(f"Operand {p}" for p in formula.params)
    op = Op(f"{formula.name}({args})", kind="pointwise")
    op._formulas[()] = formula
    return op


def declare(op: Op) -> Op:
    """Put an operator into the table."""
    if op.name in OPS:
        raise ValueError(f"operator {op.name!r} is declared twice.")
    OPS[op.name] = op
    return op


def pointwise(
    schema: str,
    formula: Callable[..., Expr] | None = None,
    *,
    doc: str,
    dtypes: Any = "promote",
    allow: str = "bifc",
    grad: dict[str, Callable[..., Expr]] | None = None,
    inplace: bool = True,
    **options: Any,
) -> Op:
    """Declare an elementwise operator by its formula; without one it is the primitive of its name.

    `dtypes`: "promote", "float" (integers become the default float), "bool" (a test) or a function
    (promoted dtype) -> (compute dtype, result dtype). `allow`: kinds accepted, of b, i, f, c.
    """
    if dtypes == "bool":
        options["differentiable"] = False
    op = declare(Op(schema, kind="pointwise", doc=doc, inplace=inplace, **options))
    op.builder = formula or functools.partial(apply, op.name)
    op.grad_builders = grad or {}
    op.dtype_rule = dtypes
    op.allow = allow
    return op


def structured(schema: str, *, infer: Rule, doc: str = "", **options: Any) -> Op:
    """Declare an operator with a kernel of its own.

    `infer` gets the arguments in schema order with tensors replaced by Specs and returns the Spec
    of the result, a tuple of Specs, or None when the shape depends on the data.
    """
    return declare(Op(schema, kind="structured", infer=infer, doc=doc, **options))


def view(schema: str, *, infer: Rule, doc: str = "", **options: Any) -> Op:
    """Declare an operator whose result shares memory: `infer` returns (Spec, offset change)."""
    options.setdefault("out", False)
    options.setdefault("returns_view", True)
    return declare(Op(schema, kind="view", infer=infer, doc=doc, **options))


@overload
def composite(fn: Fn, *, name: str | None = None, key: str | None = None, **options: Any) -> Fn: ...


@overload
def composite(
    fn: None = None, *, name: str | None = None, key: str | None = None, **options: Any
) -> Callable[[Fn], Fn]: ...


def composite(
    fn: Callable[..., Any] | None = None, *, name: str | None = None, key: str | None = None, **options: Any
) -> Any:
    """Declare a public function written with other operators.

    `key` names the record when one public name has two forms, as `split` and `Tensor.split`.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        c = Composite(fn, name or fn.__name__, **options)
        space = c.namespaces[0] if c.namespaces else ""
        record = key or (f"{space}.{c.name}" if space else c.name)
        if record in COMPOSITES or record in OPS:
            raise ValueError(f"operator {record!r} is declared twice.")
        COMPOSITES[record] = c
        return c.fn if c.autocast is None else c

    return register if fn is None else register(fn)


class _Surface:
    """Every operator as an attribute, for gradients and composites: `F.where(c, a, b)`."""

    def __getattr__(self, name: str) -> Operator:
        found: Operator | None = COMPOSITES.get(name) or OPS.get(name)
        if found is None:
            raise AttributeError(f"no operator named {name!r}")
        setattr(self, name, found)
        return found


F: Any = _Surface()
