"""Cross entropy of classes: from logits in one kernel, or from log-probabilities (nll_loss).

Knows shapes, dtypes and gradients. `q` below is what a target stands for: weight w of its class y,
spread by smoothing s over all C classes, `q_c = (1 - s) w_y [c = y] + s w_c / C`; zero where the
target is ignored. The loss is `-sum_c q_c log p_c`. Classes are dimension 1, or 0 of one sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DimError, DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .autocast_policy import FLOAT32
from .loss import NN, reduction_of
from .registry import F, composite, structured
from .standardise import widened

if TYPE_CHECKING:
    from .types import Callable, Context, Tensor, dtype

CLASSES = "Tensor target, Tensor? weight, int ignore_index, float smoothing"


def class_dim(ndim: int) -> int:
    return 1 if ndim > 1 else 0


def _check(op: str, x: Spec, t: Spec, weight: Spec | None) -> None:
    """Shapes and dtypes of logits, class indices and class weights."""
    if x.dtype.category != dt.FLOAT or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; it takes floating-point.")
    if t.dtype not in (dt.int64, dt.uint8):
        fail(DtypeError, op, f"target must hold class indices as int64, got {t.dtype}.")
    want = (*x.shape[:1], *x.shape[2:]) if x.ndim > 1 else ()
    if t.shape != want:
        # torch raises ValueError where batch sizes differ, RuntimeError for the rest.
        differ = t.shape[:1] != want[:1]
        fail(
            ValueError if differ else ShapeError,
            op,
            f"an input of shape {x.shape} needs a target of shape {want}, got {t.shape}.",
        )
    if weight is None:
        return
    n = x.shape[class_dim(x.ndim)]
    if weight.shape != (n,):
        fail(ShapeError, op, f"weight must be a vector of {n} classes, got {weight.shape}.")
    if weight.dtype is not x.dtype:
        fail(DtypeError, op, f"weight must be {x.dtype} as the input, got {weight.dtype}.")


def _infer(op: str) -> Callable[..., Any]:
    def infer(x: Spec, t: Spec, weight: Spec | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Spec:
        _check(op, x, t, weight)
        return x.like(t.shape, dtype=dtype)

    return infer


structured(
    f"_nll(Tensor input, {CLASSES}, dtype dtype)",
    placement="by class",
    infer=_infer("nll_loss"),
    grad={
        "input": lambda c, g: F._nll_backward(
            g, c.target, c.weight, c.ignore_index, c.smoothing, c.shape("input"), c.spec("input").dtype
        )
    },
    doc="`-sum_c q_c input_c` for each target.",
)

structured(
    f"_nll_backward(Tensor grad, {CLASSES}, int[] size, dtype dtype)",
    infer=lambda g, t, weight, ignore, smoothing, size, dtype: g.like(size, dtype=dtype),
    grad={"grad": lambda c, h: F._nll(h, c.target, c.weight, c.ignore_index, c.smoothing, c.spec("grad").dtype)},
    doc="`-g q`: the adjoint of `_nll`.",
)

structured(
    f"_cross_entropy(Tensor input, {CLASSES}, dtype dtype)",
    placement="by class",
    infer=_infer("cross_entropy"),
    grad={"input": lambda c, g: F._cross_entropy_backward(g, c.input, c.target, c.weight, c.ignore_index, c.smoothing)},
    doc="`-sum_c q_c log_softmax(input)_c` for each target.",
)


def _again(c: Context, h: Tensor) -> tuple[Tensor | None, ...]:
    """`g (Q softmax(x) - q)` by g and by x; Q, the sum of q, is the loss of log p = -1."""
    x, dim = c.input, class_dim(len(c.shape("input")))
    given = (c.target, c.weight, c.ignore_index, c.smoothing)
    total = F._nll(F.full_like(x, -1.0), *given, c.spec("grad").dtype)
    p = F._softmax(x, dim)
    by_g = total * (h * p).sum(dim) + F._nll(h, *given, c.spec("grad").dtype)
    by_x = F._softmax_backward(h * F.unsqueeze(c.grad * total, dim), p, dim)
    return by_g, by_x, None, None


structured(
    f"_cross_entropy_backward(Tensor grad, Tensor input, {CLASSES})",
    infer=lambda g, x, t, weight, ignore, smoothing: x.dense_like(),
    grad=_again,
    doc="`g (Q softmax(input) - q)`: the gradient through cross entropy.",
)


# --- reduced in the same kernel -------------------------------------------------------------------


def _infer_reduced(op: str, statistics: bool) -> Callable[..., Any]:
    def infer(x: Spec, t: Spec, weight: Spec | None, *rest: float) -> tuple[Spec, ...]:
        _check(op, x, t, weight)
        wide = dt.compute_type(x.dtype)
        kept = (x.like((2, *t.shape), dtype=wide),) if statistics else ()
        # The loss of half types stays wide here: what it means is lost in eight bits.
        return x.like((), dtype=wide if statistics else None), x.like((), dtype=wide), *kept

    return infer


def _per_target(c: Context, g: Tensor) -> Tensor:
    """What the reduced gradient means for each target; `out1` is the weight of all that count."""
    return (widened(g) / c.out1 if c.mean else widened(g)).expand(c.shape("target"))


def _grad_nll(c: Context, g: Tensor, *_: Tensor | None) -> Tensor:
    size, kind = c.shape("input"), c.spec("input").dtype
    if mode.grad:
        return F._nll_backward(_per_target(c, g), c.target, c.weight, c.ignore_index, 0.0, size, kind)
    return F._nll_reduced_backward(g, c.out1, c.target, c.weight, c.ignore_index, c.mean, size, kind)


structured(
    "_nll_reduced(Tensor input, Tensor target, Tensor? weight, int ignore_index, bool mean)",
    placement="reduced by class",
    infer=_infer_reduced("nll_loss", False),
    grad={"input": _grad_nll},
    n_out=2,
    doc="The sum or mean of `_nll`, and the weight of the targets that count.",
)

structured(
    "_nll_reduced_backward(Tensor grad, Tensor total, Tensor target, Tensor? weight, "
    "int ignore_index, bool mean, int[] size, dtype dtype)",
    infer=lambda g, total, t, weight, ignore, mean, size, dtype: g.like(size, dtype=dtype),
    differentiable=False,  # with a graph being made, `_nll_backward` runs instead
    doc="The gradient through `_nll_reduced`.",
)


def _grad_reduced(c: Context, g: Tensor, *_: Tensor | None) -> Tensor:
    if mode.grad:
        return F._cross_entropy_backward(_per_target(c, g), c.input, c.target, c.weight, c.ignore_index, c.smoothing)
    return F._cross_entropy_reduced_backward(
        g, c.input, c.target, c.weight, c.out1, c.out2, c.ignore_index, c.smoothing, c.mean
    )


structured(
    f"_cross_entropy_reduced(Tensor input, {CLASSES}, bool mean)",
    placement="reduced by class",
    infer=_infer_reduced("cross_entropy", True),
    grad={"input": _grad_reduced},
    n_out=3,
    doc="The sum or mean of `_cross_entropy`, the weight of the targets that count, and of each "
    "target the largest logit and the sum of exponentials below it.",
)

structured(
    "_cross_entropy_reduced_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, "
    "Tensor total, Tensor statistics, int ignore_index, float smoothing, bool mean)",
    infer=lambda g, x, *rest: x.dense_like(),
    differentiable=False,  # with a graph being made, `_cross_entropy_backward` runs instead
    doc="The gradient through `_cross_entropy_reduced`.",
)


@composite(name="_cross_entropy_reduced_composite")
def cross_entropy_reduced_composite(
    input: Tensor, target: Tensor, weight: Tensor, ignore_index: int, smoothing: float, mean: bool
) -> Tensor:
    """Reduced cross entropy from single operators: what the fused kernel must agree with."""
    wide = dt.compute_type(input.dtype)
    loss = cross_entropy_composite(input, target, weight, ignore_index, smoothing, wide).sum()
    if not mean:
        return loss.to(wide)
    used = target != ignore_index
    if weight is None:
        return (loss / used.sum()).to(wide)
    picked = F.index_select(weight, 0, F.where(used, target, 0).to(dt.int64).reshape(-1))
    return (loss / (picked * used.reshape(-1)).to(wide).sum()).to(wide)


@composite(name="_cross_entropy_composite")
def cross_entropy_composite(
    input: Tensor, target: Tensor, weight: Tensor, ignore_index: int, smoothing: float, dtype: dtype | None
) -> Tensor:
    """Cross entropy from single operators: what the fused kernel must agree with."""
    dim = class_dim(input.ndim)
    log_p = F._log_softmax(input, dim).to(dtype)
    used = target != ignore_index
    at = F.where(used, target, 0).to(dt.int64)
    shape = [-1 if d == dim else 1 for d in range(input.ndim)]
    weighted = log_p if weight is None else log_p * weight.to(dtype).view(shape)
    loss = -F.gather(weighted, dim, at.unsqueeze(dim)).squeeze(dim)
    if smoothing:
        loss = (1 - smoothing) * loss - smoothing / input.size(dim) * weighted.sum(dim)
    return F.where(used, loss, 0)


def _one_target(op: str, input: Tensor, target: Tensor) -> Tensor:
    """One sample may have its target in a vector."""
    if input.ndim == 1 and target.ndim == 1:
        if target.shape[0] != 1:
            raise ValueError(f"{op}: one sample takes one target, got {target.shape[0]}.")
        return target.reshape(())
    return target


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood `-w_y input_y` of the target class y, given log-probabilities.

    The mean divides by the weights of the targets; those equal to `ignore_index` do not count.

    >>> logs = votive.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> votive.nn.functional.nll_loss(logs, votive.tensor([0, 1]), reduction="none")
    tensor([1.3863, 0.6931])
    """
    op = "nll_loss"
    kind = reduction_of(op, reduction, size_average, reduce)
    if input.ndim == 0:
        raise ValueError(f"{op}: the input needs a dimension of classes, got a 0-d tensor.")
    target, ignored = _one_target(op, input, target), int(ignore_index)
    if kind == "none":
        return F._nll(input, target, weight, ignored, 0.0, input.dtype)
    return F._nll_reduced(input, target, weight, ignored, kind == "mean")[0]


