"""ASGD: averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, columns, values
from .optimizer import Params, scalar_dtype
from .options import check_lr, nonnegative, number


class ASGD(GroupOptimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992).

    The rate decays as lr / (1 + lambd lr t)^alpha; from step `t0` on, `state[p]["ax"]` is the mean
    of the parameters.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _numbers = ("step", "eta", "mu")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        nonnegative("weight_decay value", weight_decay)
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(
            params, options, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        options = {"dtype": scalar_dtype(), "device": p.device}
        return {
            "step": F.zeros((), **options),
            "eta": F.full((), number(group["lr"]), **options),
            "mu": F.ones((), **options),
            "ax": blank(p),
        }

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._asgd_step(
            params,
            grads,
            *columns(states, "ax", "mu", "eta", "step"),
            number(group["lr"]),
            *values(group, "lambd", "alpha", "t0", "weight_decay", "maximize"),
        )
