"""RAdam: rectified Adam."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, columns, count, values
from .optimizer import Params
from .options import check_adam_options, number


class RAdam(GroupOptimizer):
    """Rectified Adam (Liu et al. 2019): plain momentum until the adaptive rate has settled.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _absent = GroupOptimizer._absent | {"decoupled_weight_decay": False}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(
            params, options, maximize=maximize, foreach=foreach, capturable=capturable, differentiable=differentiable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        return {"step": count(group, p), "exp_avg": blank(p), "exp_avg_sq": blank(p)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._radam_step(
            params,
            grads,
            *columns(states, "exp_avg", "exp_avg_sq", "step"),
            number(group["lr"]),
            *group["betas"],
            *values(group, "eps", "weight_decay", "decoupled_weight_decay", "maximize"),
        )
