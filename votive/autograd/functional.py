"""Whole derivatives of Python functions: vjp, jvp, jacobian, hessian, hvp, vhp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.errors import received
from ..core.mode import mode
from ..dispatch import state
from ..ops.registry import F
from .engine import grad

if TYPE_CHECKING:
    from ..tensor import Tensor

Fn = Callable[..., Any]
Grads = tuple[Any, ...]


def _tuple(x: object, what: str) -> tuple[tuple[Any, ...], bool]:
    if isinstance(x, state.tensor):
        return (x,), False
    if not isinstance(x, (tuple, list)) or not all(isinstance(t, state.tensor) for t in x):
        raise TypeError(f"{what} must be a Tensor or a tuple of Tensors, got {received(x)}.")
    return tuple(x), True


def _fresh(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs with their own place in the graph; connected to the caller's only when asked."""
    return tuple(F._view(x, tuple(x.shape)) if create_graph and x._rg else x.detach().requires_grad_() for x in inputs)


def _call(func: Fn, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    return _tuple(func(*inputs), "outputs of the function")


def _zero_like(inputs: tuple[Any, ...], grads: tuple[Any, ...], strict: bool) -> list[Any]:
    out = []
    for i, (x, g) in enumerate(zip(inputs, grads, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(f"the output is independent of input {i}; strict=True forbids it.")
            g = F.zeros_like(x)
        out.append(g)
    return out


def _weighted_grad(
    outputs: Sequence[Any], weights: Sequence[Tensor], xs: tuple[Tensor, ...], create_graph: bool
) -> Grads:
    """Gradients by xs of the outputs that have one, weighted; None where there is none."""
    used = [(y, w) for y, w in zip(outputs, weights, strict=True) if y is not None and y._rg]
    if not used:
        return (None,) * len(xs)
    return grad([y for y, _ in used], xs, [w for _, w in used], create_graph=create_graph, allow_unused=True)


def _gradient(y: Tensor, xs: tuple[Tensor, ...], *, create_graph: bool, retain_graph: bool | None = None) -> Grads:
    """Gradients by xs, all None where y has none."""
    if not y._rg:
        return (None,) * len(xs)
    return grad(y, xs, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True)


def _vectors(v: Tensor | Sequence[Tensor] | None, like: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if v is None:
        if len(like) == 1 and like[0].numel() == 1:
            return (F.ones_like(like[0]),)
        raise RuntimeError(f"{name}: v is needed unless there is one value of a single element.")
    got, _ = _tuple(v, "v")
    if len(got) != len(like):
        raise RuntimeError(f"{name}: v has {len(got)} tensors, expected {len(like)}.")
    for g, x in zip(got, like, strict=True):
        if tuple(g.shape) != tuple(x.shape):
            raise RuntimeError(f"{name}: v has shape {tuple(g.shape)}, expected {tuple(x.shape)}.")
    return got


def _done(values: Iterable[Tensor], is_tuple: bool, create_graph: bool) -> Any:
    values = tuple(values)
    if not create_graph:
        values = tuple(v.detach() for v in values)
    return values if is_tuple else values[0]


def _with_grad(fn: Fn) -> Fn:
    def run(*args: object, **kwargs: object) -> Any:
        saved, mode.grad = mode.grad, True
        try:
            return fn(*args, **kwargs)
        finally:
            mode.grad = saved

    run.__name__, run.__doc__, run.__wrapped__ = fn.__name__, fn.__doc__, fn  # type: ignore[attr-defined]
    return run


@_with_grad
def vjp(
    func: Fn,
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(outputs, v^T J): the gradient of the outputs weighted by v.

    >>> votive.autograd.functional.vjp(lambda x: x * x, votive.tensor(3.0))
    (tensor(9.), tensor(6.))
    """
    xs, is_tuple = _tuple(inputs, "inputs")
    xs = _fresh(xs, create_graph)
    ys, ys_tuple = _call(func, xs)
    vs = _vectors(v, ys, "vjp")
    grads = _weighted_grad(ys, vs, xs, create_graph)
    return (_done(ys, ys_tuple, create_graph), _done(_zero_like(xs, grads, strict), is_tuple, create_graph))


@_with_grad
def jvp(
    func: Fn,
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(outputs, J v): the change of the outputs along v, by differentiating vjp in its vector.

    >>> votive.autograd.functional.jvp(lambda x: x * x, votive.tensor(3.0), votive.tensor(2.0))
    (tensor(9.), tensor(12.))
    """
    xs, _ = _tuple(inputs, "inputs")
    xs = _fresh(xs, create_graph)
    vs = _vectors(v, xs, "jvp")
    ys, ys_tuple = _call(func, xs)
    dummies = tuple(F.zeros_like(y).requires_grad_() for y in ys)
    back = _weighted_grad(ys, dummies, xs, True)
    out = _weighted_grad(back, vs, dummies, create_graph)
    return _done(ys, ys_tuple, create_graph), _done(_zero_like(ys, out, strict), ys_tuple, create_graph)


def _forward_jacobian(func: Fn, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    """The Jacobian in forward mode, all columns at once."""
    name = "votive.autograd.functional.jacobian"
    if create_graph:
        raise NotImplementedError(f'{name}: `create_graph=True` is not implemented for `strategy="forward-mode"`.')
    if strict:
        raise RuntimeError(f'{name}: `strict=True` and `strategy="forward-mode"` are not supported together (yet).')
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    xs, is_tuple = _tuple(inputs, "inputs")
    given = tuple(x.detach() for x in xs)
    jacfwd = import_module("..func", __package__).jacfwd
    return jacfwd(func, tuple(range(len(xs))) if is_tuple else 0)(*given)


def _all_rows(y: Tensor, xs: tuple[Tensor, ...], is_tuple: bool, create_graph: bool) -> Any:
    """The Jacobian of one output by all inputs, in one pass over the graph."""
    n = y.numel()
    basis = F.reshape(F.eye(n, dtype=y.dtype, device=y.device), (n, *y.shape))
    got = grad(y, xs, basis, True, create_graph, allow_unused=True, is_grads_batched=True)
    row = []
    for x, g in zip(xs, got, strict=True):
        shape = (*y.shape, *x.shape)
        full = F.zeros(shape, dtype=x.dtype, device=x.device) if g is None else F.reshape(g, shape)
        row.append(full if create_graph else full.detach())
    return tuple(row) if is_tuple else row[0]


@_with_grad
def jacobian(
    func: Fn,
    inputs: Tensor | Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All partial derivatives: shape of the output followed by shape of the input.

    >>> votive.autograd.functional.jacobian(lambda x: x * x, votive.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    xs, is_tuple = _tuple(inputs, "inputs")
    xs = _fresh(xs, create_graph)
    ys, ys_tuple = _call(func, xs)
    rows = []
    for y in ys:
        if vectorize and y._rg and y.numel() and not strict:
            rows.append(_all_rows(y, xs, is_tuple, create_graph))
            continue
        flat = F.reshape(y, (-1,))
        parts: list[list[Any]] = [[] for _ in xs]
        for j in range(flat.numel()):
            got = _gradient(flat[j], xs, retain_graph=True, create_graph=create_graph)
            for k, g in enumerate(_zero_like(xs, got, strict)):
                parts[k].append(g)
        row = []
        for x, p in zip(xs, parts, strict=True):
            shape = (*y.shape, *x.shape)
            stacked = F.reshape(F.stack(p), shape) if p else F.zeros(shape, dtype=x.dtype)
            row.append(stacked if create_graph else stacked.detach())
        rows.append(tuple(row) if is_tuple else row[0])
    return tuple(rows) if ys_tuple else rows[0]


def _scalar(func: Fn) -> Fn:
    def run(*xs: Tensor) -> Any:
        y = func(*xs)
        if not isinstance(y, state.tensor) or y.numel() != 1:
            raise RuntimeError("the function must return a Tensor with a single element.")
        return F.reshape(y, ())

    return run


@_with_grad
def hessian(
    func: Fn,
    inputs: Tensor | Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Second derivatives of a scalar function.

    >>> votive.autograd.functional.hessian(lambda x: (x * x * x).sum(), votive.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _, is_tuple = _tuple(inputs, "inputs")
    value = _scalar(func)

    if outer_jacobian_strategy == "forward-mode":
        many = import_module("..func", __package__)
        value = many.jacrev(value, tuple(range(len(inputs))) if is_tuple else 0)
        return _forward_jacobian(value, inputs, create_graph, strict, vectorize)

    def gradient(*xs: Tensor) -> Any:
        full = _zero_like(xs, _gradient(value(*xs), xs, create_graph=True), strict)
        return tuple(full) if is_tuple else full[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


@_with_grad
def vhp(
    func: Fn,
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(output, v^T H) for a scalar function.

    >>> votive.autograd.functional.vhp(lambda x: x * x * x, votive.tensor(2.0), votive.tensor(1.0))
    (tensor(8.), tensor(12.))
    """
    xs, is_tuple = _tuple(inputs, "inputs")
    xs = _fresh(xs, create_graph)
    vs = _vectors(v, xs, "vhp")
    y = _scalar(func)(*xs)
    out = _weighted_grad(_gradient(y, xs, create_graph=True), vs, xs, create_graph)
    return _done((y,), False, create_graph), _done(_zero_like(xs, out, strict), is_tuple, create_graph)


@_with_grad
def hvp(
    func: Fn,
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(output, H v) for a scalar function.

    >>> votive.autograd.functional.hvp(lambda x: x * x * x, votive.tensor(2.0), votive.tensor(1.0))
    (tensor(8.), tensor(12.))
    """
    _, is_tuple = _tuple(inputs, "inputs")
    value = _scalar(func)

    def gradient(*xs: Tensor) -> Any:
        return tuple(_zero_like(xs, _gradient(value(*xs), xs, create_graph=True), strict))

    xs, _ = _tuple(inputs, "inputs")
    _, out = jvp(gradient, inputs, v, create_graph, False)
    with_value = value(*_fresh(xs, create_graph))
    out = out if isinstance(out, tuple) else (out,)
    return _done((with_value,), False, create_graph), (tuple(out) if is_tuple else out[0])
