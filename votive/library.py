"""`votive.library`: a program's own operators, in Python, with gradients. The names are torch's.

Such an operator is a function of its own here: it computes with votive's operators or NumPy, and is one node of the
graph. `votive.custom_op` and `votive.register_kernel` go deeper: they declare operators with plans and kernels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from .autograd.function import Function
from .tensor import Tensor

__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel"]
_DEFINED: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operator that `custom_op` made; it is called like the function it was made of.

    >>> @votive.library.custom_op("docs::twice", mutates_args=())
    ... def twice(x: votive.Tensor) -> votive.Tensor:
    ...     return votive.from_numpy(x.detach().numpy() * 2)
    >>> twice(votive.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, name: str, fn: Callable[..., Any], mutates: tuple[str, ...]) -> None:
        if name.count("::") != 1:
            raise ValueError(f"custom_op: a name is 'namespace::operator', got {name!r}.")
        self._qualname, self._fn, self._mutates = name, fn, mutates
        self._signature = inspect.signature(fn)
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self.__name__, self.__doc__ = name.split("::")[1], fn.__doc__
        unknown = [n for n in mutates if n not in self._signature.parameters]
        if unknown:
            raise ValueError(f"custom_op: {name} has no argument {', '.join(unknown)}, which mutates_args names.")
        _DEFINED[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: str | Iterable[str] | None, fn: Callable[..., Any] | None = None) -> Any:
        """Let another function compute on a device; None means all devices. Without `fn`, a decorator."""
        names = ["*"] if device_types is None else [device_types] if isinstance(device_types, str) else device_types

        def keep(fn: Callable[..., Any]) -> Callable[..., Any]:
            self._kernels.update(dict.fromkeys(names, fn))
            return fn

        return keep if fn is None else keep(fn)

    def register_fake(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Say what the result looks like without values, for tensors of the device "meta"."""
        self._fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Give the gradient: `backward(ctx, *grads)`, one result per argument, with what `setup_context(ctx, inputs,
        output)` kept.
        """
        if self._mutates:
            raise RuntimeError(
                f"register_autograd: {self._qualname} writes into its arguments and can have no gradient."
            )
        self._backward, self._setup = backward, setup_context

    def _compute(self, args: tuple[Any, ...]) -> Any:
        device = next((a.device.type for a in args if isinstance(a, Tensor)), "cpu")
        if device == "meta":
            if self._fake is None:
                raise NotImplementedError(f"{self._qualname}: tell by register_fake what it gives on 'meta'.")
            return self._fake(*args)
        fn = self._kernels.get(device) or self._kernels.get("*") or self._fn
        return fn(*args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        return _Node.apply(self, *values)


class _Node(Function):
    """One call of such an operator in the graph."""

    @staticmethod
    def forward(ctx: Any, op: CustomOpDef, *args: Any) -> Any:
        ctx.op = op
        out = op._compute(args)
        if op._mutates:
            names = list(op._signature.parameters)
            written = [args[names.index(n)] for n in op._mutates]
            ctx.mark_dirty(*[t for t in written if isinstance(t, Tensor)])
        if op._setup is not None:
            op._setup(ctx=ctx, inputs=args, output=out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        op = ctx.op
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op._qualname} but no autograd formula was registered; "
                "use register_autograd to add one."
            )
        found = op._backward(ctx, *grads)
        return (None, *(found if isinstance(found, tuple) else (found,)))


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
) -> Any:
    """Make a Python function an operator "namespace::name", one node of the graph; without `fn`, a decorator.

    `mutates_args` names the arguments it writes into. With `device_types`, it computes only there, and other functions
    are added by `register_kernel`.

    >>> @votive.library.custom_op("docs::sine", mutates_args=())
    ... def sine(x: votive.Tensor) -> votive.Tensor:
    ...     return votive.from_numpy(np.sin(x.detach().numpy()))
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> sine.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=keep)
    >>> x = votive.zeros(1, requires_grad=True)
    >>> sine(x).backward()
    >>> x.grad
    tensor([1.])
    """
    if schema is not None:
        raise NotImplementedError("custom_op: the signature is that of the function; schema= is not supported.")
    if mutates_args == "unknown":
        raise NotImplementedError('custom_op: name the arguments that are written into; "unknown" is not supported.')
    written = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        op = CustomOpDef(name, fn, written)
        if device_types is not None:
            op.register_kernel(device_types, fn)
            only = [device_types] if isinstance(device_types, str) else list(device_types)

            def refuse(*args: Any) -> Any:
                where = next((a.device.type for a in args if isinstance(a, Tensor)), "cpu")
                raise NotImplementedError(f"{name}: computes on {', '.join(only)}, got tensors on {where}.")

            op.register_kernel(None, refuse)
        return op

    return make if fn is None else make(fn)


def _of(op: Any) -> CustomOpDef:
    found = _DEFINED.get(op) if isinstance(op, str) else op
    if not isinstance(found, CustomOpDef):
        raise RuntimeError(f"{op!r} was not made by votive.library.custom_op.")
    return found


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /) -> Any:
    """Let another function compute an operator of `custom_op` on a device.

    >>> def f(x: votive.Tensor) -> votive.Tensor:
    ...     return x.clone()
    >>> op = votive.library.custom_op("docs::same", f, mutates_args=())
    >>> _ = votive.library.register_kernel("docs::same", "cpu", lambda x: x + 1)
    >>> op(votive.zeros(1))
    tensor([1.])
    """
    return _of(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /) -> Any:
    """Say what an operator of `custom_op` gives on the device "meta".

    >>> op = votive.library.custom_op("docs::copied", lambda x: x.clone(), mutates_args=())
    >>> _ = votive.library.register_fake(op, lambda x: votive.empty_like(x))
    >>> op(votive.empty(2, device="meta")).shape
    votive.Size([2])
    """
    found = _of(op)
    return found.register_fake if func is None else found.register_fake(func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
    """Give the gradient of an operator of `custom_op`.

    >>> op = votive.library.custom_op("docs::negated", lambda x: -x, mutates_args=())
    >>> votive.library.register_autograd("docs::negated", lambda ctx, g: -g)
    >>> x = votive.ones(1, requires_grad=True)
    >>> op(x).backward()
    >>> x.grad
    tensor([-1.])
    """
    _of(op).register_autograd(backward, setup_context=setup_context)
