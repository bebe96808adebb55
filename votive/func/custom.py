"""Custom functions (`autograd.Function`) in transformations: their own `jvp` and `vmap`, or a rule made for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..autograd.function import Function, FunctionCtx
from ..core.mode import mode
from ..ops.registry import F
from ..tensor import Tensor
from .wrapped import Batched, Dual, Level, batched, below, bury_dual, expanded, front, inside, parts


class VmapInfo(NamedTuple):
    """What a function's `vmap` is told: how many examples there are, and how random numbers are drawn."""

    batch_size: int
    randomness: str


def custom_call(cls: Any, args: tuple[Any, ...]) -> Any:
    """`cls.apply(*args)` where some arguments are wrapped."""
    top = max((a for a in args if isinstance(a, (Batched, Dual))), key=lambda a: a._level)
    if isinstance(top, Dual):
        return _dual(cls, args, top._level)
    if cls.setup_context is None:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            "override the setup_context staticmethod."
        )
    size = top._value.shape[top._bdim]
    randomness = next((v.randomness for v in mode.levels if v.number == top._level), "error")
    level = Level(top._level, size, randomness)
    own_rule = cls.vmap is not Function.vmap
    if own_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if own_rule:
        return _by_rule(cls, args, level)
    if not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True."
        )
    return _generated(cls, args, level)


def _taken(args: tuple[Any, ...], level: int) -> tuple[list[Any], list[int | None]]:
    mine = [isinstance(a, Batched) and a._level == level for a in args]
    values = [a._value if m else a for a, m in zip(args, mine, strict=True)]
    return values, [a._bdim if m else None for a, m in zip(args, mine, strict=True)]


def _wrapped(values: Any, dims: Any, level: int) -> list[Any]:
    return [v if d is None or v is None else batched(v, d, level) for v, d in zip(values, dims, strict=True)]


def _by_rule(cls: Any, args: tuple[Any, ...], level: Level) -> Any:
    values, dims = _taken(args, level.number)
    assert level.size is not None
    with below(level.number):
        made = cls.vmap(VmapInfo(level.size, level.randomness), tuple(dims), *values)
    if not (isinstance(made, tuple) and len(made) == 2):
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims.")
    out, out_dims = made
    if not isinstance(out, (tuple, list)):
        return out if out_dims is None else batched(out, out_dims, level.number)
    spread = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(out)
    return type(out)(_wrapped(out, spread, level.number))


def _dual(cls: Any, args: tuple[Any, ...], level: int) -> Any:
    pairs = [parts(a, level) if isinstance(a, Tensor) else (a, None) for a in args]
    primals = tuple(p for p, _ in pairs)
    ctx = _Remembering()
    with below(level):
        out = cls._run(ctx, primals, {}) if not any(getattr(p, "_level", 0) for p in primals) else None
        if out is None:
            raise RuntimeError(
                f"{cls.__name__}: forward mode through a custom function inside another transformation is not "
                "supported; write it with ordinary operators, or transform it alone."
            )
        ctx._forward = ctx.for_forward or ctx.given
        zeros = ctx.materialize_grads
        tangents = [
            F.zeros_like(p) if t is None and zeros and isinstance(p, Tensor) and p.dtype.is_inexact else t
            for p, t in pairs
        ]
        try:
            moved = cls.jvp(ctx, *tangents)
        finally:
            ctx._forward = None
        outs = out if isinstance(out, tuple) else (out,)
        moved = moved if isinstance(moved, (tuple, list)) else (moved,)
        if len(moved) != len(outs):
            raise RuntimeError(
                f"The jvp of {cls.__name__} gave {len(moved)} tangents for the {len(outs)} outputs of forward."
            )
        made = [_with_tangent(cls, o, t, level) for o, t in zip(outs, moved, strict=True)]
    return tuple(made) if isinstance(out, tuple) else made[0]


def _with_tangent(cls: Any, out: Any, tangent: Any, level: int) -> Any:
    if tangent is None or not isinstance(out, Tensor):
        return out
    if tuple(tangent.shape) != tuple(out.shape):
        raise RuntimeError(
            f"The jvp of {cls.__name__} gave a tangent of shape {tuple(tangent.shape)} for an output of shape "
            f"{tuple(out.shape)}."
        )
    return bury_dual(out, tangent, level)


class _Remembering(FunctionCtx):
    """Keeps what is saved for backward also for `jvp`, which runs before."""

    given: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        super().save_for_backward(*tensors)
        self.given = tensors


class _Inner(FunctionCtx):
    """The ctx that a function sees whose forward and backward run on batches."""

    kept: tuple[Any, ...] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.kept


def _generated(cls: Any, args: tuple[Any, ...], level: Level) -> Any:
    """One node for all examples: forward and backward of the function run on batches inside it."""
    values, dims = _taken(args, level.number)
    assert level.size is not None
    size, number = level.size, level.number
    around = (*(v for v in mode.levels if v.number < number), level)
    single: list[bool] = []

    def plain(outs: Any) -> tuple[Any, ...]:
        single[:] = [not isinstance(outs, tuple)]
        listed = outs if isinstance(outs, tuple) else (outs,)
        return tuple(
            front(o._value, o._bdim) if isinstance(o, Batched) and o._level == number else expanded(o, size)
            for o in listed
        )

    def forward(*given: Any) -> Any:
        with inside(around):
            return plain(cls.forward(*_wrapped(given, dims, number)))

    def setup_context(ctx: Any, inputs: Any, outputs: Any) -> None:
        inner = _Inner()
        inner.needs_input_grad = ctx.needs_input_grad
        outs = tuple(batched(o, 0, number) for o in outputs)
        with inside(around):
            cls.setup_context(inner, tuple(_wrapped(inputs, dims, number)), outs[0] if single[0] else outs)
        saved = [_taken((t,), number) for t in inner.to_save]
        ctx.save_for_backward(*(v[0] for v, _ in saved))
        ctx.inner, ctx.dims = inner, [d[0] for _, d in saved]
        inner.to_save = ()

    def backward(ctx: Any, *grads: Any) -> Any:
        inner = ctx.inner
        inner.kept = tuple(_wrapped(ctx.saved_tensors, ctx.dims, number))
        with inside(around):
            made = cls.backward(inner, *(None if g is None else batched(g, 0, number) for g in grads))
        listed = made if isinstance(made, tuple) else (made,)
        return tuple(_back(g, d) for g, d in zip(listed, dims, strict=False))

    def _back(g: Any, dim: int | None) -> Any:
        if g is None:
            return None
        mine = isinstance(g, Batched) and g._level == number
        whole = front(g._value, g._bdim) if mine else expanded(g, size)
        return F.sum(whole, 0) if dim is None else F.movedim(whole, 0, dim)

    rules = {"forward": forward, "setup_context": setup_context, "backward": backward}
    made = type(cls)(f"Vmapped{cls.__name__}", (Function,), {k: staticmethod(v) for k, v in rules.items()})
    outs = made.apply(*values)
    wrapped = tuple(batched(o, 0, number) for o in outs)
    return wrapped[0] if single[0] else wrapped
