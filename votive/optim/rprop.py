"""Rprop: resilient backpropagation."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, columns, count
from .optimizer import Params
from .options import check_lr, number


class Rprop(GroupOptimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993), for gradients over the whole data.

    Each element has its own step size: it grows by etas[1] while the gradient keeps its sign and
    shrinks by etas[0] when it turns, in which case the element rests once.

    >>> w = votive.tensor([1.0, -2.0], requires_grad=True)
    >>> opt = votive.optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        options = {"lr": lr, "etas": etas, "step_sizes": step_sizes}
        super().__init__(
            params, options, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        lr = number(group["lr"])
        size = F.full_like(p.grad, complex(lr, lr) if p.is_complex() else lr)
        return {"step": count(group, p), "prev": blank(p), "step_size": size}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._rprop_step(
            params,
            grads,
            *columns(states, "prev", "step_size", "step"),
            *group["etas"],
            *group["step_sizes"],
            group["maximize"],
        )
