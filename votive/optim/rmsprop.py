"""RMSprop."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, column, count, values
from .optimizer import Params
from .options import check_lr, nonnegative, number


class RMSprop(GroupOptimizer):
    """RMSprop (Hinton 2012): the gradient over the root of its square's running mean.

    v = alpha v + (1 - alpha) g², p = p - lr g / (√v + eps). `centered` subtracts the squared mean
    of g from v (Graves 2013); momentum runs over the quotients.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _absent = GroupOptimizer._absent | {"momentum": 0, "centered": False}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        nonnegative("epsilon value", eps)
        nonnegative("momentum value", momentum)
        nonnegative("weight_decay value", weight_decay)
        nonnegative("alpha value", alpha)
        options = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
        }
        super().__init__(
            params, options, capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        state = {"step": count(group, p), "square_avg": blank(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = blank(p)
        if group["centered"]:
            state["grad_avg"] = blank(p)
        return state

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        momentum, centered = group["momentum"], group["centered"]
        F._rmsprop_step(
            params,
            grads,
            column(states, "square_avg"),
            column(states, "grad_avg") if centered else [],
            column(states, "momentum_buffer") if momentum > 0 else [],
            column(states, "step"),
            number(group["lr"]),
            *values(group, "alpha", "eps", "weight_decay"),
            momentum,
            centered,
            group["maximize"],
        )
