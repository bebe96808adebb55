"""Custom functions with a hand-written backward, with torch's `ctx` interface."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import AutogradError
from ..core.mode import Ever, mode
from ..dispatch import make, state
from .graph import BaseNode, Edge, Saved, save, sequence, unpacked
from .record import note_context
from .views import edge_of, rebase

if TYPE_CHECKING:
    from ..tensor import Tensor


class FunctionCtx:
    """What forward leaves for backward.

    >>> ctx = votive.autograd.FunctionCtx()
    >>> ctx.save_for_backward(votive.ones(2))
    >>> len(ctx.to_save)
    1
    """

    _node: FunctionNode  # set when forward was recorded

    def __init__(self) -> None:
        self.to_save: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads = True
        self._saved: list[Saved | None] | None = []
        self.for_forward: tuple[Any, ...] = ()
        self._forward: tuple[Any, ...] | None = None  # what `saved_tensors` gives while `jvp` runs

    def save_for_backward(self, *tensors: Tensor) -> None:
        for t in tensors:
            if t is not None and not isinstance(t, state.tensor):
                raise TypeError(
                    f"save_for_backward can only save tensors, got {type(t).__name__}; "
                    "keep other values as attributes of ctx."
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor) -> None:
        """Keep tensors for `jvp`, where `saved_tensors` gives them."""
        self.for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        self.dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if self._forward is not None:
            return self._forward
        if self._saved is None:
            raise AutogradError(
                "trying to backward through the graph a second time, but its saved values have "
                "already been freed; pass retain_graph=True the first time."
            )
        return tuple(self._unpack(s) for s in self._saved)

    def _unpack(self, s: Saved | None) -> Any:
        if s is None:
            return None
        t = unpacked(s) if s.hooks else s.tensor
        if not s.hooks and t._storage.version != s.version:
            raise AutogradError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: {tuple(t.shape)} is at version {t._storage.version}, "
                f"expected version {s.version}."
            )
        if s.is_out >= 0:
            alias = make(t._storage, t._data, t._spec, t._offset)
            node = self._node
            alias._rg, alias._edge = True, node if s.is_out == 0 else Edge(node, s.is_out)
            return alias
        return t


class FunctionNode(BaseNode):
    """The node of one `Function.apply`."""

    cls: Any
    ctx: Any
    positions: list[Any]

    def name(self) -> str:
        return f"{self.cls.__name__}Backward"

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        result = self.cls.backward(self.ctx, *grads)
        if not isinstance(result, tuple):
            result = (result,)
        n = len(self.positions)
        if len(result) > n and all(r is None for r in result[n:]):
            result = result[:n]
        if len(result) != n:
            raise RuntimeError(
                f"function {self.cls.__name__} returned an incorrect number of gradients "
                f"(expected {n}, got {len(result)})."
            )
        out: list[Any] = []
        for i, r in enumerate(result):
            if self.positions[i] is None:
                if r is not None:
                    raise RuntimeError(
                        f"function {self.cls.__name__} returned a gradient other than None at "
                        f"position {i + 1}, but the corresponding forward input was not a Variable."
                    )
                continue
            out.append(self._checked(i, r, self.edges[len(out)]))
        return tuple(out)

    def _checked(self, i: int, grad: Tensor, edge: Any) -> Any:
        """A gradient that can be summed and cast to what its input is."""
        who = f"function {self.cls.__name__} returned a gradient"
        where = f"at position {i + 1}, but its input"
        if grad is not None and not isinstance(grad, state.tensor):
            raise RuntimeError(f"{who} of type {type(grad).__name__} at position {i + 1}; expected a Tensor or None.")
        if grad is None or edge is None:
            return grad
        inner = isinstance(edge, (BaseNode, Edge))
        spec: Any = edge.node.grad_specs[edge.nr] if inner else edge._spec
        wanted, got = spec.shape, grad._spec.shape
        over = len(got) - len(wanted)
        if over < 0 or any(w not in (1, n) for w, n in zip(wanted, got[over:], strict=True)):
            raise RuntimeError(f"{who} of shape {got} {where} has shape {wanted}.")
        if grad._spec.dtype.is_complex and not spec.dtype.is_complex:
            raise RuntimeError(f"{who} of {grad.dtype} {where} is {spec.dtype}; return its real part.")
        if grad._spec.device != spec.device:
            if grad._spec.ndim:
                raise RuntimeError(f"{who} on {grad.device} {where} is on {spec.device}.")
            return grad.to(spec.device)  # a number is at home anywhere
        return grad

    def release(self) -> None:
        self.ctx._saved = None


class _FunctionMeta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{cls.__name__} should not be instantiated; call {cls.__name__}.apply().")


class Function(metaclass=_FunctionMeta):
    """A forward and a backward written by hand.

    >>> class Double(votive.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> Double.apply(votive.ones(2))
    tensor([2., 2.])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("you must implement the forward function for custom Function.")

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        raise NotImplementedError("you must implement the backward function for custom Function.")

    @staticmethod
    def jvp(ctx: FunctionCtx, *grad_inputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    vjp = backward
    setup_context: Any = None
    generate_vmap_rule = False  # whether vmap makes its own rule, by running forward and backward on batches

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward without recording, then attach one node for the whole function."""
        if state.custom is not None and any(getattr(a, "_level", 0) for a in args):
            return state.custom(cls, args)
        return cls._run(FunctionCtx(), args, kwargs)

    @classmethod
    def _run(cls, ctx: FunctionCtx, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        is_tensor = [isinstance(a, state.tensor) for a in args]
        ctx.needs_input_grad = tuple(t and a._rg for a, t in zip(args, is_tensor, strict=True))
        tracked = mode.grad and any(ctx.needs_input_grad)
        saved, mode.grad = mode.grad, False
        try:
            if cls.setup_context is not None:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
        finally:
            mode.grad = saved
        if not tracked:
            return result
        return cls._attach(ctx, args, is_tensor, result)

    @classmethod
    def _attach(cls, ctx: FunctionCtx, args: tuple[Any, ...], is_tensor: list[bool], result: object) -> Any:
        node = FunctionNode()
        node.cls, node.ctx = cls, ctx
        node.positions = [i if t else None for i, t in enumerate(is_tensor)]
        node.edges = tuple(edge_of(a) for a, t in zip(args, is_tensor, strict=True) if t)
        node.seq = next(sequence)
        if Ever.noted and mode.noted:
            note_context(node)
        ctx._node = node
        outs = list(result) if isinstance(result, (tuple, list)) else [result]
        for i, o in enumerate(outs):
            if not isinstance(o, state.tensor) or any(o is x for x in ctx.non_differentiable):
                continue
            if any(o is x for x in ctx.dirty):
                o._storage.version += 1
            elif any(o is a for a in args) or o._rg:
                # An input handed back unchanged, or an old tensor: give the result its own
                # identity.
                outs[i] = make(o._storage, o._data, o._spec, o._offset)
        node.grad_specs = tuple(o._spec if isinstance(o, state.tensor) else None for o in outs)
        node.materialize = ctx.materialize_grads
        for i, o in enumerate(outs):
            if not isinstance(o, state.tensor) or any(o is x for x in ctx.non_differentiable):
                continue
            if not o._spec.dtype.is_inexact:
                continue
            if any(o is x for x in ctx.dirty):
                rebase(o, node)
            else:
                o._rg, o._edge = True, node if i == 0 else Edge(node, i)
        ctx._saved = [cls._save(t, result, outs) for t in ctx.to_save]
        ctx.to_save = ()
        if isinstance(result, (tuple, list)):
            return tuple(outs)
        return outs[0]

    @staticmethod
    def _save(t: Tensor | None, result: object, outs: list[Any]) -> Any:
        if t is None:
            return None
        given = list(result) if isinstance(result, (tuple, list)) else [result]
        for i, o in enumerate(given):
            if t is o and outs[i]._edge is not None:
                return save(t, i)
        return save(t)


class once_differentiable:
    """Mark a backward whose own result cannot be differentiated again."""

    def __new__(cls, fn: Callable[..., Any]) -> Any:
        @functools.wraps(fn)
        def backward(ctx: FunctionCtx, *grads: Tensor | None) -> Any:
            saved, mode.grad = mode.grad, False
            try:
                result = fn(ctx, *grads)
            finally:
                mode.grad = saved
            tracked = [g for g in grads if getattr(g, "_rg", False)]
            if not saved or not tracked:
                return result
            # Whoever goes back through this result must hear of it.
            outs = result if isinstance(result, tuple) else (result,)
            refused = [o if o is None else _Refused.apply(o, *tracked) for o in outs]
            return tuple(refused) if isinstance(result, tuple) else refused[0]

        return backward


class _Refused(Function):
    """The result of a backward that is not differentiable."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, *others: Tensor) -> Any:
        return make(x._storage, x._data, x._spec, x._offset)

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


FunctionMeta = _FunctionMeta


class InplaceFunction(Function):
    """A function with a switch that says whether it writes into its input; kept for old programs."""

    inplace = False
