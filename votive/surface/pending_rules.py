"""What calls make of lazily conjugated and negated views: looks stay views, writes reach memory, the rest resolves."""

from __future__ import annotations

from typing import Any, NoReturn

from ..autograd.views import edge_of
from ..core.mode import mode
from ..dispatch.forms import run_out
from ..ops.operator import Composite, Op, Operator
from ..ops.registry import F
from ..tensor import Tensor
from .pending import Looked, Pending, conjugated, current, over, resolved, turn, values_of
from .wrapped import Rule


def answer(rules: dict[str, Rule], name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What becomes of a call in which such a view occurs."""
    full = f"{op.namespaces[0]}.{name}" if isinstance(op, Composite) and any(op.namespaces[:1]) else name
    if full in rules:
        return rules[full](*args, **kwargs)
    if _is_look(name, op) and isinstance(args[0], Pending):
        # Of a second such view a look wants the shape, or the numbers of an index.
        return _look(args[0], op, tuple(resolved(v) for v in args[1:]), kwargs)
    out = kwargs.pop("out", None)
    if out is not None:
        return _into(out, op, args, kwargs)
    if name.endswith("_") and not name.startswith("_") and args and isinstance(args[0], Tensor):
        return _in_place(name, op, args[0], args[1:], kwargs)
    plain = tuple(resolved(v) for v in args)
    if isinstance(op, Op):
        return op.apply(plain)
    return op(*plain, **{k: resolved(v) for k, v in kwargs.items()})


def _any(values: Any) -> bool:
    return any(_any(v) if isinstance(v, (tuple, list)) else isinstance(v, Pending) for v in values)


def _is_look(name: str, op: Operator) -> bool:
    if isinstance(op, Op):
        return op.kind == "view"
    return isinstance(op, Composite) and (op.returns_view or op.looks or op.indexes) and not name.startswith("_set")


def _look(x: Pending, op: Operator, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A view of the view: the same view of what it looks at."""

    def run(of: Tensor) -> Any:
        return op.apply((of, *rest)) if isinstance(op, Op) else op(of, *rest, **kwargs)

    x = current(x)
    made = run(x._of if x._rg else x._of.detach())
    single = isinstance(made, Tensor)
    parts = [made] if single else list(made)
    if any(m.dtype is not x.dtype for m in parts):
        kind = "conjugate view tensors" if x._flip == "conj" else "tensors with negative bit set"
        raise RuntimeError(
            f"Tensor.{op.name.lstrip('_')} is not supported for {kind} when converting to a different dtype."
        )
    if any(m._storage.root is not x._of._storage.root for m in parts):
        values = values_of(x)  # elements were gathered, so there is nothing to share
        return run(values)
    if x._rg and mode.grad:
        looked = Looked.apply(x, run)
        outs = [looked] if single else list(looked)
        for out, part in zip(outs, parts, strict=True):
            out._of, out._seen = part, edge_of(part)
    else:
        outs = [over(m.detach() if m._rg else m, x._flip) for m in parts]
    return outs[0] if single else type(made)(outs)


def _written(x: Pending, values: Any) -> Pending:
    """Put values into the memory behind a view."""
    if x._rg and x._edge is None and mode.grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    x._of.copy_(turn(values, x._flip) if isinstance(values, Tensor) else values)
    return current(x)


def _in_place(name: str, op: Operator, target: Any, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    others, named = tuple(resolved(v) for v in rest), {k: resolved(v) for k, v in kwargs.items()}

    def run(on: Tensor) -> Any:
        if isinstance(op, Op) and name == f"{op.name}_":
            return Op.write(op, (on, *others))
        return getattr(on, name)(*others, **named)

    if not isinstance(target, Pending):
        return run(target)
    if name in ("resize_", "resize_as_", "set_"):
        raise RuntimeError(f"{name}: a {target._kind} view keeps its memory; call .resolve_conj() first.")
    if op.reshapes:
        return _turn_into(target, getattr(target, name[:-1])(*rest, **kwargs))
    values = values_of(target)
    made = run(values.clone() if values._rg else values)
    return _written(target, made)


def _turn_into(x: Pending, other: Pending) -> Pending:
    """Let a view be another one."""
    if x._rg and x._edge is None and mode.grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    x._spec, x._of, x._seen = other._spec, other._of, other._seen
    x._rg, x._edge = other._rg, other._edge
    return x


def _into(out: Any, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`out=` where an argument, or what is written to, is such a view."""
    plain_args, named = tuple(resolved(v) for v in args), {k: resolved(v) for k, v in kwargs.items()}
    if not _any((out,)):
        return run_out(op, plain_args, out) if isinstance(op, Op) else op(*plain_args, **named, out=out)
    made = op.apply(plain_args) if isinstance(op, Op) else op(*plain_args, **named)
    outs, results = (out, made) if isinstance(out, (tuple, list)) else ((out,), (made,))
    for to, result in zip(outs, results, strict=True):
        if tuple(to.shape) != tuple(result.shape):
            raise RuntimeError(f"{op.name}: out= has shape {tuple(to.shape)}, the result {tuple(result.shape)}.")
        _written(to, result) if isinstance(to, Pending) else to.copy_(result)
    return out


def _put(x: Any, index: Any, value: Any) -> None:
    if not isinstance(x, Pending):
        F._setitem(x, resolved(index), resolved(value))
        return
    if x._rg and x._edge is None and mode.grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    value = turn(values_of(value), x._flip) if isinstance(value, Tensor) else _turned(value, x._flip)
    F._setitem(x._of, resolved(index), value)
    current(x)


def _turned(number: Any, flip: str) -> Any:
    return number.conjugate() if flip == "conj" else -number


def _to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Casts and moves; what would change nothing gives the view itself."""
    args, kwargs = tuple(resolved(a) for a in args), {k: resolved(v) for k, v in kwargs.items()}
    if isinstance(input, Pending) and F.to(input._of, *args, **kwargs) is input._of:
        return input
    return F.to(values_of(input), *args, **kwargs)


def _real(input: Pending) -> Any:
    if (input._rg and mode.grad) or input._flip == "neg":
        return F.real(values_of(input))
    return F._real(input._of.detach())


def _imag(input: Pending) -> Any:
    if (input._rg and mode.grad) or not input.dtype.is_complex or input._flip == "neg":
        return F.imag(values_of(input))
    return over(F._imag(input._of.detach()), "neg")


def _no_pairs(input: Pending) -> NoReturn:
    raise RuntimeError(
        "view_as_real doesn't work on unresolved conjugated tensors. To resolve the conjugate tensor so you can view "
        "it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
    )


def _detach(input: Pending) -> Any:
    return input.detach()


def _rule(names: str, function: Rule) -> None:
    Pending._rules.update(dict.fromkeys(names.split(), function))


_rule("conj", conjugated)
_rule("resolve_conj", lambda input: input.resolve_conj())
_rule("resolve_neg", lambda input: input.resolve_neg())
_rule("is_conj", lambda input: input.is_conj())
_rule("is_neg", lambda input: input.is_neg())
_rule("_setitem", _put)
_rule("to _to_dtype", _to)
_rule("cpu", lambda input, memory_format=None: input if input.device.type == "cpu" else F.cpu(values_of(input)))
_rule("real _real", _real)
_rule("imag _imag", _imag)
_rule("view_as_real _view_as_real", _no_pairs)
_rule("detach", _detach)
_rule("is_complex", lambda input: input.dtype.is_complex)
_rule("is_floating_point", lambda input: input.dtype.is_floating_point)
_rule("is_signed", lambda input: True)
_rule("is_tensor", lambda obj: True)
_rule("numel", lambda input: input._spec.numel)
