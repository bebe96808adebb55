"""Derivatives of functions as functions: grad, vjp, jvp, jacrev, jacfwd, hessian, linearize."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.mode import mode
from ..ops.registry import F
from ..tensor import Tensor
from .reverse import fresh, leaves_of, needs_graph, pull, settle
from .tree import Structure, flatten, tree_map, unflatten
from .vectorize import vmap
from .wrapped import Batched, dual, inside, next_level, parts

Fn = Callable[..., Any]
Argnums = int | tuple[int, ...]


def _checked_argnums(argnums: Any, n: int) -> Argnums:
    def one(i: Any) -> int:
        if isinstance(i, bool) or not isinstance(i, int):
            raise RuntimeError(f"argnums must be int, got {type(i)}")
        if not -n <= i < n:
            raise RuntimeError(f"Got argnum={i}, but only {n} positional inputs")
        return i % n

    if isinstance(argnums, int):
        return one(argnums)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    found = tuple(one(i) for i in argnums)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def _pick(args: tuple[Any, ...], argnums: Argnums) -> Any:
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def _put(args: tuple[Any, ...], argnums: Argnums, values: Any) -> tuple[Any, ...]:
    changed = list(args)
    for i, v in [(argnums, values)] if isinstance(argnums, int) else zip(argnums, values, strict=True):
        changed[i] = v
    return tuple(changed)


def _tensors(values: list[Any]) -> None:
    for v in values:
        if not isinstance(v, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(v)}")


class _Recorded:
    """A run of a function on fresh inputs, ready to be gone through backwards."""

    def __init__(self, func: Fn, primals: Any) -> None:
        self.outer = mode.grad
        leaves, self.structure = flatten(primals)
        _tensors(leaves)
        mode.grad = True
        try:
            self.xs = [fresh(x) for x in leaves]
            self.out = func(unflatten(self.xs, self.structure))
        finally:
            mode.grad = self.outer
        self.own = leaves_of(self.xs)

    def settled(self, tree: Any) -> Any:
        return tree_map(lambda t: settle(t, self.own, self.outer) if isinstance(t, Tensor) else t, tree)

    def pull(self, ys: list[Any], vs: list[Any], retain: bool) -> Any:
        create = self.outer and (needs_graph(ys, self.xs) or any(v._rg for v in vs))
        grads = pull(ys, self.xs, vs, create, retain)
        given = [F.zeros_like(x) if g is None else g for g, x in zip(grads, self.xs, strict=True)]
        return unflatten([settle(g, self.own, self.outer) for g in given], self.structure)


def _with_aux(name: str, out: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return out


def grad_and_value(func: Fn, argnums: Argnums = 0, has_aux: bool = False) -> Fn:
    """A function that gives the gradient of `func`, whose result is one number, and that number.

    >>> votive.func.grad_and_value(votive.sin)(votive.tensor(0.0))
    (tensor(1.), tensor(0.))
    """

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        nums = _checked_argnums(argnums, len(args))
        done = _Recorded(lambda picked: func(*_put(args, nums, picked), **kwargs), _pick(args, nums))
        who = "grad_and_value(f)(*args)"
        y, aux = _with_aux(who, done.out, has_aux)
        if not isinstance(y, Tensor):
            raise RuntimeError(f"{who}: Expected f(*args) to return a Tensor, got {type(y)}")
        if y.ndim:
            raise RuntimeError(
                f"{who}: Expected f(*args) to return a scalar Tensor, got tensor with {y.ndim} dims. Maybe you wanted "
                "to use the vjp or jacrev APIs instead?"
            )
        grads = done.pull([y], [F.ones_like(y)], False)
        value = done.settled(y)
        return (grads, (value, done.settled(aux))) if has_aux else (grads, value)

    return run


def grad(func: Fn, argnums: Argnums = 0, has_aux: bool = False) -> Fn:
    """A function that gives the gradient of `func`, whose result is one number.

    >>> votive.func.grad(votive.func.grad(votive.sin))(votive.tensor(1.0))
    tensor(-0.8415)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        grads, rest = both(*args, **kwargs)
        return (grads, rest[1]) if has_aux else grads

    return run


