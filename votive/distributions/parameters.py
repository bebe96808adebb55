"""Parameters of distributions: broadcast, converted between odds and chances, made at first use.

Knows tensors, no distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import enable_grad
from ..core import dtype as dt
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor

NUMBERS = (int, float)
ParameterLike = Tensor | float


def broadcast_all(*values: ParameterLike) -> tuple[Tensor, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype of the first tensor."""
    if not all(isinstance(v, (Tensor, *NUMBERS)) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise ValueError(f"broadcast_all: parameters must be numbers or tensors, got {kinds}.")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = dt.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    tensors = [v if isinstance(v, Tensor) else F.tensor(v, dtype=dtype, device=device) for v in values]
    return tuple(F.broadcast_tensors(*tensors))


def clamp_probs(probs: Tensor) -> Tensor:
    """Chances kept one rounding step away from 0 and 1, so that their odds are finite."""
    eps = dt.finfo(probs.dtype).eps
    return F.clamp(probs, eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of an event and its opposite (`is_binary`), or log-chances of many."""
    probs = clamp_probs(probs)
    return F.log(probs) - F.log1p(-probs) if is_binary else F.log(probs)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `probs_to_logits`; logits of many events need not be normalised."""
    return F.sigmoid(logits) if is_binary else F.softmax(logits, -1)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return F.sum(value, tuple(range(-dims, 0))) if dims else value


def standard_normal(shape: Size, like: Tensor) -> Tensor:
    """Normal numbers of mean 0 and deviation 1, of the dtype and device of `like`."""
    return F.randn(shape, dtype=like.dtype, device=like.device)


def unfilled(shape: Sequence[int], like: Tensor) -> Tensor:
    """Memory to draw into."""
    return F.empty(shape, dtype=like.dtype, device=like.device)


class lazy_property:
    """An attribute that is computed at its first use, with gradients on, and kept."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.compute(instance)
        # Having no __set__, this descriptor gives way to the instance's own entry.
        instance.__dict__[self.compute.__name__] = value
        return value


class Odds:
    """The two forms of a parameter, `probs` and `logits`: one is given, the other is derived."""

    _is_binary: bool

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, self._is_binary)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, self._is_binary)

    @property
    def _given(self) -> Tensor:
        """The form that was given, or that was asked for first."""
        held = vars(self)
        return held["probs"] if "probs" in held else held["logits"]

    @property
    def param_shape(self) -> Size:
        return self._given.shape


def only_one(probs: ParameterLike | None, logits: ParameterLike | None) -> tuple[str, Any]:
    """Name and value of the form that was given."""
    if probs is not None and logits is None:
        return "probs", probs
    if logits is not None and probs is None:
        return "logits", logits
    raise ValueError("Either `probs` or `logits` must be specified, but not both.")
