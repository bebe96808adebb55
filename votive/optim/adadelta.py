"""Adadelta."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, columns, count, values
from .optimizer import Params
from .options import check_lr, nonnegative, number


class Adadelta(GroupOptimizer):
    """Adadelta (Zeiler 2012): steps in the unit of the parameters.

    v = rho v + (1 - rho) g², d = √(a + eps) / √(v + eps) g, a = rho a + (1 - rho) d², p = p - lr d.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.Adadelta([w], eps=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.1056, 1.0299], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        nonnegative("epsilon value", eps)
        nonnegative("weight_decay value", weight_decay)
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, options, maximize=maximize, capturable=capturable, foreach=foreach, differentiable=differentiable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": count(group, p), "square_avg": blank(p), "acc_delta": blank(p)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._adadelta_step(
            params,
            grads,
            *columns(states, "square_avg", "acc_delta", "step"),
            number(group["lr"]),
            *values(group, "rho", "eps", "weight_decay", "maximize"),
        )
