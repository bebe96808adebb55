"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, columns, count, values
from .optimizer import Params, scalar_dtype
from .options import check_adam_options, nonnegative, number


class NAdam(GroupOptimizer):
    """Adam with Nesterov momentum (Dozat 2016); `momentum_decay` warms the momentum up.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    _absent = GroupOptimizer._absent | {"decoupled_weight_decay": False}
    _numbers = ("step", "mu_product")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_options(lr, betas, eps, weight_decay)
        nonnegative("momentum_decay value", momentum_decay)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(
            params, options, maximize=maximize, foreach=foreach, capturable=capturable, differentiable=differentiable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        product = F.ones((), dtype=scalar_dtype())
        return {"step": count(group, p), "mu_product": product, "exp_avg": blank(p), "exp_avg_sq": blank(p)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._nadam_step(
            params,
            grads,
            *columns(states, "exp_avg", "exp_avg_sq", "mu_product", "step"),
            number(group["lr"]),
            *group["betas"],
            *values(group, "eps", "weight_decay", "momentum_decay", "decoupled_weight_decay", "maximize"),
        )