def _by_probability(
    op: str, input: Tensor, target: Tensor, weight: Any, ignore_index: int, kind: str, smoothing: float
) -> Tensor:
    """Cross entropy against a distribution over the classes; the mean is over samples."""
    if target.dtype.category != dt.FLOAT:
        fail(DtypeError, op, f"class probabilities must be floating-point, got {target.dtype}.")
    if ignore_index >= 0:
        fail(RuntimeError, op, "ignore_index does not apply to class probabilities.")
    if input.ndim == 0:
        fail(DimError, op, "the input needs a dimension of classes, got a 0-d tensor.")
    dim = class_dim(input.ndim)
    n = input.shape[dim]
    if weight is not None and tuple(weight.shape) != (n,):
        fail(ShapeError, op, f"weight must be a vector of {n} classes, got {tuple(weight.shape)}.")
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / n
    loss = -(F._log_softmax(input, dim) * target)
    if weight is not None:
        loss = loss * weight.view([-1 if d == dim else 1 for d in range(input.ndim)])
    if kind == "mean":
        samples = input._spec.numel // n if n else 0
        return loss.sum() / samples if samples else loss.sum() * float("nan")
    return loss.sum() if kind == "sum" else loss.sum(dim)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy `-w_y log_softmax(input)_y` of class indices y, or of class probabilities.

    Classes are dimension 1, or the only one. `label_smoothing` moves that share of a target evenly
    onto all classes; targets equal to `ignore_index` do not count.

    >>> logits = votive.tensor([[0.0, 0.0], [0.0, 100.0]])
    >>> votive.nn.functional.cross_entropy(logits, votive.tensor([0, 0]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    op = "cross_entropy"
    kind = reduction_of(op, reduction, size_average, reduce)
    smoothing, ignored = float(label_smoothing), int(ignore_index)
    if smoothing > 1:
        fail(RuntimeError, op, f"label_smoothing must lie between 0 and 1, got {smoothing}.")
    if target._spec.shape == input._spec.shape:
        return _by_probability(op, input, target, weight, ignored, kind, smoothing)
    given = (input, _one_target(op, input, target), weight, ignored, max(smoothing, 0.0))
    if kind == "none":
        return F._cross_entropy(*given, input.dtype)
    return F._to_dtype(F._cross_entropy_reduced(*given, kind == "mean")[0], input.dtype)


@composite(name="_wide_cross_entropy")
def wide_cross_entropy(input: Tensor, target: Tensor, ignore_index: int = -100) -> Any:
    """The mean cross entropy of class indices; of half types in float32, without a wide copy."""
    return F._cross_entropy_reduced(input, target, None, ignore_index, 0.0, True)[0]


@composite(namespaces=NN, method=False)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Cross entropy of the logits `input @ linear_weight.T + linear_bias`.

    >>> x, w = votive.ones(1, 2), votive.zeros(4, 2)
    >>> votive.nn.functional.linear_cross_entropy(x, w, votive.tensor([3]))
    tensor(1.3863)
    """
    op = "linear_cross_entropy"
    if options is not None:
        fail(UnsupportedError, op, "options are not supported; leave them out.")
    if input.ndim not in (1, 2):
        fail(ShapeError, op, f"takes one sample or a batch, got shape {tuple(input.shape)}.")
    shape = tuple(linear_weight.shape)
    if len(shape) < 2 or shape[-1] != input.shape[-1]:
        fail(ShapeError, op, f"linear_weight must have shape (classes, ..., {input.shape[-1]}), got {shape}.")
    if linear_bias is not None and tuple(linear_bias.shape) != shape[:-1]:
        fail(ShapeError, op, f"linear_bias must have shape {shape[:-1]}, got {tuple(linear_bias.shape)}.")
    if len(shape) > 2 and input.ndim == 1:
        fail(ShapeError, op, f"a linear_weight of shape {shape} takes a batch of samples.")
    wanted = (*tuple(input.shape)[:-1], *shape[:-1])
    if ignore_index is not None and tuple(target.shape) == wanted:
        fail(RuntimeError, op, "ignore_index does not apply to class probabilities.")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    flat = linear_weight.reshape(-1, shape[-1])
    logits = F.linear(input, flat, bias).reshape(wanted)
    return cross_entropy(
        logits,
        target,
        weight,
        reduction=reduction,
        label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index,
    )
