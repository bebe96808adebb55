"""Adam."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, blank, column, columns, count, values
from .optimizer import Params
from .options import check_adam_options, check_implementation, number


class Adam(GroupOptimizer):
    """Adam (Kingma and Ba 2014): the gradient's running mean over the root of its square's.

    m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g² and, with t the number of this step,
    p = p - lr (m / (1 - b1ᵗ)) / (√(v / (1 - b2ᵗ)) + eps). `amsgrad` divides by the largest v yet;
    weight decay is added to g, or with `decoupled_weight_decay` shrinks p by lr * weight_decay.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _scales = True
    _absent = GroupOptimizer._absent | {"amsgrad": False, "decoupled_weight_decay": False, "fused": None}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_adam_options(lr, betas, eps, weight_decay)
        _check_tensor_betas(betas, foreach)
        check_implementation(foreach, fused, differentiable)
        options = {
            "lr": lr,
            "betas": tuple(number(b) for b in betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(
            params,
            options,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        state = {"step": count(group, p), "exp_avg": blank(p), "exp_avg_sq": blank(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = blank(p)
        return state

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        beta1, beta2 = group["betas"]
        amsgrad = group["amsgrad"]
        F._adam_step(
            params,
            grads,
            *columns(states, "exp_avg", "exp_avg_sq"),
            column(states, "max_exp_avg_sq") if amsgrad else [],
            column(states, "step"),
            number(group["lr"]),
            number(beta1),
            number(beta2),
            *values(group, "eps", "weight_decay"),
            amsgrad,
            *values(group, "maximize", "decoupled_weight_decay"),
            *self._scaling(params[0]),
        )


def _check_tensor_betas(betas: tuple[Any, Any], foreach: bool | None) -> None:
    if not any(all(isinstance(b, kind) for b in betas) for kind in (float, Tensor)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, b in enumerate(betas):
        if isinstance(b, Tensor):
            if foreach:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if b.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
