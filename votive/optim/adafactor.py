"""Adafactor."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, count
from .optimizer import Params
from .options import check_lr, nonnegative, number


class Adafactor(GroupOptimizer):
    """Steps of bounded size with second moments kept by rows and columns only (Shazeer and Stern 2018).

    A matrix of n x m keeps n + m numbers. The step is relative to the size of the parameter, at most `lr`, and at most
    1 / sqrt(t); `d` bounds the root mean square of the update.

    >>> w = votive.ones(2, 2, requires_grad=True)
    >>> opt = votive.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([[0.9000, 0.9000],
            [0.9000, 0.9000]], requires_grad=True)
    """

    _by_number = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        nonnegative("weight_decay value", weight_decay)
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, options, foreach=foreach, maximize=maximize)

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        if p.dtype.is_complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        state: State = {"step": count(group, p)}
        grad: Any = p._grad
        if grad.dim() > 1:
            state["row_var"] = F.zeros_like(grad[..., :1])
            state["col_var"] = F.zeros_like(grad[..., :1, :])
        else:
            state["variance"] = F.zeros_like(grad)
        return state

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        for p, g, state in zip(params, grads, states, strict=True):
            self._one(group, p, -g if group["maximize"] else g, state)

    def _one(self, group: dict[str, Any], p: Tensor, g: Tensor, state: State) -> None:
        small, least = group["eps"]
        small = dt.finfo(p.dtype).eps if small is None else small
        lr = number(group["lr"])
        state["step"] += 1
        step = number(state["step"])
        fresh = step ** group["beta2_decay"]  # the weight of the newest second moment
        size = max(least, F.norm(p).item() / math.sqrt(p.numel())) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        if g.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_((g * g).mean(-1, True), fresh)
            columns.lerp_((g * g).mean(-2, True), fresh)
            moment = F.matmul(rows, columns) / F.clamp(rows.mean(-2, True), small)
        else:
            state["variance"].lerp_(g * g, fresh)
            moment = state["variance"]
        update = F.rsqrt(F.clamp(moment, small * small)) * g
        largest = max(1.0, F.norm(update).item() / (math.sqrt(update.numel()) * group["d"]))
        p.add_(update, alpha=-size / largest)
