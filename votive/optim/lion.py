"""Lion."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, column, values
from .optimizer import Params
from .options import check_betas, check_lr, nonnegative, number


class Lion(GroupOptimizer):
    """Lion (Chen et al. 2023): every element moves by lr, in the sign of an interpolated momentum.

    p = p (1 - lr * weight_decay) - lr sign(b1 m + (1 - b1) g), then m = b2 m + (1 - b2) g. It keeps
    one buffer; a learning rate 3 to 10 times smaller than Adam's suits it.

    >>> w = votive.tensor([1.0, -2.0], requires_grad=True)
    >>> opt = votive.optim.Lion([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _numbers = ()

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_betas(betas)
        nonnegative("weight_decay value", weight_decay)
        options = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(
            params, options, maximize=maximize, foreach=foreach, capturable=capturable, differentiable=differentiable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"exp_avg": blank(p)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._lion_step(
            params,
            grads,
            column(states, "exp_avg"),
            number(group["lr"]),
            *group["betas"],
            *values(group, "weight_decay", "maximize"),
        )
