"""Muon."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank
from .optimizer import Params
from .options import check_lr, nonnegative, number

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonal(g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix near the orthogonal one closest to `g`, by Newton-Schulz steps of fifth order in bfloat16.

    >>> from votive.optim.muon import COEFFICIENTS, orthogonal
    >>> orthogonal(votive.eye(2) * 5, COEFFICIENTS, 5, 1e-7).float().diagonal().round()
    tensor([1., 1.])
    """
    a, b, c = coefficients
    x = g.to(dt.bfloat16)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.t()
    x = x / F.clamp(F.norm(x), eps)
    for _ in range(steps):
        gram = F.matmul(x, x.t())
        x = F.addmm(x, F.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x


class Muon(GroupOptimizer):
    """Momentum made orthogonal, for matrices of hidden layers (Jordan et al. 2024); use AdamW for all others.

    `adjust_lr_fn` is "original", a rate larger for tall matrices, or "match_rms_adamw", one that gives updates the size
    of AdamW's.

    >>> w = votive.eye(2).requires_grad_()
    >>> opt = votive.optim.Muon([w], lr=0.1, weight_decay=0.0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> bool((w.diagonal() < 1).all())
    True
    """

    _numbers = ()
    _by_number = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        if not momentum >= 0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        nonnegative("weight_decay value", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, options)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter of size: {p.shape}"
                    )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        if p.dtype.is_complex:
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": blank(p)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        lr, momentum = number(group["lr"]), group["momentum"]
        for p, g, state in zip(params, grads, states, strict=True):
            buffer = state["momentum_buffer"]
            buffer.lerp_(g, 1 - momentum)
            update = F.lerp(g, buffer, momentum) if group["nesterov"] else buffer
            update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            p.mul_(1 - lr * group["weight_decay"])
            p.add_(update.to(p.dtype), alpha=-lr * _ratio(group["adjust_lr_fn"], *p.shape))


def _ratio(rule: str | None, rows: int, columns: int) -> float:
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / columns))
