"""How norms and losses are written as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.graph import Value
from ..core import dtype as dt
from .rules_reductions import reduced
from .sizes import Sym, product
from .translate import Call, translates


def _ones(c: Call, x: Value, dims: int) -> str:
    shape = c.shape(x)[-dims:]
    return c.op("Expand", c.b.constant(1, c.dtype(x)), c.b.sizes(shape))


@translates("_layer_norm")
def layer_norm(c: Call, x: Value, weight: Value | None, bias: Value | None, dims: int, eps: float) -> list[str]:
    scale = c.name(weight) if weight is not None else _ones(c, x, dims)
    if weight is not None and c.dtype(weight) is not c.dtype(x):
        scale = c.b.cast(scale, c.dtype(x))
    shift = None if bias is None else c.name(bias)
    if bias is not None and c.dtype(bias) is not c.dtype(x):
        shift = c.b.cast(c.name(bias), c.dtype(x))
    return c.b.ops("LayerNormalization", [c.name(x), scale, shift], 3, axis=-dims, epsilon=eps)


def _rms(c: Call, x: str, have: dt.dtype, axes: Sequence[int], eps: float) -> tuple[str, dt.dtype]:
    wide = have if have is dt.float64 else dt.float32
    x = x if have is wide else c.b.cast(x, wide)
    mean = reduced(c, "ReduceMean", c.op("Mul", x, x), axes, True)
    return c.op("Div", x, c.op("Sqrt", c.op("Add", mean, c.b.constant(eps, wide)))), wide


@translates("_rms_norm")
def rms_norm(c: Call, x: Value, weight: Value | None, dims: int, eps: float) -> list[str]:
    n = len(c.shape(x))
    made, wide = _rms(c, c.name(x), c.dtype(x), list(range(n - dims, n)), eps)
    if weight is not None:
        scale = c.name(weight) if c.dtype(weight) is wide else c.b.cast(c.name(weight), wide)
        made = c.op("Mul", made, scale)
    return [made if wide is c.dtype(x) else c.b.cast(made, c.dtype(x))]


@translates("_add_norm")
def add_norm(
    c: Call,
    x: Value,
    delta: Value,
    weight: Value | None,
    bias: Value | None,
    dims: int,
    eps: float,
    centre: bool,
    dtype: Any,
) -> list[str]:
    total = c.op("Add", c.name(x), c.name(delta))
    n = len(c.shape(x))
    axes = list(range(n - dims, n))
    inner = c.op("Sub", total, reduced(c, "ReduceMean", total, axes, True)) if centre else total
    made, wide = _rms(c, inner, c.dtype(x), axes, eps)
    for kind, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            made = c.op(kind, made, c.name(part) if c.dtype(part) is wide else c.b.cast(c.name(part), wide))
    wanted = c.node.outs[1].spec.dtype
    return [total, made if wide is wanted else c.b.cast(made, wanted)]


def _channels(c: Call, x: Value, part: Value | None, n: int) -> str | None:
    """A vector of channels, ready to be broadcast over (N, C, ...)."""
    return None if part is None else c.b.reshape(c.name(part), [-1, *[1] * (n - 2)])


@translates("_group_norm")
def group_norm(c: Call, x: Value, weight: Value | None, bias: Value | None, groups: int, eps: float) -> list[str]:
    shape = c.shape(x)
    if 0 in shape:
        return [c.op("Identity", c.name(x))]
    split = c.b.reshape(
        c.name(x), [shape[0], groups, -1 if not isinstance(shape[0], Sym) else product(shape[1:]) // groups]
    )
    centred = c.op("Sub", split, reduced(c, "ReduceMean", split, [2], True))
    made, wide = _rms(c, centred, c.dtype(x), [2], eps)
    made = c.b.reshape(made, shape)
    for kind, part in (("Mul", weight), ("Add", bias)):
        vector = _channels(c, x, part, len(shape))
        if vector is not None and part is not None:
            made = c.op(kind, made, vector if c.dtype(part) is wide else c.b.cast(vector, wide))
    return [made if wide is c.dtype(x) else c.b.cast(made, c.dtype(x))]


@translates("_batch_norm_by")
def batch_norm_by(
    c: Call, x: Value, mean: Value, var: Value, weight: Value | None, bias: Value | None, eps: float
) -> str:
    channels = c.shape(x)[1]
    scale = c.name(weight) if weight is not None else c.op("Expand", c.b.constant(1, c.dtype(x)), c.b.sizes([channels]))
    shift = c.name(bias) if bias is not None else c.op("Expand", c.b.constant(0, c.dtype(x)), c.b.sizes([channels]))
    return c.op("BatchNormalization", c.name(x), scale, shift, c.name(mean), c.name(var), epsilon=eps)


@translates("_batch_norm")
def batch_norm(c: Call, x: Value, weight: Value | None, bias: Value | None, eps: float) -> list[str]:
    n = len(c.shape(x))
    axes = [0, *range(2, n)]
    centred = c.op("Sub", c.name(x), reduced(c, "ReduceMean", c.name(x), axes, True))
    made, _ = _rms(c, centred, c.dtype(x), axes, eps)
    for kind, part in (("Mul", weight), ("Add", bias)):
        vector = _channels(c, x, part, n)
        made = made if vector is None else c.op(kind, made, vector)
    return [made]


@translates("_move_statistics")
def move_statistics(c: Call, *args: Any) -> list[str]:
    raise c.refuse("a model in training mode changes its statistics, which a file cannot; call model.eval() first")


@translates("_dropout")
def dropout(c: Call, *args: Any) -> str:
    raise c.refuse("a model in training mode draws random numbers; call model.eval() first")


@translates("_cross_entropy_reduced", "_nll_reduced")
def loss_reduced(c: Call, x: Value, target: Value, weight: Value | None, ignore: int, *rest: Any) -> list[str]:
    smoothing = rest[0] if len(rest) == 2 else 0.0
    if smoothing:
        raise c.refuse("label smoothing has no counterpart in ONNX")
    name = (
        c.name(x)
        if c.node.op.name == "_nll_reduced"
        else c.op("LogSoftmax", c.name(x), axis=1 if len(c.shape(x)) > 1 else 0)
    )
    how = "mean" if rest[-1] else "sum"
    made = c.op("NegativeLogLikelihoodLoss", name, c.name(target), c.maybe(weight), reduction=how, ignore_index=ignore)
    return [made]