def vjp(func: Fn, *primals: Any, has_aux: bool = False) -> Any:
    """The result of `func`, and a function of a cotangent v that gives `J^T v`.

    >>> y, back = votive.func.vjp(votive.sin, votive.tensor([0.0, 1.0]))
    >>> back(votive.ones(2))
    (tensor([1.0000, 0.5403]),)
    """
    who = "vjp(f, *primals)"
    done = _Recorded(lambda picked: func(*picked), primals)
    out, aux = _with_aux(who, done.out, has_aux)
    ys, structure = flatten(out)
    _only_tensors(who, ys)

    def back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vs, given = flatten(cotangents)
        if given != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given}, primal output: {structure}"
            )
        for i, (v, y) in enumerate(zip(vs, ys, strict=True)):
            if tuple(v.shape) != tuple(y.shape):
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {v.shape} and output[{i}] has a shape of "
                    f"{y.shape}."
                )
        return done.pull(ys, vs, retain_graph)

    settled = done.settled(out)
    return (settled, back, done.settled(aux)) if has_aux else (settled, back)


def _only_tensors(who: str, ys: list[Any]) -> None:
    for y in ys:
        if not isinstance(y, Tensor):
            f = who[4:5]
            raise RuntimeError(f"{who}: expected {f}(*primals) to return only tensors, got unsupported type {type(y)}")


