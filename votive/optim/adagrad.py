"""Adagrad."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, columns, count, values
from .optimizer import Params
from .options import check_implementation, check_lr, nonnegative, number


class Adagrad(GroupOptimizer):
    """Adagrad (Duchi et al. 2011): the gradient over the root of the sum of all its squares.

    s = s + g², p = p - lr / (1 + (t - 1) lr_decay) * g / (√s + eps).

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _scales = True
    _absent = GroupOptimizer._absent | {"fused": None}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        nonnegative("lr_decay value", lr_decay)
        nonnegative("weight_decay value", weight_decay)
        nonnegative("initial_accumulator_value value", initial_accumulator_value)
        nonnegative("epsilon value", eps)
        check_implementation(foreach, fused, differentiable)
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
        }
        super().__init__(
            params, options, foreach=foreach, maximize=maximize, differentiable=differentiable, fused=fused
        )
        # The sum exists from the start, so that it can be looked at and shared before a step.
        for group in self.param_groups:
            for p in group["params"]:
                self._state_of(p, group)

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        value = self.defaults["initial_accumulator_value"]
        start = complex(value, value) if p.is_complex() else value
        return {"step": count(group, p), "sum": F.full_like(p.detach(), start)}

    def _update_sparse(self, group: dict[str, Any], p: Tensor, grad: Any, state: State) -> None:
        if group["weight_decay"]:
            raise RuntimeError("Adagrad: weight_decay option is not compatible with sparse gradients")
        state["step"] += 1
        rate = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
        g = grad.coalesce()
        values = -g.values() if group["maximize"] else g.values()
        state["sum"].add_(g * g)
        root = state["sum"].sparse_mask(g).values().sqrt() + group["eps"]
        p.add_(g._with(values / root), alpha=-rate)

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        F._adagrad_step(
            params,
            grads,
            *columns(states, "sum", "step"),
            number(group["lr"]),
            *values(group, "lr_decay", "eps", "weight_decay", "maximize"),
            *self._scaling(params[0]),
        )
