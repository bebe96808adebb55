"""Connectionist temporal classification (Graves et al. 2006). Knows arguments, shapes, gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .loss import NN, reduced, reduction_of
from .registry import F, composite, structured
from .schema import is_tensor
from .sizes import ints

if TYPE_CHECKING:
    from .types import Sequence, Shape, Tensor

LABELS = "Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank"

# The gradient is torch's: it already contains the term that log_softmax would add, so it is exact
# behind a log_softmax, and only there. Its own gradient is not defined.
structured(
    f"_ctc_loss(Tensor log_probs, {LABELS}, bool zero_infinity)",
    infer=lambda x, *rest: x.like((x.shape[1],)),
    grad={
        "log_probs": lambda c, g: F._ctc_loss_backward(
            g, c.log_probs, c.targets, c.input_lengths, c.target_lengths, c.blank, c.zero_infinity
        )
    },
    doc="`-log p(target)` of each sample, summed over all its alignments.",
)

structured(
    f"_ctc_loss_backward(Tensor grad, Tensor log_probs, {LABELS}, bool zero_infinity)",
    infer=lambda g, x, *rest: x.like(x.shape),
    doc="`g (p - q)`: probabilities minus those of a label given the target.",
)


def _lengths(op: str, name: str, given: Tensor | Sequence[int], count: int, highest: int) -> tuple[Shape, Tensor]:
    """Lengths of the samples as integers and as a tensor."""
    if is_tensor(given):
        if given.dtype.category not in (dt.INT, dt.BOOL):
            fail(DtypeError, op, f"{name} must be integers, got {given.dtype}.")
        given = given.reshape(-1).tolist()
    values = ints(op, name, given)
    if len(values) != count:
        fail(ShapeError, op, f"{name} must have one length for each of {count} samples.")
    if not all(0 <= v <= highest for v in values):
        fail(RuntimeError, op, f"{name} must lie in 0..{highest}, got {values}.")
    return values, F._from_data(values, dt.int64, None)


def _check_probs(op: str, x: Spec, blank: int) -> None:
    if x.ndim not in (2, 3):
        fail(ShapeError, op, f"log_probs must be (time, batch, class), got shape {x.shape}.")
    if x.dtype not in (dt.float32, dt.float64):
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; use float32 or float64.")
    if not x.numel:
        fail(ShapeError, op, f"log_probs must not be empty, got shape {x.shape}.")
    if not 0 <= blank < x.shape[-1]:
        fail(RuntimeError, op, f"blank must be a class, 0..{x.shape[-1] - 1}, got {blank}.")


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """`-log p(target)`, p the probability of all paths that read as the target.

    A path names a class at each time; repeats are merged, then blanks removed. `log_probs` is
    (time, batch, class), the result of log_softmax; targets are padded, (batch, length), or
    concatenated. The mean divides by the targets' lengths first. Targets too long for their input
    have an infinite loss, or 0 with `zero_infinity`.

    >>> log_probs = votive.zeros(2, 1, 2).log_softmax(2)
    >>> votive.nn.functional.ctc_loss(log_probs, votive.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
    op = "ctc_loss"
    kind = reduction_of(op, reduction)
    blank = int(blank)
    _check_probs(op, log_probs._spec, blank)
    single = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    time, count, _ = x.shape
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and targets.shape[0] != count):
        fail(
            ShapeError,
            op,
            f"targets must be (batch, length) for {count} samples or one vector of them all, got "
            f"shape {tuple(targets.shape)}.",
        )
    _, frames = _lengths(op, "input_lengths", input_lengths, count, time)
    sizes, labels = _lengths(op, "target_lengths", target_lengths, count, targets.shape[-1])
    if targets.ndim == 1 and sum(sizes) != targets.shape[0]:
        fail(ShapeError, op, f"targets must hold {sum(sizes)} classes, got {targets.shape[0]}.")
    # Lengths may lie on the CPU whatever the device: they were read there anyway.
    frames, labels = frames.to(x.device), labels.to(x.device)
    targets = targets.to(x.device)
    loss = F._ctc_loss(x, targets.to(dt.int64), frames, labels, blank, bool(zero_infinity))
    if kind == "mean":
        return F.mean(loss / F.clamp_min(labels, 1))
    return reduced(loss.reshape(()) if single else loss, kind)