def jvp(func: Fn, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The result of `func`, and how it changes along tangents: `J t`, in one run.

    >>> votive.func.jvp(votive.sin, (votive.tensor(0.0),), (votive.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    who = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{who}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    return _jvp(who, func, primals, tangents, strict, has_aux)


def _jvp(who: str, func: Fn, primals: tuple[Any, ...], tangents: Any, strict: bool, has_aux: bool) -> Any:
    xs, structure = flatten(primals)
    ts, given = flatten(tangents)
    if structure != given:
        raise RuntimeError(
            f"{who}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with "
            f"structure {given}"
        )
    if not xs:
        raise RuntimeError(f"{who}: Expected primals to contain at least one Tensor.")
    _only_tensors(who, xs)
    _only_tensors(who, ts)
    level = next_level()
    duals = [dual(x, matching(x, t), level.number) for x, t in zip(xs, ts, strict=True)]
    with inside((*mode.levels, level)):
        out = func(*unflatten(duals, structure))
    out, aux = _with_aux(who, out, has_aux)
    ys, shape = flatten(out)
    _only_tensors(who, ys)
    pairs = [parts(y, level.number) for y in ys]
    if strict and any(t is None for _, t in pairs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    values = unflatten([p for p, _ in pairs], shape)
    moved = unflatten([F.zeros_like(p) if t is None else t for p, t in pairs], shape)
    if not has_aux:
        return values, moved
    return values, moved, tree_map(lambda t: parts(t, level.number)[0] if isinstance(t, Tensor) else t, aux)


def matching(primal: Any, tangent: Any) -> Any:
    """A tangent that belongs to a tensor, or an error."""
    if not primal.dtype.is_inexact:
        raise ValueError(f"Expected primal to be floating point or complex, but got: {primal.dtype}")
    if tuple(primal.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tangent.dtype is not primal.dtype:
        raise RuntimeError(f"Expected tangent of dtype {primal.dtype}, as its primal has, got {tangent.dtype}.")
    return tangent


def linearize(func: Fn, *primals: Any) -> tuple[Any, Fn]:
    """The result of `func`, and a function of tangents that gives `J t` without running `func` again.

    >>> y, move = votive.func.linearize(votive.sin, votive.tensor(0.0))
    >>> move(votive.tensor(3.0))
    tensor(3.)
    """
    done = _Recorded(lambda picked: func(*picked), primals)
    ys, structure = flatten(done.out)
    _only_tensors("linearize(f, *primals)", ys)
    saved, mode.grad = mode.grad, True
    try:
        vs = [fresh(F.zeros_like(y).detach()) for y in ys]
        back = pull(ys, done.xs, vs, True)
    finally:
        mode.grad = saved
    own = done.own | leaves_of(vs)

    def move(*tangents: Any) -> Any:
        ts, given = flatten(tangents)
        if given != done.structure:
            raise RuntimeError(
                f"Expected the tangents {given} to have the same structure as the primals {done.structure}"
            )
        for i, (t, x) in enumerate(zip(ts, done.xs, strict=True)):
            if tuple(t.shape) != tuple(x.shape):
                raise RuntimeError(
                    f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape {x.shape} of the "
                    "corresponding primal."
                )
        used = [(g, t) for g, t in zip(back, ts, strict=True) if g is not None and g._rg]
        found = pull([g for g, _ in used], vs, [t for _, t in used], mode.grad)
        filled = [F.zeros_like(y) if t is None else t for y, t in zip(ys, found, strict=True)]
        return unflatten([settle(t, own, mode.grad).detach() for t in filled], structure)

    return done.settled(done.out), move


# --- Jacobians ------------------------------------------------------------------------------------


def _basis(like: Sequence[Any]) -> list[Any]:
    """For each tensor the rows of an identity over all elements of all of them."""
    total = sum(x.numel() for x in like)
    found, at = [], 0
    for x in like:
        n = x.numel()
        eye = F.zeros((total, n), dtype=x.dtype, device=x.device)
        if n:
            F.fill_(F.diagonal(eye, -at), 1)
        found.append(F.view(eye, (total, *x.shape)))
        at += n
    return found


def jacrev(func: Fn, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Fn:
    """The Jacobian of `func`, row by row in reverse mode, all rows at once (or `chunk_size` of them).

    >>> votive.func.jacrev(votive.sin)(votive.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        nums = _checked_argnums(argnums, len(args))
        picked = _pick(args, nums)
        done = vjp(lambda p: func(*_put(args, nums, p), **kwargs), picked, has_aux=has_aux)
        out, back = done[0], done[1]
        ys, structure = flatten(out)
        xs, inputs = flatten(picked)
        rows = _basis(ys)
        if rows[0].shape[0] == 0:
            grads = [F.zeros((0, *x.shape), dtype=x.dtype, device=x.device) for x in xs]
        else:
            mapped = vmap(lambda *v: back(unflatten(list(v), structure))[0], chunk_size=chunk_size)
            grads = flatten(mapped(*rows))[0]
        result = _arranged(grads, ys, structure, xs, inputs, of_outputs=True)
        return (result, done[2]) if has_aux else result

    return run


def _arranged(
    columns: list[Any], ys: list[Any], structure: Structure, xs: list[Any], inputs: Structure, of_outputs: bool
) -> Any:
    """Jacobians as results of results: for each output a nest like the inputs.

    `of_outputs`: `columns` holds a tensor per input, rows of all outputs first; else one per output, rows of inputs.
    """
    table: list[list[Any]] = []
    y_sizes, x_sizes = [y.numel() for y in ys], [x.numel() for x in xs]
    if of_outputs:
        cut = [F.split(c, y_sizes, 0) for c in columns]
        for i, y in enumerate(ys):
            table.append([F.reshape(cut[j][i], (*y.shape, *x.shape)) for j, x in enumerate(xs)])
    else:
        for c, y in zip(columns, ys, strict=True):
            pieces = F.split(c, x_sizes, 0)
            row = []
            for p, x in zip(pieces, xs, strict=True):
                p = F.reshape(p, (*x.shape, *y.shape))
                row.append(F.permute(p, (*range(x.ndim, x.ndim + y.ndim), *range(x.ndim))))
            table.append(row)
    return unflatten([unflatten(row, inputs) for row in table], structure)


def jacfwd(
    func: Fn, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error", chunk_size: int | None = None
) -> Fn:
    """The Jacobian of `func`, column by column in forward mode, all columns at once.

    >>> votive.func.jacfwd(votive.sin)(votive.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        nums = _checked_argnums(argnums, len(args))
        picked = _pick(args, nums)
        xs, inputs = flatten(picked)
        _tensors(xs)
        who = "jvp(f, primals, tangents)"
        kept: list[Any] = []

        def along(*ts: Any) -> Any:
            level = mode.levels[-1].number
            made = _jvp(
                who,
                lambda p: func(*_put(args, nums, p), **kwargs),
                (picked,),
                (unflatten(list(ts), inputs),),
                False,
                has_aux,
            )
            kept[:] = [level, made[0], made[2] if has_aux else None]
            return tuple(flatten(made[1])[0])

        columns = vmap(along, randomness=randomness, chunk_size=chunk_size)(*_basis(xs))
        # Values are the same for all columns, unless they are drawn at random for each.
        level = kept[0]
        values, aux = tree_map(lambda t: t._value.select(t._bdim, 0) if _at(t, level) else t, tuple(kept[1:]))
        ys, structure = flatten(values)
        result = _arranged(list(columns), ys, structure, xs, inputs, of_outputs=False)
        return (result, aux) if has_aux else result

    return run


def _at(t: object, level: int) -> bool:
    return isinstance(t, Batched) and t._level == level


def hessian(func: Fn, argnums: Argnums = 0) -> Fn:
    """Second derivatives: forward over reverse mode.

    >>> votive.func.hessian(lambda x: (x * x * x).sum())(votive.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
