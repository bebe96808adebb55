"""Checks of the options that optimizers share; each raises what torch raises."""

from __future__ import annotations

from collections.abc import Sequence

from ..tensor import Tensor


def number(value: float | Tensor) -> float:
    """A Python number from a number or a tensor of one element."""
    return value.item() if isinstance(value, Tensor) else value


def nonnegative(what: str, value: float | Tensor) -> None:
    """Refuse negative values and NaN."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {what}: {value}")


def check_lr(lr: float | Tensor) -> None:
    """A learning rate is a number, or a tensor of one element, that is not negative."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    nonnegative("learning rate", lr)


def check_betas(betas: Sequence[float | Tensor]) -> None:
    """Decay rates of running averages lie in [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_adam_options(lr: float | Tensor, betas: Sequence[float | Tensor], eps: float, weight_decay: float) -> None:
    """The checks of Adam and its variants."""
    check_lr(lr)
    nonnegative("epsilon value", eps)
    check_betas(betas)
    nonnegative("weight_decay value", weight_decay)


def check_implementation(foreach: bool | None, fused: bool | None, differentiable: bool = False) -> None:
    """`fused` excludes the other two implementations of a step."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
