"""Adamax."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, columns, count, values
from .optimizer import Params
from .options import check_adam_options, number


class Adamax(GroupOptimizer):
    """Adam with the infinity norm (Kingma and Ba 2014, section 7).

    m = b1 m + (1 - b1) g, u = max(b2 u, |g| + eps), p = p - lr / (1 - b1ᵗ) * m / u.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, options, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": count(group, p), "exp_avg": blank(p), "exp_inf": blank(p)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._adamax_step(
            params,
            grads,
            *columns(states, "exp_avg", "exp_inf", "step"),
            number(group["lr"]),
            *group["betas"],
            *values(group, "eps", "weight_decay", "maximize"),
        )
