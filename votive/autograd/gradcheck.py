"""Compares derived gradients with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dispatch import state
from ..ops.registry import F
from .engine import grad

if TYPE_CHECKING:
    from ..tensor import Tensor


Table = np.ndarray[Any, Any]


class GradcheckError(RuntimeError):
    """The derived gradient is not what finite differences say.

    >>> issubclass(votive.autograd.GradcheckError, RuntimeError)
    True
    """


def _outputs(fn: Callable[..., Any], inputs: Tensor | Sequence[Any]) -> list[Any]:
    out = fn(*inputs)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    return [o for o in outs if isinstance(o, state.tensor) and o._spec.dtype.is_inexact]


def _values(t: Tensor) -> Table:
    return np.array(t.detach().numpy(force=True))


def _writer(x: Tensor) -> Callable[[Any, Any], None]:
    """What sets one element of a tensor, wherever it lies."""
    if x.is_cpu:
        array: Any = x.detach().numpy()
        return lambda index, value: array.__setitem__(index, value)
    memory = x.detach()
    return lambda index, value: memory.__setitem__(index, value.item())


def _numeric(fn: Callable[..., Any], inputs: Tensor | Sequence[Any], x: Tensor, eps: float) -> list[Table]:
    """Columns of the Jacobian by x: d(output)/d(x_j), and for complex x along i as well."""
    flat, write = _values(x), _writer(x)
    steps = [eps] + ([1j * eps] if x.dtype.is_complex else [])
    tables: list[list[Any]] = []
    for step in steps:
        columns: list[Any] = []
        for index in np.ndindex(*flat.shape):
            kept = flat[index]
            with_plus: list[Any] = []
            with_minus: list[Any] = []
            for sign, into in ((1, with_plus), (-1, with_minus)):
                write(index, kept + sign * step)
                try:
                    into.extend(_values(o).ravel().copy() for o in _outputs(fn, inputs))
                finally:
                    write(index, kept)
            columns.append([(p - m) / (2 * eps) for p, m in zip(with_plus, with_minus, strict=True)])
        tables.append(columns)
    n_out = len(tables[0][0]) if tables[0] else len(_outputs(fn, inputs))
    result = []
    for k in range(n_out):
        parts = [np.array([c[k] for c in columns]) for columns in tables]
        result.append(np.stack(parts) if parts[0].size else np.zeros((len(steps), 0, 0)))
    return result


def _analytic(out: Tensor, x: Tensor, create_graph: bool) -> Table:
    """The same table from backward: one pass per output element and per direction."""
    flat = F.reshape(out, (-1,))
    directions = [1.0] + ([1j] if out.dtype.is_complex else [])
    rows = []
    for d in directions:
        row = []
        for j in range(flat.numel()):
            weight = np.zeros(flat.numel(), out.dtype.np)
            weight[j] = d
            towards = F.tensor(weight.tolist(), dtype=out.dtype, device=out.device)
            g = grad(flat, x, towards, retain_graph=True, create_graph=create_graph, allow_unused=True)[0]
            row.append(np.zeros(x.numel(), x.dtype.np) if g is None else _values(g).ravel())
        rows.append(row)
    return np.array(rows)


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients by every input that requires grad agree with central differences.

    `fast_mode` is torch's cheaper check; here every entry is always compared.

    >>> x = votive.tensor([0.3, -0.7], dtype=votive.float64, requires_grad=True)
    >>> votive.autograd.gradcheck(lambda t: t.tanh(), (x,))
    True
    """
    if check_forward_ad or check_batched_grad:
        raise NotImplementedError("gradcheck: forward and batched gradients are not supported.")
    if check_grad_dtypes or masked or not check_backward_ad:
        raise NotImplementedError("gradcheck: check_grad_dtypes, masked and check_backward_ad=False are not supported.")
    inputs = (inputs,) if isinstance(inputs, state.tensor) else tuple(inputs)
    checked = [x for x in inputs if isinstance(x, state.tensor) and x._rg]
    if not checked:
        raise ValueError("gradcheck: at least one input must require grad.")
    try:
        for x in checked:
            if x.dtype.itemsize < (16 if x.dtype.is_complex else 8):
                raise ValueError(f"gradcheck: use double precision inputs, got {x.dtype}.")
            numeric = _numeric(func, inputs, x, eps)
            for k, out in enumerate(_outputs(func, inputs)):
                if not out._rg:
                    continue
                analytic = _analytic(out, x, False)
                _same_again(k, analytic, _analytic(out, x, False), nondet_tol)
                _compare(k, out, x, analytic, numeric[k], atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _same_again(k: int, first: Table, second: Table, tol: float) -> None:
    if not np.allclose(first, second, rtol=0, atol=tol, equal_nan=True):
        raise GradcheckError(
            f"gradcheck: backward of output {k} gave two results in two runs that differ by more than nondet_tol={tol}."
        )


def _compare(k: int, out: Tensor, x: Tensor, analytic: Table, numeric: Table, atol: float, rtol: float) -> None:
    """Both tables as real Jacobians: (re, im) of the output against (re, im) of the input."""
    if out.numel() == 0 or x.numel() == 0:
        return

    def split(a: Table) -> Any:
        return [a.real, a.imag]

    want, got = [], []
    for di in range(numeric.shape[0]):  # step along re, im of x
        parts = split(numeric[di]) if out.dtype.is_complex else [numeric[di].real]
        for do, part in enumerate(parts):
            want.append(part)  # (numel x, numel out)
            a = analytic[do]
            got.append((a.imag if di else a.real).T)
    w, g = np.array(want), np.array(got)
    if not np.allclose(g, w, rtol=rtol, atol=atol, equal_nan=True):
        worst = np.unravel_index(np.nanargmax(np.abs(g - w)), w.shape)
        raise GradcheckError(
            f"gradcheck: Jacobian mismatch for output {k} with respect to an input of shape "
            f"{tuple(x.shape)}: numerical {w[worst]:.6g}, analytical {g[worst]:.6g} at {worst[1:]}."
        )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """`gradcheck` of the gradient itself.

    >>> x = votive.tensor([0.3, -0.7], dtype=votive.float64, requires_grad=True)
    >>> votive.autograd.gradgradcheck(lambda t: t.tanh(), (x,))
    True
    """
    inputs = (inputs,) if isinstance(inputs, state.tensor) else tuple(inputs)
    outs = _outputs(func, inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        weights = []
        for o in outs:
            w = rng.uniform(-1, 1, tuple(o.shape))
            if o.dtype.is_complex:
                w = w + 1j * rng.uniform(-1, 1, tuple(o.shape))
            made = F.tensor(w.tolist(), dtype=o.dtype, device=o.device).reshape(o.shape)
            if gen_non_contig_grad_outputs:
                made = F.stack([made, made], -1)[..., 0]  # every other number in memory
            weights.append(made.requires_grad_())
    else:
        weights = [grad_outputs] if isinstance(grad_outputs, state.tensor) else list(grad_outputs)
    n = len(inputs)

    def gradient(*args: Any) -> Any:
        xs, ws = args[:n], args[n:]
        ys = _outputs(func, xs)
        pairs = [(y, w) for y, w in zip(ys, ws, strict=True) if y._rg]
        wanted = [x for x in xs if isinstance(x, state.tensor) and x._rg]
        got = grad([y for y, _ in pairs], wanted, [w for _, w in pairs], create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None and g._rg)

    return gradcheck(
        gradient, (*inputs, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, **options
    )
