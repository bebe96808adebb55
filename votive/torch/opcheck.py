"""Checks of operators that programs define: their schema, results without values, gradients. Knows no kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import testing
from ..autograd.gradcheck import gradcheck
from ..tensor import Tensor
from .custom_ops import CustomOp, _tensors


class OpCheckError(Exception):
    """An operator does something else than was registered for it."""


def check(
    op: CustomOp,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tests: str | Sequence[str],
    raise_exception: bool,
    atol: float | None,
    rtol: float | None,
) -> dict[str, str]:
    """Run tests by name; what each says, "SUCCESS" or an error."""
    known: dict[str, Callable[[], None]] = {
        "test_schema": lambda: _schema(op, args, kwargs),
        "test_autograd_registration": lambda: _gradient(op, args, kwargs),
        "test_faketensor": lambda: _fake(op, args, kwargs),
        "test_aot_dispatch_static": lambda: _again(op, args, kwargs, atol, rtol),
        "test_aot_dispatch_dynamic": lambda: _again(op, args, kwargs, atol, rtol),
    }
    chosen = [tests] if isinstance(tests, str) else list(tests)
    if unknown := sorted(set(chosen) - set(known)):
        raise ValueError(f"opcheck: there are no tests {unknown}; there are {sorted(known)}.")
    found: dict[str, str] = {}
    for name in chosen:
        try:
            known[name]()
            found[name] = "SUCCESS"
        except Exception as e:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {e} for {op.qualname}") from e
            found[name] = str(e)
    return found


def _schema(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    tensors = _tensors((*args, *kwargs.values()))
    before = [t.detach().clone() for t in tensors]
    op(*args, **kwargs)
    if not op.mutates and any(not _same(a, b) for a, b in zip(tensors, before, strict=True)):
        raise RuntimeError(f"{op.qualname} wrote into an argument that its schema does not name as written")


def _same(a: Tensor, b: Tensor) -> bool:
    return bool((a.detach() == b).logical_or((a.detach() != a.detach()).logical_and(b != b)).all())


def _gradient(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    wanted = [t for t in _tensors(args) if t.requires_grad]
    if wanted and op.composite is None and op._backward is None:
        raise RuntimeError(f"{op.qualname} has inputs that require gradients and no autograd formula")
    if wanted and all(t.dtype.itemsize == 8 for t in wanted):
        gradcheck(lambda *given: op(*given, **kwargs), args)


def _fake(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if op.fake is None:
        if op.composite is None:
            raise RuntimeError(f"{op.qualname} has no fake implementation; register one with register_fake")
        return
    away = [a.detach().to("meta") if isinstance(a, Tensor) else a for a in args]
    shown = _tensors([op.fake(*away, **kwargs)])
    real = _tensors([op(*[a.detach().clone() if isinstance(a, Tensor) else a for a in args], **kwargs)])
    for a, b in zip(shown, real, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            raise RuntimeError(
                f"{op.qualname}: the fake implementation gives {tuple(a.shape)} {a.dtype} {a.stride()}, the operator "
                f"{tuple(b.shape)} {b.dtype} {b.stride()}"
            )


def _again(op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any], atol: float | None, rtol: float | None) -> None:
    """The same inputs must give the same results and gradients twice."""
    runs = []
    for _ in range(2):
        given = [a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args]
        outs = _tensors([op(*given, **kwargs)])
        total = [o.sum() for o in outs if o.requires_grad]
        if total:
            sum(total[1:], total[0]).backward()
        runs.append([*[o.detach() for o in outs], *[t.grad for t in _tensors(given)]])
    for a, b in zip(*runs, strict=True):
        if a is not None:
            testing.assert_close(a, b, atol=atol, rtol=rtol)
